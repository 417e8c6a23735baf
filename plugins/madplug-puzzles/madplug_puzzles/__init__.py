"""Puzzles generated from a seed: questions that no model has seen, with answers that are known to be right."""

from __future__ import annotations

from madplug import hookimpl
from madplug_puzzles.arithmetic import Arithmetic
from madplug_puzzles.booleans import Booleans
from madplug_puzzles.hidden_facts import HiddenFacts
from madplug_puzzles.ordering import Ordering

__all__ = ["Arithmetic", "Booleans", "HiddenFacts", "Ordering"]


@hookimpl
def madplug_register_datasets() -> list[type]:
    """Register the four kinds of puzzle."""
    return [Ordering, Arithmetic, Booleans, HiddenFacts]
