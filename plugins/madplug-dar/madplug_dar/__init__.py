"""Debates in which only the messages worth reading are passed on (DAR)."""

from __future__ import annotations

from madplug import Metric, Paradigm, Style, Visibility, hookimpl
from madplug_dar.retention import Retained, Retention
from madplug_dar.revise import Revise

__all__ = ["DarDebate", "Retained", "Retention", "Revise"]


class DarDebate(Paradigm):
    """Before each round of debate one call chooses which messages everybody reads; the last round's vote decides.

    `rounds` counts the first answers: 3 are two rounds of debate. n agents and R rounds of debate make n + R (n + 1)
    calls, 14 with four agents. The choice is of what differs most (`debate.visibility.mode = "critical"`); every other
    debate has the same filter with `visibility = {use = "dar.retained", inner = "..."}`.
    """

    name = "debate"
    source = "DAR (arXiv 2603.20640); the authors' code"
    debate = {
        "agents": 4, "rounds": 3, "turns": "turns.simultaneous",
        "visibility": {"use": "dar.retained", "inner": "visibility.previous_round"}, "styles": ["dar.revise"],
        "decision": {"use": "voting.plurality", "tie": "random"}}


@hookimpl
def madplug_register_paradigms() -> list[type[Paradigm]]:
    """Register the paradigm."""
    return [DarDebate]


@hookimpl
def madplug_register_visibilities() -> list[type[Visibility]]:
    """Register the visibility."""
    return [Retained]


@hookimpl
def madplug_register_styles() -> list[type[Style]]:
    """Register the style."""
    return [Revise]


@hookimpl
def madplug_register_metrics() -> list[type[Metric]]:
    """Register the metric."""
    return [Retention]
