"""How alike embeddings are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

Vector = Sequence[float]


def cosine(a: Vector, b: Vector) -> float:
    """The cosine of the angle between two vectors of one length, from -1 to 1; 0 where one of them is zero."""
    norm = math.hypot(*a) * math.hypot(*b)
    return math.fsum(x * y for x, y in zip(a, b, strict=True)) / norm if norm else 0.0


def mean_cosine(vectors: Sequence[Vector]) -> float:
    """The mean cosine of all pairs of two vectors or more."""
    pairs = [cosine(a, b) for a, b in combinations(vectors, 2)]
    return math.fsum(pairs) / len(pairs)
