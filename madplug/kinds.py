"""What a plugin implements: one abstract class per kind of component.

A component is one choice among many, named in a run file, with typed options:

    class MajorityOptions(Options):
        keep: int = Field(default=1, ge=1, description="rounds to count, from the last")

    class Majority(DecisionProtocol):
        '''The answer that most agents end on.'''         # the summary that `madplug list` prints
        name = "last_round"                             # `majority.last_round` in a run file
        Options = MajorityOptions

        def at_end(self, debate):
            ...                                         # self.options.keep, typed as an int

Components are made once per cell from their options and hold no state of a debate: the transcript is the
only state. Methods may be plain or `async`; the host awaits what is awaitable. Those that only describe (`calls`,
`check`, `turns`), show (a visibility's `view`) or compare (an answer format's `canonical`, `same`, `instruction`,
`pattern`) are plain. A model is reached only through `await debate.ask(...)`, so that every call is counted, limited,
stored and shared in one place.

Making a component must be cheap: import heavy packages in `prepare` or `open`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from madplug.component import Component, Maybe
from madplug.context import CellFacts, Debate, Jobs, Run, RunDriver
from madplug.events import (
    AgentsCast,
    CallAnswered,
    DebateFinished,
    DebateStarted,
    Decided,
    MessageRecorded,
    StudyFinished,
    StudyStarted,
)
from madplug.options import ModelOptions
from madplug.records import (
    Agent,
    Caller,
    Completion,
    DebateResult,
    Decision,
    Form,
    Message,
    Persona,
    Plan,
    Reopen,
    Reply,
    Request,
    Sample,
    Turn,
)


class Model(Component):
    """Answers requests. One instance serves all debates of a study concurrently."""

    kind, plural, label, slot = "model", "models", "model", "models.NAME"
    how_many = "named"
    of_study = True

    Options: ClassVar[type[ModelOptions]] = ModelOptions

    @abstractmethod
    async def complete(self, request: Request) -> Completion:
        """Answer one request, once.

        Raise `TransientError` if another attempt may help (the host retries with back-off), its subclass
        `UnreachableError` if there was no connection, its subclass `EmptyReplyError` if the reply has no text (after a
        few attempts the agent is silent in that turn), `RefusedError` if this request cannot be answered (a context
        that is too long), and its subclass `AccessError` if none can (a wrong key, an unknown model). An error about
        a reply that is billed has its `usage`.
        """

    def kept(self, request: Request) -> None:
        """Called once the reply to a request is on record, for a model that keeps a copy until then."""

    def open(self) -> Maybe[None]:
        """Connect or load, before the first request and on the event loop's thread."""

    def close(self) -> Maybe[None]:
        """Release everything, after the last request."""

    def missing(self) -> str | None:
        """What this machine lacks to ask the model, such as a key, or None; told before anything runs."""
        return None

    @property
    def price(self) -> Mapping[str, float] | None:
        """USD per million tokens (`prompt`, `completion`, optionally `cached`), or None if unknown."""
        price = self.options.price
        return None if price is None else price.model_dump(exclude_none=True)


class Service(Component):
    """Something other than a model that components use: a retriever, an embedder, a sandbox."""

    kind, plural, label, slot = "service", "services", "service", "services.NAME"
    how_many = "named"
    once: ClassVar[bool] = False
    """Whether one instance serves a study however many processes it runs in: an index or a model that fills the memory.

    It then lives with the driver, and workers elsewhere call its `async` methods there; arguments and results are what
    JSON can represent, or madplug's own records.
    """

    def open(self) -> Maybe[None]:
        """Connect or load, before the first debate."""

    def close(self) -> Maybe[None]:
        """Release everything, after the last debate."""


class Dataset(Component):
    """Where questions come from."""

    kind, plural, label, slot = "dataset", "datasets", "data set", "dataset"
    required = True

    @property
    def has_images(self) -> bool:
        """Whether its samples can have images; if so, `madplug check` warns of cells in which no style shows them."""
        return False

    @property
    def answers(self) -> str | Mapping[str, Any] | None:
        """The answer format of these questions, as in `[answers]`, unless the run file names another."""
        return None

    @abstractmethod
    def samples(self, split: str | None = None) -> Iterable[tuple[Sample, tuple[str, ...]]]:
        """Every sample with its references, in a fixed order, read lazily.

        split: another part of the data set (`train`), for components that need one in `prepare`; None is the part
        that the study is about. Called again for every pass over the data.
        """

    def size(self) -> int | None:
        """How many samples there are, or None if that is not known without reading them."""
        return None

    def fingerprint(self) -> str:
        """Identifies the data in `manifest.json`, as a hash or a revision does; "" if nothing does."""
        return ""


