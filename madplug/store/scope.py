"""The debates and scores that belong to the study as its run file is now; the others stay on record, unreported."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import ValidationError

from madplug.rows import validator_of

T = TypeVar("T")
SCOPE = "scope"


@dataclass(frozen=True)
class Scope:
    """The cells, repeats, samples and metrics of the latest run; stored as the fact `SCOPE`."""

    cells: frozenset[str] | None = None
    """None: every cell."""
    repeats: int | None = None
    """None: every repeat."""
    dropped: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By cell, the ids of samples that the data set no longer has."""
    metrics: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By cell, the names of its metrics: scores of others are not reported. Of a cell that is not named, all are."""

    def has(self, cell: str, repeat: int, sample: str) -> bool:
        """Whether a debate is reported. A row that is damaged is, so that whatever reads it says so."""
        dropped_repeat = self.repeats is not None and isinstance(repeat, int) and repeat >= self.repeats
        return ((self.cells is None or cell in self.cells) and not dropped_repeat
                and sample not in self.dropped.get(cell, ()))

    def condition(self) -> tuple[str, list[Any]]:
        """The same as SQL over the table of debates, with its values."""
        conditions = ["TRUE"]
        values: list[Any] = []
        if self.cells is not None:
            conditions.append("cell IN (SELECT value FROM json_each(?))")
            values.append(json.dumps(sorted(self.cells)))
        if self.repeats is not None:
            conditions.append("repeat < ?")
            values.append(self.repeats)
        if self.dropped:  # one condition for all cells, since an expression may not be nested deeply
            conditions.append("(cell, sample) NOT IN (SELECT cells.key, samples.value FROM json_each(?)"
                              " AS cells, json_each(cells.value) AS samples)")
            values.append(json.dumps({cell: sorted(samples) for cell, samples in self.dropped.items()}))
        return " AND ".join(conditions), values

    def shown(self, cell: str, scores: Mapping[str, T]) -> Mapping[str, T]:
        """The scores of a debate without those of metrics that its cell no longer has."""
        names = self.metrics.get(cell)
        if names is None:
            return scores
        return {part: value for part, value in scores.items() if of_metric(part, names) is not None}

    def shows(self, cell: str, score: str) -> bool:
        """Whether a score of the cell's debates is of a metric that it still has."""
        return bool(self.shown(cell, {score: None}))

    @classmethod
    def from_fact(cls, fact: Any) -> Scope:
        """From what is stored; without anything stored, every debate. Raises `ValueError` if that is malformed."""
        kind: Any = cls
        try:
            return cls() if fact is None else validator_of(kind).validate_python(fact)
        except ValidationError:
            raise ValueError("it is not the scope of a study") from None


def of_metric(part: str, names: Collection[str]) -> str | None:
    """The metric that a score belongs to, of these metrics, or None: `qa.f1` and `qa.f1.recall` to `qa.f1`."""
    return max((n for n in names if part == n or part.startswith(f"{n}.")), key=len, default=None)
