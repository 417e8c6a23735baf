"""ReConcile (Chen et al. 2024): a round table of different models that weigh each other's confidence."""

from __future__ import annotations

from madplug import Paradigm, hookimpl
from madplug_reconcile.discussion import Discussion
from madplug_reconcile.grouped import Grouped
from madplug_reconcile.weighted import Weighted, recalibrated

__all__ = ["Discussion", "Grouped", "RoundTable", "Weighted", "recalibrated"]


class RoundTable(Paradigm):
    """ReConcile: answers with confidences, discussed by groups, and a recalibrated weighted vote.

    Rounds are simultaneous. Rounds continue only while the answers of the previous one differ. Meant for three
    different models: `debate.models` names them. `rounds` counts the independent first answers, so 3 are two
    rounds of discussion, as in the authors' code.
    """

    name = "round_table"
    source = "Chen et al. 2024, ReConcile, section 3"
    debate = {"agents": 3, "rounds": 3, "turns": "turns.simultaneous", "visibility": "reconcile.grouped",
              "styles": ["reconcile.discussion"], "decision": "reconcile.weighted"}


@hookimpl
def madplug_register_styles() -> list[type]:
    """Register the style."""
    return [Discussion]


@hookimpl
def madplug_register_visibilities() -> list[type]:
    """Register the visibility."""
    return [Grouped]


@hookimpl
def madplug_register_decisions() -> list[type]:
    """Register the decision."""
    return [Weighted]


@hookimpl
def madplug_register_paradigms() -> list[type]:
    """Register the paradigm."""
    return [RoundTable]
