"""Traces and metrics of a study for OpenTelemetry: `otel.traces` and `otel.metrics`.

Attributes and metrics follow OpenTelemetry's semantic conventions for generative AI, version 1.44.0; what they have no
name for is named `madplug.*`.
"""

from __future__ import annotations

from madplug import Observer, hookimpl
from madplug_otel.metrics import Metrics
from madplug_otel.traces import Traces

__all__ = ["Metrics", "Traces", "madplug_register_observers"]


@hookimpl
def madplug_register_observers() -> list[type[Observer]]:
    """Register two observers."""
    return [Traces, Metrics]
