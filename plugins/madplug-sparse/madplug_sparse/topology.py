"""Topologies as lists of in-neighbours: `graph[i]` are the agents that agent i reads, ascending."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

Graph = tuple[tuple[int, ...], ...]
Name = Literal["full", "ring", "ring_directed", "chain", "star", "k_regular", "random_k", "erdos_renyi", "groups",
               "edges"]
RANDOM = frozenset({"random_k", "erdos_renyi"})
TRIES = 100
"""At most this many Erdos-Renyi graphs are drawn before isolated agents get a random edge."""


@dataclass(frozen=True)
class Shape:
    """What a topology is made from, besides the number of agents."""

    k: int | None = None
    p: float = 0.5
    hub: int = 0
    groups: int = 2
    edges: Sequence[tuple[int, int]] = ()
    directed: bool = False
    rng: random.Random = field(default_factory=lambda: random.Random(0))


def build(name: Name, n: int, shape: Shape | None = None) -> Graph:
    """The topology of this name on n agents."""
    return BUILDERS[name](n, shape or Shape())


def connected(n: int, edges: Iterable[tuple[int, int]], *, directed: bool = False) -> Graph:
    """A graph from pairs of agents: the first reads the second and, unless directed, the second the first."""
    reads: list[set[int]] = [set() for _ in range(n)]
    for a, b in edges:
        if a != b:
            reads[a].add(b)
            if not directed:
                reads[b].add(a)
    return tuple(tuple(sorted(of)) for of in reads)


def full(n: int, shape: Shape) -> Graph:
    """Every agent reads all others."""
    return connected(n, combinations(range(n), 2))


def ring(n: int, shape: Shape) -> Graph:
    """Every agent reads both neighbours in a circle."""
    return connected(n, ((i, (i + 1) % n) for i in range(n)))


def ring_directed(n: int, shape: Shape) -> Graph:
    """Every agent reads the next in a circle."""
    return connected(n, ((i, (i + 1) % n) for i in range(n)), directed=True)


def chain(n: int, shape: Shape) -> Graph:
    """Every agent reads both neighbours in a line."""
    return connected(n, ((i, i + 1) for i in range(n - 1)))


def star(n: int, shape: Shape) -> Graph:
    """The hub reads all, the others read the hub."""
    return connected(n, ((shape.hub, i) for i in range(n)))


def k_regular(n: int, shape: Shape) -> Graph:
    """Every agent reads the k nearest in a circle; an odd k includes the one opposite."""
    k = min(2 if shape.k is None else shape.k, n - 1)
    steps = [*range(1, k // 2 + 1), *([n // 2] if k % 2 else [])]
    return connected(n, ((i, (i + step) % n) for i in range(n) for step in steps))


def random_k(n: int, shape: Shape) -> Graph:
    """Every agent reads k others, drawn without replacement."""
    k = min(n // 2 if shape.k is None else shape.k, n - 1)
    drawn = (shape.rng.sample([j for j in range(n) if j != i], k) for i in range(n))
    return tuple(tuple(sorted(of)) for of in drawn)


def erdos_renyi(n: int, shape: Shape) -> Graph:
    """Every pair reads each other with probability p; no agent is isolated."""
    for _ in range(TRIES):
        graph = connected(n, [pair for pair in combinations(range(n), 2) if shape.rng.random() < shape.p])
        if all(graph) or n < 2:
            return graph
    alone = [i for i in range(n) if not graph[i]]
    pairs = [(i, shape.rng.choice([j for j in range(n) if j != i])) for i in alone]
    return connected(n, [*((i, j) for i in range(n) for j in graph[i]), *pairs])


def groups(n: int, shape: Shape) -> Graph:
    """Every agent reads the members of its group; groups are neighbours in the list and as equal as can be."""
    count = min(shape.groups, n)
    group = [i * count // n for i in range(n)]
    return connected(n, (pair for pair in combinations(range(n), 2) if group[pair[0]] == group[pair[1]]))


def from_edges(n: int, shape: Shape) -> Graph:
    """As the list says."""
    return connected(n, shape.edges, directed=shape.directed)


BUILDERS: dict[str, Callable[[int, Shape], Graph]] = {
    "full": full, "ring": ring, "ring_directed": ring_directed, "chain": chain, "star": star,
    "k_regular": k_regular, "random_k": random_k, "erdos_renyi": erdos_renyi, "groups": groups, "edges": from_edges}


# Figures of a graph

def density(graph: Graph) -> float:
    """Arcs by possible arcs; of an undirected graph, 2 |E| / (n (n - 1))."""
    n = len(graph)
    return sum(map(len, graph)) / (n * (n - 1)) if n > 1 else 0.0


def mean_in_degree(graph: Graph) -> float:
    """How many others an agent reads, on average."""
    return sum(map(len, graph)) / len(graph) if graph else 0.0


def diameter(graph: Graph) -> int | None:
    """The most rounds that any agent's answer needs to reach any other; None where it never does."""
    longest = 0
    for start in range(len(graph)):
        reached, rounds, edge = {start}, 0, {start}
        while edge := {j for i in edge for j in graph[i]} - reached:
            reached |= edge
            rounds += 1
        if len(reached) < len(graph):
            return None
        longest = max(longest, rounds)
    return longest
