"""Confidence intervals, as pure functions of numbers. Resampling is seeded: the same study gives the same report."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

LEVEL = 0.95
RESAMPLES = 9_999
ENOUGH = 20
"""At least this many samples must differ from the most common value before resampling shows how the mean varies."""
_DRAWN_AT_MOST = 200_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval, and how it was made."""

    low: float
    high: float
    method: str

    def within(self, low: float, high: float) -> Interval:
        """The part of it between two bounds."""
        return Interval(max(low, self.low), min(high, self.high), self.method)


def wilson(successes: float, n: int, level: float = LEVEL) -> Interval:
    """The interval of one proportion (Wilson 1927)."""
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"{successes} of {n} is not a proportion")
    z, share = -float(ndtri((1 - level) / 2)), successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    return Interval(low, 1.0 if successes == n else min(1.0, centre + half), "Wilson")


def student(values: ArrayLike, level: float = LEVEL) -> Interval | None:
    """The interval of a mean from its standard error; None with fewer than two values, or where none differ."""
    x = np.asarray(values, float)
    if len(x) < 2 or float(np.ptp(x)) == 0:
        return None
    half = float(stdtrit(len(x) - 1, (1 + level) / 2)) * float(x.std(ddof=1)) / math.sqrt(len(x))
    return Interval(float(x.mean()) - half, float(x.mean()) + half, "Student's t")


def tango(gained: int, lost: int, n: int, level: float = LEVEL) -> Interval:
    """The score interval of a difference of two proportions in n pairs (Tango 1998).

    The counterpart of Wilson's for one proportion: it keeps its level where few pairs differ, and contains zero
    exactly where McNemar's test without correction does not reject.
    """
    z = -float(ndtri((1 - level) / 2))

    def score(difference: float) -> float:
        b = -gained - lost + (2 * n - gained + lost) * difference
        c = -lost * difference * (1 - difference)
        losses = (math.sqrt(max(0.0, b * b - 8 * n * c)) - b) / (4 * n)
        variance = n * (2 * losses + difference * (1 - difference))
        return (gained - lost - n * difference) / math.sqrt(variance) if variance > 0 else 0.0

    estimate = (gained - lost) / n
    return Interval(_crossing(score, z, -1.0, estimate), _crossing(score, -z, estimate, 1.0), "score (Tango)")


def of_mean(values: ArrayLike, means: ArrayLike, level: float = LEVEL) -> Interval | None:
    """BCa from the means of resamples; from the standard error where too few values differ for that."""
    return bca(values, means, level) if enough_differ(values) else student(values, level)


def enough_differ(values: ArrayLike) -> bool:
    """Whether enough values differ from the most common one for resampling to show how their mean varies."""
    x = np.asarray(values, float)
    common = int(np.unique(x, return_counts=True)[1].max()) if len(x) else 0
    return len(x) - common >= ENOUGH


def bootstrap_means(columns: ArrayLike, seed: int = 0, resamples: int = RESAMPLES) -> NDArray[np.float64]:
    """Means of resampled samples: one row a resample, one column for each column of `columns`.

    columns: samples x columns. Samples are resampled whole, so that pairs stay pairs; the columns share the
    resamples. Of very many samples there are fewer resamples than asked for, but never fewer than 1,999.
    """
    x = np.asarray(columns, float)
    x = x[:, None] if x.ndim == 1 else x
    n = len(x)
    resamples = min(resamples, max(1_999, _DRAWN_AT_MOST // n))
    rng, means = np.random.default_rng(seed), np.empty((resamples, x.shape[1]))
    step = max(1, 2_000_000 // n)
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        drawn = rng.integers(0, n, (rows, n), dtype=np.int32) + np.arange(0, rows * n, n, dtype=np.int32)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n)
        means[start:start + rows] = counts.astype(float) @ x / n
    return means


def bca(values: ArrayLike, means: ArrayLike, level: float = LEVEL) -> Interval | None:
    """The bootstrap interval of a mean, corrected for bias and skewness (BCa, Efron 1987).

    means: the means of resamples of `values`. Where the correction is undefined the interval is the plain one of
    percentiles; None where no two values differ, because resamples then tell nothing.
    """
    x, drawn = np.asarray(values, float), np.asarray(means, float)
    n = len(x)
    if n < 2 or float(np.ptp(x)) == 0:
        return None
    mean, tails = x.mean(), np.array([(1 - level) / 2, (1 + level) / 2])
    near = 1e-12 * np.abs(x).max()  # means of the same draws differ in their last digits
    bias = ndtri((np.mean(drawn < mean - near) + np.mean(drawn <= mean + near)) / 2)
    method = "percentile bootstrap"
    if np.isfinite(bias):
        without = (x.sum() - x) / (n - 1)
        u = (n - 1) * (without.mean() - without)
        skew = (u**3).sum() / n**3 / ((u**2).sum() / n**2) ** 1.5 / 6
        shifted = bias + ndtri(tails)
        tails, method = ndtr(bias + shifted / (1 - skew * shifted)), "BCa bootstrap"
    low, high = np.percentile(drawn, 100 * tails)
    return Interval(float(low), float(high), method)


def _crossing(falling: Callable[[float], float], at: float, low: float, high: float) -> float:
    """Where a falling function passes a value; the nearer end where it does not."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > at else (low, middle)
    return (low + high) / 2
