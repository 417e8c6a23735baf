"""Turn orders: who speaks when, and what is asked of them.

Neutral agents (role `neutral`, no vote) speak before the others, wherever they are in the list, and only
draft.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from madplug import Agent, Options, Turn, TurnOrder, hookimpl

if TYPE_CHECKING:
    from madplug import Debate

MALLM = "Becker et al. 2025 (MALLM), section 3.2"


def is_neutral(agent: Agent) -> bool:
    """Whether an agent only drafts: it has the role `neutral` and no vote."""
    return agent.persona.role == "neutral" and not agent.persona.votes


def speakers(debate: Debate) -> tuple[Agent, ...]:
    """All agents in the order of speech: neutral ones first, then the others, each in their own order."""
    return tuple(sorted(debate.agents, key=lambda agent: not is_neutral(agent)))


class MoveOptions(Options):
    """The names of the moves."""

    draft: str = Field(default="draft", min_length=1, description="the move of an agent that writes a full solution")
    move: str = Field(default="improve", min_length=1, description="the move of all others")


class RoundOptions(MoveOptions):
    """The names of the moves, where the first round may ask for another one."""

    first: str = Field(default="improve", min_length=1, description="the move of the first round")


class Ordered(TurnOrder):
    """What all orders of this plugin share."""

    source = MALLM
    Options = MoveOptions

    def usual(self, debate: Debate) -> str:
        """The move of an agent that is not set to draft."""
        return str(self.options.move)

    def turn(self, debate: Debate, agent: Agent, stage: str = "") -> Turn:
        """The turn of an agent that is not the drafter; neutral agents still draft."""
        return Turn(agent, self.options.draft if is_neutral(agent) else self.usual(debate), stage)

    def check(self, cell: Any) -> Iterable[str]:
        """A neutral agent needs a style that writes drafts."""
        names = [getattr(g, "name", "") for g in cell.personas]
        if "neutral" in names and not any(self.options.draft in s.style.moves for s in cell.styles):
            yield (f"a neutral agent is asked for the move '{self.options.draft}', "
                   "which no style of this cell writes")


class Rounds(Ordered):
    """Orders in which the first round may have another move."""

    Options = RoundOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        self.moves = frozenset({self.options.first, self.options.move})

    def usual(self, debate: Debate) -> str:
        """`first` in round 1, then `move`."""
        return str(self.options.first if debate.round == 1 else self.options.move)


class RoundRobin(Rounds):
    """One agent after the other, in the same order every round.

    Each speaks once a round and, where it may see this round's messages, answers those before it. MALLM's
    memory and relay.
    """

    name = "round_robin"

    def waves(self, debate: Debate) -> Iterator[Sequence[Turn]]:
        """A wave per agent."""
        for agent in speakers(debate):
            yield [self.turn(debate, agent)]


class Simultaneous(Rounds):
    """All agents at the same time, on the transcript as the last round left it.

    The order in which replies arrive changes nothing. Neutral agents, where there are any, draft in a wave of
    their own before the others. The first round asks for drafts, the later ones for improvements.
    """

    name = "simultaneous"
    source = "Du et al. 2023; " + MALLM

    class Options(RoundOptions):
        """The names of the moves."""

        first: str = Field(default="draft", min_length=1, description="the move of the first round")

    def waves(self, debate: Debate) -> Iterator[Sequence[Turn]]:
        """A wave of the neutral agents, and a wave of the others."""
        for wanted in (True, False):
            turns = [self.turn(debate, agent) for agent in speakers(debate) if is_neutral(agent) is wanted]
            if turns:
                yield turns

    def steps(self, agents: int, round: int) -> int:
        """One."""
        return 1


class Drafting(Ordered):
    """Orders in which the first speaker always drafts."""

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        self.moves = frozenset({self.options.draft, self.options.move})

    def drafted(self, agent: Agent, stage: str = "") -> Turn:
        """The first speaker's turn."""
        return Turn(agent, self.options.draft, stage)


class DrafterFirst(Drafting):
    """The first agent writes a draft, then the others improve it one after the other.

    Every round begins with a new draft of the first agent, which is agent 0 or the first neutral one. MALLM's
    report. With `move = "feedback"` the others only comment.
    """

    name = "drafter_first"

    def waves(self, debate: Debate) -> Iterator[Sequence[Turn]]:
        """A wave per agent, the drafter's first."""
        first, *others = speakers(debate)
        yield [self.drafted(first)]
        for agent in others:
            yield [self.turn(debate, agent)]


class InnerDebate(Drafting):
    """The first agent writes a draft, then the others debate it among themselves for `inner` passes.

    A pass goes through all others in order; its turns carry the stage `inner1`, `inner2`, ..., so that a
    visibility can tell the last pass, which the drafter sees, from those before. The draft has the stage
    `draft`. MALLM's debate.
    """

    name = "inner_debate"

    class Options(MoveOptions):
        """The names of the moves, and how long the others debate."""

        inner: int = Field(default=2, ge=1, le=100, description="passes of the inner debate in one round")

    def waves(self, debate: Debate) -> Iterator[Sequence[Turn]]:
        """A wave for the draft, then a wave per agent and pass."""
        first, *others = speakers(debate)
        yield [self.drafted(first, "draft")]
        for number in range(1, self.options.inner + 1):
            for agent in others:
                yield [self.turn(debate, agent, f"inner{number}")]

    def turns(self, agents: int, round: int) -> int:
        """The draft, and every pass of the others."""
        return 1 + int(self.options.inner) * (agents - 1)


@hookimpl
def madplug_register_turn_orders() -> Iterable[type[TurnOrder]]:
    """Register four turn orders."""
    return [RoundRobin, Simultaneous, DrafterFirst, InnerDebate]
