"""Solutions that travel along a directed acyclic graph of agents (MacNet)."""

from __future__ import annotations

from madplug import Paradigm, Style, TurnOrder, Visibility, hookimpl
from madplug_macnet.nodes import SOURCE, Along, Graph, Node

__all__ = ["Along", "Graph", "MacnetDebate", "Node"]


class MacnetDebate(Paradigm):
    """Agents on a graph: solutions are criticised on each edge, refined at each node and merged where edges meet.

    `debate.turns.topology` names the graph, `agents` is its size, up to thousands; `madplug check` says what it costs.
    With four agents a chain takes 7 calls, a star and a tree 8, two layers 13, a mesh 15.
    """

    name = "debate"
    source = SOURCE
    debate = {
        "agents": 4, "rounds": 1, "turns": {"use": "macnet.graph", "topology": "chain"}, "visibility": "macnet.along",
        "styles": ["macnet.node"], "decision": "baselines.last"}


@hookimpl
def madplug_register_paradigms() -> list[type[Paradigm]]:
    """Register the paradigm."""
    return [MacnetDebate]


@hookimpl
def madplug_register_turn_orders() -> list[type[TurnOrder]]:
    """Register the turn order."""
    return [Graph]


@hookimpl
def madplug_register_visibilities() -> list[type[Visibility]]:
    """Register the visibility."""
    return [Along]


@hookimpl
def madplug_register_styles() -> list[type[Style]]:
    """Register the style."""
    return [Node]
