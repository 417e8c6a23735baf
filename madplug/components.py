"""What a plugin writes: one abstract class per kind of component.

A component is one choice among many, named in a run file, with typed options:

    class Majority(DecisionProtocol):
        '''The answer most agents end on.'''              # the summary that `madplug list` prints
        name = "last_round"                               # `majority.last_round` in a run file

        class Options(Options):
            keep: int = Field(default=1, ge=1, description="rounds to count, from the last")

        def at_end(self, debate):
            ...

Components are made once per cell from their options and keep nothing of a debate: the transcript is the
only state. Methods may be plain or `async`; the host awaits what is awaitable. Those that only describe (`calls`,
`check`, `turns`) or compare (an answer format's `canonical`, `same`, `instruction`, `pattern`) are plain. A model is
reached through `await debate.ask(...)` only, so that every call is counted, limited, stored and shared in one place.

Constructing a component must be cheap: import heavy packages in `prepare` or `open`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar, Union

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from madplug.records import (
    Agent,
    Completion,
    DebateResult,
    Decision,
    Form,
    Message,
    Persona,
    Reply,
    Request,
    Sample,
    Turn,
)

if TYPE_CHECKING:
    from madplug.debate import Debate
    from madplug.setup import Setup
    from madplug.study import Job

T = TypeVar("T")
Maybe = Union[T, Awaitable[T]]  # noqa: UP007 - `|` cannot be applied to a type variable at run time
"""What a component method may return: a value, or an awaitable of it."""


# Options

class Options(BaseModel):
    """The options of a component: frozen, and nothing beyond what is declared."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, protected_namespaces=())


@dataclass(frozen=True)
class Names:
    """Marks an option whose value is the name of a table of the run file."""

    kind: str


class _Volatile:
    """Marks an option that may change between two runs of the same study."""


def _from_run_file(value: Any, info: ValidationInfo) -> Any:
    base = (info.context or {}).get("folder")
    return (Path(base) / value).absolute() if base and isinstance(value, str) and value else value


ModelName = Annotated[str, Names("model")]
"""An option that names one of the run file's `[models.NAME]`."""
ServiceName = Annotated[str, Names("service")]
"""An option that names one of the run file's `[services.NAME]`."""
RunPath = Annotated[Path, BeforeValidator(_from_run_file)]
"""A path; a relative one is relative to the run file, and absolute from there on."""
Volatile = _Volatile()
"""`Annotated[int, Volatile]`: an address, a key's name, a rate: may change while a study stays the same."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The size of a cell's debates, for counting calls before any is made."""

    agents: int
    rounds: int
    turns: int
    """Turns in one round."""
    per_turn: int = 1
    """Calls in one turn."""
    models: int = 1
    """Different models that agents use."""


# Components

class Component(ABC):
    """What all components have in common."""

    kind: ClassVar[str]
    name: ClassVar[str]
    """The part of the full name after the plugin's."""
    source: ClassVar[str] = ""
    """The paper and section the component comes from."""
    needs: frozenset[str] = frozenset()
    """Things another component of the cell must give: `agreement`, `confidence`, `references`, `logprobs`, ..."""
    gives: frozenset[str] = frozenset()
    Options: type[Options] = Options

    def __init__(self, options: Any = None, **values: Any) -> None:
        """`options`: an instance of the class's `Options`; keywords instead make one."""
        self.options: Any = self.Options(**values) if options is None else options

    def prepare(self, setup: Setup) -> Maybe[None]:
        """Runs once per cell before its debates: criteria, demonstrations, indexes."""

    def calls(self, plan: Plan) -> int:
        """The most model calls this component makes in one debate (a style: in one turn), for `madplug check`."""
        return 0

    def check(self, cell: Any) -> Iterable[str]:
        """What is wrong with this component in this cell, in words; nothing when all is well."""
        return ()


class ModelOptions(Options):
    """Options every model has."""

    max_in_flight: Annotated[int, Volatile] = Field(
        default=100, ge=1, le=100_000, description="requests at the same time")
    requests_per_minute: Annotated[float | None, Volatile] = Field(
        default=None, gt=0, description="start no more requests a minute than this")
    tokens_per_minute: Annotated[float | None, Volatile] = Field(
        default=None, gt=0, description="use no more tokens a minute than this, going by the usage reported so far")
    attempts: Annotated[int, Volatile] = Field(
        default=8, ge=1, le=100, description="tries of one request, the first included")
    deadline: Annotated[float, Volatile] = Field(
        default=900.0, gt=0, description="seconds after which a request is not tried again")
    price: Annotated[Mapping[str, float] | None, Volatile] = Field(
        default=None, description="USD per million tokens: {prompt = ..., completion = ..., cached = ...}")


