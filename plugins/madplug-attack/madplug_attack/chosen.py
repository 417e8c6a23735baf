"""Which agents are attacked."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import Field

from madplug import Extension, Options, hookimpl

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Mapping
    from typing import Any

    from madplug import Debate, Message, Reply

Opening = TypeVar("Opening", bound="Sequence[Message] | Awaitable[Sequence[Message]]")


class AttackOptions(Options):
    """Options every attack has."""

    share: float = Field(default=0.25, ge=0, le=1, description=(
        "share of the agents that are attacked, rounded to the nearest number, at least one; 0: no attack"))
    agents: tuple[Annotated[int, Field(ge=0)], ...] | None = Field(default=None, description=(
        "these agents instead of drawn ones, from 0"))


class Attack(Extension):
    """An attack on some of the agents, the same ones throughout a debate.

    Each kind of attack strikes the same agents of a sample, so that a sweep over kinds compares attacks, not agents.
    """

    Options = AttackOptions

    def chosen(self, debate: Debate) -> tuple[int, ...]:
        """The attacked agents: the same for every call in a debate and for every kind of attack.

        Those of a smaller share are among those of a larger one.
        """
        if self.options.agents is not None:
            return tuple(sorted(set(self.options.agents)))
        ids = sorted(a.id for a in debate.agents)
        wanted = attacked(self.options.share, len(ids))
        return tuple(sorted(debate.rng("attack:agents").sample(ids, len(ids))[:wanted]))

    @hookimpl(wrapper=True)
    def madplug_opening(self, debate: Debate) -> Generator[None, Opening, Opening]:
        """Note which agents are attacked; the opening stays as it is."""
        opening = yield
        if chosen := self.chosen(debate):
            debate.notes[f"attack.{self.name}"] = {"agents": list(chosen)}
        return opening

    def check(self, cell: Any) -> Iterable[str]:
        """Only agents that are there can be attacked."""
        for agent in self.options.agents or ():
            if agent >= cell.wanted:
                yield f"'agents' names agent {agent}; there are {cell.wanted}, counted from 0"


def attacked(share: float, agents: int) -> int:
    """How many of the agents a share is: halves are rounded up, and a share above 0 is at least one."""
    exact = Fraction(str(share)) * agents
    return min(agents, max(1, floor(exact + Fraction(1, 2)))) if exact else 0


def noted(reply: Reply, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The reply's data with what an attack did to this turn."""
    return {**reply.data, "attack": {**reply.data.get("attack", {}), **facts}}
