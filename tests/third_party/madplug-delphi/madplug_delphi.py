"""Delphi: rounds in which agents see how often each answer was given, but not who gave it."""

from collections import Counter
from dataclasses import replace

from pydantic import Field

from madplug import Extension, Options, Review, Visibility, hookimpl, maybe_await


class StatisticsOptions(Options):
    """Options of `delphi.statistics`."""

    head: str = Field(default="Anonymous answers of the last round:", description="the first line")


class Statistics(Extension):
    """After each round, records how often each answer was given, and the median confidence."""

    name = "statistics"

    Options = StatisticsOptions

    @hookimpl(wrapper=True)
    def madplug_round_ended(self, debate):
        """Add a message without an author to what the inner extensions request."""
        review = yield
        return self.with_statistics(review, debate)

    async def with_statistics(self, review, debate):
        """The review, with the statistics unless the round is retracted or another message is recorded."""
        review = await maybe_await(review) or Review()
        return review if review.redo or review.say else replace(review, say=self.statistics(debate))

    def statistics(self, debate):
        """One line per answer, and the median confidence if there is any."""
        voters = {agent.id for agent in debate.voters}
        said = [m for m in debate.transcript.of_round(debate.round) if m.agent in voters]
        counts = Counter(m.key if m.key is not None else "no answer" for m in said)
        lines = [f"{key}: {number} of {len(said)}" for key, number in sorted(counts.items())]
        sure = sorted(m.confidence for m in said if m.confidence is not None)
        if sure:
            lines.append(f"median confidence: {sure[len(sure) // 2]:.2f}")
        return "\n".join([self.options.head, *lines])


class StatisticsOnly(Visibility):
    """Agents see the statistics, and of the other messages only their own."""

    name = "statistics_only"

    def view(self, debate, turn):
        """Messages without an author, and those of the agent itself."""
        return [m for m in debate.transcript.messages if m.agent in (None, turn.agent.id)]

    def neighbours(self, debate, agent, round):
        """No agent sees another one's messages."""
        return ()


@hookimpl
def madplug_register_extensions():
    """Register extensions."""
    return [Statistics]


@hookimpl
def madplug_register_visibilities():
    """Register visibilities."""
    return [StatisticsOnly]
