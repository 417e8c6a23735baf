"""How many samples a study needs, and what one of its size can see. Pure functions of numbers."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Literal

ALPHA = 0.05
POWER = 0.8
NO_DIFFERENCE = 1e-9
"""A smaller difference is a rounding error."""


def sample_size(population: int, conf: float = 0.95, margin: float = 0.05, p: float = 0.5,
                rounding: Literal["two_step", "once", "none"] = "two_step") -> float:
    """How many of a finite population are enough to know a share to within a margin (Cochran 1977).

    rounding: `two_step` rounds the number for an endless population up before it is corrected, as Kaesberg et al.
    2025 (appendix B.1) did, and then up again; `once` rounds only the result; `none` does not. The quantile is taken
    to two decimals, as in tables: 1.96 for 95 %.
    """
    if population < 1:
        raise ValueError(f"a population of {population} has no samples")
    z = round(NormalDist().inv_cdf((1 + conf) / 2), 2)
    endless = z * z * p * (1 - p) / (margin * margin)
    if rounding == "two_step":
        endless = _up(endless)
    needed = endless / (1 + (endless - 1) / population)
    return needed if rounding == "none" else min(population, max(1, _up(needed)))


def detectable(mean_square: float, n: int, alpha: float = ALPHA, power: float = POWER, *,
               binary: bool = False) -> float | None:
    """The smallest true difference that n pairs show with this power.

    mean_square: of the differences; of single right and wrong answers, the share of pairs that disagree. This is
    Connor's (1987) condition for McNemar's test, which applies to means over repeats unchanged. binary: the pairs are
    of single answers, of which at least the share `d` disagrees where the true difference is `d`: few pairs that
    disagreed do not mean that a small difference shows. None where no pair differs, and where no difference that
    so few pairs can have would be seen.
    """
    if mean_square <= 0 or n < 1 or (binary and 2 ** (1 - n) > alpha):  # the exact test's p if all differ, one way
        return None
    a, b = NormalDist().inv_cdf(1 - alpha / 2), NormalDist().inv_cdf(power)
    root = n * a * a - (n + b * b) * (a * a - b * b)
    if root < 0:
        return None
    share = (math.sqrt(n) * a + math.sqrt(root)) / (n + b * b)  # of the root of the mean square
    if share > 1:
        return None
    least = share * math.sqrt(mean_square)
    return max(least, share * share) if binary else least  # the condition with mean_square = d has the solution share²


def to_settle(difference: float, mean_square: float, alpha: float = ALPHA, power: float = POWER) -> int | None:
    """How many pairs show a difference as large as this one with this power (Connor 1987); None for no difference."""
    if abs(difference) < NO_DIFFERENCE or mean_square <= 0:
        return None
    a, b = NormalDist().inv_cdf(1 - alpha / 2), NormalDist().inv_cdf(power)
    rest = max(0.0, mean_square - difference * difference)
    return max(2, _up((a * math.sqrt(mean_square) + b * math.sqrt(rest)) ** 2 / (difference * difference)))


def _up(value: float) -> int:
    """Rounded up, but not because of the last binary digit."""
    return math.ceil(value - 1e-9)
