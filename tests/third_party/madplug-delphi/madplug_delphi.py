"""Delphi: rounds in which nobody sees who said what, but how the answers were spread."""

from collections import Counter

from pydantic import Field

from madplug import Extension, Options, Review, Visibility, hookimpl


class Statistics(Extension):
    """After each round, puts on record how often each answer was given, and how sure those were who gave it."""

    name = "statistics"

    class Options(Options):
        """Options of `delphi.statistics`."""

        head: str = Field(default="Anonymous answers of the last round:", description="the first line")

    @hookimpl
    def madplug_round_ended(self, debate):
        """A message that nobody wrote."""
        voters = {agent.id for agent in debate.voters}
        said = [m for m in debate.transcript.of_round(debate.round) if m.agent in voters]
        counts = Counter(m.key if m.key is not None else "no answer" for m in said)
        lines = [f"{key}: {number} of {len(said)}" for key, number in sorted(counts.items())]
        sure = sorted(m.confidence for m in said if m.confidence is not None)
        if sure:
            lines.append(f"median confidence: {sure[len(sure) // 2]:.2f}")
        return Review(say="\n".join([self.options.head, *lines]))


class StatisticsOnly(Visibility):
    """Agents see the statistics, and of what was said only their own words."""

    name = "statistics_only"

    def view(self, debate, turn):
        """What nobody wrote, and what the agent wrote itself."""
        return [m for m in debate.transcript.messages if m.agent in (None, turn.agent.id)]

    def neighbours(self, debate, agent, round):
        """Nobody hears anybody."""
        return ()


@hookimpl
def madplug_register_extensions():
    """Offer the statistics."""
    return [Statistics]


@hookimpl
def madplug_register_visibilities():
    """Offer what is left to see."""
    return [StatisticsOnly]
