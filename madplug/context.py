"""What hooks hand to components: the debate, its cell, the setup of a cell, and the run that observers and executors
see. The host fills them in; components read them and change a debate by what they return."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, overload

from madplug.aio import gather_all
from madplug.records import (
    Agent,
    Completion,
    DebateId,
    DebateResult,
    Decision,
    Ending,
    Form,
    Job,
    Message,
    Plan,
    Reply,
    Sample,
    Turn,
    Usage,
)
from madplug.services import find_service
from madplug.transcript import Transcript

T = TypeVar("T")
C = TypeVar("C")
Sampled = tuple[Sample, tuple[str, ...]]


class Answers(Protocol):
    """The answer format of a debate, as its components use it (`AnswerFormat`)."""

    full_name: str

    def instruction(self, sample: Sample) -> str:
        """The sentence that tells an agent how to state its final answer."""

    def canonical(self, text: str, sample: Sample) -> str | None:
        """The canonical answer in a text, or None if there is none."""

    def extract(self, debate: Debate, turn: Turn, text: str) -> Awaitable[str | None] | str | None:
        """The answer that a reply gives, as text, or None."""

    def same(self, a: str, b: str, sample: Sample) -> bool:
        """Whether two canonical answers are the same answer."""

    def pattern(self, sample: Sample) -> str | None:
        """A regular expression of the line that `instruction` asks for, or None."""

    def form(self, sample: Sample, body: int | None = None) -> Form | None:
        """The form of a reply that ends with its answer, or None."""


class _Visibility(Protocol):
    """The visibility of a cell, as components use it (`Visibility`)."""

    def view(self, debate: Debate, turn: Turn) -> Sequence[Message]: ...

    def neighbours(self, debate: Debate, agent: Agent, round: int) -> Sequence[int]: ...


class _Style(Protocol):
    """A style, as components use it (`Style`)."""

    moves: frozenset[str]

    def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply | Awaitable[Reply]: ...

    def calls(self, plan: Plan) -> int: ...


class _BoundStyle(Protocol):
    """A style of a cell, with the agents that it is for (`BoundStyle`)."""

    @property
    def style(self) -> _Style: ...

    def takes(self, agent: Agent, turn: Turn) -> bool: ...


class CellFacts(ABC):
    """One configuration of a study, as components see it."""

    slug: str
    """The cell's name in the study: as given in the run file, or made from what it changes there."""
    answers: Answers
    """What counts as an answer."""
    visibility: _Visibility
    """Who sees what."""
    styles: Sequence[_BoundStyle]
    """In the order of the run file: the first that takes a turn writes it."""
    personas: Sequence[object]
    """The persona generators."""
    rounds: int
    """The most rounds in which agents speak, the first included."""
    agents: int | None
    """How many agents the run file asks for, or None if the persona generators fix the number."""
    models: tuple[str, ...]
    """The names of the models that agents use, as in the run file."""
    services: Mapping[str, object]
    """The services that a component of the cell names, by their names in the run file."""
    match: Mapping[str, str] | None
    """`{"cell": slug, "by": "calls" or "tokens"}` of the cell that this one is matched to."""
    oracle: bool
    """Whether components may read the references."""
    dataset_key: str
    """Equal for cells with the same data set and the same options of it."""
    study_cells: Collection[str]
    """The names of all cells of the study."""

    @abstractmethod
    def component(self, base: type[C], name: str) -> C:
        """As `Debate.component`."""

    @property
    @abstractmethod
    def wanted(self) -> int:
        """How many agents a debate has."""

    @property
    @abstractmethod
    def roles(self) -> frozenset[str]:
        """The roles that personas can have; empty if a generator knows them only when it makes them."""

    @property
    @abstractmethod
    def plan(self) -> Plan:
        """The size of this cell's debates."""


@dataclass(slots=True)
class Spending:
    """What a debate, or some calls, used, including calls that another debate has paid for."""

    calls: int = 0
    retries: int = 0
    prompt: int = 0
    completion: int = 0
    cached: int = 0
    cost_usd: float | None = 0.0
    seconds: float = 0.0
    """Of single calls their own; of a debate those that it took when it was recorded, if it is decided again."""

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


