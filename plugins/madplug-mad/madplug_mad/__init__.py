"""Tit for tat (Liang et al. 2024): two sides argue, and a moderator ends the debate."""

from __future__ import annotations

from madplug import Paradigm, hookimpl
from madplug_mad.moderated import Moderated
from madplug_mad.moderator import Moderator
from madplug_mad.sides import Opponent, Roles, Side, Sides

__all__ = ["Moderated", "Moderator", "Opponent", "Roles", "Side", "Sides", "TitForTat"]


class TitForTat(Paradigm):
    """Two sides argue in turn before a moderator, who ends the debate as soon as an answer is convincing.

    Affirmative, negative, moderator, one after the other; after the last round a judge reads the debate.
    `agents` counts the moderator: with 5 there are four debaters, who speak one by one and see each other's messages.
    `rounds` is the most there can be, 3 unless the run file says otherwise.
    """

    name = "tit_for_tat"
    source = "Liang et al. 2024, Encouraging Divergent Thinking, section 2"
    debate = {"agents": 3, "rounds": 3, "personas": ["mad.roles"], "turns": "mad.sides",
              "visibility": "mad.opponent", "styles": ["mad.side", "mad.moderator"],
              "decision": "mad.moderated"}


@hookimpl
def madplug_register_personas() -> list[type]:
    """Register the persona generator."""
    return [Roles]


@hookimpl
def madplug_register_turn_orders() -> list[type]:
    """Register the turn order."""
    return [Sides]


@hookimpl
def madplug_register_visibilities() -> list[type]:
    """Register the visibility."""
    return [Opponent]


@hookimpl
def madplug_register_styles() -> list[type]:
    """Register two styles."""
    return [Side, Moderator]


@hookimpl
def madplug_register_decisions() -> list[type]:
    """Register the decision."""
    return [Moderated]


@hookimpl
def madplug_register_paradigms() -> list[type]:
    """Register the paradigm."""
    return [TitForTat]
