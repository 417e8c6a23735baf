"""Orders of answers: which of the others' answers is read first, and which last."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Literal

Strategy = Literal["fixed", "random", "most_last", "most_first", "truth_first", "truth_last"]
Labels = Sequence[Hashable]
"""An answer's label by place: equal labels are equal answers. An unread one has a unique label."""


def ordered(strategy: Strategy, labels: Labels, *, right: Sequence[bool] = (), rng: random.Random | None = None,
            group_equal: bool = False) -> list[int]:
    """Places in the order in which they are shown. Equals stay in their order.

    right: by place, whether the answer is right; for the strategies that know.
    """
    places = list(range(len(labels)))
    if strategy == "random":
        (rng or random.Random(0)).shuffle(places)
    elif strategy in ("truth_first", "truth_last"):
        places.sort(key=lambda i: right[i] == (strategy == "truth_last"))
    elif strategy != "fixed":
        counts, sign = Counter(labels), 1 if strategy == "most_last" else -1
        places.sort(key=lambda i: sign * counts[labels[i]])
    return grouped(places, labels, last=strategy.endswith("last")) if group_equal else places


def most_consistent(strategy: Strategy, labels: Labels, *, group_equal: bool = False) -> list[int]:
    """The one list of Algorithm 1: by how many others give the same answer, the first of the most at the
    end.

    `most_first` is its mirror. The agent that is shown the list is left out of it afterwards.
    """
    if strategy == "most_first" or not labels:
        return ordered(strategy, labels, group_equal=group_equal)
    counts = Counter(labels)
    best = max(range(len(labels)), key=lambda i: counts[labels[i]])
    others = sorted((i for i in range(len(labels)) if i != best), key=lambda i: counts[labels[i]])
    places = [*others, best]
    return grouped(places, labels, last=True) if group_equal else places


def rotated(places: Sequence[int], steps: int) -> list[int]:
    """The order moved on by some steps: with each, the last place comes first."""
    steps %= len(places) or 1
    return [*places[len(places) - steps:], *places[:len(places) - steps]]


def faded(places: Sequence[int], kept: float, rng: random.Random) -> list[int]:
    """The order in which each answer keeps its place with probability `kept`; the others are shuffled."""
    loose = [at for at in range(len(places)) if rng.random() >= kept]
    drawn = [places[at] for at in loose]
    rng.shuffle(drawn)
    moved = dict(zip(loose, drawn, strict=True))
    return [moved.get(at, place) for at, place in enumerate(places)]


def grouped(places: Sequence[int], labels: Labels, *, last: bool) -> list[int]:
    """Equal answers side by side, at the place of the last (or the first) of them."""
    order = {labels[i]: at for at, i in (enumerate(places) if last else reversed(list(enumerate(places))))}
    return sorted(places, key=lambda i: order[labels[i]])
