"""What observers receive: events, as frozen records that can be pickled.

Every `DebateStarted` is followed by exactly one `DebateFinished`, even if the debate fails or is stopped. Calls made
while personas and models are chosen come after `DebateStarted`. The events of one debate arrive in order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Union, get_args

from madplug.records import Agent, Answered, Caller, DebateId, DebateResult, Decision, Message, Request, Sample


@dataclass(frozen=True, slots=True)
class StudyStarted:
    """The components are prepared; no debate has started yet."""

    study: str
    """The study's name."""
    cells: tuple[str, ...]
    planned: int | None
    """Debates of the whole study, or None if a data set does not know its size."""
    done: int
    """Debates that earlier runs have finished."""
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The settings in which each cell differs from the others, by cell."""


@dataclass(frozen=True, slots=True)
class DebateStarted:
    """A debate starts; its personas and models are not chosen yet."""

    debate: DebateId
    sample: Sample
    references: tuple[str, ...] = ()
    order: int = 0
    """The debate's place among those that this run starts, from 0."""


@dataclass(frozen=True, slots=True)
class AgentsCast:
    """The agents of a debate are known."""

    debate: DebateId
    agents: tuple[Agent, ...]


@dataclass(frozen=True, slots=True)
class CallAnswered:
    """A model call was answered: by the model, through an identical call of another debate, or from the record."""

    debate: DebateId
    """For calls made in `prepare`, the sample is empty."""
    caller: Caller
    request: Request
    answered: Answered


@dataclass(frozen=True, slots=True)
class MessageRecorded:
    """A message was recorded, or, if `message.retracted`, one on record was retracted."""

    debate: DebateId
    message: Message
    agent: Agent | None
    """The author, or None for a message that no agent wrote."""


@dataclass(frozen=True, slots=True)
class Decided:
    """The decision protocol has decided; phases may still change the decision."""

    debate: DebateId
    decision: Decision


@dataclass(frozen=True, slots=True)
class DebateFinished:
    """A debate has ended."""

    debate: DebateId
    outcome: Literal["done", "failed", "stopped"]
    result: DebateResult | None = None
    """The debate as it is stored, or None if the study was stopped before the debate ended."""


@dataclass(frozen=True, slots=True)
class StudyFinished:
    """The study has ended or stopped."""

    study: str
    summary: Mapping[str, Any]
    """As in `summary.json`."""


Event = Union[  # noqa: UP007 - used at run time on Python 3.10
    StudyStarted, DebateStarted, AgentsCast, CallAnswered, MessageRecorded, Decided, DebateFinished, StudyFinished]

METHODS: Mapping[type[Any], str] = {
    kind: re.sub("(?<=.)(?=[A-Z])", "_", kind.__name__).lower() for kind in get_args(Event)}
"""The observer's method for each event."""
