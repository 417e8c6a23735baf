"""S2-MAD (Zeng et al. 2025): agents read only what differs from their own view, and are silent if nothing does."""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from madplug import (
    Decision,
    DecisionProtocol,
    Embedder,
    Extension,
    Message,
    Metric,
    Nested,
    Offers,
    Options,
    Paradigm,
    Reply,
    ServiceName,
    Turn,
    Visibility,
    hookimpl,
)
from madplug_prompting.ties import Tie
from madplug_prompting.vectors import cosine
from madplug_voting.plurality import Plurality

if TYPE_CHECKING:
    from madplug import Agent, Debate

__all__ = ["Embeddings", "Novel", "Savings", "SelectiveDebate", "Unanimous"]

_SOURCE = "Zeng et al. 2025 (S2-MAD), section 3"


class NovelOptions(Options):
    """What is narrowed down, and how."""

    inner: Nested[Visibility] = Field(description="the visibility whose messages are narrowed down")
    similarity: Literal["answer", "embedding"] = Field(default="answer", description=(
        "when two messages are similar: they give the same answer; or the cosine of their embeddings reaches "
        "`threshold` (needs `selective.embeddings`)"))
    threshold: float = Field(default=0.65, ge=-1, le=1, description="the cosine from which on messages are similar")
    moves: frozenset[str] = Field(default=frozenset({"improve"}), description=(
        "the moves of the turns that are selective; in others an agent sees all that `inner` shows, and speaks"))


