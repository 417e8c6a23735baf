"""A running debate: what components read of it, and what the loop writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from typing_extensions import override

from madplug.aio import maybe_await
from madplug.context import Debate
from madplug.debate.cell import Cell
from madplug.debate.checks import check_agents, check_hook_result, check_returned, check_view, method_name
from madplug.errors import ComponentError, ModelError, StudyStopped, listed, nearest
from madplug.events import AgentsCast, CallAnswered, Event, MessageRecorded
from madplug.kinds import AnswerFormat
from madplug.records import (
    Agent,
    Answered,
    Caller,
    Completion,
    DebateId,
    DebateResult,
    Decision,
    Form,
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

T = TypeVar("T")


class ModelClient(Protocol):
    """What a debate sends its requests through."""

    async def send(self, caller: Caller, request: Request, body: str) -> Answered:
        """Answer one request. body: its messages, parameters and form as JSON, as they are recorded."""

    def identity(self, cell: str, model: str) -> str:
        """What a model of a cell is, whatever the run file calls it."""

    async def keep(self, name: str, value: Callable[[], Awaitable[T] | T] | T) -> T:
        """The value stored under a name, or else this one, which is stored."""


turn_calls: ContextVar[list[tuple[str, str]] | None] = ContextVar("turn_calls", default=None)
"""(key, model) of the calls made so far in the current turn."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DebateState(Debate):
    """A debate as the host has it: the same object that components get, with what only the loop does to it."""

    cell: Cell
    right: tuple[str, ...] = ()
    """The references, which components may not see unless the cell is an oracle's."""
    client: ModelClient = field(kw_only=True)
    emit: Callable[[Event], None] | None = None
    """Called with every event of this debate."""
    order: int = 0
    opening_calls: list[str] = field(default_factory=list)
    """Keys of the calls made before round 1."""
    other_calls: list[str] = field(default_factory=list)
    """Keys of the calls since that are behind no message."""
    decision_notes: set[tuple[str, ...]] = field(default_factory=set)
    """Where in the notes the decision has written."""
    phase_notes: set[tuple[str, ...]] = field(default_factory=set)
    """Where in the notes the phases have written."""
    made: dict[int, int] = field(default_factory=dict)
    """How often each request was made, by its hash: the requests themselves would fill the memory."""
    refused: list[Caller] = field(default_factory=list)
    """Whose calls were refused because the study is being stopped; a component may have caught the exception."""

    whole: Sample = field(init=False)
    """The sample with what is hidden from some roles."""

    def __post_init__(self) -> None:
        change(self, rounds=self.rounds or self.cell.rounds, whole=self.sample)
        if self.sample.hidden_from:
            change(self, sample=self.sample.without(self.sample.hidden_from))

    @property
    def id(self) -> DebateId:
        """Which debate this is."""
        return DebateId(self.cell.slug, self.repeat, self.sample.id)

    # What components ask

    @property
    @override
    def references(self) -> tuple[str, ...]:
        if not self.cell.oracle:
            raise ComponentError("a component read debate.references, but the run file does not say oracle = true")
        return self.right

    @override
    def seen_by(self, agent: Agent | int) -> DebateState:
        hidden_from = self.whole.hidden_from
        if not hidden_from:
            return self
        role = self.agents[agent if isinstance(agent, int) else agent.id].persona.role
        seen = copy(self)
        change(seen, sample=self.whole.without([column for column, roles in hidden_from.items() if role in roles]))
        return seen

    @override
    def key(self, text: str | None) -> str | None:
        answers = self.cell.answers
        key = answers.canonical(text, self.sample) if text else None
        return None if key is None else key_on_record(self, check_returned(key, str, answers, "canonical"))

    @override
    async def read(self, turn: Turn, reply: Reply) -> tuple[str | None, str | None]:
        answer = reply.answer
        if not reply.answers:
            return "", None
        if answer is None:
            found = await maybe_await(self.cell.answers.extract(self, turn, reply.content))
            answer = None if found is None else check_returned(found, str, self.cell.answers, "extract")
        return (answer, self.key(answer)) if answer else (None, None)

    @override
    async def view(self, turn: Turn) -> tuple[Message, ...]:
        return check_view(self.cell.hooks.madplug_view(debate=self, turn=turn), len(self.transcript))

    @override
    async def keep(self, name: str, value: Callable[[], Awaitable[T] | T] | T) -> T:
        return await self.client.keep(f"{name} {to_json(self.id)}", value)

    @override
    async def ask(self, messages: str | Sequence[Mapping[str, Any]], *, purpose: str, agent: Agent | int | None = None,
                  model: str | None = None, form: Form | None = None,
                  params: Mapping[str, Any] | None = None) -> Completion:
        cell = self.cell
        speaker = self.agents[agent] if isinstance(agent, int) else agent
        name = model or (speaker.model if speaker else None) or (cell.models[0] if cell.models else None)
        if name is None:
            raise ComponentError(f"a component asked a model (purpose '{purpose}'), but the cell has none")
        if isinstance(messages, str):
            messages = ({"role": "user", "content": messages},)
        elif isinstance(messages, Mapping) or not all(type(m) is dict or isinstance(m, Mapping) for m in messages):
            raise ComponentError(f"a component asked a model (purpose '{purpose}') with {messages!r:.80}; expected a "
                                 "string, or a list of messages {'role': ..., 'content': ...}")
        request = Request(tuple(messages), purpose, name, speaker.id if speaker else None, params or {}, form)
        changed = cell.hooks.madplug_request(debate=self, request=request)
        if changed is not request:
            request = check_hook_result(await maybe_await(changed), Request, "request")
        if request.model not in cell.channels:
            raise ComponentError(f"a request to the model '{request.model}', which this cell does not have"
                                 f"{nearest(request.model, cell.channels)}; it has "
                                 f"{listed(sorted(cell.channels), near=request.model) or 'none'}")
        completion = await maybe_await(cell.hooks.madplug_complete(debate=self, request=request))
        return check_hook_result(completion, Completion, "complete")

    # The innermost steps of the hooks `madplug_complete` and `madplug_reply`

    async def _send(self, request: Request) -> Completion:
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
            self.refused.append(caller)
            raise
        except ModelError as error:
            for key, usage in error.billed:
                _count(self, key, request.model, usage)
            raise
        for key, usage in answered.billed:
            _count(self, key, request.model, usage)
        _count(self, answered.key, request.model, answered.completion.usage, answered.retries)
        tell(self, CallAnswered(self.id, caller, request, answered))
        return answered.completion

    async def _respond(self, turn: Turn, view: Sequence[Message]) -> Reply:
        """Have the first style that takes this turn respond to it."""
        bound = next((bound for bound in self.cell.styles if bound.takes(turn.agent, turn)), None)
        if bound is None:
            raise ComponentError(f"no style of this cell takes the move '{turn.move}' of "
                                 f"{turn.agent.persona.name} ({turn.agent.persona.role})")
        reply = await maybe_await(bound.style.respond(self, turn, view))
        return check_returned(reply, Reply, bound.style, "respond")


