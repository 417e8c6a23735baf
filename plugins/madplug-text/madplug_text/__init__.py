"""Metrics of free text: bleu, rouge, meteor, bertscore."""

from __future__ import annotations

from madplug import Metric, hookimpl
from madplug_text.bertscore import BertScore
from madplug_text.meteor import Meteor
from madplug_text.overlap import Bleu, Rouge

__all__ = ["BertScore", "Bleu", "Meteor", "Rouge"]


@hookimpl
def madplug_register_metrics() -> list[type[Metric]]:
    """Register four metrics."""
    return [Bleu, Rouge, Meteor, BertScore]
