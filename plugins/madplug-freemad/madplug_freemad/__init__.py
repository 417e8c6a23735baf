"""Free-MAD: debate without consensus. Agents resist conformity, and a score over the trajectory decides."""

from __future__ import annotations

from typing import Any

from madplug import DecisionProtocol, Paradigm, Style, hookimpl
from madplug_freemad.score import Score, ScoreOptions, trajectory_scores
from madplug_freemad.style import AntiConformity, AntiConformityOptions

__all__ = ["AntiConformity", "AntiConformityOptions", "Baseline1", "Baseline2", "C", "N", "Score", "ScoreOptions",
           "trajectory_scores"]

_SOURCE = "Free-MAD 2025, section 4 (the ablation of style and decision)"
_PLURALITY = {"use": "voting.plurality", "tie": "first"}


def _debate(style: str, decision: Any) -> dict[str, Any]:
    return {"agents": 3, "rounds": 2, "turns": "turns.simultaneous", "visibility": "visibility.everything",
            "styles": [style], "decision": decision}


class N(Paradigm):
    """Free-MAD with anti-conformity: critique instead of agreement, and a score over the trajectory.

    `rounds` counts the independent first answers, so 2 are the paper's one round of debate.
    """

    name = "n"
    source = _SOURCE
    debate = _debate("freemad.anti_conformity", "freemad.score")


class C(Paradigm):
    """Free-MAD with conformity: the plain exchange, and a score over the trajectory."""

    name = "c"
    source = _SOURCE
    debate = _debate("som.exchange", "freemad.score")


class Baseline1(Paradigm):
    """Anti-conformity with the plurality of the last round, without the score."""

    name = "baseline1"
    source = _SOURCE
    debate = _debate("freemad.anti_conformity", _PLURALITY)


class Baseline2(Paradigm):
    """Conformity with the plurality of the last round: `som.debate`."""

    name = "baseline2"
    source = _SOURCE
    debate = _debate("som.exchange", _PLURALITY)


@hookimpl
def madplug_register_styles() -> list[type[Style]]:
    """Register the style."""
    return [AntiConformity]


@hookimpl
def madplug_register_decisions() -> list[type[DecisionProtocol]]:
    """Register the decision."""
    return [Score]


@hookimpl
def madplug_register_paradigms() -> list[type[Paradigm]]:
    """Register four paradigms."""
    return [N, C, Baseline1, Baseline2]
