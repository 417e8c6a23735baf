"""The outline of a debate, as frozen records that become JSON as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from madplug import Decision, Sample, Spending

State = Literal["running", "done", "failed"]
"""`running`: the debate has not ended; its study may run, or was stopped or killed."""
MarkState = Literal["answer", "unread", "none", "silent"]
"""Of an agent in a round: its answer was read; none could be read; it spoke and was to give none; it did not speak."""


def natural(sample: str) -> tuple[str, int, str]:
    """A key by which sample ids that end in a number are sorted by it: `row-2` before `row-10`."""
    return sample.rstrip("0123456789"), len(sample), sample


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """One of the different answers of a debate."""

    key: str
    text: str
    """The answer as the first message that gave it wrote it."""
    right: bool | None
    """None if it is not known: the sample has no reference, or the answer format cannot be asked."""
    nth: int
    """Its place among the answers, from 0, for colours: a letter has the place that it has in the alphabet, so that an
    option looks the same in every debate; other answers follow in the order of first appearance."""


@dataclass(frozen=True, slots=True)
class AgentColumn:
    """An agent."""

    id: int
    name: str
    description: str
    role: str
    votes: bool
    model: str | None


@dataclass(frozen=True, slots=True)
class Mark:
    """What one agent answered in one round."""

    agent: int
    round: int
    key: str | None
    """Its last readable answer in the round, or None."""
    state: MarkState
    right: bool | None
    changed: bool
    """Whether the agent changed its mind in the round."""


@dataclass(frozen=True, slots=True)
class Change:
    """An agent changed its mind (`madplug.earlier_answers`)."""

    message: int
    agent: int
    round: int
    before: str
    """The key of its answer before."""
    after: str
    from_right: bool | None
    to_right: bool | None
    sources: tuple[int, ...]
    """Ids of the messages with the new answer that it was shown when it changed: notes, and other agents' latest."""
    agents: tuple[int, ...]
    """The authors of these messages, each once; empty if no other agent's latest answer shown to it was the new one."""
    formerly: tuple[int, ...]
    """The agents, itself perhaps, that had given the new answer in what it was shown, and later another one."""


@dataclass(frozen=True, slots=True)
class MessageCard:
    """A message, with what can be said about it only from the whole debate."""

    id: int
    round: int
    wave: int
    agent: int | None
    """None for a message that no agent wrote."""
    move: str
    stage: str
    content: str
    answer: str | None
    key: str | None
    right: bool | None
    agreement: bool | None
    """None if it was not asked for, or if what the message says of it could not be read and counted as none."""
    confidence: float | None
    seen: tuple[int, ...]
    altered: tuple[int, ...]
    received: Mapping[str, str]
    """Of the altered messages, by id, the text that the agent was shown, as far as a plugin has recorded it."""
    altered_for: tuple[int, ...]
    """Ids of the messages whose authors were shown this one in a changed form."""
    retracted: bool
    changed: bool
    """Whether the agent changed its mind here."""
    model: str | None
    calls: tuple[str, ...]
    spent: Spending | None
    """None if it was not asked for."""
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RoundRow:
    """A round: its messages, and how the answers of the voters stand after it."""

    number: int
    """0 for what was on record before round 1."""
    messages: tuple[int, ...]
    """Ids in the order recorded, retracted ones included."""
    marks: tuple[Mark, ...]
    """One for each agent; none for round 0."""
    tally: Mapping[str, int]
    """Voters by the key of their latest answer so far."""
    unread: int
    """Voters without a readable answer so far."""
    earlier: tuple[int, ...]
    """Voters whose replies of the round could not be read, and whose answer before stands in `tally`; what a decision
    counts is its own matter."""


@dataclass(frozen=True, slots=True)
class Outline:
    """A debate as people read it."""

    cell: str
    repeat: int
    sample: Sample
    references: tuple[str, ...]
    state: State
    error: str | None
    agents: tuple[AgentColumn, ...]
    answers: tuple[AnswerKey, ...]
    rounds: tuple[RoundRow, ...]
    messages: tuple[MessageCard, ...]
    changes: tuple[Change, ...]
    decision: Decision | None
    right: bool | None
    """Whether the decision is right; None if that is not known, or there is no answer."""
    traits: tuple[str, ...]
    """What there is to see in it: keys of `TRAITS`."""
    metrics: Mapping[str, float | None]
    calls: int
    retries: int
    prompt: int
    """Tokens."""
    completion: int
    cached: int
    cost_usd: float | None
    seconds: float
    missing: tuple[str, ...] = ()
    """The agents that failed, each with what its model said; a debate that has any and a decision is partial."""
    unread: tuple[str, ...] = ()
    """What of it could not be read (`DebateResult.unread_parts`)."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    opening_calls: tuple[str, ...] = ()
    """Keys of the calls made before round 1."""
    other_calls: tuple[str, ...] = ()
    """Keys of the calls since that are behind no message: ballots, judges, phases, metrics."""
