"""Reading a study's directory."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from madplug.errors import UserError
from madplug.records import Completion, DebateResult, Usage
from madplug.rows import from_row
from madplug.store.base import Call, Changes, DebateId, Progress, Totals, key_bytes
from madplug.store.encode import join
from madplug.store.layout import NAME, open_for_reading

T = TypeVar("T")
_TEXT_OR_NULL = {str, type(None)}
_DEBATES = """SELECT cell, repeat, sample, opening, agents, metrics, record, (SELECT group_concat(record) FROM
 (SELECT record FROM messages WHERE debate = debates.number ORDER BY id)) FROM debates"""
_ORDER = " ORDER BY cell, repeat, sample"
_FIGURES: Mapping[str, tuple[type, ...]] = {
    "cell": (str,), "repeat": (int,), "sample": (str,), "error": (str, type(None)), "decided": (int,),
    "agreed": (int,), "rounds": (int,), "calls": (int,), "retries": (int,), "prompt": (int,), "completion": (int,),
    "cached": (int,), "cost_usd": (float, type(None)), "seconds": (float,), "metrics": (str,)}
_CALL = ("key", "cell", "repeat", "sample", "agent", "purpose", "round", "nth", "model", "request", "text", "prompt",
         "completion", "cached", "cost_usd", "raw", "logprobs", "retries", "seconds", "at")
_CHANGED = """SELECT cell, repeat, sample, outcome, coalesce(messages, (SELECT count(*) FROM messages WHERE debate =
 debates.number)) FROM debates WHERE number IN (SELECT debate FROM changes WHERE tick > ?) ORDER BY number"""
_TOPS = "SELECT (SELECT max(tick) FROM changes), (SELECT max(number) FROM calls)"


class SqliteReader:
    """The `Reader` of a directory; executes nothing in it and writes nothing."""

    def __init__(self, folder: Path, db: sqlite3.Connection | None = None) -> None:
        self.folder = folder
        self._db = db or open_for_reading(folder)

    def fact(self, name: str) -> Any:
        """The value recorded under a name, or None."""
        row = self._one("SELECT value FROM facts WHERE name = ?", (name,))
        return None if row is None else self._parsed(lambda: json.loads(row[0]), f"the fact '{name}'")

    def problems(self) -> list[str]:
        """The problems of the latest run, each once."""
        return [str(row[0]) for row in self._rows("SELECT text FROM problems GROUP BY text ORDER BY min(rowid)")]

    def totals(self) -> Totals:
        """What has been paid for."""
        row = self._one("SELECT count(*), sum(prompt + completion), sum(cost_usd) FROM calls")
        return Totals(row[0], int(row[1] or 0), float(row[2] or 0.0))

    def retries(self) -> int:
        """How many attempts failed, over all calls that were answered in the end."""
        return int(self._one("SELECT sum(retries) FROM calls")[0] or 0)

    def figures(self) -> Iterator[Mapping[str, Any]]:
        """One row per debate that has ended, with its numbers and without its messages."""
        for row in self._rows(f"SELECT {', '.join(_FIGURES)} FROM debates WHERE outcome IS NOT NULL{_ORDER}"):
            found = dict(zip(_FIGURES, row, strict=True))
            what = DebateId(*row[:3])
            for name, kinds in _FIGURES.items():
                if not isinstance(found[name], kinds):
                    raise self._broken(what, f"'{name}' is not as expected")
            found["metrics"] = self._parsed(lambda row=row: _metrics(row[-1]), what)  # type: ignore[misc]
            yield found

    def debates(self, cell: str | None = None) -> Iterator[DebateResult]:
        """The debates of a cell, or all, in the order of cell, repeat and sample id, including running ones."""
        return self._debates(*_of_cell(cell))

    def debate(self, id: DebateId) -> DebateResult | None:
        """One debate, even if it is running, or None."""
        return next(self._debates(" WHERE cell = ? AND repeat = ? AND sample = ?", tuple(id)), None)

    def results(self, cell: str | None = None) -> Iterator[DebateResult]:
        """The debates that have ended, in the order of `debates`."""
        where, values = _of_cell(cell)
        return self._debates(f"{where or ' WHERE TRUE'} AND outcome IS NOT NULL", values)

    def result(self, id: DebateId) -> DebateResult | None:
        """A debate that has ended, or None."""
        where = " WHERE cell = ? AND repeat = ? AND sample = ? AND outcome IS NOT NULL"
        return next(self._debates(where, tuple(id)), None)

    def records(self) -> Iterator[str]:
        """The debates that have ended as lines of an export, in the order of `debates`."""
        for row in self._rows(f"{_DEBATES} WHERE outcome IS NOT NULL{_ORDER}"):
            yield self._line(row)

    def calls(self, cell: str | None = None, keys: Iterable[bytes | str] | None = None) -> Iterator[Mapping[str, Any]]:
        """The answered calls of a cell, or all, or those with these keys, in the order they were answered."""
        sql, (where, values) = f"SELECT {', '.join(_CALL)} FROM calls", _of_cell(cell)
        if keys is None:
            return map(self._call_row, self._rows(f"{sql}{where} ORDER BY number", values))
        found = (self._one(f"{sql} WHERE key = ?", (key_bytes(key),)) for key in keys)
        return iter(sorted((self._call_row(row) for row in found if row), key=lambda row: row["at"]))

    def call(self, key: bytes | str) -> Call | None:
        """The call recorded under a key, given as bytes or in hexadecimal digits, or None."""
        found = key_bytes(key)
        row = self._one("SELECT text, prompt, completion, cached, cost_usd, raw, logprobs, retries, seconds FROM calls"
                        " WHERE key = ?", (found,))
        return None if row is None else self._parsed(lambda: _call(row), f"the call {found.hex()}")

    def since(self, cursor: str | None = None) -> tuple[Changes, str]:
        """What has been recorded since a cursor that an earlier call returned, and the next cursor."""
        tick, calls = self._cursor(cursor)
        with self._snapshot():
            top, last = (found or 0 for found in self._one(_TOPS))
            if top < tick or last < calls:  # the cursor is of a study that was here before
                tick = calls = 0
            rows = list(self._rows(_CHANGED, (tick,))) if top > tick else []
        debates = {DebateId(*row[:3]): Progress(row[3] or "running", row[4]) for row in rows}
        return Changes(debates, last - calls), f"{top}.{last}"

    def close(self) -> None:
        """Release the study."""
        self._db.close()

    def __enter__(self) -> SqliteReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _debates(self, where: str, values: Sequence[Any]) -> Iterator[DebateResult]:
        for row in self._rows(f"{_DEBATES}{where}{_ORDER}", values):
            yield self._parsed(lambda row=row: from_row(json.loads(self._line(row))),  # type: ignore[misc]
                               DebateId(*row[:3]))

    def _line(self, row: Sequence[Any]) -> str:
        cell, repeat, sample, opening, agents, metrics, record, messages = row
        line = join(opening, agents, messages, metrics, record) if type(opening) is str else "\n"
        if "\n" in line or not {type(agents), type(messages), type(metrics), type(record)} <= _TEXT_OR_NULL:
            raise self._broken(DebateId(cell, repeat, sample), "it is not JSON on one line")
        return line

    def _call_row(self, row: Sequence[Any]) -> Mapping[str, Any]:
        found = dict(zip(_CALL, row, strict=True))
        found["key"] = bytes(row[0]).hex()
        found["usage"] = {name: found.pop(name) for name in ("prompt", "completion", "cached", "cost_usd", "raw")}
        what = f"the call {found['key']}"
        for place, name in ((found, "request"), (found, "logprobs"), (found["usage"], "raw")):
            if place[name] is not None:
                place[name] = self._parsed(lambda text=place[name]: json.loads(text), what)  # type: ignore[misc]
        found["usage"]["raw"] = found["usage"]["raw"] or {}
        return found

    def _cursor(self, cursor: str | None) -> tuple[int, int]:
        try:
            tick, calls = map(int, cursor.split(".")) if cursor else (0, 0)
        except ValueError:
            raise UserError(f"{cursor!r:.40} is not a cursor of a study") from None
        return tick, calls

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """Let several queries see the same state."""
        nested = self._db.in_transaction
        if not nested:
            self._one("BEGIN")
        try:
            yield
        finally:
            if not nested and self._db.in_transaction:  # reading what is damaged may have ended it
                self._one("COMMIT")

    def _one(self, sql: str, values: Any = ()) -> Any:
        return next(self._rows(sql, values), None)

    def _rows(self, sql: str, values: Any = ()) -> Iterator[Any]:
        try:
            for row in self._db.execute(sql, values):  # noqa: UP028 (which would close the cursor of a closed database)
                yield row
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            raise UserError(f"{self.folder}: {NAME} cannot be read: {error}") from None

    def _parsed(self, read: Callable[[], T], what: object) -> T:
        try:
            return read()
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise self._broken(what, str(error) or type(error).__name__) from None

    def _broken(self, what: object, why: str) -> UserError:
        return UserError(f"{self.folder}: {NAME}: the record of {what} cannot be read: {why}")


def _of_cell(cell: str | None) -> tuple[str, tuple[str, ...]]:
    return ("", ()) if cell is None else (" WHERE cell = ?", (cell,))


def _metrics(text: str) -> Mapping[str, float | None]:
    found = json.loads(text)
    if not isinstance(found, dict) or not all(isinstance(v, int | float | None) for v in found.values()):
        raise ValueError("its metrics are not a table of numbers")
    return found


def _call(row: Sequence[Any]) -> Call:
    text, prompt, completion, cached, cost, raw, logprobs, retries, seconds = row
    usage = Usage(prompt, completion, cached, cost, json.loads(raw) if raw else {})
    return Call(Completion(text, usage, tuple(json.loads(logprobs)) if logprobs else None), retries, seconds)
