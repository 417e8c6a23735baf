"""Society of minds (Du et al. 2023): every agent answers, reads the others' answers, and answers again."""

from __future__ import annotations

from madplug import Extension, Paradigm, Style, hookimpl
from madplug_som.exchange import Exchange, ExchangeOptions, episodes, is_note
from madplug_som.summary import AgreementIntensity, Summary

__all__ = ["AgreementIntensity", "Exchange", "ExchangeOptions", "SomDebate", "Summary", "episodes", "is_note"]


class SomDebate(Paradigm):
    """Simultaneous exchange of all answers, decided by the plurality of the last round.

    `rounds` counts the independent first answers: 2 are one round of debate. Nothing stops a debate early.
    With `visibility = "visibility.previous_round"` agents remember only their last answer.

    Differs from a port of the authors' code (DebateLLM), where later agents read answers of the same round:
    rounds are simultaneous.
    """

    name = "debate"
    source = "Du et al. 2023, section 2; the authors' code"
    debate = {
        "agents": 3, "rounds": 2, "turns": "turns.simultaneous", "visibility": "visibility.everything",
        "styles": ["som.exchange"], "decision": {"use": "voting.plurality", "tie": "first"}}


@hookimpl
def madplug_register_styles() -> list[type[Style]]:
    """Register the style."""
    return [Exchange]


@hookimpl
def madplug_register_extensions() -> list[type[Extension]]:
    """Register two extensions."""
    return [Summary, AgreementIntensity]


@hookimpl
def madplug_register_paradigms() -> list[type[Paradigm]]:
    """Register the paradigm."""
    return [SomDebate]
