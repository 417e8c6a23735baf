"""From the columns of debates to the figures of a report: cells, and comparisons between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from madplug.errors import UserError, nearest
from madplug_report import intervals, sizes
from madplug_report import statistics as st
from madplug_report.reading import AGREED, DECIDED, FAILED, FALLBACK, UNDECIDED, Debates
from madplug_report.studies import CellFacts, cell_named

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEED = 0
MCNEMAR = "McNemar, exact"
OUTCOMES = {"agreed": AGREED, "decided": DECIDED, "fallback": FALLBACK, "undecided": UNDECIDED, "failed": FAILED}
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class Analysis:
    """The figures of every cell, and how cells differ on the samples they share."""

    def __init__(self, debates: Debates, baseline: str | None = None) -> None:
        self.debates = debates
        self.metric = self._metric()
        self._cell = np.asarray(debates.cell)
        self._order = np.argsort(self._cell, kind="stable")
        self._starts = np.searchsorted(self._cell[self._order], np.arange(len(debates.cells) + 1))
        self.means = [self._sample_means(i) for i in range(len(debates.cells))]
        self.baseline = self._baseline(baseline)
        self.intervals = self._intervals()
        self.cells = [self._figures(i) for i in range(len(debates.cells))]
        self.comparisons, self.not_compared = self._compare_all()

    def _metric(self) -> str | None:
        metrics, wanted = self.debates.metrics, self.debates.metric
        if wanted is not None and metrics and wanted not in metrics:
            raise UserError(f"--metric: no debate has the metric '{wanted}'{nearest(wanted, metrics)}; "
                            f"there are {', '.join(sorted(metrics))}")
        return wanted if wanted in metrics else None

    def _baseline(self, name: str | None) -> int | None:
        if name is not None:
            return cell_named(self.debates.cells, name)
        return next((i for i, (_, values, _) in enumerate(self.means) if len(values)), None)

    # Columns

    def rows(self, cell: int) -> NDArray[np.intp]:
        """The positions of a cell's debates."""
        return self._order[self._starts[cell]:self._starts[cell + 1]]

    def column(self, name: str, cell: int) -> NDArray[Any]:
        """A column of a cell's debates."""
        return np.asarray(getattr(self.debates, name))[self.rows(cell)]

    def scores(self, metric: str, cell: int) -> NDArray[np.float64]:
        """A metric's values over a cell's debates; NaN where it does not apply."""
        return np.asarray(self.debates.metrics[metric])[self.rows(cell)]

    def _sample_means(self, cell: int) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.intp]]:
        """The samples of a cell, each one's mean score over repeats, and over how many."""
        nothing = np.empty(0, np.intp)
        if self.metric is None:
            return nothing, np.empty(0), nothing
        return by_sample(self.column("sample", cell), self.scores(self.metric, cell))

    # Cells

    def _intervals(self) -> list[intervals.Interval | None]:
        """The interval of each cell's mean: resampled together where cells have equally many samples."""
        found: list[intervals.Interval | None] = [None] * len(self.means)
        wait: list[tuple[int, NDArray[np.float64]]] = []
        for i, (_, values, times) in enumerate(self.means):
            if not len(values):
                continue
            if (times.max() == 1 or np.ptp(values) == 0) and set(np.unique(values)) <= {0.0, 1.0}:
                found[i] = intervals.wilson(float(values.sum()), len(values))
            else:
                wait.append((i, values))
        for i, values, means in resampled(wait):
            interval = intervals.of_mean(values, means)
            shares = ((values >= 0) & (values <= 1)).all()
            found[i] = interval.within(0.0, 1.0) if interval and shares else interval
        return found

    def _figures(self, cell: int) -> dict[str, Any]:
        facts, ends = self.debates.cells[cell], self.column("end", cell)
        n, rounds = len(ends), self.debates.rounds[cell]
        unread, answers = rounds.unread()
        tokens, calls, cost = (self.column(name, cell) for name in ("tokens", "calls", "cost"))
        outcomes = {name: int((ends == end).sum()) for name, end in OUTCOMES.items()}
        ran = np.bincount(self.column("rounds_run", cell)[ends != FAILED], minlength=1)
        return {
            "cell": facts.name, "oracle": facts.oracle, "settings": facts.settings, "match": dict(facts.match),
            "debates": n, "samples": len(np.unique(self.column("sample", cell))),
            "repeats": len(np.unique(self.column("repeat", cell))),
            "undecided": _share(outcomes["undecided"], n), "failed": _share(outcomes["failed"], n),
            "outcomes": outcomes, "metrics": self._metrics(cell), "calls": _mean(calls), "tokens": _mean(tokens),
            "cost_usd": None if np.isnan(cost).any() else float(cost.sum()),
            "tokens_per_right": self._per_right(cell, tokens),
            "unread": _share(unread, answers), "answers": answers, "flagged": _share(rounds.flagged, rounds.messages),
            "seconds": [float(q) for q in np.quantile(self.column("seconds", cell), QUANTILES)] if n else None,
            "rounds": {int(i): int(ran[i]) for i in np.flatnonzero(ran)},
            "by_round": [r.figures(i) for i, r in enumerate(rounds.rounds, 1) if r.debates],
            "judges": rounds.judges, "vote_of_first": rounds.curve() if rounds.pool and rounds.judges else None,
            "figures": facts.figures}

    def _metrics(self, cell: int) -> dict[str, Any]:
        repeats, samples = self.column("repeat", cell), self.column("sample", cell)
        found = {}
        for name in sorted(self.debates.metrics):
            scores = self.scores(name, cell)
            _, values, times = by_sample(samples, scores)
            if not len(values):
                continue
            interval = self.intervals[cell] if name == self.metric else quick(values, times)
            known = ~np.isnan(scores)
            per_repeat = [float(scores[known & (repeats == r)].mean()) for r in np.unique(repeats[known])]
            found[name] = {"mean": float(values.mean()), "std": st.mean_and_std(per_repeat)[1], "n": len(values),
                           "per_repeat": per_repeat, **_interval(interval)}
        return found

    def _per_right(self, cell: int, tokens: NDArray[np.int64]) -> float | None:
        if self.metric is None or not len(tokens):
            return None
        right = float(np.nansum(self.scores(self.metric, cell)))
        return float(tokens.sum()) / right if right > 0 else None

    # Comparisons

    def _compare_all(self) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
        cells = self.debates.cells
        pairs = [(i, self.baseline, "baseline") for i in range(len(cells))
                 if self.baseline is not None and i != self.baseline]
        pairs += [(i, j, f"matched by {facts.match['by']}") for i, facts in enumerate(cells)
                  if (j := self.matched(facts)) is not None and j != self.baseline and i != j]
        found: list[dict[str, Any]] = []
        left: list[dict[str, str]] = []
        wait: list[tuple[int, NDArray[np.float64]]] = []
        for i, j, why in pairs:
            differences, once = self._differences(i, j)
            names = {"cell": cells[i].name, "baseline": cells[j].name}
            if not len(differences):
                left.append({**names, "reason": self._why_not(i, j)})
                continue
            entry = {**names, "why": why, **compared(differences, once), **self._effects(i, j, differences)}
            if entry["test"] == MCNEMAR and entry["gained"] + entry["lost"] < intervals.ENOUGH:
                entry |= _interval(intervals.tango(entry["gained"], entry["lost"], len(differences)))
            else:
                wait.append((len(found), differences))
            found.append(entry)
        for i, values, means in resampled(wait):
            found[i] |= {**_interval(intervals.of_mean(values, means)), "resamples": len(means)}
        for entry, p in zip(found, st.holm([entry["p"] for entry in found]), strict=True):
            entry["p_holm"] = p
        return found, left

    def matched(self, facts: CellFacts) -> int | None:
        """The position of the cell that a cell is matched to."""
        return next((j for j, other in enumerate(self.debates.cells)
                     if other.study == facts.study and other.slug == facts.match.get("cell")), None)

    def _differences(self, cell: int, base: int) -> tuple[NDArray[np.float64], bool]:
        """Differences on the samples both have, and whether each of them is of one debate against one."""
        (a, values, times), (b, others, other_times) = self.means[cell], self.means[base]
        _, at, other_at = np.intersect1d(a, b, assume_unique=True, return_indices=True)
        once = bool((times[at] == 1).all() and (other_times[other_at] == 1).all())
        return values[at] - others[other_at], once

    def _effects(self, cell: int, base: int, differences: NDArray[np.float64]) -> dict[str, Any]:
        (a, values, _), (b, others, _) = self.means[cell], self.means[base]
        share = float(values[np.isin(a, b)].mean())
        other = float(others[np.isin(b, a)].mean())
        right_or_wrong = all(0 <= v <= 1 for v in (share, other)) and self._binary(cell) and self._binary(base)
        gained, lost = int((differences > 0).sum()), int((differences < 0).sum())
        effects = {"cohen_h": st.cohen_h(share, other), "odds_ratio": st.odds_ratio(share, other),
                   "paired_odds_ratio": st.paired_odds_ratio(gained, lost)} if right_or_wrong else {}
        return {"effects": {"standardised": st.standardised(differences), **effects}, "mean": share,
                "baseline_mean": other, "gained": gained, "lost": lost}

    def _binary(self, cell: int) -> bool:
        scores = self.scores(self.metric or "", cell)
        return bool(np.isin(scores[~np.isnan(scores)], (0.0, 1.0)).all())

    def _why_not(self, cell: int, base: int) -> str:
        if not len(self.means[cell][1]):
            return "no debate has ended" if not len(self.rows(cell)) else f"no debate has the metric '{self.metric}'"
        names = [{self.debates.sample_ids[s] for s in self.means[i][0]} for i in (cell, base)]
        return "other data: the ids are the same, the questions are not" if names[0] & names[1] else \
            "other data: no sample is in both"


