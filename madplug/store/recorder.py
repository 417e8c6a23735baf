"""Writing the records of a study, durably per model call.

`study.db` is SQLite in write-ahead mode. The same rows are log, cache and resume state: a call is on disk before the
debate that made it goes on.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typing_extensions import override

from madplug.errors import ComponentError, StudyError
from madplug.records import Agent, DebateId, DebateResult, Message, Sample
from madplug.rows import storable_text
from madplug.store.base import Call, CallRow, reasoning_tokens
from madplug.store.compress import MESSAGE_FROM, RequestWriter, pack_message
from madplug.store.encode import (
    digest,
    encode,
    encode_content,
    encode_end,
    encode_message,
    encode_opening,
    id_of,
)
from madplug.store.layout import create_tables
from madplug.store.lock import StudyLock
from madplug.store.reading import Reader
from madplug.store.writer import Statement, Writer

_LAST_NUMBERS = "SELECT (SELECT coalesce(max(number), 0) FROM debates), (SELECT coalesce(max(number), 0) FROM contents)"
"""The greatest number of a debate and of a call so far."""
_CONTENTS = "INSERT INTO contents VALUES (?, ?, ?, ?, ?, ?)"
_CALL = f"INSERT OR IGNORE INTO calls VALUES (?{',?' * 17})"
_OLD = "DELETE FROM messages WHERE debate = (SELECT number FROM debates WHERE cell = ? AND repeat = ? AND sample = ?)"
_START = "INSERT OR REPLACE INTO debates (number, cell, repeat, sample, digest, opening) VALUES (?, ?, ?, ?, ?, ?)"
_AGENTS = "UPDATE debates SET agents = ? WHERE number = ?"
_MESSAGE = "INSERT OR REPLACE INTO messages VALUES (?, ?, ?, ?)"
_CHANGE = "INSERT INTO changes VALUES (NULL, ?)"
_DROP = "DELETE FROM messages WHERE debate = ? AND id = ?"
_FINISH = ("UPDATE debates SET outcome = ?, error = ?, decided = ?, agreed = ?, rounds = ?, messages = ?,"
           " calls = ?, retries = ?, prompt = ?, completion = ?, cached = ?, cost_usd = ?, seconds = ?, metrics = ?,"
           " agents = ?, record = ? WHERE number = ?")


@dataclass(slots=True)
class _Started:
    """A debate that has started and not ended, as it is on record."""

    id: DebateId
    number: int
    sample: Sample
    references: tuple[str, ...]
    messages: dict[int, Message] = field(default_factory=dict)
    replies: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By key, the number and the reply of each call that was recorded while it ran, if the reply is long."""
    requests: RequestWriter = field(default_factory=RequestWriter)

    @property
    def change(self) -> Statement:
        """The row that makes it appear in `Reader.since`."""
        return _CHANGE, (self.number,)

    def row(self, message: Message) -> Statement:
        """The row of a message."""
        number, text = next((self.replies[key] for key in message.calls if key in self.replies), (None, ""))
        record = pack_message(encode_message(message, self.id), text)
        return _MESSAGE, (self.number, message.id, number, record)


