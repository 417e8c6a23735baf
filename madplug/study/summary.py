"""The figures of a study: per cell, over its repeats and samples."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from madplug.debate.checks import describe_error
from madplug.rows import plain
from madplug.store.base import CellOverview
from madplug.store.scope import of_metric
from madplug.study.intervals import spread

if TYPE_CHECKING:
    from madplug.debate.cell import Cell
    from madplug.store import Reader
    from madplug.study.setup import CellSetup


class CellScores:
    """The scores of the debates of one cell, added one at a time."""

    def __init__(self) -> None:
        self._unscored: Counter[str] = Counter()
        self._scores: dict[str, dict[int, tuple[array[int], array[float]]]] = defaultdict(
            lambda: defaultdict(lambda: (array("q"), array("d"))))  # a sample's number, however long its id is; a score

    def add(self, row: Mapping[str, Any]) -> None:
        """Count one debate: a row of `Reader.figures`."""
        for name, value in row["metrics"].items():
            if value is None:
                self._unscored[name] += 1
            else:
                samples, values = self._scores[name][row["repeat"]]
                samples.append(hash(row["sample"]))
                values.append(value)

    def metrics(self, proportions: Collection[str] = (), only: Sequence[str] | None = None) -> dict[str, Any]:
        """Mean, spread over repeats and 95 % interval over samples (`madplug.study.intervals`), by the scores' names.

        proportions: the metrics or scores that are 0 or 1. A debate that failed has no score, and is in no mean.
        only: these metrics, in this order; by default all, by name.
        """
        names = sorted(self._scores)
        if only is not None:
            names = [n for metric in only for n in names if of_metric(n, only) == metric]
        return {name: spread([self._scores[name][repeat] for repeat in sorted(self._scores[name])],
                             proportion=of_metric(name, proportions) is not None) for name in names}

    def report(self, sums: CellOverview, proportions: Collection[str] = (),
               only: Sequence[str] | None = None) -> dict[str, Any]:
        """The figures as in `summary.json`. sums: over the debates of the cell."""
        return {
            "done": sums.done, "failed": sums.failed, "undecided": sums.undecided, "fallback": sums.fallback,
            "unread": sums.unread,
            **({"partial": sums.partial} if sums.partial else {}),
            "metrics": self.metrics(proportions, only),
            "unscored": {name: n for name in only or () if (n := self._unscored[name])},
            "calls": sums.calls, "retries": sums.retries,
            "tokens": {"prompt": sums.prompt, "completion": sums.completion, "cached": sums.cached},
            "cost_usd": sums.cost_usd, "seconds": round(sums.seconds, 3)}


def scores_by_cell(rows: Iterable[Mapping[str, Any]]) -> dict[str, CellScores]:
    """The scores of each cell. rows: of `Reader.figures`."""
    cells: dict[str, CellScores] = defaultdict(CellScores)
    for row in rows:
        cells[row["cell"]].add(row)
    return cells


def summarise(study: Reader, setups: Iterable[CellSetup], repeats: int,
              report: Callable[[str], None]) -> list[dict[str, Any]]:
    """What is stored of a study now, cell by cell. report: called with problems of metrics."""
    sums, scores = {cell.cell: cell for cell in study.overview()}, scores_by_cell(study.figures())
    prepared = {slug: {"calls": calls, "tokens": tokens} for slug, calls, tokens in study.rows(
        "SELECT cell, COUNT(*), SUM(prompt + completion) FROM calls WHERE repeat < 0 GROUP BY cell")}
    cells = []
    for setup in setups:
        cell = setup.cell
        found = sums.get(cell.slug) or CellOverview(cell.slug)
        extra = _own_figures(study, cell, report)
        figures = scores[cell.slug].report(found, [*_proportions(cell)], list(cell.metrics))
        cells.append({"cell": cell.slug, "settings": dict(cell.settings), "oracle": cell.oracle,
                      "repeats": repeats, "samples": (found.done + found.failed) // repeats,
                      **figures, **({"figures": extra} if extra else {}),
                      "prepared": prepared.get(cell.slug, {"calls": 0, "tokens": 0})})
    return cells


def _proportions(cell: Cell) -> Iterator[str]:
    """The metrics, or the scores of one, that are 0 or 1."""
    for name, metric in cell.metrics.items():
        if isinstance(metric.proportion, bool):
            yield from [name] * metric.proportion
        else:
            yield from (f"{name}.{part}" for part in metric.proportion)


def _own_figures(study: Reader, cell: Cell, report: Callable[[str], None]) -> dict[str, Any]:
    """What a cell's metrics report for the whole cell; one that fails is a problem of the study."""
    from madplug.kinds import Metric

    given: dict[str, Callable[[], Iterator[Any]]] = {
        "summarise": lambda: study.results(cell.slug), "summarise_figures": lambda: study.figures(cell.slug)}
    figures: dict[str, Any] = {}
    for name, metric in cell.metrics.items():
        for method, debates in given.items():
            if getattr(type(metric), method) is getattr(Metric, method):
                continue
            try:
                figures[name] = {**figures.get(name, {}), **plain(getattr(metric, method)(debates()))}
            except (Exception, SystemExit) as error:
                report(f"metric {name}: {method} raised {describe_error(error)}")
    return {name: value for name, value in figures.items() if value}