class Model(Component):
    """Answers requests. One instance serves all debates of a study concurrently."""

    kind = "model"
    Options: type[Options] = ModelOptions

    @abstractmethod
    async def complete(self, request: Request) -> Completion:
        """Answer one request, once.

        Raise `TransientError` where another try may help (the host tries again, with back-off) and
        `RefusedError` where it cannot: a wrong key, an unknown model, a context that is too long.
        """

    def open(self) -> Maybe[None]:
        """Connect or load, before the first request and on the event loop's thread."""

    def close(self) -> Maybe[None]:
        """Let go of everything, after the last request."""

    @property
    def price(self) -> Mapping[str, float] | None:
        """USD per million tokens (`prompt`, `completion`, optionally `cached`), or None when unknown."""
        price: Mapping[str, float] | None = self.options.price
        return price


class Service(Component):
    """Something other than a model that components use: a retriever, an embedder, a sandbox."""

    kind = "service"

    def open(self) -> Maybe[None]:
        """Connect or load, before the first debate."""

    def close(self) -> Maybe[None]:
        """Let go of everything, after the last debate."""


class Dataset(Component):
    """Where questions come from."""

    kind = "dataset"

    @property
    def answers(self) -> str | Mapping[str, Any] | None:
        """The answer format these questions take unless the run file names another, as in `[answers]`."""
        return None

    @abstractmethod
    def samples(self, split: str | None = None) -> Iterable[tuple[Sample, tuple[str, ...]]]:
        """Every sample with its references, in a fixed order, read as it is consumed.

        split: another part of the data set (`train`), for components that prepare on it; None is the part the
        study is about. Called again for every pass.
        """

    def size(self) -> int | None:
        """How many samples there are, where that is known without reading them."""
        return None

    def fingerprint(self) -> str:
        """What tells this data from other data under the same options: a hash, a revision."""
        return ""


class AnswerFormat(Component):
    """What counts as an answer, and when two answers are the same."""

    kind = "answers"

    @abstractmethod
    def instruction(self, sample: Sample) -> str:
        """The sentence that tells an agent how to state its final answer."""

    @abstractmethod
    def canonical(self, text: str, sample: Sample) -> str | None:
        """The canonical answer in a text, or None if it has none. Of a canonical answer: itself."""

    def extract(self, debate: Debate, turn: Turn, text: str) -> Maybe[str | None]:
        """The answer a reply gives, as text, or None. May ask a model; by default the canonical answer."""
        return self.canonical(text, debate.sample)

    def same(self, a: str, b: str, sample: Sample) -> bool:
        """Whether two canonical answers are the same answer."""
        return a == b

    def pattern(self, sample: Sample) -> str | None:
        """A regular expression of the line that `instruction` asks for; None where there is none."""
        return None

    def form(self, sample: Sample, body: int | None = None) -> Form | None:
        """The form of a reply that ends with its answer, for models that can hold one.

        body: the most characters before the last line; 0 for the answer alone, None for any number.
        """
        pattern = self.pattern(sample)
        if pattern is None:
            return None
        before = "" if body == 0 else r"[\s\S]*\n" if body is None else rf"[\s\S]{{0,{body}}}\n"
        return {"regex": before + pattern}


class PersonaGenerator(Component):
    """Makes the agents' personas."""

    kind = "personas"
    count: int | None = None
    """How many personas this generator makes, where it fixes the number itself. In a study without
    `debate.agents` it may make more where the sample says so."""

    @abstractmethod
    def generate(self, debate: Debate, roster: Sequence[Persona]) -> Maybe[Persona | Sequence[Persona]]:
        """The next persona, or all of them for a generator with a `count`.

        roster: the personas made before. debate: has the sample, and no agents yet.
        """


class Casting(Component):
    """Chooses which model plays which persona."""

    kind = "casting"

    @abstractmethod
    def cast(self, debate: Debate, personas: Sequence[Persona]) -> Maybe[Sequence[Agent]]:
        """One agent per persona, in the same order, with ids from 0. `debate.models` are the names to choose from."""


class Style(Component):
    """Prompts a turn and reads its reply."""

    kind = "style"
    moves: frozenset[str] = frozenset()
    """The moves this style can write."""

    def accepts(self, agent: Agent, turn: Turn) -> bool:
        """Whether this style takes a turn whose move it can write."""
        return True

    @abstractmethod
    def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Maybe[Reply]:
        """Ask the model and read what it says. view: what the agent is shown, in order."""

    def calls(self, plan: Plan) -> int:
        """The most model calls in one turn."""
        return 1