class Recorder(Reader):
    """Writes the records of a study, and reads them. One process writes; any number can read.

    What is queued is committed in the order of these calls, together with the next awaited write, or at most a
    fraction of a second later. A value that JSON cannot represent raises `ComponentError`, which names the debate; a
    directory that cannot be written to raises `StudyError`.
    """

    def __init__(self, folder: Path, db: sqlite3.Connection, writer: Callable[[], Writer],
                 lock: StudyLock | None = None) -> None:
        super().__init__(folder, db, everything=True)
        self._lock = lock
        self._number, self._calls = self._one(_LAST_NUMBERS)
        self._started: dict[DebateId, _Started] = {}
        self._writer = writer()

    async def keep_call(self, row: CallRow, call: Call) -> None:
        """Record a call; returns when it is durable."""
        id = DebateId(row.caller.cell, row.caller.repeat, row.caller.sample)
        started = self._started.get(id)
        text = storable_text(call.completion.text)
        caller, usage, logs = row.caller, call.completion.usage, call.completion.logprobs
        top = call.completion.top_logprobs
        raw = encode(usage.raw, id, ": the usage of a call") if usage.raw else None
        more = encode([logs, top] if top else logs, id, ": log probabilities") if logs or top else None
        self._calls += 1
        number = self._calls
        values = (
            number, row.key, caller.cell, caller.repeat, storable_text(caller.sample), caller.agent,
            storable_text(caller.purpose), caller.round, caller.nth, storable_text(row.model), usage.prompt,
            usage.completion, usage.cached, reasoning_tokens(usage.raw), usage.cost_usd, call.retries, call.seconds,
            time.time())
        requests = RequestWriter() if started is None else started.requests
        base, request = requests.pack(number, row.request)
        contents = (number, base, raw, more, text, request)
        await self._writer.write((_CONTENTS, contents), (_CALL, values))
        if started is not None and 2 * len(text) >= MESSAGE_FROM:
            started.replies[row.key.hex()] = number, text

    def start_debate(self, id: DebateId, sample: Sample, references: Sequence[str]) -> None:
        """Queue the start of a debate; what an earlier attempt has left is dropped."""
        started, statements = self._start(id, sample, tuple(references))
        self._started[id] = started
        self._writer.queue(*statements, started.change)

    def keep_agents(self, id: DebateId, agents: Sequence[Agent]) -> None:
        """Queue the agents of a debate that was started."""
        started = self._get_started(id)
        self._writer.queue((_AGENTS, (encode(agents, id, ": the agents"), started.number)))

    def keep_message(self, id: DebateId, message: Message) -> None:
        """Queue a message of a debate that was started; it replaces an earlier one with the same id."""
        started = self._get_started(id)
        row = started.row(message)
        started.messages[message.id] = message
        self._writer.queue(row, started.change)

    async def finish_debate(self, result: DebateResult) -> None:
        """Record how a debate ended, started or not; returns when it is durable.

        The result takes precedence: messages that are missing on record are added, others are corrected or dropped.
        """
        id = id_of(result)
        if len({m.id for m in result.messages}) != len(result.messages):
            raise ComponentError(f"{id}: two messages have the same id")
        started = self._started.get(id)
        statements: list[Statement] = []
        if started is None or (started.sample, started.references) != (result.sample, result.references):
            started, statements = self._start(id, result.sample, result.references)
        kept = started.messages
        rows = [started.row(m) for m in result.messages if kept.get(m.id) != m]
        gone = [(_DROP, (started.number, i)) for i in kept.keys() - {m.id for m in result.messages}]
        end = (_FINISH, (*_end(result, id), started.number))
        self._started.pop(id, None)
        await self._writer.write(*statements, *gone, *rows, end, started.change)

    async def keep_fact(self, name: str, value: Any) -> None:
        """Record a JSON value under a name; returns when it is durable."""
        text = encode(value, f"'{name}'")
        await self._writer.write(("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, text)))

    def keep_problem(self, text: str) -> None:
        """Queue a problem of the study."""
        self._writer.queue(("INSERT INTO problems VALUES (?, ?)", (time.time(), storable_text(text))))

    async def forget_problems(self) -> None:
        """Drop the problems of an earlier run."""
        await self._writer.write(("DELETE FROM problems", ()))

    def reported(self) -> Reader:
        """A reader of the debates and scores that the study has now; what the run file no longer has is left out."""
        return Reader(self.folder, self._db)

    def done(self) -> Mapping[DebateId, str]:
        """The debates that need not be run again, each with its sample's digest."""
        rows = self.rows("SELECT cell, repeat, sample, digest FROM debates WHERE outcome = 'done'")
        return {DebateId(*row[:3]): row[3] for row in rows}

    def digests(self, cell: str, repeat: int) -> Iterator[tuple[str, str]]:
        """The sample's id and digest of each debate of a cell and repeat that need not be run again, streamed."""
        return self.rows("SELECT sample, digest FROM debates WHERE cell = ? AND repeat = ? AND outcome = 'done'",
                          (cell, repeat))

    def lacks_scores(self, cell: str, digests: Mapping[str, str]) -> bool:
        """Whether a debate of a cell that need not be run again was not scored by one of these metrics.

        digests: of the metrics, by name.
        """
        found = self._one("SELECT 1 FROM debates, json_each(?) AS metric WHERE cell = ? AND outcome = 'done' AND "
                          "json_extract(record, '$.scored_by.\"' || metric.key || '\"') IS NOT metric.value LIMIT 1",
                          (json.dumps(digests), cell))
        return found is not None

    def failed(self) -> set[DebateId]:
        """The debates that failed in an earlier run."""
        rows = self.rows("SELECT cell, repeat, sample FROM debates WHERE outcome = 'failed'")
        return {DebateId(*row) for row in rows}

    @override
    def close(self) -> None:
        """Commit what is queued, and release the study."""
        self._writer.stop()
        super().close()
        if self._lock is not None:
            self._lock.release()

    def _start(self, id: DebateId, sample: Sample,
               references: tuple[str, ...]) -> tuple[_Started, list[Statement]]:
        """A new debate, which replaces any earlier attempt."""
        content = encode_content(sample, references, id)
        self._number += 1
        values = (self._number, *id, digest(content), encode_opening(id, content))
        return _Started(id, self._number, sample, references), [(_OLD, id), (_START, values)]

    def _get_started(self, id: DebateId) -> _Started:
        if id not in self._started:
            raise StudyError(f"{id} was not started")
        return self._started[id]


class MemoryStore(Recorder):
    """A recorder in memory, for tests and for debates in scripts; what it has ends with it."""

    def __init__(self) -> None:
        db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        create_tables(db)
        folder = Path("memory")
        super().__init__(folder, db, lambda: Writer(db, folder))

    def __del__(self) -> None:
        self._db.close()  # Python warns of a database that is not closed, and nobody closes what is in memory


def _end(result: DebateResult, id: DebateId) -> tuple[Any, ...]:
    """The values of `_FINISH`, without the number."""
    decision, tokens = result.decision, result.tokens
    return ("done" if result.error is None else "failed",
            None if result.error is None else storable_text(result.error),
            0 if decision is None or decision.key is None else 1 + bool(result.failures) + 2 * decision.fallback,
            (decision is not None and decision.agreed) + 2 * result.unread,
            result.rounds, len(result.messages), result.calls, result.retries, tokens.prompt, tokens.completion,
            tokens.cached, tokens.cost_usd, float(result.seconds), encode(result.metrics, id, ": the metrics"),
            encode(result.agents, id, ": the agents"), encode_end(result))
