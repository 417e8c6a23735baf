"""The figures of a study: per cell, over its repeats and samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from madplug.checks import describe_error

if TYPE_CHECKING:
    from madplug.cell import Cell
    from madplug.study import StudyRun

Z95 = 1.959963984540054


class CellFigures:
    """The sums over the debates of one cell, added one at a time."""

    def __init__(self) -> None:
        self.done = self.failed = self.undecided = self.calls = self.retries = 0
        self.prompt = self.completion = self.cached = 0
        self.cost: float | None = 0.0
        self.seconds = 0.0
        self._scores: dict[str, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))

    def add(self, row: Mapping[str, Any]) -> None:
        """Count one debate: a row of `Reader.figures`."""
        self.failed += row["error"] is not None
        self.done += row["error"] is None
        self.undecided += row["error"] is None and not row["decided"]
        for name in ("calls", "retries", "prompt", "completion", "cached"):
            setattr(self, name, getattr(self, name) + row[name])
        self.seconds += row["seconds"]
        self.cost = None if self.cost is None or row["cost_usd"] is None else self.cost + row["cost_usd"]
        for name, value in row["metrics"].items():
            if value is not None:
                self._scores[name][row["repeat"]][row["sample"]] = value

    def metrics(self, proportions: Collection[str] = ()) -> dict[str, Any]:
        """Mean, spread over repeats, and a 95 % interval over samples, by metric.

        proportions: the metrics whose scores are 0 or 1.
        """
        return {name: spread(list(scores.values()),
                             proportion=any(name == p or name.startswith(f"{p}.") for p in proportions))
                for name, scores in sorted(self._scores.items())}

    def report(self, proportions: Collection[str] = ()) -> dict[str, Any]:
        """The figures as in `summary.json`."""
        return {
            "done": self.done, "failed": self.failed, "undecided": self.undecided,
            "metrics": self.metrics(proportions) if self.done else {},
            "calls": self.calls, "retries": self.retries,
            "tokens": {"prompt": self.prompt, "completion": self.completion, "cached": self.cached},
            "cost_usd": self.cost, "seconds": round(self.seconds, 3)}


def spread(repeats: Sequence[Mapping[str, float]], *, proportion: bool = False) -> dict[str, Any]:
    """Mean over everything; sample standard deviation of the repeats' means; interval over samples.

    repeats: scores by sample id, one mapping per repeat. The interval is Wilson's for a proportion in one repeat,
    otherwise a normal one on the samples' means over repeats; None for fewer than two samples.
    """
    per_repeat = [fmean(scores.values()) for scores in repeats]
    by_sample: dict[str, list[float]] = defaultdict(list)
    for scores in repeats:
        for sample, value in scores.items():
            by_sample[sample].append(value)
    means = [fmean(values) for values in by_sample.values()]
    return {"mean": fmean(per_repeat), "std": stdev(per_repeat) if len(per_repeat) > 1 else None,
            "ci95": interval(means, binary=proportion and len(repeats) == 1 and set(means) <= {0.0, 1.0}),
            "per_repeat": per_repeat}


def interval(values: Sequence[float], *, binary: bool) -> list[float] | None:
    """A 95 % confidence interval of a mean (Wilson 1927 for proportions)."""
    n, mean = len(values), fmean(values)
    if n < 2:
        return None
    if not binary:
        half = Z95 * stdev(values) / sqrt(n)
        return [mean - half, mean + half]
    z2 = Z95 * Z95
    centre = (mean + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 * sqrt(mean * (1 - mean) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return [max(0.0, centre - half), min(1.0, centre + half)]


def figures_by_cell(rows: Iterable[Mapping[str, Any]]) -> dict[str, CellFigures]:
    """Figures by cell."""
    cells: dict[str, CellFigures] = defaultdict(CellFigures)
    for row in rows:
        cells[row["cell"]].add(row)
    return cells


def summarise(run: StudyRun) -> dict[str, Any]:
    """The summary of a run: what is stored now, cell by cell."""
    by_cell = figures_by_cell(run.recorder.figures())
    cells = []
    for setup in run.setups.values():
        cell, found, spent = setup.cell, by_cell[setup.cell.slug], setup.spent
        extra = _own_figures(run, cell)
        figures = found.report([name for name, metric in cell.metrics.items() if metric.proportion])
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
            figures[name] = dict(metric.summarise(run.recorder.results(cell.slug)))
        except Exception as error:
            run.problem(f"metric {name}: summarise raised {describe_error(error)}")
    return {name: value for name, value in figures.items() if value}
