"""Asking the agents, after the decision, whether they accept it."""

from __future__ import annotations

from madplug import Metric, Phase, hookimpl
from madplug_challenge.final import Final
from madplug_challenge.outcome import Outcome

__all__ = ["Final", "Outcome"]


@hookimpl
def madplug_register_phases() -> list[type[Phase]]:
    """Register the phase."""
    return [Final]


@hookimpl
def madplug_register_metrics() -> list[type[Metric]]:
    """Register the metric."""
    return [Outcome]
