"""Simulated debaters: any protocol over thousands of debates in seconds, before a model is paid."""

from __future__ import annotations

from madplug import Dataset, Style, hookimpl
from madplug_simulator.debater import Debater
from madplug_simulator.questions import Questions

__all__ = ["Debater", "Questions"]


@hookimpl
def madplug_register_datasets() -> list[type[Dataset]]:
    """Register the data set."""
    return [Questions]


@hookimpl
def madplug_register_styles() -> list[type[Style]]:
    """Register the style."""
    return [Debater]
