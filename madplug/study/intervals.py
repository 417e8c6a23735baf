"""Mean, spread over repeats and interval over samples of scores: the numbers of `summary.json` and of reports."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Sequence
from math import atan, cos, fsum, pi, sin, sqrt
from statistics import NormalDist, fmean, median, stdev, variance
from typing import Any

WILSON = "Wilson"
CLUSTERED = "Wilson, clustered by sample"
STUDENT = "Student's t"
_TAIL = 0.975
_Z = NormalDist().inv_cdf(_TAIL)


Scores = tuple[Sequence[Any], Sequence[float]]
"""Samples, or what stands for them, and the score of each."""


def spread(repeats: Sequence[Scores], *, proportion: bool = False) -> dict[str, Any]:
    """Mean over samples, sample standard deviation of the repeats' means, and a 95 % interval over samples.

    repeats: the scores of each repeat. proportion: the scores are 0 or 1. A sample's score is its
    mean over repeats; `n` samples have one. `per_repeat` has each repeat's mean, `median` the middle of these; `std`
    is None for one repeat.
    """
    per_repeat = [fmean(values) for _, values in repeats]
    means = _means(repeats)
    found, method = interval(len(means), fmean(means), variance(means) if len(means) > 1 else 0.0,
                             debates=sum(len(values) for _, values in repeats), proportion=proportion,
                             shares=all(0 <= mean <= 1 for mean in means))
    return {"mean": fmean(means), "std": stdev(per_repeat) if len(per_repeat) > 1 else None, "ci95": found,
            "ci_method": method, "median": median(per_repeat), "n": len(means), "proportion": proportion,
            "per_repeat": per_repeat}


def _means(repeats: Sequence[Scores]) -> array[float]:
    """The mean of each sample over the repeats that have it."""
    if len(repeats) == 1:
        return array("d", repeats[0][1])
    by_sample: dict[Any, list[float]] = defaultdict(list)
    for scores in repeats:
        for sample, value in zip(*scores, strict=True):
            by_sample[sample].append(value)
    return array("d", map(fmean, by_sample.values()))


def interval(n: int, mean: float, variance: float, *, debates: int, proportion: bool,
             shares: bool = False) -> tuple[list[float] | None, str | None]:
    """A 95 % confidence interval of a mean over samples, and its method; None for fewer than two samples.

    n, mean, variance (with n - 1): of the samples' means over repeats. debates: how many scores these are.
    proportion: the scores are 0 or 1; the interval is then Wilson's (1927), with the number of independent answers
    that would have this variance: `n` where repeats of a sample always agree, `debates` where they do not depend on
    the sample. shares: the means lie between 0 and 1, and so does the interval.
    """
    if n < 2:
        return None, None
    if proportion:
        return _wilson(mean, _independent(n, mean, variance, debates)), WILSON if debates == n else CLUSTERED
    half = t_quantile(n - 1) * sqrt(variance / n)
    low, high = mean - half, mean + half
    return [max(0.0, low), min(1.0, high)] if shares else [low, high], STUDENT


def t_quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's t with this many degrees of freedom."""
    if freedom > 200:  # Cornish and Fisher's expansion, exact to nine digits here
        z, v = _Z, freedom
        return (z + (z**3 + z) / (4 * v) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
                + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3))
    low, high = 0.0, 13.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_share(middle, freedom) < 2 * _TAIL - 1 else (low, middle)
    return (low + high) / 2


def _t_share(t: float, freedom: int) -> float:
    """The probability between -t and t (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    angle = atan(t / sqrt(freedom))
    term = cos(angle) if freedom % 2 else 1.0
    terms = [term] if freedom > 1 else []
    for k in range(3 if freedom % 2 else 2, freedom - 1, 2):
        term *= (k - 1) / k * cos(angle) ** 2
        terms.append(term)
    return 2 / pi * (angle + sin(angle) * fsum(terms)) if freedom % 2 else sin(angle) * fsum(terms)


def _independent(n: int, mean: float, variance: float, debates: int) -> float:
    """How many independent answers would have the variance that the means of n samples have."""
    if not 0 < mean < 1:
        return n
    return min(debates, max(n, mean * (1 - mean) * n / variance)) if variance > 0 else debates


def _wilson(mean: float, n: float) -> list[float]:
    z2 = _Z * _Z
    centre = (mean + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z * sqrt(max(0.0, mean * (1 - mean)) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return [0.0 if mean <= 0 else max(0.0, centre - half), 1.0 if mean >= 1 else min(1.0, centre + half)]
