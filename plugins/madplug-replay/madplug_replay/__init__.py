"""Recorded debates: real answers as a data set and as debaters, and prior answers put on record."""

from __future__ import annotations

from madplug import Dataset, Extension, Paradigm, PersonaGenerator, Style, TurnOrder, hookimpl
from madplug_replay.debaters import Personas, Recorded, Rounds
from madplug_replay.seeds import SeedMessages
from madplug_replay.trajectories import Trajectories, recorded

__all__ = ["Personas", "Recorded", "ReplayDebate", "Rounds", "SeedMessages", "Trajectories", "recorded"]


class ReplayDebate(Paradigm):
    """A recorded debate again: its answers, simultaneous, with as many agents and rounds as were recorded.

    No model is asked. Replace the decision to see what another one would have made of the same answers.
    """

    name = "debate"
    debate = {
        "rounds": 1000, "personas": ["replay.personas"], "turns": "replay.rounds",
        "visibility": "visibility.everything", "styles": ["replay.recorded"],
        "decision": {"use": "voting.plurality", "tie": "first"}}


@hookimpl
def madplug_register_datasets() -> list[type[Dataset]]:
    """Offer the records."""
    return [Trajectories]


@hookimpl
def madplug_register_personas() -> list[type[PersonaGenerator]]:
    """Offer the recorded agents."""
    return [Personas]


@hookimpl
def madplug_register_styles() -> list[type[Style]]:
    """Offer what they said."""
    return [Recorded]


@hookimpl
def madplug_register_turn_orders() -> list[type[TurnOrder]]:
    """Offer when they said it."""
    return [Rounds]


@hookimpl
def madplug_register_extensions() -> list[type[Extension]]:
    """Offer prior answers."""
    return [SeedMessages]


@hookimpl
def madplug_register_paradigms() -> list[type[Paradigm]]:
    """Offer the debate."""
    return [ReplayDebate]
