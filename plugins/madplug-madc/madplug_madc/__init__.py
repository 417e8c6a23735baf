"""MADC: the order in which the others' answers are shown to an agent, and nothing else, is varied."""

from __future__ import annotations

from typing import Any

from madplug import Paradigm, Visibility, hookimpl
from madplug_madc.order import faded, grouped, most_consistent, ordered, rotated
from madplug_madc.visibilities import SOURCE, Order, Ordered

__all__ = ["Cot", "Madc", "Order", "Ordered", "SelfConsistency", "faded", "grouped", "most_consistent", "ordered",
           "rotated"]


_EXCHANGE: dict[str, Any] = {
    "agents": 3, "rounds": 2, "turns": "turns.simultaneous",
    "visibility": {"use": "madc.ordered", "strategy": "most_last"}, "styles": ["som.exchange"],
    "decision": {"use": "voting.plurality", "tie": "first"}}


class Madc(Paradigm):
    """The exchange of `som.debate` with the most frequent answer shown last.

    `rounds` counts the independent first answers: 2 are the paper's one round of debate. The paper debates
    with two to ten agents. Take four or more: of three, each is shown two answers, whose order counting does not
    change, and of two, one.

    Differs from the paper: there is no generic system prompt unless the style's `persona` gives one.
    """

    name = "debate"
    source = SOURCE
    debate = _EXCHANGE


class SelfConsistency(Paradigm):
    """The most frequent of the first answers of `madc.debate`: what the same agents answer before any exchange.

    Its requests are those of the debate's first round, so that with shared completions it costs nothing beside it.
    Give it the debate's `agents`, and its `styles` where they differ from the preset.
    """

    name = "self_consistency"
    source = "MADC 2026, table 1"
    debate = {**_EXCHANGE, "rounds": 1}


class Cot(Paradigm):
    """The first answer of the first agent of `madc.debate`: one chain of thought.

    Its request is that of the debate's first agent, so that with shared completions it costs nothing beside it. Give
    it the debate's `styles` where they differ from the preset.
    """

    name = "cot"
    source = "MADC 2026, table 1"
    debate = {**_EXCHANGE, "agents": 1, "rounds": 1}


@hookimpl
def madplug_register_visibilities() -> list[type[Visibility]]:
    """Register both visibilities."""
    return [Order, Ordered]


@hookimpl
def madplug_register_paradigms() -> list[type[Paradigm]]:
    """Register three paradigms."""
    return [Madc, SelfConsistency, Cot]
