"""How cells differ: from the baseline of their group, and from the cell whose budget they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from madplug_report import intervals, sizes
from madplug_report import statistics as st

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from madplug_report.analysis import Analysis
    from madplug_report.studies import CellFacts

SEED = 0
MCNEMAR = "McNemar, exact"
_DIGITS = 12
"""Means of the same scores in another order differ in later digits, which would give a zero a sign."""


class Comparisons:
    """Paired comparisons on the samples that both cells have, with p-values corrected for all of them."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self.found: list[dict[str, Any]] = []
        self.left: list[dict[str, str]] = []
        self._others: dict[tuple[int, int], set[int]] = {}
        self._wait: list[tuple[int, NDArray[np.float64]]] = []
        for group in analysis.groups:
            for i in group.cells if group.baseline is not None else ():
                if i != group.baseline:
                    self._compare(i, group.baseline, "baseline")
        done = {frozenset((g.baseline, c)) for g in analysis.groups for c in g.cells}
        for i, facts in enumerate(analysis.debates.cells):
            j = matched(analysis, facts)
            if j is not None and i != j and {i, j} not in done:
                self._compare(i, j, f"matched by {facts.match['by']}")
        for i, values, means in _resampled(self._wait):
            self.found[i] |= {**_interval(intervals.of_mean(values, means)), "resamples": len(means)}
        for entry, p in zip(self.found, st.holm([entry["p"] for entry in self.found]), strict=True):
            entry["p_holm"] = p

    def _compare(self, i: int, j: int | None, why: str) -> None:
        assert j is not None
        cells = self._analysis.debates.cells
        names = {"cell": cells[i].name, "baseline": cells[j].name}
        differences, binary = self._differences(i, j)
        if not len(differences):
            self.left.append({**names, "reason": self._why_not(i, j)})
            return
        self._leave_out(i, j)
        entry = {**names, "why": why, "metric": self._analysis.metric_of[j], **compared(differences, binary),
                 **self._effects(i, j, differences)}
        if entry["test"] == MCNEMAR and not intervals.enough_differ(differences):
            entry |= _interval(intervals.tango(entry["gained"], entry["lost"], len(differences)))
        else:
            self._wait.append((len(self.found), differences))
        self.found.append(entry)

    def _pair(self, i: int, j: int) -> tuple[Any, Any, NDArray[np.intp], NDArray[np.intp]]:
        """The scores of two cells in the baseline's metric, and where in each the shared samples are."""
        metric = self._analysis.metric_of[j] or ""
        a, b = self._analysis.scores(metric, i), self._analysis.scores(metric, j)
        _, at, other_at = np.intersect1d(a.ids, b.ids, assume_unique=True, return_indices=True)
        return a, b, at, other_at

    def _leave_out(self, i: int, j: int) -> None:
        """Keep which samples of one id are in cells of two studies but are not the same."""
        one, two = sorted(self._analysis.debates.cells[c].study for c in (i, j))
        if one == two:
            return
        a, b, at, _ = self._pair(i, j)
        mine, theirs, both = ({*self._analysis.debates.sample_names[ids].tolist()} for ids in (a.ids, b.ids, a.ids[at]))
        self._others.setdefault((one, two), set()).update(mine & theirs - both)

    def others(self, studies: Sequence[str]) -> list[dict[str, Any]]:
        """How many samples of one id were left out of comparisons of two studies, because they are not the same."""
        return [{"study": studies[two], "baseline": studies[one], "samples": len(names)}
                for (one, two), names in self._others.items() if names]

    def _differences(self, i: int, j: int) -> tuple[NDArray[np.float64], bool]:
        """Differences on the samples both have, and whether each is of one right or wrong debate against another."""
        if self._analysis.metric_of[j] is None:
            return np.empty(0), False
        a, b, at, other_at = self._pair(i, j)
        binary = all((scores.times[where] == 1).all() and np.isin(scores.values[where], (0.0, 1.0)).all()
                     for scores, where in ((a, at), (b, other_at)))
        return np.round(a.values[at] - b.values[other_at], _DIGITS), binary

    def _effects(self, i: int, j: int, differences: NDArray[np.float64]) -> dict[str, Any]:
        a, b, at, other_at = self._pair(i, j)
        share, other = float(a.values[at].mean()), float(b.values[other_at].mean())
        gained, lost = int((differences > 0).sum()), int((differences < 0).sum())
        right_or_wrong = self._analysis.debates.proportions.get(self._analysis.metric_of[j] or "")
        effects = {"cohen_h": st.cohen_h(share, other), "odds_ratio": st.odds_ratio(share, other),
                   "paired_odds_ratio": st.paired_odds_ratio(gained, lost)} if right_or_wrong else {}
        return {"effects": {"standardised": st.standardised(differences), **effects}, "mean": share,
                "baseline_mean": other, "relative": _rounded(share - other) / other if other else None,
                "gained": gained, "lost": lost}

    def _why_not(self, i: int, j: int) -> str:
        analysis, metric = self._analysis, self._analysis.metric_of[j]
        if metric is None or not len(analysis.scores(metric, i)):
            what = f"the metric '{metric}'" if metric else "a score"
            return f"no debate has {what}" if len(analysis.rows(i)) else "no debate has ended"
        names = [{*analysis.debates.sample_names[analysis.scores(metric, c).ids]} for c in (i, j)]
        return ("other data: samples of the same id differ in question, references or another column, or in what is "
                "hidden from whom") if names[0] & names[1] else "other data: no sample is in both"


def paired_test(scores: Sequence[float], *, binary: bool) -> dict[str, Any]:
    """The test of two cells on the samples that both have, with the interval of their difference.

    scores: one for each sample, that of the first cell less that of the second. binary: each is of one right or wrong
    debate against another.
    """
    differences = np.round(np.asarray(scores, float), _DIGITS)
    found = compared(differences, binary)
    if binary and not intervals.enough_differ(differences):
        gained, lost = int((differences > 0).sum()), int((differences < 0).sum())
        return {**found, **_interval(intervals.tango(gained, lost, len(differences)))}
    means = intervals.bootstrap_means(differences, SEED)[:, 0]
    return {**found, **_interval(intervals.of_mean(differences, means))}


def matched(analysis: Analysis, facts: CellFacts) -> int | None:
    """The position of the cell that a cell is matched to."""
    return next((j for j, other in enumerate(analysis.debates.cells)
                 if other.study == facts.study and other.slug == facts.match.get("cell")), None)


def compared(differences: NDArray[np.float64], binary: bool) -> dict[str, Any]:
    """The test of these pairs, and what a study of this size can tell.

    binary: each is the difference of two debates that were right or wrong.
    """
    n, mean, square = len(differences), _rounded(differences.mean()), float((differences**2).mean())
    if binary:
        test = st.Test(st.mcnemar(int((differences > 0).sum()), int((differences < 0).sum())), MCNEMAR)
    else:
        test = st.sign_flips(differences, SEED)
    return {"samples": n, "difference": mean, "p": test.p, "test": test.method,
            "detectable": sizes.detectable(square, n, binary=binary),
            "samples_to_settle": sizes.to_settle(mean, square)}


def _resampled(columns: Sequence[tuple[int, NDArray[np.float64]]]) -> list[
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


def _interval(interval: intervals.Interval | None) -> Mapping[str, Any]:
    return {"ci95": None, "ci_method": None} if interval is None else {
        "ci95": [_rounded(interval.low), _rounded(interval.high)], "ci_method": interval.method}


def _rounded(value: float) -> float:
    return round(float(value), _DIGITS) + 0.0
