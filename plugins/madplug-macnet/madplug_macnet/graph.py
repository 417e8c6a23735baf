"""Directed acyclic graphs on n nodes, as pairs (u, v) with u < v."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Literal

Edge = tuple[int, int]
Name = Literal["chain", "star", "tree", "mesh", "layered", "random"]


def edges_of(name: Name, n: int, *, reverse: bool = False, rng: random.Random | None = None) -> list[Edge]:
    """The edges of a topology, sorted. rng: for `random`; without it, all pairs, the most that it can draw."""
    found = sorted(_edges(name, n, rng))
    return sorted((n - 1 - v, n - 1 - u) for u, v in found) if reverse else found


def _edges(name: Name, n: int, rng: random.Random | None) -> Sequence[Edge]:
    if name == "chain":
        return list(pairwise(range(n)))
    if name == "star":
        return [(0, i) for i in range(1, n)]
    if name == "tree":
        return [((i - 1) // 2, i) for i in range(1, n)]
    if name == "layered":
        layers = layers_of(n)
        return [(u, v) for before, after in pairwise(layers) for u in before for v in after]
    pairs = list(combinations(range(n), 2))
    if name == "mesh" or rng is None:
        return pairs
    return rng.sample(pairs, rng.randint(min(n - 1, len(pairs)), len(pairs)))


def layers_of(n: int) -> list[range]:
    """floor(log2 n) layers of equal size; the first has what is left over too."""
    number = max(1, n.bit_length() - 1)
    size = n // number
    ends = [n - size * i for i in range(number - 1, -1, -1)]
    return [range(start, end) for start, end in pairwise([0, *ends])]


def inputs_of(n: int, edges: Sequence[Edge]) -> list[list[int]]:
    """By node: where its edges come from."""
    found: list[list[int]] = [[] for _ in range(n)]
    for u, v in edges:
        found[v].append(u)
    return found


def depths_of(inputs: Sequence[Sequence[int]]) -> list[int]:
    """By node: 1 for a source, else one more than the deepest of its inputs."""
    depths: list[int] = []
    for sources in inputs:
        depths.append(1 + max((depths[u] for u in sources), default=0))
    return depths


def sinks_of(n: int, edges: Sequence[Edge]) -> list[int]:
    """The nodes that no edge leaves."""
    left = {u for u, _ in edges}
    return [v for v in range(n) if v not in left]


def calls_of(n: int, edges: Sequence[Edge]) -> int:
    """S + 2 E + M: a draft of each source, two calls an edge, a merge where several meet, at a node or behind sinks."""
    inputs = inputs_of(n, edges)
    return (sum(not i for i in inputs) + 2 * len(edges) + sum(len(i) > 1 for i in inputs)
            + (len(sinks_of(n, edges)) > 1))
