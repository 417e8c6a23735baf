"""Which rows a study takes: how many, in what order, and how many of each group.

Shared by every data set that reads rows, so that `limit`, `shuffle` and `stratify` mean the same everywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from statistics import NormalDist
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field

from madplug import Options, Volatile

T = TypeVar("T")
LIMIT = re.compile(r"\s*(\d+(?:\.\d+)?)\s?%\s*(?:\+-|\+/-|±)\s*(\d+(?:\.\d+)?)\s?%\s*")
Z = {0.90: 1.645, 0.95: 1.96, 0.99: 2.576}
"""The rounded values that published sample sizes rest on; any other confidence is computed."""


def sample_size(population: int, confidence: float = 0.95, margin: float = 0.05, p: float = 0.5,
                rounding: Literal["two_step", "up", "none"] = "two_step") -> float:
    """How many of `population` to draw, so that a share is estimated within `margin` at this confidence.

    The size for an infinite population, corrected for a finite one. `two_step` rounds up before the correction and
    after it, as published tables do; `up` only after it.
    """
    z = Z.get(round(confidence, 6)) or NormalDist().inv_cdf((1 + confidence) / 2)
    # Rounded first: 384.16 must not become 385 in one place and 384.1600000000001 in another.
    infinite = round(z * z * p * (1 - p) / margin ** 2, 9)
    if rounding == "two_step":
        infinite = ceil(infinite)
    exact = infinite / (1 + (infinite - 1) / population) if population else 0.0
    return exact if rounding == "none" else min(population, ceil(round(exact, 9)))


def _limit(value: Any) -> Any:
    """Validate a limit and normalise its spelling."""
    if isinstance(value, bool):
        raise ValueError("a limit is a number of rows, or \"95% +- 5%\"")
    if not isinstance(value, str):
        return value
    found = LIMIT.fullmatch(value)
    if not found:
        raise ValueError(f"'{value:.40}' is not a limit; expected a number of rows, or \"95% +- 5%\"")
    confidence, margin = map(float, found.groups())
    if not (0 < confidence < 100 and 0 < margin < 50):
        raise ValueError(f"'{value:.40}': the confidence must lie between 0% and 100%, the margin between 0% and 50%")
    return f"{confidence:g}% +- {margin:g}%"


class SamplingOptions(Options):
    """Which of a data set's rows a study takes."""

    limit: Annotated[Annotated[int, Field(ge=1)] | str | None, BeforeValidator(_limit), Volatile] = Field(
        default=None, description="the most rows to take; `\"95% +- 5%\"`: as many as estimate a share within 5 "
                                  "points at 95% confidence, drawn at random (with seed 0 unless `shuffle` is set)")
    shuffle: Annotated[int | None, Volatile] = Field(
        default=None, ge=0, description="a seed, to take the rows in random order; unset: in the order they are stored")
    stratify: Annotated[str | None, Volatile] = Field(
        default=None, min_length=1,
        description="a column; `limit` is divided among its values in proportion to their frequency")


@dataclass(frozen=True)
class Draw:
    """Which rows to take, as the options say."""

    limit: int | str | None
    shuffle: int | None
    stratify: str | None

    @classmethod
    def chosen(cls, options: SamplingOptions) -> Draw:
        """From a data set's options. A margin of error presumes a random sample, so it sets a seed."""
        seed = 0 if options.shuffle is None and isinstance(options.limit, str) else options.shuffle
        return cls(options.limit, seed, options.stratify)

    def size(self, count: Callable[[], int]) -> int | None:
        """How many of `count()` rows to take, or None for all of them."""
        if not isinstance(self.limit, str):
            return self.limit
        confidence, margin = (float(part) / 100 for part in LIMIT.fullmatch(self.limit).groups())  # type: ignore[union-attr]
        return int(sample_size(count(), confidence, margin))

    def rows(self, rows: Iterable[T], stratum: Callable[[T], str], groups: Callable[[], Mapping[str, int]],
             count: Callable[[], int]) -> Iterator[T]:
        """The rows to take, in the order they come in.

        stratum: the group of a row. groups: the number of rows by group, called only when needed.
        """
        size = self.size(count)
        if size is None:
            yield from rows
            return
        by_group = self.stratify is not None
        left = quotas(groups(), size) if by_group else {"": size}
        for row in rows if size else ():
            group = stratum(row) if by_group else ""
            if left.get(group, 0) > 0:
                left[group] -= 1
                size -= 1
                yield row
                if size == 0:
                    return


def quotas(groups: Mapping[str, int], size: int) -> dict[str, int]:
    """A sample's size divided among groups in proportion to their sizes.

    What is left over goes to the largest remainders, ties in alphabetical order.
    """
    total = sum(groups.values())
    size = min(size, total)
    whole = {group: n * size // total for group, n in sorted(groups.items())} if total else {}
    remainders = sorted(whole, key=lambda group: (-(groups[group] * size % total), group))
    for group in remainders[:size - sum(whole.values())]:
        whole[group] += 1
    return whole


def tally(groups: Iterable[str]) -> dict[str, int]:
    """How many rows each group has."""
    return dict(Counter(groups))
