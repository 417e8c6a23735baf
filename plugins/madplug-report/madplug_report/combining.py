"""Means over cells: macro averages, marginal means of a factor or a family, and their differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtr

from madplug.study import interval, t_quantile
from madplug_report import statistics as st
from madplug_report.factors import Factor

if TYPE_CHECKING:
    from madplug_report.analysis import Analysis, Scores

CHANGES = ("difference.", "relative.")
"""What begins the name of a change from another row, or column, of a table."""
METHOD = "Student's t, clustered by sample"
SPREADS = {"repeats": "over repeats", "mean": "the mean of the averaged cells' own, over repeats",
           "cells": "over the averaged cells"}
"""What the std of an average over cells is."""
_ROUNDING = 1e-12
"""Sums and errors that are smaller than this part of what was added up are zero: cells with the same scores differ in
their last digits, and always by the same, which would pass for a significant difference."""


def combine(analysis: Analysis, weights: Mapping[int, float], share: bool = True,
            metric: str | None = None) -> dict[str, Any] | None:
    """The weighted sum of cells' means in their own metrics, or in one; None if a cell has none.

    Its interval is clustered by sample: what cells have in common is not taken for independent. `std` is the one the
    report is asked for, by default over the repeats that all of the cells have. share: the weights add up to 1, so that
    the sum is a share if all of the means are, and so is the interval; that of proportions is Wilson's.
    """
    metrics = {i: metric or analysis.metric_of[i] for i in weights}
    scores = {i: analysis.scores(m, i) for i, m in metrics.items() if m is not None}
    if not weights or len(scores) < len(weights) or not all(len(s) for s in scores.values()):
        return None
    terms = [w * scores[i].mean for i, w in weights.items()]
    least = _ROUNDING * sum(map(abs, terms))
    mean = total if abs(total := sum(terms)) > least else 0.0
    repeats = sorted(set.intersection(*(set(s.per_repeat) for s in scores.values())))
    per_repeat = [sum(w * scores[i].per_repeat[r] for i, w in weights.items()) for r in repeats]
    ids = np.concatenate([scores[i].ids for i in weights])
    parts = np.concatenate([w * (scores[i].values - scores[i].mean) / len(scores[i]) for i, w in weights.items()])
    sums = np.bincount(np.unique(ids, return_inverse=True)[1], parts)
    n = len(sums)
    error = float(np.sqrt((sums**2).sum() * n / (n - 1))) if n > 1 else None
    error = 0.0 if error is not None and error <= least else error
    proportions = share and all(analysis.debates.proportions.get(m or "") for m in metrics.values())
    ci95, method = _interval(mean, error, n, [*scores.values()], share=share, proportions=proportions)
    std = _std(analysis.spread, list(scores.values()), per_repeat)
    return {"mean": mean, "std": std, "per_repeat": per_repeat, "n": n,
            "cells": [analysis.debates.cells[i].name for i in weights], "error": error,
            "ci95": ci95, "ci_method": method}


def _std(spread: str, scores: Sequence[Scores], per_repeat: Sequence[float]) -> float | None:
    if spread == "repeats" or len(scores) < 2:
        return st.mean_and_std(per_repeat)[1]
    if spread == "cells":
        return st.mean_and_std([s.mean for s in scores])[1]
    stds = [s.std for s in scores if s.std is not None]
    return st.mean_and_std(stds)[0] if len(stds) == len(scores) else None


def average(analysis: Analysis, cells: Sequence[int], metric: str | None = None) -> dict[str, Any] | None:
    """The mean of cells' means, each counting the same; in their own metrics, or in one."""
    return combine(analysis, {i: 1 / len(cells) for i in cells}, metric=metric) if cells else None


def difference(analysis: Analysis, cells: Sequence[int], base: Sequence[int],
               metric: str | None = None) -> dict[str, Any] | None:
    """The difference of two averages over cells, in their own metrics or in one."""
    weights = {i: 1 / len(cells) for i in cells}
    for j in base:
        weights[j] = weights.get(j, 0.0) - 1 / len(base)
    return combine(analysis, weights, share=False, metric=metric) if cells and base else None


def change(analysis: Analysis, metric: str, cells: Sequence[int], base: Sequence[int]) -> dict[str, Any] | None:
    """`difference.LEVEL`, or `relative.LEVEL`: the same as a part of the average that it is from.

    It is that of the metric that is asked for before it.
    """
    of = analysis.changed.get(metric)
    found, whole = difference(analysis, cells, base, of), average(analysis, base, of)
    if found is None or whole is None or metric.startswith(CHANGES[0]):
        return found
    by = whole["mean"]
    return {**found, "mean": found["mean"] / by, "std": None if found["std"] is None else found["std"] / by,
            "per_repeat": [value / by for value in found["per_repeat"]],
            "ci95": found["ci95"] and [end / by for end in found["ci95"]]} if by else None


