"""Metrics of right answers: accuracy, exact_match, f1, includes, answerability, oracle."""

from __future__ import annotations

from madplug import Metric, hookimpl
from madplug_qa.keys import Accuracy, Oracle
from madplug_qa.spans import F1, Answerability, ExactMatch, Includes

__all__ = ["F1", "Accuracy", "Answerability", "ExactMatch", "Includes", "Oracle"]


@hookimpl
def madplug_register_metrics() -> list[type[Metric]]:
    """Register six metrics."""
    return [Accuracy, ExactMatch, F1, Includes, Answerability, Oracle]