class AnswerFormat(Component):
    """What counts as an answer, and when two answers are the same."""

    kind, plural, label, slot = "answers", "answers", "answer format", "answers"
    scored_by: str = "qa.accuracy"
    """A metric for such answers, which `madplug check` names where there is none."""

    @abstractmethod
    def instruction(self, sample: Sample) -> str:
        """The sentence that tells an agent how to state its final answer."""

    @abstractmethod
    def canonical(self, text: str, sample: Sample) -> str | None:
        """The canonical answer in a text, or None if there is none. A canonical answer is returned unchanged."""

    def extract(self, debate: Debate, turn: Turn, text: str) -> Maybe[str | None]:
        """The answer that a reply gives, as text, or None. May ask a model; by default the canonical answer."""
        return self.canonical(text, debate.sample)

    def same(self, a: str, b: str, sample: Sample) -> bool:
        """Whether two canonical answers are the same answer."""
        return a == b

    def misfit(self, sample: Sample, references: Sequence[str]) -> str | None:
        """Why a row of the data cannot be answered or scored in this format, or None; by default, since it can read no
        reference."""
        if not references or any(self.canonical(reference, sample) is not None for reference in references):
            return None
        return f"no reference is an answer of the format: {references[0]!r:.80}"

    def pattern(self, sample: Sample) -> str | None:
        """A regular expression of the line that `instruction` asks for, or None."""
        return None

    def form(self, sample: Sample, body: int | None = None) -> Form | None:
        """The form of a reply that ends with its answer, for models that support constrained decoding.

        body: the most characters before the last line; 0 for the answer alone, None for no limit. None if the format
        has no `pattern`.
        """
        pattern = self.pattern(sample)
        if pattern is None:
            return None
        # Optional: a model that begins with the last line could otherwise only end by writing that line again.
        before = "" if body == 0 else r"(?:[\s\S]*\n)?" if body is None else rf"(?:[\s\S]{{0,{body}}}\n)?"
        return {"regex": before + pattern}


class PersonaGenerator(Component):
    """Makes the agents' personas."""

    kind, plural, label, slot = "personas", "personas", "persona generator", "debate.personas"
    how_many = "list"
    count: int | None = None
    """How many personas this generator makes, if it fixes the number itself. 0: as many as the sample requires, or
    more where `debate.agents` says so."""
    roles: frozenset[str] = frozenset({"participant"})
    """The roles of the personas it makes; empty if they are not known before the debate."""

    @abstractmethod
    def generate(self, debate: Debate, roster: Sequence[Persona]) -> Maybe[Persona | Sequence[Persona]]:
        """The next persona, or all of them for a generator with a `count`.

        roster: the personas made so far. debate: has the sample, but no agents yet.
        """


class Casting(Component):
    """Chooses which model plays which persona."""

    kind, plural, label, slot = "casting", "castings", "casting", "debate.casting"

    @abstractmethod
    def cast(self, debate: Debate, personas: Sequence[Persona]) -> Maybe[Sequence[Agent]]:
        """One agent per persona, in the same order, with ids from 0. Choose each agent's model from `debate.models`."""


class Style(Component):
    """Prompts a turn and parses the reply."""

    kind, plural, label, slot = "style", "styles", "style", "debate.styles"
    how_many = "list"
    required = True
    moves: frozenset[str] = frozenset()
    """The moves this style can write."""
    shows_images: bool = False
    """Whether its prompts include the images of a sample."""

    def accepts(self, agent: Agent, turn: Turn) -> bool:
        """Whether this style takes a turn whose move it can write."""
        return True

    @abstractmethod
    def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Maybe[Reply]:
        """Ask the model and parse its reply. view: the messages the agent is shown, in order."""

    def calls(self, plan: Plan) -> int:
        """The most model calls in one turn."""
        return 1


