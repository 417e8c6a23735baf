"""DyLAN (Liu et al. 2023): a debate that stops early, whose agents rate each other, and teams chosen by the ratings."""

from __future__ import annotations

from madplug import DecisionProtocol, Metric, Paradigm, PersonaGenerator, Style, TurnOrder, Visibility, hookimpl
from madplug_dylan.debate import Consensus, Order, Previous
from madplug_dylan.importance import Importance, Unread, importances
from madplug_dylan.rating import Rating, read_ratings, weights_of
from madplug_dylan.team import Roles, Team

__all__ = ["Consensus", "DylanDebate", "Importance", "Order", "Previous", "Rating", "Roles", "Team", "Unread",
           "importances", "read_ratings", "weights_of"]


class DylanDebate(Paradigm):
    """Four roles answer in turn until more than two thirds agree; from round 3 on only the two best are asked.

    From round 2 on agents see the replies of the round before and rate them. n agents make at most 2n + 1 + 2(T - 2)
    calls in T rounds if n > 3, and nT if not: 11 by default. `dylan.importance` says what each agent contributed, and
    `dylan.team` chooses a team by it.

    Differs from the authors' code, in which the two that act from round 3 on are not those that the ranker has chosen:
    `debate.turns.acting = "as_published"`. The temperature (1.0) and the length (2,048 tokens) are options of the
    models. The code for programs, with judges and testers, is not offered.
    """

    name = "debate"
    source = "Liu et al. 2023 (DyLAN), section 3; the authors' code for MMLU"
    debate = {"agents": 4, "rounds": 3, "personas": ["dylan.roles"], "turns": "dylan.order",
              "visibility": "dylan.previous", "styles": ["dylan.rating"], "decision": "dylan.consensus"}


@hookimpl
def madplug_register_personas() -> list[type[PersonaGenerator]]:
    """Register two persona generators."""
    return [Roles, Team]


@hookimpl
def madplug_register_turn_orders() -> list[type[TurnOrder]]:
    """Register the turn order."""
    return [Order]


@hookimpl
def madplug_register_visibilities() -> list[type[Visibility]]:
    """Register the visibility."""
    return [Previous]


@hookimpl
def madplug_register_styles() -> list[type[Style]]:
    """Register the style."""
    return [Rating]


@hookimpl
def madplug_register_decisions() -> list[type[DecisionProtocol]]:
    """Register the decision."""
    return [Consensus]


@hookimpl
def madplug_register_metrics() -> list[type[Metric]]:
    """Register two metrics."""
    return [Importance, Unread]


@hookimpl
def madplug_register_paradigms() -> list[type[Paradigm]]:
    """Register the paradigm."""
    return [DylanDebate]
