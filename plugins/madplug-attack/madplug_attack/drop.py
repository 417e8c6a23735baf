"""Agents that are cut off from the others."""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from madplug import Message, Reply, Turn, hookimpl
from madplug_attack.chosen import Attack, AttackOptions, noted

if TYPE_CHECKING:
    from madplug import Debate


class DropOptions(AttackOptions):
    """Whom, and what becomes of them."""

    cut_off: Literal["asked", "frozen"] = Field(default="asked", description=(
        "asked: an agent that is cut off answers again from its own history alone; frozen: it is not asked after "
        "its first turn, and its answer is carried on"))


class Drop(Attack):
    """Cuts off a share of the agents: nothing that others say reaches them, while everyone receives what they say.

    The agents are drawn once per sample, the same for every kind of attack, and stay cut off. They see their own
    earlier messages and what was on record before the debate without an author; with `som.exchange` they are asked to
    verify their own answer.
    Scoring and decision are untouched. Each message of such an agent records in `data["attack"]` what was
    withheld from it, and the debate's notes name the agents. With `share = 0` not a byte of a debate changes.

    Differs from the paper: it names neither the share nor how the agents are drawn; a quarter, rounded to
    the nearest number, is this project's default.
    """

    name = "drop"
    source = "Free-MAD 2025, Algorithm 2 and Appendix A"
    Options = DropOptions

    @hookimpl(wrapper=True)
    def madplug_view(self, debate: Debate, turn: Turn) -> Generator[None, Sequence[Message], Sequence[Message]]:
        """Nothing from others."""
        view = yield
        return [m for m in view if reaches(m, turn)] if turn.agent.id in self.chosen(debate) else view

    @hookimpl(specname="madplug_reply")
    def frozen_reply(self, debate: Debate, turn: Turn) -> Awaitable[Reply] | None:
        """The last answer once more, where agents that are cut off are not asked."""
        last = debate.transcript.last(turn.agent)
        if self.options.cut_off != "frozen" or last is None or turn.agent.id not in self.chosen(debate):
            return None
        return carried(last)

    @hookimpl(wrapper=True)
    def madplug_reply(self, debate: Debate, turn: Turn) -> Generator[None, Awaitable[Reply], Awaitable[Reply]]:
        """Record what was withheld from the agent."""
        replied = yield
        if turn.agent.id not in self.chosen(debate):
            return replied
        dropped = [m.id for m in debate.cell.visibility.view(debate, turn) if not reaches(m, turn)]

        async def recorded() -> Reply:
            reply = await replied
            return replace(reply, data=noted(reply, {"dropped": dropped}))

        return recorded()


def reaches(message: Message, turn: Turn) -> bool:
    """Whether a message reaches an agent that is cut off."""
    return message.agent == turn.agent.id or (message.agent is None and message.round == 0)


async def carried(message: Message) -> Reply:
    """A message as the reply of a turn that was not taken."""
    data = {name: facts for name, facts in message.data.items() if name != "attack"}
    return Reply(message.content, message.answer or "", message.agreement, message.confidence,
                 {**data, "attack": {"frozen": True}}, answers=message.answers)
