"""A study's directory: the records, durable per model call.

`study.db` is SQLite in write-ahead mode. One writer thread commits whatever queued while its last commit
ran, so batches form by themselves under load, and nobody waits for a timer. The same rows are log, cache and
resume state: a call is on disk before the debate that asked goes on.
"""

from __future__ import annotations

import asyncio
import json
import queue
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from madplug.errors import ComponentError, StudyError, UserError
from madplug.records import Completion, DebateResult, Usage
from madplug.rows import from_row, to_json

VERSION = 1
_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE calls (
  key BLOB PRIMARY KEY, cell TEXT, repeat INTEGER, sample TEXT, agent INTEGER, purpose TEXT, model TEXT,
  request TEXT NOT NULL, text TEXT NOT NULL, usage TEXT NOT NULL, logprobs TEXT, retries INTEGER NOT NULL,
  seconds REAL NOT NULL, at REAL NOT NULL);
CREATE TABLE debates (
  cell TEXT NOT NULL, repeat INTEGER NOT NULL, sample TEXT NOT NULL, error TEXT, decided INTEGER, agreed INTEGER,
  rounds INTEGER, calls INTEGER, retries INTEGER, prompt INTEGER, completion INTEGER, cached INTEGER, cost_usd REAL,
  seconds REAL, metrics TEXT, record TEXT NOT NULL, PRIMARY KEY (cell, repeat, sample));
