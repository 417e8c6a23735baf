"""The state of a running debate: what the loop writes, and `Debate` shows to components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from madplug.components import AnswerFormat
from madplug.debate.cell import Cell
from madplug.debate.checks import check_reply, check_returned
from madplug.errors import ComponentError, StudyStopped
from madplug.events import AgentsCast, CallAnswered, Event, MessageRecorded
from madplug.records import (
    Agent,
    Answered,
    Caller,
    Completion,
    DebateId,
    DebateResult,
    Decision,
    Frozen,
    Message,
    Reply,
    Request,
    Sample,
    Turn,
    Usage,
    frozen,
)
from madplug.rows import to_json
from madplug.transcript import Transcript


class ModelClient(Protocol):
    """What a debate sends its requests through."""

    async def send(self, caller: Caller, request: Request, body: str) -> Answered:
        """Answer one request. body: its messages, parameters and form as JSON, as they are recorded."""

    def identity(self, cell: str, model: str) -> str:
        """What a model of a cell is, whatever the run file calls it."""


class Unconnected:
    """The client of a debate that is not connected to any model."""

    async def send(self, caller: Caller, request: Request, body: str) -> Answered:
        """Raise `ComponentError`."""
        raise ComponentError("a component asked a model, but this debate is not connected to one")

    def identity(self, cell: str, model: str) -> str:
        """Its name, for want of more."""
        return model


@dataclass(slots=True)
class Spending:
    """What a debate has used, including calls that another debate has paid for."""

    calls: int = 0
    retries: int = 0
    prompt: int = 0
    completion: int = 0
    cached: int = 0
    cost_usd: float | None = 0.0

    def add(self, usage: Usage, retries: int = 0) -> None:
        """Count one call."""
        self.calls += 1
        self.retries += retries
        self.prompt += usage.prompt
        self.completion += usage.completion
        self.cached += usage.cached
        known = self.cost_usd is not None and usage.cost_usd is not None
        self.cost_usd = self.cost_usd + usage.cost_usd if known else None  # type: ignore[operator]

    def usage(self) -> Usage:
        """The tokens and their cost."""
        return Usage(self.prompt, self.completion, self.cached, self.cost_usd)


turn_calls: ContextVar[list[tuple[str, str]] | None] = ContextVar("turn_calls", default=None)
"""(key, model) of the calls made so far in the current turn."""


@dataclass(slots=True)
class DebateState:
    """Everything about one debate that changes while it runs, and what it needs to run."""

    cell: Cell
    sample: Sample
    references: tuple[str, ...] = ()
    client: ModelClient = field(default_factory=Unconnected)
    emit: Any = None
    """Called with every event of this debate, or None."""
    repeat: int = 0
    seed: int = 0
    order: int = 0
    matched: DebateResult | None = None
    agents: tuple[Agent, ...] = ()
    transcript: Transcript = field(default_factory=Transcript)
    round: int = 0
    rounds: int = 0
    decision: Decision | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    spent: Spending = field(default_factory=Spending)
    opening_calls: list[str] = field(default_factory=list)
    """Keys of the calls made before round 1."""
    other_calls: list[str] = field(default_factory=list)
    """Keys of the calls since that are behind no message."""
    decision_notes: set[tuple[str, ...]] = field(default_factory=set)
    """Where in the notes the decision and the phases have written."""
    made: dict[int, int] = field(default_factory=dict)
    """How often each request was made, by its hash: the requests themselves would fill the memory."""
    refused: bool = False
    """A call was refused because the study is being stopped; a component may have caught the exception."""
    renumbered: dict[int, int] = field(default_factory=dict)
    """New ids of the messages of a recorded debate that is decided again, by their old ones."""

    id: DebateId = field(init=False)
    """Which debate this is."""

    def __post_init__(self) -> None:
        self.rounds = self.rounds or self.cell.rounds
        self.id = DebateId(self.cell.slug, self.repeat, self.sample.id)

    @classmethod
    def stored(cls, result: DebateResult, cell: Cell, *, client: ModelClient, seed: int = 0) -> DebateState:
        """A debate that has ended: its components can read it and ask models, but not change it."""
        return cls(cell, result.sample, result.references, client, repeat=result.repeat, seed=seed,
                   agents=result.agents, transcript=Transcript(result.messages), round=result.rounds,
                   decision=result.decision or Decision.undecided(f"failed: {result.error}"),
                   notes=dict(result.notes))

    def tell(self, event: Event) -> None:
        """Emit an event."""
        if self.emit is not None:
            self.emit(event)

    def seat(self, agents: Sequence[Agent]) -> None:
        """Set the agents of the debate."""
        self.agents = tuple(agents)
        self.tell(AgentsCast(self.id, self.agents))

    async def send(self, request: Request) -> Completion:
        """Have a request answered, and count the call."""
        body = to_json({"messages": request.messages, "params": request.params, "form": request.form})
        model = self.client.identity(self.cell.slug, request.model)  # two names of one model are the same request
        asked = hash((model, request.agent, body))
        nth = self.made[asked] = self.made.get(asked, -1) + 1
        caller = Caller(self.cell.slug, self.repeat, self.sample.id, request.agent, request.purpose, self.order,
                        self.round, nth)
        try:
            answered = await self.client.send(caller, request, body)
        except StudyStopped:
            self.refused = True
            raise
        self.spent.add(answered.completion.usage, answered.retries)
        calls = turn_calls.get()
        if calls is not None:
            calls.append((answered.key, request.model))
        else:
            (self.other_calls if self.round else self.opening_calls).append(answered.key)
        if self.emit is not None:
            self.emit(CallAnswered(self.id, caller, request, answered))
        return answered.completion

    def key_on_record(self, key: str) -> str:
        """The key of an equal answer on record, or else this key."""
        known = self.transcript._keys
        if key in known or type(self.cell.answers).same is AnswerFormat.same:  # equal only if it is the same text
            return key
        return next((k for k in known if self.cell.answers.same(k, key, self.sample)), key)

    def record(self, message: Message) -> None:
        """Record a message; an answer equal to an earlier one gets the earlier one's key."""
        key = None if message.key is None else self.key_on_record(message.key)
        data = message.data if isinstance(message.data, Frozen) else frozen(message.data)
        if key != message.key or data is not message.data:
            message = replace(message, key=key, data=data)
        self._announce(self.transcript._append(message))

    def record_again(self, message: Message) -> None:
        """Record a message of a recorded debate, where it may have had another id."""
        ids = self.renumbered
        seen, altered = (tuple(ids[i] for i in old if i in ids) for old in (message.seen, message.altered))
        ids[message.id] = len(self.transcript)
        self._announce(self.transcript._append(replace(message, seen=seen, altered=altered)))

    def retract(self, messages: Sequence[Message]) -> None:
        """Mark messages as retracted."""
        self.transcript._retract(m.id for m in messages)
        for m in messages:
            self._announce(self.transcript.record[m.id])

    def _announce(self, message: Message) -> None:
        if self.emit is not None:
            author = None if message.agent is None else self.agents[message.agent]
            self.emit(MessageRecorded(self.id, message, author))

    def note_changes(self, before: Mapping[str, Any]) -> None:
        """Remember which notes a decision or a phase has written. before: a copy of the notes as they were."""
        self.decision_notes.update(changed_paths(before, self.notes))

    def result(self, *, error: str | None = None, seconds: float = 0.0,
               metrics: Mapping[str, float | None] | None = None,
               scored_by: Mapping[str, str] | None = None) -> DebateResult:
        """The debate as it is stored. scored_by: the digest of each metric that has scored it."""
        return DebateResult(
            cell=self.cell.slug, repeat=self.repeat, sample=self.sample, references=self.references,
            agents=self.agents, messages=self.transcript.record, decision=None if error else self.decision,
            metrics=metrics or {}, scored_by=scored_by or {},
            calls=self.spent.calls, retries=self.spent.retries, tokens=self.spent.usage(), seconds=seconds,
            error=error, notes=self.notes, opening_calls=tuple(self.opening_calls),
            other_calls=tuple(self.other_calls), decision_notes=tuple(sorted(self.decision_notes)))

    async def respond(self, debate: Any, turn: Turn, view: Sequence[Message]) -> Reply:
        """Have the first style that takes this turn respond to it."""
        for bound in self.cell.styles:
            if bound.takes(turn.agent, turn):
                break
        else:
            raise ComponentError(f"no style of this cell takes the move '{turn.move}' of agent {turn.agent.id} "
                                 f"({turn.agent.persona.role})")
        reply = bound.style.respond(debate, turn, view)
        if hasattr(reply, "__await__"):
            reply = await reply
        return check_reply(check_returned(reply, Reply, bound.style, "respond"), bound.given)


def changed_paths(before: Any, after: Any, path: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """Where two nested mappings differ, as paths of keys."""
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return set() if before == after else {path}
    missing = object()
    return {found for key in {**before, **after}
            for found in changed_paths(before.get(key, missing), after.get(key, missing), (*path, str(key)))}


def without_paths(table: Mapping[str, Any], paths: Sequence[Sequence[str]]) -> dict[str, Any]:
    """A copy of a nested mapping without these paths, and without mappings that become empty."""
    kept: dict[str, Any] = {}
    for key, value in table.items():
        below = [path[1:] for path in paths if path and path[0] == key]
        if () in map(tuple, below):
            continue
        if below and isinstance(value, Mapping):
            value = without_paths(value, below)
            if not value:
                continue
        kept[key] = value
    return kept
