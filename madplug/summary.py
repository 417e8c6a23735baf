"""The figures of a study: per cell, over its repeats and samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from madplug.checks import describe_error
from madplug.spread import spread
from madplug.store.scope import of_metric

if TYPE_CHECKING:
    from madplug.cell import Cell
    from madplug.study import StudyRun


class CellFigures:
    """The sums over the debates of one cell, added one at a time."""

    def __init__(self) -> None:
        self.done = self.failed = self.undecided = self.calls = self.retries = 0
        self.prompt = self.completion = self.cached = 0
        self.cost: float | None = 0.0
        self.seconds = 0.0
        self._scores: dict[str, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
        self._unscored: list[tuple[int, str]] = []

    def add(self, row: Mapping[str, Any]) -> None:
        """Count one debate: a row of `Reader.figures`."""
        self.failed += row["error"] is not None
        self.done += row["error"] is None
        self.undecided += row["error"] is None and not row["decided"]
        for name in ("calls", "retries", "prompt", "completion", "cached"):
            setattr(self, name, getattr(self, name) + row[name])
        self.seconds += row["seconds"]
        self.cost = None if self.cost is None or row["cost_usd"] is None else self.cost + row["cost_usd"]
        if row["error"] is not None and not row["metrics"]:
            self._unscored.append((row["repeat"], row["sample"]))
        for name, value in row["metrics"].items():
            if value is not None:
                self._scores[name][row["repeat"]][row["sample"]] = value

    def metrics(self, proportions: Collection[str] = (), only: Sequence[str] | None = None) -> dict[str, Any]:
        """Mean, spread over repeats, and a 95 % interval over samples, by the name of the scores; see `madplug.spread`.

        proportions: the metrics whose scores are 0 or 1. A debate that failed before it could be scored is wrong in
        these; other metrics do not count it. only: these metrics, in this order; by default all, by name.
        """
        names = sorted(self._scores)
        if only is not None:
            names = [n for metric in only for n in names if of_metric(n, only) == metric]
        return {name: self._spread(name, proportion=of_metric(name, proportions) is not None) for name in names}

    def _spread(self, name: str, *, proportion: bool) -> dict[str, Any]:
        scores = self._scores[name]
        for repeat, sample in self._unscored if proportion else ():
            scores[repeat][sample] = 0.0
        return spread([scores[repeat] for repeat in sorted(scores)], proportion=proportion)

    def report(self, proportions: Collection[str] = (), only: Sequence[str] | None = None) -> dict[str, Any]:
        """The figures as in `summary.json`."""
        return {
            "done": self.done, "failed": self.failed, "undecided": self.undecided,
            "metrics": self.metrics(proportions, only),
            "calls": self.calls, "retries": self.retries,
            "tokens": {"prompt": self.prompt, "completion": self.completion, "cached": self.cached},
            "cost_usd": self.cost, "seconds": round(self.seconds, 3)}


def figures_by_cell(rows: Iterable[Mapping[str, Any]]) -> dict[str, CellFigures]:
    """Figures by cell."""
    cells: dict[str, CellFigures] = defaultdict(CellFigures)
    for row in rows:
        cells[row["cell"]].add(row)
    return cells


def summarise(run: StudyRun) -> dict[str, Any]:
    """The summary of a run: what is stored now, cell by cell."""
    by_cell = figures_by_cell(row for row in run.recorder.figures()
                              if run.scope.has(row["cell"], row["repeat"], row["sample"]))
    cells = []
    for setup in run.setups.values():
        cell, found, spent = setup.cell, by_cell[setup.cell.slug], setup.spent
        extra = _own_figures(run, cell)
        figures = found.report([name for name, metric in cell.metrics.items() if metric.proportion],
                               list(cell.metrics))
        cells.append({"cell": cell.slug, "settings": dict(cell.settings), "oracle": cell.oracle,
                      "repeats": run.plan.repeats, "samples": max(0, found.done + found.failed) // run.plan.repeats,
                      **figures, **({"figures": extra} if extra else {}),
                      "prepared": {"calls": spent.calls, "tokens": spent.prompt + spent.completion}})
    totals, ending = run.recorder.totals(), run.ending
    return {"study": run.plan.name, "status": run.status, "ending": ending.kind if ending else None,
            "reason": ending.reason if ending else None, "problems": run.problems,
            "paid": {"calls": totals.calls, "tokens": totals.tokens, "cost_usd": totals.cost_usd}, "cells": cells}


def _own_figures(run: StudyRun, cell: Cell) -> dict[str, Any]:
    """What a cell's metrics report for the whole cell; one that fails is a problem of the study."""
    from madplug.components import Metric

    figures: dict[str, Any] = {}
    for name, metric in cell.metrics.items():
        if type(metric).summarise is Metric.summarise:
            continue
        try:
            figures[name] = dict(metric.summarise(
                result for result in run.recorder.results(cell.slug)
                if run.scope.has(result.cell, result.repeat, result.sample.id)))
        except Exception as error:
            run.problem(f"metric {name}: summarise raised {describe_error(error)}")
    return {name: value for name, value in figures.items() if value}
