"""What a run file describes, resolved: cells, models, observers, limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from madplug.config.shape import Limits
from madplug.debate.cell import Cell
from madplug.kinds import Executor, Model, Observer


@dataclass
class StudyPlan:
    """A study before it is run: cells x repeats x samples."""

    name: str
    cells: Sequence[Cell]
    models: Mapping[str, Model] = field(default_factory=dict)
    seed: int = 0
    repeats: int = 1
    share_completions: bool = True
    limits: Limits = field(default_factory=Limits)
    executor: Executor | None = None
    observers: Sequence[Observer] = ()
