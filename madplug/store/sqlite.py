"""Writing a study's directory, durably per model call.

`study.db` is SQLite in write-ahead mode. The same rows are log, cache and resume state: a call is on disk before the
debate that made it goes on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from madplug.errors import StudyError, UserError
from madplug.records import Agent, DebateId, DebateResult, Message, Sample
from madplug.rows import storable_text
from madplug.store.base import Call, CallRow, key_bytes
from madplug.store.encode import (
    check_ids,
    clamp_call,
    clamp_result,
    digest,
    encode,
    encode_content,
    encode_end,
    encode_message,
    encode_opening,
    id_of,
)
from madplug.store.layout import ADD_UP_CALLS, LAST_NUMBER, make_folder, open_for_writing
from madplug.store.lock import StudyLock
from madplug.store.parts import FOLD_FROM, REFER_FROM, SEPARATOR, SPELL_OUT, Book, fold_ids
from madplug.store.reading import SqliteReader
from madplug.store.writer import Row, Write, Writer

_CALL = f"INSERT OR IGNORE INTO calls VALUES (NULL{',?' * 21})"
_PAID_EVERY = 4096
"""Calls after which their sums are recorded."""
_FILTER = 1 << 23
"""Places of the filter that tells most of the calls that are not on record: one bit each."""
_MOST_DEBATES = 1 << 62
"""A greater number of a debate was not written by a study."""
_PART = "INSERT INTO parts VALUES (?, ?, ?, ?)"
_OLD = "DELETE FROM messages WHERE debate = (SELECT number FROM debates WHERE cell = ? AND repeat = ? AND sample = ?)"
_START = "INSERT OR REPLACE INTO debates (number, cell, repeat, sample, digest, opening) VALUES (?, ?, ?, ?, ?, ?)"
_AGENTS = "UPDATE debates SET agents = ? WHERE number = ?"
_MESSAGE = "INSERT OR REPLACE INTO messages VALUES (?, ?, ?, ?, ?)"
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
    agents: tuple[Agent, ...] = ()
    agents_text: str = "[]"
    messages: dict[int, Message] = field(default_factory=dict)

    replies: dict[str, str] = field(default_factory=dict)
    """By key, the replies that were recorded while it ran."""
    book: Book = field(default_factory=Book)
    change: tuple[tuple[str, tuple[int]], ...] = ()
    """The row that makes it appear in `Reader.since`."""

    def __post_init__(self) -> None:
        self.change = ((_CHANGE, (self.number,)),)

    def name(self) -> DebateId:
        """Names it in an error."""
        return self.id

    def row(self, message: Message) -> tuple[str, Row]:
        """The row of a message."""
        seen = reply = None
        content = message.content
        if len(content) >= REFER_FROM:
            reply = next((key for key in message.calls if self.replies.get(key) == content), None)
        if reply is not None:
            message = replace(message, content="")
        if len(message.seen) > SPELL_OUT and all(type(id) is int for id in message.seen):
            seen, message = fold_ids(message.seen), replace(message, seen=())
        return _MESSAGE, (self.number, message.id, seen, reply and bytes.fromhex(reply),
                          encode_message(message, self.id))

    def add_reply(self, key: bytes, text: str) -> None:
        """A reply that messages and requests may refer to, because it is on record."""
        if len(text) >= REFER_FROM:
            self.replies[key.hex()] = text
            self.book.expect(key, text)

    def fold(self, request: str) -> tuple[str, list[tuple[str, Row]]]:
        """A request as it is recorded, and the rows of what it adds to the book."""
        references, parts = self.book.fold(request)
        return references, [(_PART, (self.number, *part)) for part in parts]


_ADD_UP = Write(lambda: "the sums of the calls", statements=[(ADD_UP_CALLS, ())])


class SqliteRecorder(SqliteReader):
    """The `Recorder` of a directory, and its `Reader`. One process writes; any number can read."""

    def __init__(self, folder: Path) -> None:
        try:
            make_folder(folder)
            self._lock = StudyLock(folder)
        except OSError as error:
            raise UserError(f"{folder}: cannot be used: {error}; choose another directory with --output") from None
        try:
            super().__init__(folder, open_for_writing(folder), everything=True)
            self._recorded = self._one("SELECT EXISTS (SELECT 1 FROM calls)")[0]
            self._filter = bytearray(0 if self._recorded else _FILTER // 8)
            self._kept = 0
            self._number = self._last_number()
            self._started: dict[DebateId, _Started] = {}
            self._writer = Writer(folder)
        except BaseException:
            self._lock.release()
            raise

    def _last_number(self) -> int:
        number = self._one(LAST_NUMBER)[0]
        if not (isinstance(number, int) and number < _MOST_DEBATES):
            raise self._broken("the debates", "their numbers are not as expected")
        return number

    def call(self, key: bytes | str) -> Call | None:
        """The call recorded under a key."""
        found = key_bytes(key)
        if not self._recorded:  # most calls are new and not worth a query
            place = int.from_bytes(found[:4], "big") % _FILTER
            if not self._filter[place >> 3] >> (place & 7) & 1:
                return None
        return super().call(found)

    async def keep_call(self, row: CallRow, call: Call) -> None:
        """Record a call; returns when it is durable."""
        call = clamp_call(call)
        started = self._started.get(DebateId(row.caller.cell, row.caller.repeat, row.caller.sample))
        book, request = self._fold(started, row)
        text = storable_text(call.completion.text)
        caller, usage, logprobs = row.caller, call.completion.usage, call.completion.logprobs
        values = (
            row.key, caller.cell, caller.repeat, storable_text(caller.sample), caller.agent,
            storable_text(caller.purpose), caller.round, caller.nth, storable_text(row.model), usage.prompt,
            usage.completion, usage.cached, usage.cost_usd, call.retries, call.seconds, time.time(), book,
            encode(usage.raw, _Of(row), ": the usage") if usage.raw else None,
            encode(logprobs, _Of(row), ": the log probabilities") if logprobs else None,
            text, request)
        await self._writer.write(Write(_Of(row).call, [(_CALL, values)]))
        if started is not None:
            started.add_reply(row.key, text)
        if not self._recorded:
            place = int.from_bytes(row.key[:4], "big") % _FILTER
            self._filter[place >> 3] |= 1 << (place & 7)
        self._kept += 1
        if self._kept % _PAID_EVERY == 0:
            self._writer.queue(_ADD_UP)

    def _fold(self, started: _Started | None, row: CallRow) -> tuple[int | None, str]:
        """A request as it is recorded, and the book that it refers to."""
        if started is None or len(row.request) < FOLD_FROM or SEPARATOR in row.request:
            return None, row.request
        request, rows = started.fold(row.request)
        if rows:  # not with the call, which may be refused, while others refer to these lines
            self._writer.queue(Write(started.name, rows))
        return started.number, request

    def start_debate(self, id: DebateId, sample: Sample, references: Sequence[str]) -> None:
        """Queue the start of a debate; what an earlier attempt has left is dropped."""
        started, statements = self._start(id, sample, tuple(references))
        self._started[id] = started
        self._writer.queue(Write(started.name, (), statements, started.change))

    def keep_agents(self, id: DebateId, agents: Sequence[Agent]) -> None:
        """Queue the agents of a debate that was started."""
        started = self._get_started(id)
        text = encode(agents, f"{id}: the agents")
        started.agents, started.agents_text = tuple(agents), text
        self._writer.queue(Write(started.name, statements=[(_AGENTS, (text, started.number))]))

    def keep_message(self, id: DebateId, message: Message) -> None:
        """Queue a message of a debate that was started; it replaces an earlier one with the same id."""
        started = self._get_started(id)
        row = started.row(message)
        started.messages[message.id] = message
        self._writer.queue(Write(started.name, (row,), changes=started.change))

    async def finish_debate(self, result: DebateResult) -> None:
        """Record how a debate ended, started or not; returns when it is durable."""
        check_ids(result)
        result, id = clamp_result(result), id_of(result)
        started = self._started.get(id)
        statements: list[tuple[str, Row]] = []
        if started is None or (started.sample, started.references) != (result.sample, result.references):
            started, statements = self._start(id, result.sample, result.references)
        kept = started.messages
        rows = [started.row(m) for m in result.messages if kept.get(m.id) is not m and kept.get(m.id) != m]
        gone = [(_DROP, (started.number, i)) for i in kept.keys() - {m.id for m in result.messages}]
        end = (_FINISH, (*self._end(started, result, id), started.number))
        self._started.pop(id, None)
        await self._writer.write(Write(started.name, rows, [*statements, *gone, end], started.change))

    async def keep_fact(self, name: str, value: Any) -> None:
        """Record a JSON value under a name; returns when it is durable."""
        text = encode(value, f"'{name}'")
        await self._writer.write(Write(lambda: f"'{name}'", statements=[
            ("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, text))]))

    async def keep_problem(self, text: str) -> None:
        """Record a problem of the study."""
        row = (time.time(), storable_text(text))
        await self._writer.write(Write(lambda: "a problem", statements=[("INSERT INTO problems VALUES (?, ?)", row)]))

    async def forget_problems(self) -> None:
        """Drop the problems of an earlier run."""
        await self._writer.write(Write(lambda: "the problems", statements=[("DELETE FROM problems", ())]))

    def done(self) -> Mapping[DebateId, str]:
        """The debates that need not be run again, each with its sample's digest."""
        rows = self._rows("SELECT cell, repeat, sample, digest FROM debates WHERE outcome = 'done'")
        return {DebateId(*row[:3]): row[3] for row in rows}

    def digests(self, cell: str, repeat: int) -> Iterator[tuple[str, str]]:
        """The sample's id and digest of each debate of a cell and repeat that need not be run again, streamed."""
        return self._rows("SELECT sample, digest FROM debates WHERE cell = ? AND repeat = ? AND outcome = 'done'",
                          (cell, repeat))

    def done_counts(self) -> Mapping[tuple[str, int], int]:
        """How many debates need not be run again, by cell and repeat."""
        rows = self._rows("SELECT cell, repeat, count(*) FROM debates WHERE outcome = 'done' GROUP BY cell, repeat")
        found = {(cell, repeat): number for cell, repeat, number in rows}
        for cell, repeat in found:
            if not (type(cell) is str and type(repeat) is int):
                raise self._broken(f"the debates of cell {cell!r:.80}, repeat {repeat!r:.80}",
                                   "that is not the name of a cell and a whole number")
        return found

    def failed(self) -> set[DebateId]:
        """The debates that failed in an earlier run."""
        rows = self._rows("SELECT cell, repeat, sample FROM debates WHERE outcome = 'failed'")
        return {DebateId(*row) for row in rows}

    def close(self) -> None:
        """Commit what is queued, and release the directory."""
        if self._kept:
            with suppress(StudyError):  # the sums are only a shortcut
                self._writer.queue(_ADD_UP)
        self._writer.stop()
        super().close()
        self._lock.release()

    def _start(self, id: DebateId, sample: Sample,
               references: tuple[str, ...]) -> tuple[_Started, list[tuple[str, Row]]]:
        """A new debate, which replaces any earlier attempt."""
        content = encode_content(sample, references, id)
        self._number += 1
        values = (self._number, *id, digest(content), encode_opening(id, content))
        return _Started(id, self._number, sample, references), [(_OLD, id), (_START, values)]

    def _end(self, started: _Started, result: DebateResult, id: DebateId) -> tuple[Any, ...]:
        """The values of `_FINISH`."""
        agents = started.agents_text
        if result.agents != started.agents:
            agents = encode(result.agents, f"{id}: the agents")
        decision, tokens = result.decision, result.tokens
        return ("done" if result.error is None else "failed",
                None if result.error is None else storable_text(result.error),
                decision is not None and decision.key is not None, decision is not None and decision.agreed,
                result.rounds, len(result.messages), result.calls, result.retries, tokens.prompt, tokens.completion,
                tokens.cached, tokens.cost_usd, float(result.seconds), encode(result.metrics, f"{id}: the metrics"),
                agents, encode_end(result))

    def _get_started(self, id: DebateId) -> _Started:
        if id not in self._started:
            raise StudyError(f"{id} was not started")
        return self._started[id]


class _Of(NamedTuple):
    """Names a call in an error."""

    row: CallRow

    def __str__(self) -> str:
        caller = self.row.caller
        return str(DebateId(caller.cell, caller.repeat, caller.sample))

    def call(self) -> str:
        """Names the call itself."""
        return f"a call with the purpose '{self.row.caller.purpose}' of {self}"
