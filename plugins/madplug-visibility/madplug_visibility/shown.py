"""Which messages an agent is shown."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field
from typing_extensions import override

from madplug import Agent, Message, Options, Turn, Visibility
from madplug_turns import speakers

if TYPE_CHECKING:
    from madplug import Debate

MALLM = "Becker et al. 2025 (MALLM), section 3.2"


class WindowOptions(Options):
    """How far back an agent can see."""

    window: int | None = Field(default=None, ge=0, le=10_000, description=(
        "rounds before the current one that are shown; 0: the current round only; default: all"))


class Windowed(Visibility):
    """A view is the messages within the window that reach the agent."""

    source = MALLM
    Options = WindowOptions

    def view(self, debate: Debate, turn: Turn) -> Sequence[Message]:
        """The messages that reach the agent, oldest first."""
        return [m for m in self.recent(debate)
                if m.agent in (None, turn.agent.id) or self.reaches(debate, turn.agent, m)]

    def recent(self, debate: Debate) -> list[Message]:
        """The messages that are not too old to be shown."""
        window = self.options.window
        oldest = 0 if window is None else debate.round - window
        return [m for m in debate.transcript.messages
                if m.round >= oldest or (m.round == 0 and m.agent is None)]

    @abstractmethod
    def reaches(self, debate: Debate, agent: Agent, message: Message) -> bool:
        """Whether a message of another agent reaches this one."""


class Everything(Windowed):
    """Every agent sees everything that was said, including this round's messages. MALLM's memory.

    Differs from the released code of MALLM: the window of two rounds, which paper and configuration mention,
    has no effect there.
    """

    name = "everything"

    @override
    def reaches(self, debate: Debate, agent: Agent, message: Message) -> bool:
        return True


class Own(Windowed):
    """An agent sees only its own messages."""

    name = "own"
    source = ""

    @override
    def reaches(self, debate: Debate, agent: Agent, message: Message) -> bool:
        return False

    @override
    def neighbours(self, debate: Debate, agent: Agent, round: int) -> Sequence[int]:
        return ()


class PreviousRound(Windowed):
    """An agent sees what all agents said in the previous round, and nothing of the current one.

    Its own message comes first, then those of the others in the order of their agents. Collective refinement,
    and the state that agents speaking simultaneously share. A window does not reach further than the round
    before; with `own = "all"` it limits how many of the agent's own earlier messages are shown.
    """

    name = "previous_round"
    source = "Kaesberg et al. 2025 (Voting or Consensus), section 4.3; Du et al. 2023"

    class Options(WindowOptions):
        """How much of an agent's own past is shown, and how far back."""

        own: Literal["previous", "all"] = Field(default="previous", description=(
            "the agent's own messages: those of the round before, or all that the window reaches"))

    def view(self, debate: Debate, turn: Turn) -> Sequence[Message]:
        """Notes, own messages, then the others', agent by agent."""
        before = [m for m in self.recent(debate) if m.round < debate.round]
        notes = [m for m in before if m.agent is None]
        own = [m for m in before if m.agent == turn.agent.id
               and (self.options.own == "all" or m.round == debate.round - 1)]
        others = [m for m in before if m.agent not in (None, turn.agent.id) and m.round == debate.round - 1]
        opening = [m for m in notes if m.round == 0]
        return [*opening, *own, *sorted(others, key=lambda m: (m.agent, m.id)),
                *(m for m in notes if m.round == debate.round - 1 > 0)]

    def reaches(self, debate: Debate, agent: Agent, message: Message) -> bool:
        """In the round after."""
        return message.round == debate.round - 1


class Relay(Windowed):
    """Agents form a ring, in the order of speech, and each sees the messages of the one before it.

    `history = "last"`, as in the paper: only the latest message of the one before. An agent's own messages are
    always shown.

    Differs from the released code of MALLM, where the messages of the one before accumulate: `history = "all"`.
    """

    name = "relay"

    class Options(WindowOptions):
        """How much of the neighbour's past is shown."""

        history: Literal["last", "all"] = Field(default="last", description=(
            "of the agent before: its latest message, or all that the window reaches"))

    def view(self, debate: Debate, turn: Turn) -> Sequence[Message]:
        """Own messages, and the latest or all of the agent before."""
        shown = super().view(debate, turn)
        if self.options.history == "all":
            return shown
        before = predecessor(debate, turn.agent)
        last = max((m.id for m in shown if m.agent == before), default=None)
        return [m for m in shown if m.agent != before or m.agent == turn.agent.id or m.id == last]

    def reaches(self, debate: Debate, agent: Agent, message: Message) -> bool:
        """When the agent before wrote it."""
        return message.agent == predecessor(debate, agent)

    def neighbours(self, debate: Debate, agent: Agent, round: int) -> Sequence[int]:
        """The agent before."""
        before = predecessor(debate, agent)
        return () if before == agent.id else (before,)


class Report(Windowed):
    """A central agent sees everything; the others see the central agent and themselves.

    The central agent is the first to speak: agent 0, or the first neutral one.
    """

    name = "report"

    def reaches(self, debate: Debate, agent: Agent, message: Message) -> bool:
        """When it comes from the centre, or goes there."""
        centre = speakers(debate)[0].id
        return centre in (agent.id, message.agent)

    def neighbours(self, debate: Debate, agent: Agent, round: int) -> Sequence[int]:
        """The centre; for the centre, all others."""
        centre = speakers(debate)[0].id
        return (centre,) if agent.id != centre else tuple(a.id for a in debate.active if a.id != centre)


class InnerDebate(Windowed):
    """The first speaker's draft goes to all; the others pass messages on in an inner ring.

    The drafter sees only the last pass of a round. Made for the turn order `turns.inner_debate`, which names
    the passes; with another one the drafter sees everything.

    Differs from the released code of MALLM, where with four agents or more every agent sees the inner messages
    of all agents before it.
    """

    name = "inner_debate"

    def reaches(self, debate: Debate, agent: Agent, message: Message) -> bool:
        """Drafts always; inner messages when they come from the agent before, or close the round."""
        centre, *others = speakers(debate)
        if message.agent == centre.id:
            return True
        if agent.id == centre.id:
            return message.stage == last_stage(debate, message.round)
        return message.agent == before_in(others, agent)

    def neighbours(self, debate: Debate, agent: Agent, round: int) -> Sequence[int]:
        """The drafter and the agent before; for the drafter, all others."""
        centre, *others = speakers(debate)
        if agent.id == centre.id:
            return tuple(a.id for a in debate.active if a.id != centre.id)
        return tuple(dict.fromkeys(i for i in (centre.id, before_in(others, agent)) if i != agent.id))


def predecessor(debate: Debate, agent: Agent) -> int:
    """The agent before this one in the order of speech; before the first comes the last."""
    return before_in(speakers(debate), agent)


def before_in(ring: Sequence[Agent], agent: Agent) -> int:
    """The id of the agent before this one in a ring."""
    ids = [a.id for a in ring]
    return ids[ids.index(agent.id) - 1]


def last_stage(debate: Debate, round: int) -> str:
    """The stage with which the agents' messages of a round end."""
    said: Iterator[Message] = (m for m in reversed(debate.transcript.of_round(round)) if m.agent is not None)
    last = next(said, None)
    return last.stage if last else ""
