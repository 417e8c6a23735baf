"""Tit for tat (Liang et al. 2024): two sides argue, and a moderator says when it has heard enough."""

from __future__ import annotations

from madplug import Paradigm, hookimpl
from madplug_mad.moderated import Moderated
from madplug_mad.moderator import Moderator
from madplug_mad.sides import Opponent, Roles, Side, Sides

__all__ = ["Moderated", "Moderator", "Opponent", "Roles", "Side", "Sides", "TitForTat"]


class TitForTat(Paradigm):
    """Two sides argue in turn under a moderator, who ends the debate as soon as an answer convinces.

    Affirmative, negative, moderator, one after the other; after the last round a judge reads the debate.
    `agents` counts the moderator: with 5 there are four debaters, who speak one by one and hear each other.
    At most 3 rounds.
    """

    name = "tit_for_tat"
    source = "Liang et al. 2024, Encouraging Divergent Thinking, section 2"
    debate = {"agents": 3, "rounds": 3, "personas": ["mad.roles"], "turns": "mad.sides",
              "visibility": "mad.opponent", "styles": ["mad.side", "mad.moderator"],
              "decision": "mad.moderated"}


@hookimpl
def madplug_register_personas() -> list[type]:
    """Offer the roles."""
    return [Roles]


@hookimpl
def madplug_register_turn_orders() -> list[type]:
    """Offer the order of sides and moderator."""
    return [Sides]


@hookimpl
def madplug_register_visibilities() -> list[type]:
    """Offer who hears whom."""
    return [Opponent]


@hookimpl
def madplug_register_styles() -> list[type]:
    """Offer the debaters and the moderator."""
    return [Side, Moderator]


@hookimpl
def madplug_register_decisions() -> list[type]:
    """Offer the adaptive break and the judge."""
    return [Moderated]


@hookimpl
def madplug_register_paradigms() -> list[type]:
    """Offer the method."""
    return [TitForTat]
