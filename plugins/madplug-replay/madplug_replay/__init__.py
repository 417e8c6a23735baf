"""Recorded debates as a data set, as agents and as a model, and prior answers on record before a debate."""

from __future__ import annotations

from madplug import Dataset, Extension, Model, Paradigm, PersonaGenerator, Style, TurnOrder, hookimpl
from madplug_replay.debaters import Personas, Recorded, Rounds
from madplug_replay.replies import Replies
from madplug_replay.seeds import SeedMessages
from madplug_replay.trajectories import Trajectories, recorded

__all__ = ["Personas", "Recorded", "ReplayDebate", "Replies", "Rounds", "SeedMessages", "Trajectories", "recorded"]


class ReplayDebate(Paradigm):
    """A recorded debate replayed: simultaneous rounds, with the agents and rounds that were recorded.

    No model is called. Replace the decision to see what another one decides on the same answers.
    """

    name = "debate"
    debate = {
        "rounds": 1000, "personas": ["replay.personas"], "turns": "replay.rounds",
        "visibility": "visibility.everything", "styles": ["replay.recorded"],
        "decision": {"use": "voting.plurality", "tie": "first"}}


@hookimpl
def madplug_register_datasets() -> list[type[Dataset]]:
    """Register recorded debates as a data set."""
    return [Trajectories]


@hookimpl
def madplug_register_models() -> list[type[Model]]:
    """Register the model that answers with recorded replies."""
    return [Replies]


@hookimpl
def madplug_register_personas() -> list[type[PersonaGenerator]]:
    """Register personas of recorded agents."""
    return [Personas]


@hookimpl
def madplug_register_styles() -> list[type[Style]]:
    """Register the style that repeats recorded answers."""
    return [Recorded]


@hookimpl
def madplug_register_turn_orders() -> list[type[TurnOrder]]:
    """Register the turn order of a record."""
    return [Rounds]


@hookimpl
def madplug_register_extensions() -> list[type[Extension]]:
    """Register prior answers."""
    return [SeedMessages]


@hookimpl
def madplug_register_paradigms() -> list[type[Paradigm]]:
    """Register the paradigm of a recorded debate."""
    return [ReplayDebate]
