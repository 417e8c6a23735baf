"""MADC: the order in which the others' answers are shown to an agent, and nothing else, is varied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from madplug import Agent, Message, Options, Paradigm, Turn, Visibility, hookimpl
from madplug_madc.order import Strategy, grouped, most_consistent, ordered

if TYPE_CHECKING:
    from madplug import Debate

__all__ = ["Madc", "MadcOptions", "Ordered", "grouped", "most_consistent", "ordered"]

_SOURCE = "MADC 2026, section 3 and Algorithm 1; the authors' code"


class MadcOptions(Options):
    """Which order, and counted among whom."""

    strategy: Strategy = Field(default="most_last", description=(
        "order of the others' latest answers; fixed: by agent; random: drawn; most_last (MADC) and most_first: by how "
        "often an answer is given; truth_first and truth_last: by whether it is right (needs oracle = true)"))
    scope: Literal["recipient", "global"] = Field(default="recipient", description=(
        "recipient: counted and drawn among the answers an agent is shown; global: one list of all answers, the same "
        "for everybody, from which an agent's own is left out"))
    group_equal: bool = Field(default=False, description="show equal answers side by side")
    window: int | None = Field(default=None, ge=0, le=10_000, description=(
        "rounds before the current one that are shown; default: all"))


class Ordered(Visibility):
    """Everybody sees everything, and the others' latest answers in a chosen order.

    What an agent said itself and what is older comes first, as it was said; then the answers of the last
    round by others, in the order of the strategy. Equally frequent answers stay in the order of the agents;
    an answer that could not be read is like no other. Random orders depend on the study's seed, the sample,
    the round and, with `scope = "recipient"`, on who reads. Where no answer is right the strategies that
    know are `fixed`.

    Differs from the paper: Algorithm 1 makes one list for all agents and puts the first of the most
    frequent answers at its end, which is `scope = "global"`; the authors' code, which gave the results,
    counts among the answers that an agent is shown. One version of that code loses answers when one could
    not be read; not so here.
    """

    name = "ordered"
    source = _SOURCE
    Options = MadcOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        if self.options.strategy.startswith("truth"):
            self.needs = frozenset({"references"})

    def view(self, debate: Debate, turn: Turn) -> Sequence[Message]:
        """Everything, the latest of the others in order."""
        window, me = self.options.window, turn.agent.id
        oldest = 0 if window is None else debate.round - window
        shown = [m for m in debate.transcript.messages if m.round >= oldest or (m.round == 0 and m.agent is None)]
        latest = max((m.round for m in shown if m.agent != me and m.move != "say"), default=0)
        newest = [m for m in shown if m.round == latest and m.move != "say"]
        older = [m for m in shown if m.round != latest or m.move == "say" or m.agent == me]
        return [*older, *(m for m in self.arranged(debate, turn.agent, newest) if m.agent != me)]

    def arranged(self, debate: Debate, agent: Agent, newest: Sequence[Message]) -> list[Message]:
        """The latest messages, the agent's own somewhere among them, in the order of the strategy."""
        o, everybody = self.options, self.options.scope == "global"
        among = [m for m in newest if everybody or m.agent != agent.id]
        labels = [("unread", m.id) if m.key is None else m.key for m in among]
        if everybody and o.strategy in ("most_last", "most_first"):
            places = most_consistent(o.strategy, labels, group_equal=o.group_equal)
        else:
            right = self.right(debate, among) if o.strategy.startswith("truth") else ()
            reader = "" if everybody else f":{agent.id}"
            rng = debate.rng(f"madc.ordered:{debate.round}{reader}") if o.strategy == "random" else None
            places = ordered(o.strategy, labels, right=right, rng=rng, group_equal=o.group_equal)
        return [among[i] for i in places]

    def right(self, debate: Debate, messages: Sequence[Message]) -> list[bool]:
        """By message, whether its answer is right. Reads the references."""
        answers = debate.answers
        keys = [k for k in (answers.canonical(r, debate.sample) for r in debate.references) if k is not None]
        return [m.key is not None and any(answers.same(m.key, k, debate.sample) for k in keys) for m in messages]


class Madc(Paradigm):
    """The exchange of `som.debate` with the most frequent answer shown last.

    `rounds` counts the independent first answers: 2 are the paper's one round of debate. The paper debates
    with up to ten agents.
    """

    name = "debate"
    source = _SOURCE
    debate = {
        "agents": 3, "rounds": 2, "turns": "turns.simultaneous",
        "visibility": {"use": "madc.ordered", "strategy": "most_last"}, "styles": ["som.exchange"],
        "decision": {"use": "voting.plurality", "tie": "first"}}


@hookimpl
def madplug_register_visibilities() -> list[type[Visibility]]:
    """Offer the orders."""
    return [Ordered]


@hookimpl
def madplug_register_paradigms() -> list[type[Paradigm]]:
    """Offer the debate."""
    return [Madc]
