"""The debates and scores that belong to the study as its run file is now; the others stay on record, unreported."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")
SCOPE = "scope"


@dataclass(frozen=True)
class Scope:
    """The cells, repeats, samples and metrics of the latest run."""

    cells: frozenset[str] | None = None
    """None: every cell."""
    repeats: int | None = None
    """None: every repeat."""
    dropped: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By cell, the ids of samples that the data set no longer has."""
    metrics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By cell, the names of its metrics' scores."""
    hidden: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By cell, the names of metrics that it no longer has."""

    @property
    def everything(self) -> bool:
        """Whether every debate is reported."""
        return self.cells is None and self.repeats is None and not self.dropped

    def has(self, cell: str, repeat: int, sample: str) -> bool:
        """Whether a debate is reported. A row that is damaged is, so that whatever reads it says so."""
        dropped_repeat = self.repeats is not None and isinstance(repeat, int) and repeat >= self.repeats
        return ((self.cells is None or cell in self.cells) and not dropped_repeat
                and sample not in self.dropped.get(cell, ()))

    def condition(self, table: str = "") -> tuple[str, list[Any]]:
        """The same as SQL over the table of debates, with its values. table: `a.`, in a query of several."""
        conditions = ["TRUE"]
        values: list[Any] = []
        if self.cells is not None:
            conditions.append(f"{table}cell IN (SELECT value FROM json_each(?))")
            values.append(json.dumps(sorted(self.cells)))
        if self.repeats is not None:
            conditions.append(f"{table}repeat < ?")
            values.append(self.repeats)
        if self.dropped:  # one condition for all cells, since an expression may not be nested deeply
            conditions.append(f"({table}cell, {table}sample) NOT IN (SELECT cells.key, samples.value FROM json_each(?)"
                              " AS cells, json_each(cells.value) AS samples)")
            values.append(json.dumps({cell: sorted(samples) for cell, samples in self.dropped.items()}))
        return " AND ".join(conditions), values

    def shown(self, cell: str, scores: Mapping[str, T]) -> Mapping[str, T]:
        """The scores of a debate without those of metrics that its cell no longer has."""
        hidden = self.hidden.get(cell)
        if not hidden:
            return scores
        names = {*hidden, *self.metrics.get(cell, ())}
        return {part: value for part, value in scores.items() if of_metric(part, names) not in hidden}

    def shows(self, cell: str, score: str) -> bool:
        """Whether a score of the cell's debates is of a metric that it still has."""
        return bool(self.shown(cell, {score: None}))

    def followed_by(self, cells: Mapping[str, Sequence[str]], repeats: int,
                    dropped: Mapping[str, Collection[str]]) -> Scope:
        """The scope of the next run, whose cells have these metrics."""
        hidden = {slug: {*self.hidden.get(slug, ()), *self.metrics.get(slug, ())} - set(names)
                  for slug, names in cells.items()}
        away = {slug: names for slug, names in self.metrics.items() if slug not in cells}
        return Scope(frozenset(cells), repeats, {cell: frozenset(ids) for cell, ids in dropped.items()},
                     {**away, **{slug: tuple(names) for slug, names in cells.items()}},
                     {**self.hidden, **{slug: frozenset(names) for slug, names in hidden.items()}})

    def to_fact(self) -> dict[str, Any]:
        """As it is stored with a study."""
        return {"cells": None if self.cells is None else sorted(self.cells), "repeats": self.repeats,
                "dropped": _lists(self.dropped), "metrics": _lists(self.metrics), "hidden": _lists(self.hidden)}

    @classmethod
    def from_fact(cls, fact: Any) -> Scope:
        """From what is stored; without anything stored, every debate. Raises `ValueError` if that is malformed."""
        if fact is None:
            return cls()
        try:
            cells, repeats = fact["cells"], fact["repeats"]
            if not isinstance(repeats, int | None):
                raise TypeError("'repeats' is not a number")
            return cls(None if cells is None else frozenset(cells), repeats, _sets(fact["dropped"]),
                       {cell: tuple(names) for cell, names in _sets(fact["metrics"]).items()}, _sets(fact["hidden"]))
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"it is not the scope of a study: {error}") from None


def of_metric(part: str, names: Collection[str]) -> str | None:
    """The metric that a score belongs to, of these metrics, or None: `qa.f1` and `qa.f1.recall` to `qa.f1`."""
    return max((n for n in names if part == n or part.startswith(f"{n}.")), key=len, default=None)


def _lists(table: Mapping[str, Collection[str]]) -> dict[str, list[str]]:
    return {cell: sorted(names) for cell, names in table.items() if names}


def _sets(table: Any) -> dict[str, frozenset[str]]:
    found = {str(cell): frozenset(names) for cell, names in table.items()}
    if not all(isinstance(name, str) for names in found.values() for name in names):
        raise TypeError("expected names")
    return found