class TurnOrder(Component):
    """Says which agent is asked for which move, and when."""

    kind, plural, label, slot = "turns", "turn_orders", "turn order", "debate.turns"
    required = True
    moves: frozenset[str] = frozenset()
    """The moves this order asks for."""
    seats: ClassVar[bool] = False
    """Whether a debate's agents are those that this order gives turns to, numbered as they join, instead of those that
    were cast."""

    @abstractmethod
    def waves(self, debate: Debate) -> Iterator[Sequence[Turn]] | AsyncIterator[Sequence[Turn]]:
        """One round: a generator of waves. The turns of a wave see the same transcript and run concurrently.

        When the generator resumes, the messages of the wave it yielded are on record. A round without a wave ends
        the debate and is not counted. Turns of agents that have left the debate are dropped. Calls that it makes for a
        wave are behind the first message of the wave.
        """

    def turns(self, agents: int, round: int) -> int:
        """The most turns in a round, for `madplug check`. agents: how many there are in the debate. round: from 1."""
        return agents

    def by_move(self, agents: int, round: int) -> Mapping[str, int]:
        """The same by move, where styles of different moves make more calls and fewer; "" for any move."""
        return {"": self.turns(agents, round)}

    def within(self, cell: CellFacts, calls: int) -> int | None:
        """How many turns a debate of a matched cell has that may make this many calls; None: it follows no budget."""
        return None

    def steps(self, agents: int, round: int) -> int:
        """How many waves of a round follow one another, for executors that wait long for each; by default one a turn.

        Without what only some debates have, such as a wave of agents with a special role.
        """
        return self.turns(agents, round)


class Visibility(Component):
    """Says which messages an agent is shown, and in which order."""

    kind, plural, label, slot = "visibility", "visibilities", "visibility", "debate.visibility"
    required = True

    @abstractmethod
    def view(self, debate: Debate, turn: Turn) -> Sequence[Message]:
        """The messages shown for a turn, in order. A pure function of the transcript; calls no model."""

    def neighbours(self, debate: Debate, agent: Agent, round: int) -> Sequence[int]:
        """Ids of the agents whose messages this agent may see in a round; by default all others."""
        return tuple(a.id for a in debate.active if a.id != agent.id)


class DecisionProtocol(Component):
    """Decides a debate."""

    kind, plural, label, slot = "decision", "decisions", "decision protocol", "debate.decision"
    required = True

    def after_wave(self, debate: Debate) -> Maybe[Decision | None]:
        """A decision in the middle of a round, or None."""
        return None

    def after_round(self, debate: Debate) -> Maybe[Decision | None]:
        """A decision at the end of a round, or None."""
        return None

    @abstractmethod
    def at_end(self, debate: Debate) -> Maybe[Decision]:
        """The decision after the last round, or after the debate was stopped."""


class Phase(Component):
    """Runs after the decision: challenges it, rewrites it, asks what the agents think of it."""

    kind, plural, label, slot = "phase", "phases", "phase", "debate.phases"
    how_many = "list"

    @abstractmethod
    def run(self, debate: Debate, decision: Decision) -> Maybe[Decision | Reopen | None]:
        """The decision to use instead, None to leave it as it is, or `Reopen` to run further rounds and decide again.

        After a reopened debate is decided, all phases run again from the first, so a phase has to tell from the
        transcript or its notes that it has reopened the debate before. Facts to keep go into `debate.notes`.
        """

    def further_rounds(self, plan: Plan) -> int:
        """The most rounds by which it extends a debate, for `madplug check`."""
        return 0


