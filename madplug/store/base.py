"""The records of a study, and the interfaces for writing and reading them.

The driver of a run writes through `Recorder`; everything else reads through `Reader`: reports, exports, recorded
models, notebooks. `SqliteRecorder` and `SqliteReader` store a study in a directory; `MemoryStore` is both and ends with
the process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from madplug.records import Agent, Caller, Completion, DebateId, DebateResult, Message, Sample

Outcome = Literal["running", "done", "failed"]
"""The state of a debate. One that was stopped or killed stays `running` until it is run again."""
Order = Literal["sample", "started", "messages", "rounds", "calls", "tokens", "cost", "seconds"]
"""What the debates of a cell can be sorted by; `sample`: by repeat and sample id."""
Ending = Literal["running", "failed", "undecided", "decided"]
"""How debates ended; `decided` and `undecided` have not failed."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that was answered."""

    completion: Completion
    retries: int = 0
    """Attempts that failed before the one that was answered."""
    seconds: float = 0.0
    """Duration of the answered attempt."""


@dataclass(frozen=True, slots=True)
class CallRow:
    """A request and where it comes from."""

    key: bytes
    caller: Caller
    model: str
    """The name of a `[models.NAME]` table."""
    request: str
    """JSON of the messages, the parameters and the form."""


@dataclass(slots=True)
class Totals:
    """What a study has paid for so far."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of one debate."""

    outcome: Outcome
    messages: int
    """Messages on record, retracted ones included."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What has been recorded since a cursor."""

    debates: Mapping[DebateId, Progress] = field(default_factory=dict)
    """The debates that started, got a message or ended."""
    calls: int = 0
    """How many calls were answered."""


@dataclass(frozen=True, slots=True)
class MetricOverview:
    """A metric over the debates of a cell."""

    metric: str
    mean: float
    """Over samples, of the means over repeats."""
    ci95: tuple[float, float] | None
    """Over samples, as `madplug.study.intervals.interval` has it; scores that are all 0 or 1 count as a proportion."""
    samples: int


@dataclass(frozen=True, slots=True)
class CellOverview:
    """The sums over the debates of a cell."""

    cell: str
    done: int
    failed: int
    running: int
    """Debates that have started and not ended; they count in none of the sums."""
    undecided: int
    calls: int
    prompt: int
    """Tokens."""
    completion: int
    cost_usd: float | None
    """None if the cost of a debate is unknown."""
    seconds: float
    repeats: int
    score: MetricOverview | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """What some calls used."""

    calls: int = 0
    prompt: int = 0
    """Tokens."""
    completion: int = 0
    cost_usd: float | None = 0.0
    """None if the price of a call is unknown."""
    seconds: float = 0.0
    retries: int = 0


class CallFigures(NamedTuple):
    """The numbers of an answered call, and where it came from, without its request and its reply."""

    key: bytes
    cell: str | None
    """The cell that paid for it; other cells may use it, too."""
    repeat: int | None
    sample: str | None
    agent: int | None
    purpose: str
    round: int | None
    model: str
    prompt: int
    """Tokens, cached ones included."""
    completion: int
    """Tokens, those of its reasoning included."""
    cached: int
    reasoning: int
    """Tokens of `completion` that the model has spent on reasoning that it does not show, if the provider says so."""
    cost_usd: float | None
    seconds: float


def reasoning_tokens(raw: Mapping[str, Any]) -> int:
    """The tokens spent on hidden reasoning, from a usage as the provider reports it."""
    details = raw.get("completion_tokens_details") or raw.get("output_tokens_details")
    found = details.get("reasoning_tokens") if isinstance(details, Mapping) else None
    return found if isinstance(found, int) and found > 0 else 0


class Recorder(Protocol):
    """Writes the records of a study; used by the driver of a run.

    What is queued is committed in the order of these calls, together with the next awaited write, or at most a
    fraction of a second later. A value that JSON cannot represent raises `ComponentError`, which names the debate; a
    directory that cannot be written to raises `StudyError`.
    """

    def call(self, key: bytes | str) -> Call | None:
        """The call recorded under a key, or None."""

    async def keep_call(self, row: CallRow, call: Call) -> None:
        """Record a call; returns when it is durable."""

    def start_debate(self, id: DebateId, sample: Sample, references: Sequence[str]) -> None:
        """Queue the start of a debate; what an earlier attempt has left is dropped."""

    def keep_agents(self, id: DebateId, agents: Sequence[Agent]) -> None:
        """Queue the agents of a debate that was started."""

    def keep_message(self, id: DebateId, message: Message) -> None:
        """Queue a message of a debate that was started; it replaces an earlier one with the same id."""

    async def finish_debate(self, result: DebateResult) -> None:
        """Record how a debate ended, started or not; returns when it is durable.

        The result takes precedence: messages that are missing on record are added, others are corrected or dropped.
        """

    def fact(self, name: str) -> Any:
        """The value recorded under a name, or None."""

    async def keep_fact(self, name: str, value: Any) -> None:
        """Record a JSON value under a name; returns when it is durable."""

    async def keep_problem(self, text: str) -> None:
        """Record a problem of the study."""

    async def forget_problems(self) -> None:
        """Drop the problems of an earlier run."""

    def done(self) -> Mapping[DebateId, str]:
        """The debates that need not be run again, each with its sample's digest (`sample_digest`)."""

    def digests(self, cell: str, repeat: int) -> Iterator[tuple[str, str]]:
        """The sample's id and digest of each debate of a cell and repeat that need not be run again, streamed."""

    def done_counts(self) -> Mapping[tuple[str, int], int]:
        """How many debates need not be run again, by cell and repeat; without those that have none."""

    def failed(self) -> set[DebateId]:
        """The debates that failed in an earlier run."""

    def result(self, id: DebateId) -> DebateResult | None:
        """A debate that has ended, or None."""

    def results(self, cell: str | None = None) -> Iterator[DebateResult]:
        """The debates of a cell, or all, that have ended, streamed in the order of cell, repeat and sample id."""

    def figures(self, cell: str | None = None) -> Iterator[Mapping[str, Any]]:
        """The numbers of each debate of a cell, or of all, that has ended; see `Reader.figures`."""

    def totals(self) -> Totals:
        """What has been paid for."""

    def close(self) -> None:
        """Commit what is queued, and release the study."""


