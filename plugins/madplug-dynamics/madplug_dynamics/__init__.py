"""Metrics of how a debate went: who said what, who changed, who followed whom."""

from __future__ import annotations

from madplug import Metric, hookimpl
from madplug_dynamics.agreement import Agreement, Answers, Decided, Rounds
from madplug_dynamics.change import Conformity, Flips
from madplug_dynamics.diversity import Diversity, PersonaDiversity
from madplug_dynamics.information import Entropy, LogLikelihood
from madplug_dynamics.output import OutputTokens

__all__ = ["Agreement", "Answers", "Conformity", "Decided", "Diversity", "Entropy", "Flips", "LogLikelihood",
           "OutputTokens", "PersonaDiversity", "Rounds"]


@hookimpl
def madplug_register_metrics() -> list[type[Metric]]:
    """Register eleven metrics."""
    return [Entropy, LogLikelihood, Flips, Agreement, Conformity, Diversity, PersonaDiversity, OutputTokens, Rounds,
            Decided, Answers]
