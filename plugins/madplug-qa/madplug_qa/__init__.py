"""Metrics of right answers: accuracy, exact_match, f1, includes, answerability, oracle, graded."""

from __future__ import annotations

from madplug import Metric, hookimpl
from madplug_qa.graded import Graded
from madplug_qa.keys import Accuracy, Oracle
from madplug_qa.spans import F1, Answerability, ExactMatch, Includes

__all__ = ["F1", "Accuracy", "Answerability", "ExactMatch", "Graded", "Includes", "Oracle"]


@hookimpl
def madplug_register_metrics() -> list[type[Metric]]:
    """Register seven metrics."""
    return [Accuracy, ExactMatch, F1, Includes, Answerability, Oracle, Graded]
