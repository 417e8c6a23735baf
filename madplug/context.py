"""A debate as its components see it. The state that the loop changes is in `state.py`, the loop in `loop.py`."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar, overload

from madplug.aio import gather_all, maybe_await
from madplug.components import AnswerFormat, Component
from madplug.debate.checks import check_hook_result, check_returned, check_view
from madplug.errors import ComponentError, listed, nearest
from madplug.records import Agent, Completion, DebateResult, Decision, Message, Reply, Request, Sample, Turn
from madplug.services import is_protocol, lacks
from madplug.text import a
from madplug.transcript import Transcript

if TYPE_CHECKING:
    from madplug.debate.cell import Cell
    from madplug.debate.state import DebateState, Spending

T = TypeVar("T")
C = TypeVar("C", bound=Component)


class Debate:
    """One debate: its question, its agents, its transcript, and the way to ask a model.

    Nothing here can be written but `notes`; a component changes a debate by what it returns.
    """

    __slots__ = ("_state",)

    def __init__(self, state: DebateState) -> None:
        self._state = state

    # The question

    @property
    def sample(self) -> Sample:
        """The question."""
        return self._state.sample

    @property
    def references(self) -> tuple[str, ...]:
        """The right answers. Raises `ComponentError` unless the run file says `oracle = true`."""
        if not self._state.cell.oracle:
            raise ComponentError("a component read debate.references, but the run file does not say oracle = true")
        return self._state.references

    @property
    def repeat(self) -> int:
        """Which independent repeat of the cell this is, from 0."""
        return self._state.repeat

    # The participants

    @property
    def cell(self) -> Cell:
        """The configuration this debate belongs to."""
        return self._state.cell

    @property
    def agents(self) -> tuple[Agent, ...]:
        """All participants, by id; empty while personas are being made."""
        return self._state.agents

    @property
    def voters(self) -> tuple[Agent, ...]:
        """The agents whose personas vote, by id."""
        return tuple(a for a in self._state.agents if a.persona.votes)

    def with_role(self, role: str) -> tuple[Agent, ...]:
        """The agents whose persona has this role, by id."""
        return tuple(a for a in self._state.agents if a.persona.role == role)

    def agent(self, id: int) -> Agent:
        """The agent with this id."""
        return self._state.agents[id]

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models that agents use, as in the run file."""
        return self._state.cell.models

    # The transcript

    @property
    def transcript(self) -> Transcript:
        """What is on record."""
        return self._state.transcript

    @property
    def round(self) -> int:
        """The round under way, from 1; 0 before the first."""
        return self._state.round

    @property
    def rounds(self) -> int:
        """The last round there will be, unless the debate ends before or a phase reopens it."""
        return self._state.rounds

    async def view(self, turn: Turn) -> tuple[Message, ...]:
        """The messages an agent is shown for a turn, according to the visibility and every extension."""
        view = self._state.cell.hooks.madplug_view(debate=self, turn=turn)
        if hasattr(view, "__await__"):
            view = await view
        shown: Sequence[Any] = check_hook_result(view, (tuple, list), "view")
        return check_view(shown, len(self._state.transcript))

    def neighbours(self, agent: Agent, round: int | None = None) -> Sequence[int]:
        """Ids of the agents whose messages an agent may see in a round; by default in the current one."""
        return self._state.cell.visibility.neighbours(self, agent, self._state.round if round is None else round)

    # Answers and decisions

    @property
    def answers(self) -> AnswerFormat:
        """What counts as an answer, and when two answers are the same."""
        return self._state.cell.answers

    def key(self, text: str | None) -> str | None:
        """The canonical answer in a text, or None; if an equal answer is on record, that answer's key."""
        key = self.answers.canonical(text, self.sample) if text else None
        return None if key is None else self._state.key_on_record(
            check_returned(key, str, self.answers, "canonical"))

    async def read(self, turn: Turn, reply: Reply) -> tuple[str | None, str | None]:
        """The answer in a reply as text, and its key; both None if it gives none."""
        answer = reply.answer
        if answer is None:
            found: Any = self.answers.extract(self, turn, reply.content)
            if hasattr(found, "__await__"):
                found = await found
            answer = None if found is None else check_returned(found, str, self.answers, "extract")
        return (answer, self.key(answer)) if answer else (None, None)

    @property
    def decision(self) -> Decision | None:
        """The decision, for phases and metrics; None until there is one."""
        return self._state.decision

    @property
    def matched(self) -> DebateResult | None:
        """The same sample's result in the cell this one is matched to, or None."""
        return self._state.matched

    @property
    def notes(self) -> dict[str, Any]:
        """Facts to keep with the debate, under the plugin's name; a component reads only its own."""
        return self._state.notes

    @property
    def spent(self) -> Spending:
        """Calls, tokens and cost (US dollars) of this debate so far."""
        return self._state.spent

    # What components can use

    def rng(self, scope: str) -> random.Random:
        """A random generator seeded from the study's seed, the repeat, the sample and the scope, so that draws do not
        depend on scheduling. scope: `plugin.component:purpose`."""
        state = self._state
        text = f"{state.seed}\0{state.repeat}\0{state.sample.id}\0{scope}"
        return random.Random(int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big"))

    @overload
    def service(self, name: str) -> Any: ...

    @overload
    def service(self, name: str, protocol: Callable[..., T]) -> T: ...  # type[T] takes no protocol

    def service(self, name: str, protocol: Any = None) -> Any:
        """The service of this name in the run file.

        protocol: what it is used as, such as `madplug.services.Embedder`; it is the type of the result. Raises
        `ComponentError` if the cell has no such service, or it lacks a method of the protocol.
        """
        return find_service(self._state.cell.services, name, protocol)

    def component(self, base: type[C], name: str) -> C:
        """The component of a plugin's own kind that has this name in the run file.

        base: the base class of the kind. Raises `ComponentError` if the cell has none of this name.
        """
        return self._state.cell.component(base, name)

    async def ask(self, messages: str | Sequence[Mapping[str, Any]], *, purpose: str, agent: Agent | int | None = None,
                  model: str | None = None, form: Mapping[str, Any] | None = None,
                  params: Mapping[str, Any] | None = None) -> Completion:
        """Ask a model: `model`, or the agent's, or the first of the cell's.

        messages: `{"role", "content"}` each, or a string for one user message. purpose: what the call is for
        (`discuss`, `vote`, ...), stored with it. form: what the reply must look like, for models that support
        it. params: sampling parameters that differ from the model's own. Raises `ModelError` if no attempt was
        answered, which fails the debate unless caught.
        """
        cell = self._state.cell
        speaker = self._state.agents[agent] if isinstance(agent, int) else agent
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
        completion = cell.hooks.madplug_complete(debate=self, request=request)
        if hasattr(completion, "__await__"):
            completion = await completion
        return check_hook_result(completion, Completion, "complete")

    async def ask_all(self, asks: Iterable[Awaitable[T]]) -> list[T]:
        """Await several asks concurrently and return their results in order. Waits for all before raising an error."""
        return await gather_all(asks)


def state_of(debate: Debate) -> DebateState:
    """The state behind a debate, for the host only."""
    return debate._state


def find_service(services: Mapping[str, Any], name: str, protocol: type[Any] | None) -> Any:
    """A service by name. Raises `ComponentError` if there is none, or it does not implement the protocol."""
    if name not in services:
        raise ComponentError(f"a component asked for the service '{name}', which this cell does not use"
                             f"{nearest(name, services)}; it uses {listed(sorted(services), near=name) or 'none'}")
    found = services[name]
    if protocol is None:
        return found
    missing = lacks(type(found), protocol)
    if missing or not (is_protocol(protocol) or isinstance(found, protocol)):
        why = f": it has no `async def {missing[0]}`" if missing else ""
        raise ComponentError(f"the service '{name}' ({type(found).__qualname__}) is not {a(protocol.__name__)}{why}")
    return found
