"""Studies in MLflow: the observer `mlflow.runs`."""

from __future__ import annotations

from madplug import Observer, hookimpl
from madplug_mlflow.runs import Runs

__all__ = ["Runs", "madplug_register_observers"]


@hookimpl
def madplug_register_observers() -> list[type[Observer]]:
    """Register the observer."""
    return [Runs]
