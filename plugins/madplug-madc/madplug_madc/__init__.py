"""MADC: the order in which the others' answers are shown to an agent, and nothing else, is varied."""

from __future__ import annotations

from madplug import Paradigm, Visibility, hookimpl
from madplug_madc.order import grouped, most_consistent, ordered
from madplug_madc.visibilities import SOURCE, Order, Ordered

__all__ = ["Madc", "Order", "Ordered", "grouped", "most_consistent", "ordered"]


class Madc(Paradigm):
    """The exchange of `som.debate` with the most frequent answer shown last.

    `rounds` counts the independent first answers: 2 are the paper's one round of debate. The paper debates
    with up to ten agents.
    """

    name = "debate"
    source = SOURCE
    debate = {
        "agents": 3, "rounds": 2, "turns": "turns.simultaneous",
        "visibility": {"use": "madc.ordered", "strategy": "most_last"}, "styles": ["som.exchange"],
        "decision": {"use": "voting.plurality", "tie": "first"}}


@hookimpl
def madplug_register_visibilities() -> list[type[Visibility]]:
    """Register both visibilities."""
    return [Order, Ordered]


@hookimpl
def madplug_register_paradigms() -> list[type[Paradigm]]:
    """Register the paradigm."""
    return [Madc]
