"""Sparse topologies (Li et al. 2024): agents that read some of the others debate as well, and cheaper."""

from __future__ import annotations

from madplug import Metric, Paradigm, Visibility, hookimpl
from madplug_sparse.topology import Graph, Shape, build, connected, density, diameter, mean_in_degree
from madplug_sparse.visibility import SparseGraph, Topology

__all__ = [
    "Graph",
    "Shape",
    "SparseDebate",
    "SparseGraph",
    "Topology",
    "build",
    "connected",
    "density",
    "diameter",
    "mean_in_degree",
]


class SparseDebate(Paradigm):
    """The exchange of `som.debate` on a ring, or on another graph.

    Everything but who reads whom is as in `som.debate`. With three agents a ring is complete.
    """

    name = "debate"
    source = "Li et al. 2024, Improving Multi-Agent Debate with Sparse Communication Topology, section 3"
    debate = {
        "agents": 3, "rounds": 2, "turns": "turns.simultaneous",
        "visibility": {"use": "sparse.graph", "topology": "ring"}, "styles": ["som.exchange"],
        "decision": {"use": "voting.plurality", "tie": "first"}}


@hookimpl
def madplug_register_visibilities() -> list[type[Visibility]]:
    """Register the visibility."""
    return [SparseGraph]


@hookimpl
def madplug_register_metrics() -> list[type[Metric]]:
    """Register the metric."""
    return [Topology]


@hookimpl
def madplug_register_paradigms() -> list[type[Paradigm]]:
    """Register the paradigm."""
    return [SparseDebate]