class Metric(Component):
    """Measures a debate that has ended, including one read back from a study's directory."""

    kind, plural, label, slot = "metric", "metrics", "metric", "metrics"
    how_many = "list"
    proportion: bool | frozenset[str] = False
    """Whether scores are 0 or 1, so that their mean is a proportion and has a Wilson interval; of several scores by
    name, also the names of those that are."""
    score_name: str = ""
    """The name of its scores in the cell: its full name, with `#2` for the second metric of that name."""

    @abstractmethod
    def score(self, debate: Debate, references: Sequence[str]) -> Maybe[float | Mapping[str, float | None] | None]:
        """A number, several numbers by name, or None if the metric does not apply. `debate.decision` is set."""

    def summarise(self, results: Iterable[DebateResult]) -> Mapping[str, Any]:
        """Figures of a whole cell other than means of scores. results: its debates, streamed, so iterate once."""
        return {}

    def summarise_figures(self, rows: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
        """The same from the rows of `madplug.store.Reader.figures`, for a metric that needs no texts.

        Instead of `summarise`; a study of any size is then summed up without reading its debates. Iterate once.
        """
        return {}


class Extension(Component):
    """Takes part in a debate through methods that are named after the hooks in `madplug/hookspecs.py` and marked
    `@hookimpl`."""

    kind, plural, label, slot = "extension", "extensions", "extension", "extensions"
    how_many = "list"


class Observer(Component):
    """Receives the events of a study and changes nothing: it is not part of the study's identity.

    A subclass implements a method for each event it wants. Events are frozen records (`madplug/events.py`); those of
    one debate arrive in order, and never on the path of a model call. Plain methods run in a worker thread, so that
    one that blocks delays no debate; `async` methods run on the study's event loop. An exception is recorded as a
    problem of the study. An observer that falls behind by thousands of events misses calls and messages, and the study
    reports that.
    """

    kind, plural, label, slot = "observer", "observers", "observer", "observers"
    how_many = "list"
    of_study = True

    def open(self, run: Run) -> Maybe[None]:
        """Called before the first event. run: the study's name and directory, and its progress."""

    def close(self) -> Maybe[None]:
        """Called after the last event."""

    def study_started(self, event: StudyStarted) -> Maybe[None]:
        """The components are prepared; no debate has started yet."""

    def debate_started(self, event: DebateStarted) -> Maybe[None]:
        """A debate starts; its personas and models are not chosen yet."""

    def agents_cast(self, event: AgentsCast) -> Maybe[None]:
        """The agents of a debate are known."""

    def call_answered(self, event: CallAnswered) -> Maybe[None]:
        """A model call was answered."""

    def message_recorded(self, event: MessageRecorded) -> Maybe[None]:
        """A message was recorded, or one on record was retracted."""

    def decided(self, event: Decided) -> Maybe[None]:
        """The decision protocol has decided; phases may still run."""

    def debate_finished(self, event: DebateFinished) -> Maybe[None]:
        """A debate has ended: it is done, failed or was stopped."""

    def study_finished(self, event: StudyFinished) -> Maybe[None]:
        """The study has ended or stopped."""


class Paradigm(Component):
    """A preset: a `[debate]` table that a user could have written."""

    kind, plural, label, slot = "paradigm", "paradigms", "paradigm", "debate.paradigm"
    how_many = "none"
    of_study = True
    debate: ClassVar[Mapping[str, Any]]
    """Slots and settings of `[debate]`, as in a run file."""


class Executor(Component):
    """Says where debates run."""

    kind, plural, label, slot = "executor", "executors", "executor", "execution"
    of_study = True

    @property
    def part(self) -> str:
        """The name of the part of the study that this executor runs, "" for all of it; a directory keeps to its part.

        It is added to the name of the study's default directory.
        """
        return ""

    def includes(self, sample: Sample) -> bool:
        """Whether the debates on a sample belong to the executor's part of the study; asked only if it has one."""
        return True

    def notes(self, cells: Sequence[CellFacts], models: Mapping[str, Model]) -> Iterable[str]:
        """Yield what to know before these cells are run, in words, for `madplug check`. models: by name."""
        return ()

    async def begin(self, driver: RunDriver) -> None:
        """Called before components are prepared. Does nothing by default."""

    def answer(self, model: Model, request: Request, caller: Caller, key: str) -> Maybe[Completion]:
        """Have a model of this process answer a request, once; raises the errors of `Model.complete`.

        key: the call's key in the study's records. At once by default; an executor may send several together.
        """
        return model.complete(request)

    @abstractmethod
    async def run(self, jobs: Jobs, driver: RunDriver) -> None:
        """Run every job, and return when all of them have ended: with `jobs.run()` in this process, or by workers.

        A worker is a `madplug.study.Worker`, made from the run file in `driver.folder` with a `Driver` that
        forwards each call to this one, the only one that writes. The job of a lost worker is given to another worker.
        """


HOST_KINDS: tuple[type[Component], ...] = (
    Model, Service, Dataset, AnswerFormat, PersonaGenerator, Casting, Style, TurnOrder, Visibility, DecisionProtocol,
    Phase, Metric, Extension, Observer, Paradigm, Executor)
"""The base class of each kind that madplug itself defines; `Registry.kinds` has those of plugins too."""
