"""Exchange-of-Thought (Yin et al. 2023): latest solutions pass along one of four topologies."""

from __future__ import annotations

from typing import Any

from madplug import Paradigm, hookimpl
from madplug_eot.confidence import Confidence, Unanimous, steadiness
from madplug_eot.decision import Consistent
from madplug_eot.exchange import Exchange, Students
from madplug_eot.peers import Peers, sees

__all__ = ["Confidence", "Consistent", "Exchange", "Peers", "Students", "Unanimous", "sees", "steadiness"]

_SOURCE = "Yin et al. 2023, Exchange-of-Thought, section 3"


def _debate(topology: str) -> dict[str, Any]:
    return {"agents": 3, "rounds": 6, "personas": ["eot.students"], "turns": "turns.simultaneous",
            "visibility": {"use": "eot.peers", "topology": topology}, "styles": ["eot.exchange"],
            "decision": "eot.consistent"}


class Memory(Paradigm):
    """Exchange-of-Thought where every agent reads every other agent's latest solution.

    Rounds are simultaneous; the debate ends when all answers are the same, possibly after the first
    round, and by plurality after the last. `rounds` counts the independent first answers, so 6 are the paper's
    5 exchanges.
    """

    name = "memory"
    source = _SOURCE
    debate = _debate("memory")


class Report(Paradigm):
    """Exchange-of-Thought around a centre: agent 0 reads all others, which read agent 0.

    Otherwise the same as `eot.memory`.
    """

    name = "report"
    source = _SOURCE
    debate = _debate("report")


class Relay(Paradigm):
    """Exchange-of-Thought in a ring: every agent reads the one after it.

    Otherwise the same as `eot.memory`.
    """

    name = "relay"
    source = _SOURCE
    debate = _debate("relay")


class EotDebate(Paradigm):
    """Exchange-of-Thought in a tree: agent 0 reads all, the others read each other in pairs.

    Otherwise the same as `eot.memory`.
    """

    name = "debate"
    source = _SOURCE
    debate = _debate("debate")


@hookimpl
def madplug_register_personas() -> list[type]:
    """Register the persona generator."""
    return [Students]


@hookimpl
def madplug_register_styles() -> list[type]:
    """Register the style."""
    return [Exchange]


@hookimpl
def madplug_register_visibilities() -> list[type]:
    """Register the visibility."""
    return [Peers]


@hookimpl
def madplug_register_decisions() -> list[type]:
    """Register the decision."""
    return [Consistent]


@hookimpl
def madplug_register_extensions() -> list[type]:
    """Register two extensions."""
    return [Unanimous, Confidence]


@hookimpl
def madplug_register_paradigms() -> list[type]:
    """Register four paradigms."""
    return [Memory, Report, Relay, EotDebate]