class Novel(Visibility):
    """Of the messages that another visibility shows, those that differ from the agent's own and from each other.

    Left out is what is similar to the agent's own last message, then what is similar to a message that is kept, in the
    order of `inner`; an agent's own messages and the opening stay. An agent that is left with nothing does not speak:
    it makes no call, and its last message is recorded again, marked in its data, so that its answer counts and others
    can read it. A message whose answer cannot be read is similar to none, so its agent always speaks.

    Differs from the paper in the default of `threshold`, which is another implementation's.
    """

    name = "novel"
    source = _SOURCE
    Options = NovelOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        self.needs = frozenset({"embedding"}) if self.options.similarity == "embedding" else frozenset()

    def view(self, debate: Debate, turn: Turn) -> Sequence[Message]:
        """What is new to the agent, and its own messages."""
        shown = self.options.inner.view(debate, turn)
        own = last_answer(debate, turn.agent)
        return shown if own is None or turn.move not in self.options.moves else list(self.novel(debate, own, shown))

    def novel(self, debate: Debate, own: Message, shown: Sequence[Message]) -> Iterator[Message]:
        """The messages that are left."""
        known, has_spoken = [own], False
        for message in shown:
            if is_incoming(message, own):
                if any(self.similar(debate, message, other) for other in known):
                    continue
                known.append(message)
            elif message.agent == own.agent:
                if has_spoken and is_silent(message):  # its first record is shown
                    continue
                has_spoken = True
            yield message

    def similar(self, debate: Debate, one: Message, other: Message) -> bool:
        """Whether two messages say the same."""
        if self.options.similarity == "answer":
            key = key_of(debate, one)
            return key is not None and key == key_of(debate, other)
        vectors = [m.data.get("selective", {}).get("vector") for m in (one, other)]
        return None not in vectors and cosine(*vectors) >= self.options.threshold

    @hookimpl
    def madplug_reply(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Awaitable[Reply] | None:
        """The agent's last message again, if it sees nothing else."""
        own = last_answer(debate, turn.agent)
        if own is None or own.key is None or turn.move not in self.options.moves:
            return None
        return None if any(is_incoming(m, own) for m in view) else repeated(own)

    def neighbours(self, debate: Debate, agent: Agent, round: int) -> Sequence[int]:
        """Those of the inner visibility."""
        return self.options.inner.neighbours(debate, agent, round)


async def repeated(own: Message) -> Reply:
    """A message that is recorded again, without a call."""
    data = {**own.data, "selective": {**own.data.get("selective", {}), "silent": True}}
    return Reply(own.content, own.answer, own.agreement, own.confidence, data)


def last_answer(debate: Debate, agent: Agent) -> Message | None:
    """An agent's last message that was to give an answer."""
    return next((m for m in reversed(debate.transcript.by(agent)) if m.answers), None)


def is_incoming(message: Message, own: Message) -> bool:
    """Whether a message is neither the agent's own answer nor part of the opening."""
    return not (message.agent == own.agent and message.answers) and message.round > 0


def is_silent(message: Message) -> bool:
    """Whether a message is an earlier one that was recorded again."""
    return bool(message.data.get("selective", {}).get("silent"))


def key_of(debate: Debate, message: Message) -> str | None:
    """The answer of a message; of a summary or a note the answer that is read from its text."""
    return message.key if message.answers else debate.key(message.content)


class EmbeddingsOptions(Options):
    """The embedder."""

    embedder: Annotated[ServiceName, Offers(Embedder)] = Field(description="the service that embeds messages")


class Embeddings(Extension):
    """Stores an embedding of every message with it, for `selective.novel` with `similarity = "embedding"`."""

    name = "embeddings"
    source = _SOURCE
    gives = frozenset({"embedding"})
    Options = EmbeddingsOptions

    @hookimpl(wrapper=True)
    def madplug_reply(self, debate: Debate) -> Generator[None, Awaitable[Reply], Awaitable[Reply]]:
        """The reply with its vector."""
        reply = yield
        return self.embedded(debate, reply)

    async def embedded(self, debate: Debate, given: Awaitable[Reply]) -> Reply:
        """Embed a reply; one that is recorded again has its vector."""
        reply = await given
        noted = reply.data.get("selective", {})
        if "vector" in noted or not reply.content.strip():
            return reply
        [vector] = await debate.service(self.options.embedder, Embedder).embed([reply.content])
        return replace(reply, data={**reply.data, "selective": {**noted, "vector": [round(x, 4) for x in vector]}})


class UnanimousOptions(Plurality.Options):
    """Those of `voting.plurality`."""

    tie: Tie = Field(default="first", description=(
        "what several leading answers lead to in the end: the first agent's, a random one, none, or the first "
        "alphabetically"))


class Unanimous(Plurality):
    """The answer of all agents as soon as they agree, and else the plurality of the last round.

    Counted after each wave in which the last of them has spoken, so that nothing more of that round is paid for, such
    as summaries of groups.
    """

    name = "unanimous"
    source = _SOURCE
    Options = UnanimousOptions

    async def after_wave(self, debate: Debate) -> Decision | None:
        """A decision if all voters have spoken and agree."""
        said = {m.agent: m.key for m in debate.transcript.of_round(debate.round) if m.answers}
        keys = {said.get(agent.id) for agent in debate.voters}
        return None if len(keys) != 1 or None in keys else await self.at_end(debate)


class Savings(Metric):
    """Messages of others that agents were shown, and turns in which they did not speak.

    `read` counts what the views of turns had of other agents and notes, `silent` the turns without a call.
    """

    name = "savings"
    source = _SOURCE

    def score(self, debate: Debate, references: Sequence[str]) -> dict[str, float | None]:
        """Two counts."""
        turns = [m for m in debate.transcript.messages if m.agent is not None and m.round > 0]
        known = {m.id: m for m in debate.transcript.record}
        shown = [(known[id], m) for m in turns for id in m.seen]
        return {"read": float(sum(one.agent != m.agent and one.round > 0 for one, m in shown)),
                "silent": float(sum(map(is_silent, turns)))}


class SelectiveDebate(Paradigm):
    """A debate in groups in which agents read only what differs from their own view, and are silent if nothing does.

    Five agents in two groups, two stages of two rounds, with summaries between the stages. It ends as soon as all
    agree, and else after the last round by plurality. At most 22 calls: n S R + G (S - 1).

    Differs from the paper, of which a note was at hand: no summaries are written if all agree.
    """

    name = "debate"
    source = _SOURCE
    debate = {"agents": 5, "rounds": 4, "turns": {"use": "groups.stages", "groups": 2, "stages": 2, "length": 2},
              "visibility": {"use": "selective.novel", "inner": "groups.members"}, "styles": ["groups.exchange"],
              "decision": "selective.unanimous"}


@hookimpl
def madplug_register_visibilities() -> list[type[Visibility]]:
    """Register the visibility."""
    return [Novel]


@hookimpl
def madplug_register_extensions() -> list[type[Extension]]:
    """Register the extension."""
    return [Embeddings]


@hookimpl
def madplug_register_decisions() -> list[type[DecisionProtocol]]:
    """Register the decision."""
    return [Unanimous]


@hookimpl
def madplug_register_metrics() -> list[type[Metric]]:
    """Register the metric."""
    return [Savings]


@hookimpl
def madplug_register_paradigms() -> list[type[Paradigm]]:
    """Register the paradigm."""
    return [SelectiveDebate]
