"""All agents draft on their own before they see other messages."""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from madplug import Extension, Message, Options, Reply, Turn, hookimpl

if TYPE_CHECKING:
    from madplug import Debate

View = Sequence[Message]
Awaited = Awaitable[Reply]

class BlindFirstRoundOptions(Options):
    """How long, and for which turns."""

    rounds: int = Field(default=1, ge=1, le=10_000, description=(
        "rounds that are blind, from the first; as many as the debate has make all of them blind"))
    turns: Literal["all", "first"] = Field(default="all", description=(
        "blind turns of such a round: all, or only an agent's first, where it speaks several times"))


class BlindFirstRound(Extension):
    """In round 1 agents do not see each other's messages: each proposes its own solution (all-agents drafting).

    From the next round on, the visibility of the debate applies, to the messages of the first round too.
    An agent that saw nothing cannot agree: a reply that does so in a blind turn is recorded as not agreeing, so
    that a consensus needs at least one more round. Messages that no agent wrote are part of the task and stay
    visible.
    """

    name = "blind_first_round"
    source = "Kaesberg et al. 2025 (Voting or Consensus), section 4.3"
    Options = BlindFirstRoundOptions

    @hookimpl(wrapper=True)
    def madplug_view(self, debate: Debate, turn: Turn) -> Generator[None, View, View]:
        """Nothing that an agent wrote, in a blind turn."""
        view = yield
        return [m for m in view if m.agent is None] if self.is_blind(debate, turn) else view

    @hookimpl(wrapper=True)
    def madplug_reply(self, debate: Debate, turn: Turn) -> Generator[None, Awaited, Awaited]:
        """No agreement in a blind turn."""
        reply = yield
        return unmoved(reply) if self.is_blind(debate, turn) else reply

    def is_blind(self, debate: Debate, turn: Turn) -> bool:
        """Whether this turn is blind."""
        if debate.round > self.options.rounds:
            return False
        spoken = any(m.agent == turn.agent.id for m in debate.transcript.of_round(debate.round))
        return self.options.turns == "all" or not spoken


async def unmoved(reply: Awaitable[Reply]) -> Reply:
    """The reply; an agreement that it states is refused, and the record says so."""
    said = await reply
    if said.agreement is not True:
        return said
    return replace(said, agreement=False, data={**said.data, "visibility": {"agreement_refused": True}})
