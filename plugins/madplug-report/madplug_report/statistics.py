"""Tests and effect sizes, as pure functions of numbers.

Pairs are differences on the same samples, one a sample: with several repeats, between means over repeats. All
tests are two-sided. Everything that draws is seeded, so that a report of the same study is the same report.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import bdtr

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

DRAWS = 99_999
FEWER_DRAWS = 9_999
"""Where each takes longer."""
_EXACT_WORK = 50_000_000
_FINEST = 60
_FEW = 16
"""So many differences have few enough patterns of signs to go through all."""
_LARGEST = 2.0**40
"""Sums of more steps are not counted as whole numbers: the differences are such only for want of digits."""


@dataclass(frozen=True, slots=True)
class Test:
    """A p-value, and how it was found."""

    p: float
    method: str


def mean_and_std(values: Sequence[float]) -> tuple[float | None, float | None]:
    """The mean, and the sample standard deviation (n - 1); None for too few values."""
    if not len(values):
        return None, None
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None


# Tests

def mcnemar(gained: int, lost: int) -> float:
    """Exact: the chance of discordant pairs at least so uneven when gains and losses are equally likely."""
    n = gained + lost
    return min(1.0, 2 * float(bdtr(min(gained, lost), n, 0.5))) if n else 1.0


def sign_flips(differences: ArrayLike, seed: int = 0, draws: int = DRAWS) -> Test:
    """The paired permutation test of the mean: how often random signs give a sum as large as the true one.

    Exact where it can be counted: differences on a grid, as of right and wrong answers averaged over repeats, or
    few of them; else drawn.
    """
    x = np.asarray(differences, float)
    x = np.abs(x[x != 0]) * np.sign(x[x != 0])
    if not len(x):
        return Test(1.0, "sign flips, exact")
    steps = _on_grid(x)
    if steps is not None:
        sizes, counts = np.unique(np.abs(steps), return_counts=True)
        total = abs(int(steps.sum()))
        if int(sizes @ counts) * len(x) <= _EXACT_WORK:
            return Test(_counted(sizes, counts, total), "sign flips, exact")
        if len(x) > _FEW:
            return Test(_drawn_on_grid(sizes, counts, total, seed, draws), f"sign flips, {draws:,} drawn")
    if len(x) <= _FEW:
        return Test(_enumerated(x), "sign flips, exact")
    draws = min(draws, FEWER_DRAWS)
    return Test(_drawn(x, seed, draws), f"sign flips, {draws:,} drawn")


def holm(ps: Sequence[float]) -> list[float]:
    """P-values corrected for a family of tests (Holm 1979), in the order given."""
    order, adjusted, highest = sorted(range(len(ps)), key=lambda i: ps[i]), [1.0] * len(ps), 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[i]))
        adjusted[i] = highest
    return adjusted


def _on_grid(x: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """The differences, none of them zero, as whole steps of one over a small number, if they are such."""
    for parts in range(1, _FINEST + 1):
        steps = np.rint(x * parts)
        if np.abs(steps).sum() < _LARGEST and steps.all() and np.abs(x * parts - steps).max() < 1e-9:
            return steps.astype(np.int64)
    return None


def _counted(sizes: NDArray[np.int64], counts: NDArray[np.int64], total: int) -> float:
    """The share of all sign patterns, by adding the binomials of each size of step."""
    shares = np.ones(1)  # of sums from -(len - 1) / 2 to (len - 1) / 2 steps
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        for _ in range(count):
            wider = np.zeros(len(shares) + 2 * size)
            wider[2 * size:] = shares
            wider[:len(shares)] += shares
            shares = wider / 2
    reach = len(shares) // 2
    far = np.abs(np.arange(-reach, reach + 1)) >= total
    return min(1.0, float(shares[far].sum()))


def _drawn_on_grid(sizes: NDArray[np.int64], counts: NDArray[np.int64], total: int, seed: int, draws: int) -> float:
    rng = np.random.default_rng(seed)
    sums = np.zeros(draws, np.int64)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        sums += size * (2 * rng.binomial(count, 0.5, draws) - count)
    return (1 + int((np.abs(sums) >= total).sum())) / (draws + 1)


def _enumerated(x: NDArray[np.float64]) -> float:
    sums = np.zeros(1)
    for value in x:
        sums = np.concatenate([sums + value, sums - value])
    return float(np.mean(np.abs(sums) >= abs(x.sum()) - 1e-12 * np.abs(x).sum()))


def _drawn(x: NDArray[np.float64], seed: int, draws: int) -> float:
    rng, far = np.random.default_rng(seed), 0
    least, step = abs(x.sum()) - 1e-12 * np.abs(x).sum(), max(1, 4_000_000 // len(x))
    for start in range(0, draws, step):
        rows = min(step, draws - start)
        bits = np.unpackbits(np.frombuffer(rng.bytes(rows * -(-len(x) // 8)), np.uint8).reshape(rows, -1), axis=1)
        far += int((np.abs(2 * (bits[:, :len(x)].astype(np.float32).astype(float) @ x) - x.sum()) >= least).sum())
    return (1 + far) / (draws + 1)


# Effects

def cohen_h(share: float, base: float) -> float:
    """The difference of two proportions on the scale where all differences are equally hard to see."""
    return 2 * math.asin(math.sqrt(share)) - 2 * math.asin(math.sqrt(base))


def odds_ratio(share: float, base: float) -> float | None:
    """Odds of being right against the baseline's; None where one of them is never or always right."""
    return None if {share, base} & {0.0, 1.0} else share / (1 - share) / (base / (1 - base))


def paired_odds_ratio(gained: int, lost: int) -> float | None:
    """Samples gained for each sample lost: the odds ratio of pairs; None where none was lost."""
    return gained / lost if lost else None


def standardised(differences: ArrayLike) -> float | None:
    """The mean difference in standard deviations of the differences; None where they do not differ."""
    x = np.asarray(differences, float)
    deviation = float(x.std(ddof=1)) if len(x) > 1 else 0.0
    return float(x.mean()) / deviation if deviation else None