class TurnOrder(Component):
    """Says who is asked for what, and when."""

    kind = "turns"
    moves: frozenset[str] = frozenset()
    """The moves this order asks for."""

    @abstractmethod
    def waves(self, debate: Debate) -> Iterator[Sequence[Turn]] | AsyncIterator[Sequence[Turn]]:
        """One round: a generator of waves. The turns of a wave see the same transcript and run concurrently.

        Between two waves the first one's messages are on record. A round without a wave ends the debate and is
        not counted.
        """

    def turns(self, agents: int) -> int:
        """The most turns in one round."""
        return agents


class Visibility(Component):
    """Says which messages an agent is shown, and in which order."""

    kind = "visibility"

    @abstractmethod
    def view(self, debate: Debate, turn: Turn) -> Sequence[Message]:
        """The messages shown for a turn, in order. A pure function of the transcript; calls no model."""

    def neighbours(self, debate: Debate, agent: Agent, round: int) -> Sequence[int]:
        """Ids of the agents whose messages this agent may see in a round; by default everybody else."""
        return tuple(a.id for a in debate.agents if a.id != agent.id)


class DecisionProtocol(Component):
    """Ends a debate."""

    kind = "decision"

    def after_wave(self, debate: Debate) -> Maybe[Decision | None]:
        """A decision in the middle of a round, or None."""
        return None

    def after_round(self, debate: Debate) -> Maybe[Decision | None]:
        """A decision at the end of a round, or None."""
        return None

    @abstractmethod
    def at_end(self, debate: Debate) -> Maybe[Decision]:
        """The decision when the rounds are used up or the debate was stopped."""


class Phase(Component):
    """Follows the decision: challenges it, rewrites it, asks what the agents think of it."""

    kind = "phase"

    @abstractmethod
    def run(self, debate: Debate, decision: Decision) -> Maybe[Decision | None]:
        """The decision that is to stand, or None to leave it. What is to be kept goes into `debate.notes`."""


class Metric(Component):
    """Measures a debate that has ended, also one read back from a study's directory."""

    kind = "metric"
    proportion: bool = False
    """Scores are 0 or 1, so that their mean is a share; its interval is then Wilson's."""
    label: str = ""
    """The name of its scores in a cell: its full name, with `#2` for the second of the same."""

    @abstractmethod
    def score(self, debate: Debate, references: Sequence[str]) -> Maybe[float | Mapping[str, float | None] | None]:
        """A number, several by name, or None where the metric does not apply. `debate.decision` is set."""

    def summarise(self, results: Iterable[DebateResult]) -> Mapping[str, Any]:
        """Figures of a whole cell that are more than means of scores. `results`: its debates, streamed."""
        return {}


class Extension(Component):
    """Wraps or watches a run through methods named in `madplug/runspecs.py` and marked `@hookimpl`."""

    kind = "extension"


class Paradigm(Component):
    """A preset: the `[debate]` table a user could have written."""

    kind = "paradigm"
    debate: ClassVar[Mapping[str, Any]]
    """Slots and settings of `[debate]`, in the form they have in a run file."""


class Executor(Component):
    """Says where debates run."""

    kind = "executor"

    @abstractmethod
    def run(self, jobs: AsyncIterator[Job]) -> AsyncIterator[DebateResult | None]:
        """Hold every debate with `await job.run()` and yield the results as they end; None for one that was stopped."""


KINDS: dict[str, type[Component]] = {
    "models": Model, "services": Service, "datasets": Dataset, "answers": AnswerFormat,
    "personas": PersonaGenerator, "castings": Casting, "styles": Style, "turn_orders": TurnOrder,
    "visibilities": Visibility, "decisions": DecisionProtocol, "phases": Phase, "metrics": Metric,
    "extensions": Extension, "paradigms": Paradigm, "executors": Executor,
}
"""The base class behind each registration hook `madplug_register_...`."""

__all__ = [
    "KINDS", "AnswerFormat", "Casting", "Component", "Dataset", "DecisionProtocol", "Executor", "Extension",
    "Form", "Metric", "Model", "ModelName", "ModelOptions", "Names", "Options", "Paradigm", "PersonaGenerator",
    "Phase", "Plan", "RunPath", "Service", "ServiceName", "Style", "TurnOrder", "Visibility", "Volatile",
]
