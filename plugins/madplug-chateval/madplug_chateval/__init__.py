"""ChatEval (Chan et al. 2024): referees with different roles judge two replies, with three ways to communicate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from madplug import Paradigm, hookimpl
from madplug_chateval.calibration import Calibrated, Swapped, calibrated
from madplug_chateval.referee import Referee, Referees, Summariser, SummariserPersona
from madplug_chateval.scores import Scores, majority, verdict
from madplug_chateval.summary import Summarised, Summary

__all__ = [
    "Calibrated",
    "OneByOne",
    "Referee",
    "Referees",
    "Scores",
    "Simultaneous",
    "Summarised",
    "SummarisedDebate",
    "Summariser",
    "SummariserPersona",
    "Summary",
    "Swapped",
    "calibrated",
    "majority",
    "verdict",
]

SOURCE = "Chan et al. 2024, ChatEval, section 2.3"
EVERYTHING = {"use": "chateval.summary", "scope": "append"}


def _debate(agents: int, turns: str, visibility: Any, personas: list[str], styles: list[str]) -> Mapping[str, Any]:
    return {"agents": agents, "rounds": 2, "personas": personas, "turns": turns, "visibility": visibility,
            "styles": styles, "decision": "chateval.scores"}


class OneByOne(Paradigm):
    """Referees speak one after the other and see everything said before them.

    In the last round each gives its verdict: a score for each of two replies, or an answer to a question.
    """

    name = "one_by_one"
    source = SOURCE
    debate = _debate(2, "turns.round_robin", EVERYTHING, ["chateval.referees"], ["chateval.referee"])


class Simultaneous(Paradigm):
    """Referees speak at the same time and see what was said in earlier rounds.

    Otherwise the same as `chateval.one_by_one`.
    """

    name = "simultaneous"
    source = SOURCE
    debate = _debate(2, "turns.simultaneous", EVERYTHING, ["chateval.referees"], ["chateval.referee"])


class SummarisedDebate(Paradigm):
    """Referees speak at the same time; after each round but the last a summariser condenses what they said.

    In the next round the summary replaces the other referees' messages. `agents` counts the
    summariser, which is agent 0 and has no vote: two referees and a summariser make 5 calls in two rounds.
    """

    name = "summarised"
    source = SOURCE
    debate: ClassVar[Mapping[str, Any]] = _debate(
        3, "chateval.summarised", "chateval.summary", ["chateval.summariser", "chateval.referees"],
        ["chateval.referee", "chateval.summariser"])


@hookimpl
def madplug_register_personas() -> list[type]:
    """Register two persona generators."""
    return [Referees, SummariserPersona]


@hookimpl
def madplug_register_styles() -> list[type]:
    """Register two styles."""
    return [Referee, Summariser]


@hookimpl
def madplug_register_turn_orders() -> list[type]:
    """Register the turn order."""
    return [Summarised]


@hookimpl
def madplug_register_visibilities() -> list[type]:
    """Register the visibility."""
    return [Summary]


@hookimpl
def madplug_register_decisions() -> list[type]:
    """Register the decision."""
    return [Scores]


@hookimpl
def madplug_register_extensions() -> list[type]:
    """Register the extension."""
    return [Swapped]


@hookimpl
def madplug_register_metrics() -> list[type]:
    """Register the metric."""
    return [Calibrated]


@hookimpl
def madplug_register_paradigms() -> list[type]:
    """Register three paradigms."""
    return [OneByOne, Simultaneous, SummarisedDebate]
