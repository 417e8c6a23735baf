"""Presets of `datasets.hub`: a data set for each recipe."""

from __future__ import annotations

from madplug import Dataset, hookimpl
from madplug_benchmarks.preset import Preset, preset
from madplug_benchmarks.recipes import RECIPES

__all__ = ["PRESETS", "Preset"]

PRESETS: dict[str, type[Preset]] = {recipe.name: preset(recipe) for recipe in RECIPES}


@hookimpl
def madplug_register_datasets() -> list[type[Dataset]]:
    """Register every preset."""
    return list(PRESETS.values())