def contrast(analysis: Analysis, cells: Sequence[int], base: Sequence[int]) -> dict[str, Any] | None:
    """The difference of two averages over cells, and its test (Student's t, clustered by sample)."""
    found = difference(analysis, cells, base)
    if found is None:
        return None
    t = found["mean"] / found["error"] if found["error"] else None
    p = None if t is None else 2 * float(stdtr(found["n"] - 1, -abs(t)))
    return {"difference": found["mean"], "ci95": found["ci95"], "p": p}


def marginals(analysis: Analysis, families: Mapping[str, Mapping[str, Sequence[str]]]) -> list[dict[str, Any]]:
    """For each factor the mean of each level and family over all other settings; the first level is the reference.

    Only settings that occur with every level count, so that levels are compared on equal terms. families: by factor,
    the levels of each.
    """
    found = []
    sets = [(group.levels, group.cells, group.metric) for group in analysis.groups]
    metrics, seen = {metric for _, _, metric in sets}, set()
    if len(sets) > 1 and len(metrics) == 1:
        sets.append(({}, [i for _, cells, _ in sets for i in cells], metrics.pop()))
    for separate, cells, metric in sets:
        crossed = [i for i in cells if not analysis.debates.cells[i].named] or cells
        for factor in analysis.factors.factors:
            rows = [] if factor.name in separate else _margins(analysis, crossed, factor, families)
            own = (factor.name, *(tuple(row["cells"]) for row in rows))
            if own in seen:  # all groups together, of which one has such settings
                continue
            seen.add(own)
            found += [{"group": dict(separate), "factor": factor.name, "metric": metric, **row} for row in rows]
    ps = [row["p"] for row in found if row["p"] is not None]
    corrected = iter(st.holm(ps))
    return [{**row, "p_holm": None if row["p"] is None else next(corrected)} for row in found]


def _margins(analysis: Analysis, cells: Sequence[int], factor: Factor,
             families: Mapping[str, Mapping[str, Sequence[str]]]) -> list[dict[str, Any]]:
    """The averages of a factor's levels, and those of its families."""
    present = {analysis.factors.of_cell[i][factor.name] for i in cells}
    rows = _margin(analysis, cells, factor.name, {level: [level] for level in factor.levels if level in present})
    return rows + _margin(analysis, cells, factor.name, {
        name: own for name, levels in (families.get(factor.name) or {}).items()
        if (own := [level for level in levels if level in present])})


def _margin(analysis: Analysis, cells: Sequence[int], factor: str,
            names: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """The average of each name's levels over the settings that occur with all of them."""
    by_setting: dict[tuple[tuple[str, str], ...], dict[str, int]] = {}
    for i in cells:
        levels = analysis.factors.of_cell[i]
        rest = tuple((name, level) for name, level in levels.items() if name != factor)
        by_setting.setdefault(rest, {})[levels[factor]] = i
    wanted = {level for levels in names.values() for level in levels}
    complete = [table for table in by_setting.values() if wanted <= set(table)]
    several = len(complete) > 1 or any(len(levels) > 1 for levels in names.values())
    if len(names) < 2 or not complete or not several:
        return []
    of_name = {name: [table[level] for table, level in product(complete, levels)] for name, levels in names.items()}
    first = next(iter(of_name.values()))
    rows = []
    for k, (name, own) in enumerate(of_name.items()):
        mean = average(analysis, own)
        change = contrast(analysis, own, first) if k else None
        if mean is not None:
            rows.append({"level": name, "levels": list(names[name]), **mean, "settings": len(complete),
                         "difference": change and change["difference"], "difference_ci95": change and change["ci95"],
                         "p": change and change["p"]})
    return rows


def _interval(mean: float, error: float | None, n: int, scores: Sequence[Scores], *, share: bool,
              proportions: bool) -> tuple[list[float] | None, str | None]:
    if error is None or not (share or error):  # where no sample differs, nothing is known of how they do
        return None, None
    if proportions:
        least = min(map(len, scores))  # as many independent answers as there are in any case
        return interval(least, mean, error**2 * least, debates=sum(int(s.times.sum()) for s in scores), proportion=True)
    half = t_quantile(n - 1) * error
    if share and all((s.values >= 0).all() and (s.values <= 1).all() for s in scores):
        return [max(0.0, mean - half), min(1.0, mean + half)], METHOD
    return [mean - half, mean + half], METHOD