CREATE TABLE problems (at REAL NOT NULL, text TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that was answered."""

    completion: Completion
    retries: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CallRow:
    """A call to be kept: what was asked, on whose behalf, and the answer."""

    key: bytes
    cell: str
    repeat: int
    sample: str
    agent: int | None
    purpose: str
    model: str
    request: str


@dataclass(slots=True)
class Totals:
    """What a study has paid for so far."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0


class Store(Protocol):
    """Where a study is kept."""

    def call(self, key: bytes) -> Call | None:
        """The call recorded under a key."""

    async def keep_call(self, row: CallRow, call: Call) -> None:
        """Returns when the call is durable."""

    async def keep_debate(self, result: DebateResult) -> None:
        """Returns when the debate is durable; replaces an earlier failure."""

    def done(self) -> set[tuple[str, int, str]]:
        """(cell, repeat, sample) of the debates that need not be held again."""

    def results(self, cell: str | None = None) -> Iterator[DebateResult]:
        """The debates kept so far, streamed."""

    def result(self, cell: str, repeat: int, sample: str) -> DebateResult | None:
        """One debate."""

    def fact(self, name: str) -> Any:
        """A value kept under a name, or None."""

    async def keep_fact(self, name: str, value: Any) -> None:
        """Keep a JSON value under a name."""

    async def keep_problem(self, text: str) -> None:
        """Keep a problem of the study."""

    def totals(self) -> Totals:
        """What has been paid for."""


@dataclass
class MemoryStore:
    """A store that ends with the process, for tests and for debates of one's own."""

    calls: dict[bytes, Call] = field(default_factory=dict)
    debates: dict[tuple[str, int, str], DebateResult] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def call(self, key: bytes) -> Call | None:  # noqa: D102
        return self.calls.get(key)

    async def keep_call(self, row: CallRow, call: Call) -> None:  # noqa: D102
        self.calls[row.key] = call

    async def keep_debate(self, result: DebateResult) -> None:  # noqa: D102
        self.debates[result.cell, result.repeat, result.sample.id] = result

    def done(self) -> set[tuple[str, int, str]]:  # noqa: D102
        return {k for k, r in self.debates.items() if r.error is None}

    def results(self, cell: str | None = None) -> Iterator[DebateResult]:  # noqa: D102
        return (r for r in list(self.debates.values()) if cell in (None, r.cell))

    def result(self, cell: str, repeat: int, sample: str) -> DebateResult | None:  # noqa: D102
        return self.debates.get((cell, repeat, sample))

    def fact(self, name: str) -> Any:  # noqa: D102
        return self.facts.get(name)

    async def keep_fact(self, name: str, value: Any) -> None:  # noqa: D102
        self.facts[name] = value

    async def keep_problem(self, text: str) -> None:  # noqa: D102
        self.problems.append(text)

    def totals(self) -> Totals:  # noqa: D102
        return add_up(call.completion.usage for call in self.calls.values())


def add_up(usages: Iterable[Usage]) -> Totals:
    """What these calls cost together."""
    totals = Totals()
    for usage in usages:
        totals.calls += 1
        totals.tokens += usage.prompt + usage.completion
        totals.cost_usd += usage.cost_usd or 0.0
    return totals


class StudyStore:
    """The store in a directory. One process writes; any number may read."""

    def __init__(self, folder: Path, *, write: bool = False) -> None:
        self.folder = folder
        self._lock: sqlite3.Connection | None = None
        self._writer: _Writer | None = None
        path = folder / "study.db"
        if not write and not path.is_file():
            raise UserError(f"{folder}: no study here (there is no study.db)")
        try:
            if write:
                folder.mkdir(parents=True, exist_ok=True)
                self._lock = _lock(folder)
            self._db = _open(path, write)
        except (OSError, sqlite3.Error) as error:
            self._release()
            raise UserError(f"{folder}: cannot be used: {error}; choose another directory with --output") from None
        except UserError:
            self._release()
            raise
        if write:
            self._writer = _Writer(path)
        self._keys = {row[0] for row in self._db.execute("SELECT key FROM calls")} if write else set()

    def call(self, key: bytes) -> Call | None:  # noqa: D102
        if key not in self._keys:  # most calls of a new study: not worth a query
            return None
        row = self._one("SELECT text, usage, logprobs, retries, seconds FROM calls WHERE key = ?", (key,))
        if row is None:
            return None
        logprobs = tuple(json.loads(row[2])) if row[2] else None
        return Call(Completion(row[0], Usage(**json.loads(row[1])), logprobs), row[3], row[4])

    async def keep_call(self, row: CallRow, call: Call) -> None:  # noqa: D102
        done = call.completion
        await self._write("INSERT OR IGNORE INTO calls VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)", (
            row.key, row.cell, row.repeat, row.sample, row.agent, row.purpose, row.model, row.request, done.text,
            to_json(done.usage), to_json(done.logprobs) if done.logprobs else None, call.retries,
            call.seconds, time.time()))
        self._keys.add(row.key)

    async def keep_debate(self, result: DebateResult) -> None:  # noqa: D102
        decision, tokens = result.decision, result.tokens
        await self._write("INSERT OR REPLACE INTO debates VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", (
            result.cell, result.repeat, result.sample.id, result.error,
            decision is not None and decision.key is not None, decision is not None and decision.agreed,
            result.rounds, result.calls, result.retries, tokens.prompt, tokens.completion, tokens.cached,
            tokens.cost_usd, result.seconds, to_json(result.metrics), to_json(result)))

    def done(self) -> set[tuple[str, int, str]]:  # noqa: D102
        return set(self._db.execute("SELECT cell, repeat, sample FROM debates WHERE error IS NULL"))

    def results(self, cell: str | None = None) -> Iterator[DebateResult]:  # noqa: D102
        rows = self._db.execute("SELECT record FROM debates WHERE ? IS NULL OR cell = ? ORDER BY rowid", (cell, cell))
        return (from_row(json.loads(row[0])) for row in rows)

    def records(self) -> Iterator[str]:
        """The debates as they were stored, one line of JSON each, in the order of cell, repeat and sample."""
        rows = self._db.execute("SELECT record FROM debates ORDER BY cell, repeat, sample")
        return (row[0] for row in rows)

    def figures(self) -> Iterator[Mapping[str, Any]]:
        """One row per debate with its numbers and without its record."""
        cursor = self._db.execute(
            "SELECT cell, repeat, sample, error, decided, agreed, rounds, calls, retries, prompt, completion, cached,"
            " cost_usd, seconds, metrics FROM debates ORDER BY cell, repeat, sample")
        names = [column[0] for column in cursor.description]
        return (dict(zip(names, row, strict=True)) for row in cursor)

    def result(self, cell: str, repeat: int, sample: str) -> DebateResult | None:  # noqa: D102
        row = self._one("SELECT record FROM debates WHERE cell = ? AND repeat = ? AND sample = ?",
                        (cell, repeat, sample))
        return from_row(json.loads(row[0])) if row else None

    def recorded(self) -> Iterator[dict[str, Any]]:
        """Every call: model, purpose, agent, request, text and usage, in the order they were answered."""
        for model, purpose, agent, request, text, usage in self._db.execute(
                "SELECT model, purpose, agent, request, text, usage FROM calls ORDER BY at, rowid"):
            yield {"model": model, "purpose": purpose, "agent": agent, "request": json.loads(request), "text": text,
                   "usage": json.loads(usage)}

    def fact(self, name: str) -> Any:  # noqa: D102
        row = self._one("SELECT value FROM facts WHERE name = ?", (name,))
        return json.loads(row[0]) if row else None

    async def keep_fact(self, name: str, value: Any) -> None:  # noqa: D102
        await self._write("INSERT OR REPLACE INTO facts VALUES (?,?)", (name, to_json(value)))

    async def keep_problem(self, text: str) -> None:  # noqa: D102
        await self._write("INSERT INTO problems VALUES (?,?)", (time.time(), text))

    def problems(self) -> list[str]:
        """The problems recorded in the latest run, each once."""
        return [row[0] for row in self._db.execute("SELECT text FROM problems GROUP BY text ORDER BY min(rowid)")]

    async def forget_problems(self) -> None:
        """A new run starts with none."""
        await self._write("DELETE FROM problems", ())

    def totals(self) -> Totals:  # noqa: D102
        row = self._one("SELECT count(*), sum(json_extract(usage, '$.prompt') + json_extract(usage, '$.completion')),"
                        " sum(json_extract(usage, '$.cost_usd')) FROM calls", ())
        return Totals(row[0], row[1] or 0, row[2] or 0.0) if row else Totals()

    def retries(self) -> int:
        """Tries that were not answered, over all calls that were."""
        row = self._one("SELECT sum(retries) FROM calls", ())
        return int(row[0] or 0) if row else 0

    def close(self) -> None:
        """Commit what is queued and let go of the directory."""
        if self._writer:
            self._writer.stop()
        self._db.close()
        self._release()

    def _one(self, sql: str, values: Sequence[Any]) -> Any:
        return self._db.execute(sql, values).fetchone()

    async def _write(self, sql: str, values: Sequence[Any]) -> None:
        if self._writer is None:
            raise StudyError(f"{self.folder}: opened for reading")
        await self._writer.write(sql, values)

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()


def _lock(folder: Path) -> sqlite3.Connection:
    """An exclusive lock on the directory; the system lets go of it however the process ends."""
    lock = sqlite3.connect(folder / "study.lock", timeout=0, isolation_level=None)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        lock.close()
        if "locked" in str(error):
            raise UserError(f"{folder}: another process is running this study; wait for it, or stop it") from None
        raise
    return lock


def _open(path: Path, write: bool) -> sqlite3.Connection:
    if not write:
        # A study that nobody runs has no write-ahead file and may lie on a read-only disk.
        db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    else:
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA journal_mode=WAL")
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        db.close()
        raise UserError(f"{path.parent}: made by a newer madplug (layout {version}, this one knows {VERSION}); "
                        "upgrade madplug to use it")
    if version == 0 and not write:
        db.close()
        raise UserError(f"{path.parent}: no study here yet (study.db is empty)")
    if version == 0 and write:
        db.executescript(f"BEGIN; {_TABLES} PRAGMA user_version={VERSION}; COMMIT;")
    return db


_Row = tuple[str, Sequence[Any], "asyncio.Future[None]"]


class _Writer:
    """Commits what is queued, off the event loop; whoever wrote is woken when it is durable."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._queue: queue.SimpleQueue[list[_Row] | None] = queue.SimpleQueue()
        self._gathered: list[_Row] = []
        self._thread = threading.Thread(target=self._run, name="madplug-store", daemon=True)
        self._thread.start()

    def write(self, sql: str, values: Sequence[Any]) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        if not self._gathered:  # one hand-over for all that this turn of the loop writes
            loop.call_soon(self._hand_over)
        self._gathered.append((sql, values, done))
        return done

    def _hand_over(self) -> None:
        gathered, self._gathered = self._gathered, []
        self._queue.put(gathered)

    def stop(self) -> None:
        if self._gathered:
            self._hand_over()
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        db = sqlite3.connect(self._path, isolation_level=None)
        db.execute("PRAGMA synchronous=FULL")
        going = True
        while going:
            items = [self._queue.get()]
            while not self._queue.empty():
                items.append(self._queue.get())
            going = items[-1] is not None
            batch = [row for rows in items if rows is not None for row in rows]
            if batch:
                self._commit(db, batch)
        db.close()

    def _commit(self, db: sqlite3.Connection, batch: Sequence[Any]) -> None:
        error: Exception | None = None
        try:
            db.execute("BEGIN IMMEDIATE")
            for sql, values, _ in batch:
                db.execute(sql, values)
            db.execute("COMMIT")
        except Exception as problem:  # whatever it is, whoever waits must hear of it
            with suppress(sqlite3.Error):
                db.execute("ROLLBACK")
            if len(batch) > 1:  # a row that cannot be kept must not take the others along
                for row in batch:
                    self._commit(db, [row])
                return
            error = self._explained(problem)
        with suppress(RuntimeError):  # the loop has been closed: nobody waits any more
            batch[0][2].get_loop().call_soon_threadsafe(_wake, [done for _, _, done in batch], error)

    def _explained(self, problem: Exception) -> Exception:
        if isinstance(problem, sqlite3.OperationalError | OSError):
            return StudyError(f"{self._path.parent}: cannot write: {problem}; everything before this is kept: "
                              "make room and run the same command again")
        return ComponentError(f"a component gave something that cannot be kept: {problem}")


def _wake(waiting: Sequence[asyncio.Future[None]], error: BaseException | None) -> None:
    for done in waiting:
        if not done.done():
            done.set_exception(error) if error else done.set_result(None)
