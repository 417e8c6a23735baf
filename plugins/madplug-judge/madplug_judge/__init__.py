"""A judge: one model that decides for the agents, or steps in when their debate drifts."""

from __future__ import annotations

from collections.abc import Iterable

from madplug import DecisionProtocol, Extension, hookimpl
from madplug_judge.intervention import Intervention
from madplug_judge.synthesis import Synthesis

__all__ = ["Intervention", "Synthesis"]


@hookimpl
def madplug_register_decisions() -> Iterable[type[DecisionProtocol]]:
    """Register the decision."""
    return [Synthesis]


@hookimpl
def madplug_register_extensions() -> Iterable[type[Extension]]:
    """Register the extension."""
    return [Intervention]