def by_sample(samples: NDArray[Any], scores: NDArray[np.float64]) -> tuple[
        NDArray[np.intp], NDArray[np.float64], NDArray[np.intp]]:
    """Which samples have scores, the mean score of each, and of how many debates it is."""
    known = ~np.isnan(scores)
    found, index, times = np.unique(samples[known], return_inverse=True, return_counts=True)
    return found, np.bincount(index, scores[known], len(found)) / times, times


def quick(values: NDArray[np.float64], times: NDArray[np.intp]) -> intervals.Interval | None:
    """An interval without resampling, for the other metrics."""
    single = times.max() == 1 and np.isin(values, (0.0, 1.0)).all()
    return intervals.wilson(float(values.sum()), len(values)) if single else intervals.student(values)


def resampled(columns: Sequence[tuple[int, NDArray[np.float64]]]) -> list[
        tuple[int, NDArray[np.float64], NDArray[np.float64]]]:
    """Each column with the means of its resamples; columns of one length share them."""
    lengths: dict[int, list[tuple[int, NDArray[np.float64]]]] = {}
    for i, values in columns:
        lengths.setdefault(len(values), []).append((i, values))
    found = []
    for same in lengths.values():
        means = intervals.bootstrap_means(np.column_stack([values for _, values in same]), SEED)
        found += [(i, values, means[:, k]) for k, (i, values) in enumerate(same)]
    return found


def compared(differences: NDArray[np.float64], once: bool) -> dict[str, Any]:
    """The test of these pairs, and what a study of this size can tell."""
    n, mean, square = len(differences), float(differences.mean()), float((differences**2).mean())
    if once and np.isin(differences, (-1.0, 0.0, 1.0)).all():
        test = st.Test(st.mcnemar(int((differences > 0).sum()), int((differences < 0).sum())), MCNEMAR)
    else:
        test = st.sign_flips(differences, SEED)
    return {"samples": n, "difference": mean, "p": test.p, "test": test.method,
            "detectable": sizes.detectable(square, n), "samples_to_settle": sizes.to_settle(mean, square)}


def _interval(interval: intervals.Interval | None) -> Mapping[str, Any]:
    return {"ci95": None, "ci_method": None} if interval is None else {
        "ci95": [interval.low, interval.high], "ci_method": interval.method}


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _mean(values: NDArray[Any]) -> float | None:
    return float(values.mean()) if len(values) else None
