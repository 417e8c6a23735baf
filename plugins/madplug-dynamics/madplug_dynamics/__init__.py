"""Metrics of how a debate went: who said what, who changed, who followed whom."""

from __future__ import annotations

from madplug import Metric, hookimpl
from madplug_dynamics.agreement import Agreement, Decided, Diversity, Rounds
from madplug_dynamics.change import Conformity, Flips
from madplug_dynamics.information import Entropy, LogLikelihood

__all__ = ["Agreement", "Conformity", "Decided", "Diversity", "Entropy", "Flips", "LogLikelihood", "Rounds"]


@hookimpl
def madplug_register_metrics() -> list[type[Metric]]:
    """Register eight metrics."""
    return [Entropy, LogLikelihood, Flips, Agreement, Conformity, Diversity, Rounds, Decided]