class _Cell(ABC):
    """What a debate and the setup of a cell have in common."""

    __slots__ = ()
    cell: CellFacts

    @property
    def answers(self) -> Answers:
        """What counts as an answer, and when two answers are the same."""
        return self.cell.answers

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models that agents use, as in the run file."""
        return self.cell.models

    def component(self, base: type[C], name: str) -> C:
        """The component of a plugin's own kind that has this name in the run file.

        base: the base class of the kind. Raises `ComponentError` if the cell has none of this name.
        """
        return self.cell.component(base, name)

    @overload
    def service(self, name: str) -> Any: ...

    @overload
    def service(self, name: str, protocol: Callable[..., T]) -> T: ...  # type[T] takes no protocol

    def service(self, name: str, protocol: Any = None) -> Any:
        """The service of this name in the run file.

        protocol: what it is used as, such as `madplug.services.Embedder`; it is the type of the result. Raises
        `ComponentError` if the cell has no such service, or it lacks a method of the protocol.
        """
        return find_service(self.cell.services, name, protocol)

    async def ask_all(self, asks: Iterable[Awaitable[T]]) -> list[T]:
        """Await several asks concurrently and return their results in order. Waits for all before raising an error."""
        return await gather_all(asks)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Debate(_Cell, ABC):
    """One debate: its question, its agents, its transcript, and the way to ask a model.

    Nothing here can be written but `notes`; a component changes a debate by what it returns.
    """

    cell: CellFacts
    """The configuration this debate belongs to."""
    sample: Sample
    """The question."""
    repeat: int = 0
    """Which independent repeat of the cell this is, from 0."""
    seed: int = 0
    """The study's seed; for draws, use `rng`."""
    matched: DebateResult | None = None
    """The same sample's result in the cell this one is matched to, or None."""
    agents: tuple[Agent, ...] = ()
    """All participants, by id; empty while personas are being made."""
    transcript: Transcript = field(default_factory=Transcript)
    """What is on record."""
    round: int = 0
    """The round under way, from 1; 0 before the first."""
    rounds: int = 0
    """The last round there will be, unless the debate ends before or a phase reopens it."""
    decision: Decision | None = None
    """The decision, for phases and metrics; None until there is one."""
    notes: dict[str, Any] = field(default_factory=dict)
    """Facts to keep with the debate, under the plugin's name; a component reads only its own."""
    spent: Spending = field(default_factory=Spending)
    """Calls, tokens and cost (US dollars) of this debate so far."""
    scored: bool = False
    """Whether the debate has ended and metrics score it, which may ask models too."""
    recorded: bool = False
    """Whether a recorded debate is decided again: its messages and rounds are what they are, so a phase cannot reopen
    it. A phase has in `notes` what it noted when the debate was run, unless rounds of it were left out."""

    # The question, the participants, the answers

    @property
    @abstractmethod
    def references(self) -> tuple[str, ...]:
        """The right answers. Raises `ComponentError` unless the run file says `oracle = true`."""

    @property
    def active(self) -> tuple[Agent, ...]:
        """The agents that have not left the debate, by id."""
        left = self.transcript.left
        return tuple(a for a in self.agents if a.id not in left) if left else self.agents

    @property
    def voters(self) -> tuple[Agent, ...]:
        """The agents whose personas vote and that have not left, by id."""
        return tuple(a for a in self.active if a.persona.votes)

    def with_role(self, role: str) -> tuple[Agent, ...]:
        """The agents whose persona has this role, by id."""
        return tuple(a for a in self.agents if a.persona.role == role)

    def agent(self, id: int) -> Agent:
        """The agent with this id."""
        return self.agents[id]

    @abstractmethod
    def seen_by(self, agent: Agent | int) -> Debate:
        """The debate as an agent may know it: with those columns of the sample that are not hidden from its role.

        A style gets this debate in a turn; everything else gets the sample without any column that is hidden from
        somebody (`Sample.hidden_from`), and asks on behalf of an agent with this.
        """

    @abstractmethod
    def key(self, text: str | None) -> str | None:
        """The canonical answer in a text, or None; if an equal answer is on record, that answer's key."""

    @abstractmethod
    async def read(self, turn: Turn, reply: Reply) -> tuple[str | None, str | None]:
        """The answer in a reply as text, and its key; both None if none can be read, `""` and None if the turn gives
        none by design."""

    # Who sees what

    @abstractmethod
    async def view(self, turn: Turn) -> tuple[Message, ...]:
        """The messages an agent is shown for a turn, according to the visibility and every extension."""

    def neighbours(self, agent: Agent, round: int | None = None) -> Sequence[int]:
        """Ids of the agents whose messages an agent may see in a round, by default in the current one, without those
        that have left the debate."""
        found = self.cell.visibility.neighbours(self, agent, self.round if round is None else round)
        left = self.transcript.left
        return [id for id in found if id not in left] if left else found

    # What components can use

    def rng(self, scope: str) -> random.Random:
        """A random generator seeded from the study's seed, the repeat, the sample and the scope, so that draws do not
        depend on scheduling. scope: `plugin.component:purpose`."""
        text = f"{self.seed}\0{self.repeat}\0{self.sample.id}\0{scope}"
        return random.Random(int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big"))

    @abstractmethod
    async def keep(self, name: str, value: Callable[[], Awaitable[T] | T] | T) -> T:
        """A value that is made once for this debate and stored with the study, such as the result of a tool: the one
        stored under `name`, or else `value`.

        name: `plugin:purpose`, and whatever tells this value from others of the debate. value: a JSON value, or a
        function (plain or async) that makes one.
        """

    @abstractmethod
    async def ask(self, messages: str | Sequence[Mapping[str, Any]], *, purpose: str, agent: Agent | int | None = None,
                  model: str | None = None, form: Form | None = None,
                  params: Mapping[str, Any] | None = None) -> Completion:
        """Ask a model: `model`, or the agent's, or the first of the cell's.

        messages: `{"role", "content"}` each, or a string for one user message. purpose: what the call is for
        (`discuss`, `vote`, ...), stored with it. form: what the reply must look like, for models that support
        it. params: sampling parameters that differ from the model's own. Raises `ModelError` if no attempt was
        answered, which fails the debate unless caught.
        """


class Setup(_Cell, ABC):
    """The argument of `Component.prepare`: the cell, its samples, its models, and values stored with the study."""

    cell: CellFacts
    """The configuration that is being prepared."""
    seed: int
    """The study's seed."""
    spent: Spending
    """Calls, tokens and cost (US dollars) of preparing this cell so far."""

    @abstractmethod
    def model_identity(self, name: str | None = None) -> str:
        """What a model of this cell is, whatever the run file calls it; for the names of values that depend on it.

        Its options that are not volatile, and its code if it is in a local file. name: by default the first agent's.
        """

    @abstractmethod
    async def ask(self, messages: str | Sequence[Mapping[str, Any]], *, purpose: str, model: str | None = None,
                  form: Form | None = None, params: Mapping[str, Any] | None = None) -> Completion:
        """Ask a model, as `Debate.ask`."""

    @abstractmethod
    def samples(self, split: str | None = None) -> Iterator[Sampled]:
        """The data set's samples with their references, streamed.

        split: another part of the data set. How many of its samples are read is recorded as training use.
        """

    @abstractmethod
    async def keep(self, name: str, value: Callable[[], Awaitable[T] | T] | T) -> T:
        """A value that is made once and stored with the study: the one stored under `name`, or else `value`.

        name: shared by all cells, so it has to include whatever the value depends on: a digest of options, a model.
        value: a JSON value, or a function (plain or async) that makes one.
        """


class Progress(NamedTuple):
    """The progress of a run."""

    paid: int
    """Calls answered by a model in this run."""
    in_flight: int
    """Calls in flight."""
    retries: int
    """Attempts that failed."""
    tokens: int
    """Tokens of prompts and completions in this run."""
    cost_usd: float
    """US dollars of the whole study so far, as far as prices are known."""
    debates: int = 0
    """Debates that have ended in this run."""
    waiting: str = ""
    """What the run waits for, if it is not only for the calls in flight: a model that is being loaded, a rate limit."""


@dataclass(frozen=True)
class Run:
    """The argument of `Observer.open`."""

    study: str
    """The study's name."""
    folder: Path | None
    """The study's directory, or None if it is stored in memory."""
    repeats: int
    planned: int | None
    """Debates of the whole study, or None if a data set does not know its size."""
    progress: Callable[[], Progress]
    """Returns the current progress; may be called from any thread."""
    stop: Callable[[str, Collection[str]], object]
    """Called with a reason, which is reported, and the names of cells: these are decided, and get no further debates
    that no other is matched to. With the last cell the study ends at once. May be called from any thread."""
    most: int | None = None
    """The most calls of the whole study, or None if that is not known."""


class Jobs(Protocol):
    """The jobs of a run, as an executor sees them."""

    def __aiter__(self) -> AsyncIterator[Job]:
        """Every job, in the order of the study."""

    async def run(self, work: Callable[[Job], Awaitable[object]] | None = None) -> None:
        """Run every job; `work` is called as soon as a model that the job uses has a free slot.

        work: by default, runs the job in this process.
        """


class RunDriver(Protocol):
    """The driver of a run, as an executor sees it: the only one that writes."""

    @property
    def folder(self) -> Path | None:
        """The study's directory, or None if it is stored in memory."""

    @property
    def ending(self) -> Ending | None:
        """Why no further call is started, or None while the study is running."""

    async def finish(self, id: DebateId, result: DebateResult | None) -> None:
        """Store a debate that has ended; result is None if the study was stopped before it did."""

    def warn(self, text: str, /) -> None:
        """Report something that does not affect results."""
