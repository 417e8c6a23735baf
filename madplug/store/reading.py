"""Reading a study's directory."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from madplug.errors import UserError
from madplug.records import Completion, DebateId, DebateResult, Usage
from madplug.rows import from_row, parse_json, to_json
from madplug.store import browsing
from madplug.store.base import (
    Call,
    CallFigures,
    CellOverview,
    Changes,
    Ending,
    Order,
    Progress,
    Spent,
    Totals,
    key_bytes,
    reasoning_tokens,
)
from madplug.store.encode import join
from madplug.store.layout import NAME, open_for_reading
from madplug.store.parts import last_line, lines_of, restore, unfold
from madplug.store.scope import SCOPE, Scope

T = TypeVar("T")
_TEXT_OR_NULL = {str, type(None)}
_COST = {float, type(None)}
_DEBATES = """SELECT cell, repeat, sample, opening, agents, metrics, record, (SELECT group_concat(record) FROM
 (SELECT CASE WHEN seen IS NULL AND reply IS NULL THEN record ELSE restore(record, seen, reply,
 (SELECT text FROM calls WHERE key = reply)) END AS record FROM messages
 WHERE debate = debates.number ORDER BY id)) FROM debates"""
_ORDER = " ORDER BY cell, repeat, sample"
_FIGURES: Mapping[str, tuple[type, ...]] = {
    "cell": (str,), "repeat": (int,), "sample": (str,), "error": (str, type(None)), "decided": (int,),
    "agreed": (int,), "rounds": (int,), "calls": (int,), "retries": (int,), "prompt": (int,), "completion": (int,),
    "cached": (int,), "cost_usd": (float, type(None)), "seconds": (float,), "metrics": (str,)}
_CALL: Mapping[str, tuple[type, ...]] = {
    "key": (bytes,), "cell": (str, type(None)), "repeat": (int, type(None)), "sample": (str, type(None)),
    "agent": (int, type(None)), "purpose": (str,), "round": (int, type(None)), "nth": (int, type(None)),
    "model": (str,), "request": (str,), "text": (str,), "prompt": (int,), "completion": (int,), "cached": (int,),
    "cost_usd": (float, type(None)), "raw": (str, type(None)), "logprobs": (str, type(None)), "retries": (int,),
    "seconds": (float,), "at": (float,), "book": (int, type(None))}
_LATEST = 253_402_300_800.0
"""Seconds since 1970: the end of the year 9999, beyond which times have no date."""
_BOOKS = 256
"""Books that are kept in memory: debates that run at the same time take turns in the order of the calls."""
_CALL_FIGURES = ("raw, key, cell, repeat, sample, agent, purpose, round, model, prompt, completion, cached, cost_usd,"
                 " seconds")
_PAID = """SELECT count(*), coalesce(sum(prompt + completion), 0), coalesce(sum(cost_usd), 0.0),
 coalesce(sum(retries), 0) FROM calls WHERE number > ?"""
_PAID_BEFORE = "SELECT number, calls, tokens, cost_usd, retries FROM paid ORDER BY number DESC LIMIT 1"
_CHANGED = """SELECT cell, repeat, sample, outcome, coalesce(messages, (SELECT count(*) FROM messages WHERE debate =
 debates.number)) FROM debates WHERE number IN (SELECT debate FROM changes WHERE tick > ?) ORDER BY number"""
_PARTS = """SELECT line, text, CASE WHEN reply IS NOT NULL THEN (SELECT text FROM calls WHERE key = reply) END
 FROM parts WHERE book = ? ORDER BY line"""
_TOPS = "SELECT (SELECT max(tick) FROM changes), (SELECT max(number) FROM calls)"


class SqliteReader:
    """The `Reader` of a directory; executes nothing in it and writes nothing.

    everything: also give the debates of cells, repeats and samples that the latest run file no longer has.
    """

    def __init__(self, folder: Path, db: sqlite3.Connection | None = None, *, everything: bool = False) -> None:
        self.folder = folder
        self._everything = everything
        self._db = db or open_for_reading(folder)
        self._db.create_function("restore", 4, restore, deterministic=True)
        self._books: dict[int, list[str]] = {}

    def fact(self, name: str) -> Any:
        """The value recorded under a name, or None."""
        row = self._one("SELECT value FROM facts WHERE name = ?", (name,))
        return None if row is None else self._parsed(lambda: json.loads(row[0]), f"the fact '{name}'")

    def problems(self) -> list[str]:
        """The problems of the latest run, each once."""
        return [str(row[0]) for row in self._rows("SELECT text FROM problems GROUP BY text ORDER BY min(rowid)")]

    def totals(self) -> Totals:
        """What has been paid for."""
        calls, tokens, cost, _ = self._paid()
        return Totals(calls, tokens, cost)

    def retries(self) -> int:
        """How many attempts failed, over all calls that were answered in the end."""
        return self._paid()[3]

    def figures(self, cell: str | None = None) -> Iterator[Mapping[str, Any]]:
        """One row per debate of a cell, or of all, that has ended, with its numbers and without its messages."""
        scope = self.scope
        where, values = _of_cell(cell)
        sql = f"SELECT {', '.join(_FIGURES)} FROM debates{where or ' WHERE TRUE'} AND outcome IS NOT NULL{_ORDER}"
        seen: set[tuple[type, ...]] = set()
        for row in self._rows(sql, values):
            if not (scope.everything or scope.has(*row[:3])):
                continue
            found = dict(zip(_FIGURES, row))  # noqa: B905 - this is done for every debate
            if (kinds := tuple(map(type, row))) not in seen:  # a few combinations in all
                self._check_types(_FIGURES, row, DebateId(*row[:3]))
                seen.add(kinds)
            try:
                scores = _scores(row[-1])
            except (ValueError, TypeError, RecursionError) as error:
                raise self._broken(DebateId(*row[:3]), str(error)) from None
            if not (isfinite(row[-2]) and isfinite(row[-3] or 0.0)):
                raise self._broken(DebateId(*row[:3]), "its seconds or its cost is not finite")
            found["metrics"] = scope.shown(row[0], scores)
            yield found

    def _check_types(self, columns: Mapping[str, tuple[type, ...]], row: Sequence[Any], what: object) -> None:
        for (name, kinds), value in zip(columns.items(), row, strict=True):
            if not isinstance(value, kinds):
                raise self._broken(what, f"'{name}' is not as expected")

    def debates(self, cell: str | None = None) -> Iterator[DebateResult]:
        """The debates of a cell, or all, in the order of cell, repeat and sample id, including running ones."""
        return self._debates(*_of_cell(cell), self.scope)

    def debate(self, id: DebateId) -> DebateResult | None:
        """One debate, even if it is running, or None."""
        return next(self._debates(" WHERE cell = ? AND repeat = ? AND sample = ?", tuple(id), self.scope), None)

    def results(self, cell: str | None = None) -> Iterator[DebateResult]:
        """The debates that have ended, in the order of `debates`."""
        where, values = _of_cell(cell)
        return self._debates(f"{where or ' WHERE TRUE'} AND outcome IS NOT NULL", values, self.scope)

    def result(self, id: DebateId) -> DebateResult | None:
        """A debate that has ended, or None."""
        where = " WHERE cell = ? AND repeat = ? AND sample = ? AND outcome IS NOT NULL"
        return next(self._debates(where, tuple(id), self.scope), None)

    def overview(self, metric: str | None = None) -> list[CellOverview]:
        """The sums of each cell and, if named, a metric, without reading a debate; cells in the order they started."""
        scope = self.scope
        return self._parsed(lambda: browsing.overview(self._rows, metric, scope), "the figures")

    def cells(self) -> list[str]:
        """The cells that have debates, by name."""
        cells = self.scope.cells
        return [name for name in browsing.cell_names(self._rows) if cells is None or name in cells]

    def metric_names(self, *, of_each: int | None = None) -> list[str]:
        """The scores that debates of the study have, or the first ones of each cell."""
        scope = self.scope
        return self._parsed(lambda: browsing.metric_names(self._rows, scope, of_each=of_each), "the metrics")

    def walk(self, cell: str, order: Order = "sample", *, descending: bool = False,
             after: str | None = None, ending: Ending | None = None) -> Iterator[tuple[str, DebateId]]:
        """The debates of a cell one after the other, each with a cursor; given as `after`, it continues behind it."""
        found, scope = browsing.walk(self._rows, cell, order, descending, after, ending), self.scope
        try:
            yield from ((cursor, id) for cursor, id in found if scope.has(*id))
        except TypeError as error:
            raise self._broken(f"the debates of cell '{cell}'", str(error)) from None

    def contrast(self, first: str, second: str, metric: str) -> dict[tuple[float, float], int]:
        """Debates on the same sample and repeat in two cells, by a metric's scores in the first and the second."""
        scope = self.scope
        return self._parsed(lambda: browsing.contrast(self._rows, first, second, metric, scope), "the metrics")

    def spent(self, keys: Iterable[bytes | str]) -> Spent:
        """What the calls with these keys used."""
        return self._parsed(lambda: browsing.spent(self._rows, map(key_bytes, keys)), "the calls")

    def records(self, id: DebateId | None = None) -> Iterator[str]:
        """The debates that have ended, or only this one, as lines of an export, in the order of `debates`."""
        scope = self.scope
        one = "" if id is None else " AND cell = ? AND repeat = ? AND sample = ?"
        for row in self._rows(f"{_DEBATES} WHERE outcome IS NOT NULL{one}{_ORDER}", id or ()):
            if scope.has(*row[:3]):
                line = self._line(row) if not scope.hidden.get(row[0]) else self._line(self._shown(row, scope))
                self._parsed(lambda line=line: parse_json(line), DebateId(*row[:3]))  # type: ignore[misc]
                yield line

    def calls(self, cell: str | None = None, keys: Iterable[bytes | str] | None = None) -> Iterator[Mapping[str, Any]]:
        """The answered calls of a cell, or all, or those with these keys, in the order they were answered."""
        sql, (where, values) = f"SELECT {', '.join(_CALL)} FROM calls", _of_cell(cell)
        if keys is None:
            return map(self._call_row, self._rows(f"{sql}{where} ORDER BY number", values))
        found = (self._one(f"{sql} WHERE key = ?", (key_bytes(key),)) for key in keys)
        return iter(sorted((self._call_row(row) for row in found if row), key=lambda row: row["at"]))

    def call_figures(self, keys: Iterable[bytes | str] | None = None) -> Iterator[CallFigures]:
        """The numbers of every answered call, in the order they were answered, or of those with these keys."""
        sql = f"SELECT {_CALL_FIGURES} FROM calls"
        rows = self._rows(f"{sql} ORDER BY number") if keys is None else chain.from_iterable(
            self._rows(f"{sql} WHERE key = ?", (key_bytes(key),)) for key in keys)
        for row in rows:
            raw, *numbers = row
            if not isinstance(row[1], bytes) or not all(isinstance(n, int) for n in numbers[8:11]):
                raise self._broken(f"the call {row[1]!r:.40}", "its numbers are not as expected")
            cost, seconds = numbers[-2:]
            if not (type(seconds) is float and type(cost) in _COST and isfinite(seconds) and isfinite(cost or 0.0)):
                raise self._broken(f"the call {row[1].hex()}", "its seconds or its cost is not a finite number")
            if not type(numbers[5]) is type(numbers[7]) is str:
                raise self._broken(f"the call {row[1].hex()}", "its purpose and its model are not text")
            reasoned = 0
            if isinstance(raw, str) and "reasoning_tokens" in raw:
                reasoned = self._parsed(lambda raw=raw: reasoning_tokens(json.loads(raw)),  # type: ignore[misc]
                                        f"the call {row[1].hex()}")
            yield CallFigures._make([*numbers[:11], reasoned, *numbers[11:]])

    def call(self, key: bytes | str) -> Call | None:
        """The call recorded under a key, given as bytes or in hexadecimal digits, or None."""
        found = key_bytes(key)
        row = self._one("SELECT text, prompt, completion, cached, cost_usd, raw, logprobs, retries, seconds FROM calls"
                        " WHERE key = ?", (found,))
        return None if row is None else self._parsed(lambda: _call(row), f"the call {found.hex()}")

    def latest(self) -> str:
        """The cursor of what has been recorded so far."""
        top, last = self._one(_TOPS)
        return f"{top or 0}.{last or 0}"

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

    @property
    def scope(self) -> Scope:
        """The debates that are reported."""
        if self._everything:
            return Scope()
        row = self._one("SELECT value FROM facts WHERE name = ?", (SCOPE,))
        return Scope() if row is None else self._parsed(lambda: _scope(row[0]), f"the fact '{SCOPE}'")

    def _paid(self) -> tuple[int, int, float, int]:
        """Calls, tokens, cost (USD) and failed attempts, from the sums on record and the calls since."""
        last, *before = self._one(_PAID_BEFORE) or (0, 0, 0, 0.0, 0)
        since = self._one(_PAID, (last,))
        if not all(map(isinstance, (*before, *since), (int, int, float, int) * 2)):
            raise self._broken("the sums of the calls", "they are not numbers")
        calls, tokens, cost, retries = (a + b for a, b in zip(before, since, strict=True))
        if not isfinite(cost):
            raise self._broken("the sums of the calls", "the cost is not finite")
        return calls, tokens, cost, retries

    def _debates(self, where: str, values: Sequence[Any], scope: Scope | None = None) -> Iterator[DebateResult]:
        for row in self._rows(f"{_DEBATES}{where}{_ORDER}", values):
            if scope is not None and not scope.has(*row[:3]):
                continue
            result = self._parsed(lambda row=row: from_row(json.loads(self._line(row))),  # type: ignore[misc]
                                  DebateId(*row[:3]))
            hidden = scope is not None and scope.hidden.get(row[0])
            yield replace(result, metrics=scope.shown(row[0], result.metrics)) if scope and hidden else result

    def _shown(self, row: Sequence[Any], scope: Scope) -> Sequence[Any]:
        """A row without the scores of metrics that the study no longer has."""
        if row[5] is None:
            return row
        scores = self._parsed(lambda: _metrics(row[5]), DebateId(*row[:3]))
        return [*row[:5], to_json(scope.shown(row[0], scores)), *row[6:]]

    def _line(self, row: Sequence[Any]) -> str:
        cell, repeat, sample, opening, agents, metrics, record, messages = row
        line = join(opening, agents, messages, metrics, record) if type(opening) is str else "\n"
        if "\n" in line or not {type(agents), type(messages), type(metrics), type(record)} <= _TEXT_OR_NULL:
            raise self._broken(DebateId(cell, repeat, sample), "it is not JSON on one line")
        return line

    def _call_row(self, row: Sequence[Any]) -> Mapping[str, Any]:
        found = dict(zip(_CALL, row, strict=True))
        if not isinstance(row[0], bytes):
            raise self._broken("a call", "its key is not as expected")
        found["key"] = row[0].hex()
        what = f"the call {found['key']}"
        self._check_types(_CALL, row, what)
        if not (isfinite(found["seconds"]) and isfinite(found["cost_usd"] or 0.0) and abs(found["at"]) < _LATEST):
            raise self._broken(what, "its times or its cost are out of range")
        found["usage"] = {name: found.pop(name) for name in ("prompt", "completion", "cached", "cost_usd", "raw")}
        book = found.pop("book")
        if book is not None:
            found["request"] = self._parsed(lambda: self._unfolded(book, found["request"]), what)
        for place, name in ((found, "request"), (found, "logprobs"), (found["usage"], "raw")):
            if place[name] is not None:
                place[name] = self._parsed(lambda text=place[name]: json.loads(text), what)  # type: ignore[misc]
        found["usage"]["raw"] = found["usage"]["raw"] or {}
        return found

    def _unfolded(self, book: int, references: str) -> str:
        """A request from the lines it refers to."""
        lines = self._books.get(book, [])
        if len(lines) < last_line(references):  # it was not read yet, or has grown since
            lines = lines_of(self._rows(_PARTS, (book,)))
            self._books.pop(book, None)
            self._books[book] = lines
            if len(self._books) > _BOOKS:
                del self._books[next(iter(self._books))]
        return unfold(references, lines)

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
    if not isinstance(found, dict) or not all(v is None or _is_number(v) for v in found.values()):
        raise ValueError("its metrics are not a table of numbers")
    return found


def _is_number(value: Any) -> bool:
    try:
        return isinstance(value, int | float) and isfinite(value)
    except OverflowError:
        return False


@lru_cache(maxsize=4)
def _scope(text: str) -> Scope:
    """The scope from the text of its fact, which may name thousands of samples."""
    return Scope.from_fact(json.loads(text))


@lru_cache(maxsize=4096)
def _scores(text: str) -> Mapping[str, float | None]:
    """The metrics of a debate, which are the same in many; not to be changed."""
    return MappingProxyType(dict(_metrics(text)))


def _call(row: Sequence[Any]) -> Call:
    text, prompt, completion, cached, cost, raw, logprobs, retries, seconds = row
    whole = all(type(n) is int and n >= 0 for n in (prompt, completion, cached, retries))
    if not (whole and type(text) is str and type(seconds) is float and (cost is None or type(cost) is float)):
        raise ValueError("its text or its numbers are not as expected")
    usage = Usage(prompt, completion, cached, cost, json.loads(raw) if raw else {})
    return Call(Completion(text, usage, tuple(json.loads(logprobs)) if logprobs else None), retries, seconds)