# What the host does: functions, so that a component that is handed the debate does not find them on it

def change(state: DebateState, **fields: object) -> None:
    """Set fields. A debate is frozen, so that a component does not change it by mistake; the host does."""
    for name, value in fields.items():
        object.__setattr__(state, name, value)


def stored_debate(result: DebateResult, cell: Cell, *, client: ModelClient, seed: int = 0) -> DebateState:
    """A debate that has ended: its components can read it and ask models, but not change it."""
    return DebateState(cell, result.sample, right=result.references, client=client, repeat=result.repeat, seed=seed,
                       agents=result.agents, transcript=Transcript(result.messages), round=result.rounds,
                       decision=result.decision or Decision.undecided(f"failed: {result.error}"),
                       notes=dict(result.notes))


def tell(state: DebateState, event: Event) -> None:
    """Emit an event, with which the driver of the study records what it says."""
    if state.emit is not None:
        state.emit(event)


def seat(state: DebateState, agents: Sequence[Agent]) -> None:
    """Set the agents of the debate."""
    change(state, agents=tuple(agents))
    tell(state, AgentsCast(state.id, state.agents))


def join(state: DebateState, turns: Sequence[Turn]) -> None:
    """Seat the agents of a wave, beside those that have spoken and instead of those that were cast."""
    spoke = {m.agent for m in state.transcript.record}
    here = {a.id: a for a in (*(a for a in state.agents if a.id in spoke), *(turn.agent for turn in turns))}
    agents = check_agents(tuple(here[i] for i in sorted(here)), len(here), state.cell.channels or state.cell.models,
                          f"{method_name(state.cell.turns, 'waves')} gave turns to")
    if agents != state.agents:
        seat(state, agents)


def _count(state: DebateState, key: str, model: str, usage: Usage, retries: int = 0) -> None:
    """Count a reply that was paid."""
    state.spent.add(usage, retries)
    calls = turn_calls.get()
    if calls is not None:
        calls.append((key, model))
    else:
        (state.other_calls if state.round else state.opening_calls).append(key)


def key_on_record(state: DebateState, key: str) -> str:
    """The key of an equal answer on record, or else this key."""
    known = state.transcript._keys
    if key in known or type(state.cell.answers).same is AnswerFormat.same:  # equal only if it is the same text
        return key
    return next((k for k in known if state.cell.answers.same(k, key, state.sample)), key)


def record(state: DebateState, message: Message) -> None:
    """Record a message; an answer equal to an earlier one gets the earlier one's key."""
    key = None if message.key is None else key_on_record(state, message.key)
    data = message.data if isinstance(message.data, Frozen) else frozen(message.data)
    if key != message.key or data is not message.data:
        message = replace(message, key=key, data=data)
    _announce(state, state.transcript._append(message))


def retract(state: DebateState, messages: Sequence[Message]) -> None:
    """Mark messages as retracted."""
    state.transcript._retract(m.id for m in messages)
    for m in messages:
        _announce(state, state.transcript.record[m.id])


def _announce(state: DebateState, message: Message) -> None:
    author = None if message.agent is None else state.agents[message.agent]
    tell(state, MessageRecorded(state.id, message, author))


def to_result(state: DebateState, *, error: str | None = None, seconds: float = 0.0) -> DebateResult:
    """The debate as it is stored, without scores."""
    return DebateResult(
        cell=state.cell.slug, repeat=state.repeat, sample=state.whole, references=state.right,
        agents=state.agents, messages=state.transcript.record, decision=None if error else state.decision,
        calls=state.spent.calls, retries=state.spent.retries, tokens=state.spent.usage(), seconds=seconds,
        error=error, notes=state.notes, opening_calls=tuple(state.opening_calls),
        other_calls=tuple(state.other_calls), decision_notes=tuple(sorted(state.decision_notes)),
        phase_notes=tuple(sorted(state.phase_notes)))


def changed_paths(before: Any, after: Any, path: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """Where two nested mappings differ, as paths of keys."""
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return set() if before == after else {path}
    missing = object()
    return {found for key in {**before, **after}
            for found in changed_paths(before.get(key, missing), after.get(key, missing), (*path, str(key)))}