class Reader(Protocol):
    """Reads the records of a study, also while it runs. Use it in a `with` block, or close it.

    Records that cannot be read raise `UserError`, which names the debate.
    """

    def fact(self, name: str) -> Any:
        """The value recorded under a name, or None: `identity`, `planned`, `scope`, `kept.NAME`, `trained.CELL`."""

    def problems(self) -> list[str]:
        """The problems of the latest run, each once."""

    def totals(self) -> Totals:
        """What has been paid for."""

    def retries(self) -> int:
        """How many attempts failed, over all calls that were answered in the end."""

    def figures(self, cell: str | None = None) -> Iterator[Mapping[str, Any]]:
        """One row per debate of a cell, or of all, that has ended, with its numbers and without its messages.

        Keys: `cell, repeat, sample, error, decided, agreed, rounds, calls, retries, prompt, completion, cached,
        cost_usd, seconds, metrics` (a mapping).
        """

    def debates(self, cell: str | None = None) -> Iterator[DebateResult]:
        """The debates of a cell, or all, streamed in the order of cell, repeat and sample id.

        A debate that is running, or was stopped or killed, has the agents and messages recorded so far, but no decision
        and no error.
        """

    def debate(self, id: DebateId) -> DebateResult | None:
        """One debate, even if it is running, or None."""

    def overview(self, metric: str | None = None) -> list[CellOverview]:
        """The sums of each cell and, if named, a metric, without reading a debate; cells in the order they started."""

    def cells(self) -> list[str]:
        """The cells that have debates, by name."""

    def metric_names(self, *, of_each: int | None = None) -> list[str]:
        """The scores that debates of the study have.

        of_each: look at so many debates of each cell only, which takes no longer the more there are.
        """

    def walk(self, cell: str, order: Order = "sample", *, descending: bool = False,
             after: str | None = None, ending: Ending | None = None) -> Iterator[tuple[str, DebateId]]:
        """The debates of a cell one after the other, each with a cursor; given as `after`, it continues behind it.

        ending: only debates that ended so.
        Reads no more than it gives, a batch ahead. Raises `UserError` for a string that is not a cursor.
        """

    def contrast(self, first: str, second: str, metric: str) -> dict[tuple[float, float], int]:
        """Debates on the same sample and repeat in two cells, by a metric's scores in the first and the second."""

    def spent(self, keys: Iterable[bytes | str]) -> Spent:
        """What the calls with these keys used."""

    def records(self, id: DebateId | None = None) -> Iterator[str]:
        """The debates that have ended, or only this one, as lines of an export, in the order of `debates`."""

    def calls(self, cell: str | None = None, keys: Iterable[bytes | str] | None = None) -> Iterator[Mapping[str, Any]]:
        """The answered calls of a cell, or all, or those with these keys, in the order they were answered.

        Keys of a row: `key` (hexadecimal, as in `Message.calls`), `cell, repeat, sample, agent, purpose, round, nth,
        model, request, text, usage, logprobs, retries, seconds, at` (seconds since 1970).
        """

    def call_figures(self, keys: Iterable[bytes | str] | None = None) -> Iterator[CallFigures]:
        """The numbers of every answered call, in the order they were answered; reads no request and no reply.

        keys: only of the calls with these keys, in the order of the keys.
        """

    def call(self, key: bytes | str) -> Call | None:
        """The call recorded under a key, given as bytes or in hexadecimal digits, or None."""

    def latest(self) -> str:
        """The cursor of what has been recorded so far: given to `since`, it gives what is recorded from now on."""

    def since(self, cursor: str | None = None) -> tuple[Changes, str]:
        """What has been recorded since a cursor that an earlier call returned, and the next cursor.

        Without a cursor, everything. Cheap while nothing is new. Raises `UserError` for a string that is not a cursor.
        """

    def close(self) -> None:
        """Release the study."""

    def __enter__(self) -> Reader: ...

    def __exit__(self, *_: object) -> None: ...


def key_bytes(key: bytes | str) -> bytes:
    """A call's key as bytes."""
    try:
        return bytes.fromhex(key) if isinstance(key, str) else key
    except ValueError:
        return b""  # no call has this key
