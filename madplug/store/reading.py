"""Reading a study's directory."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import isfinite
from pathlib import Path
from sys import float_info
from typing import Any, TypeVar, get_type_hints

from madplug.context import Spending
from madplug.errors import UserError
from madplug.records import Completion, DebateId, DebateResult, Usage
from madplug.rows import from_row, parse_json, to_json
from madplug.store.base import (
    EDITED,
    ESTIMATED,
    Call,
    CallFigures,
    CellOverview,
    Changes,
    DebateProgress,
    Totals,
    key_bytes,
)
from madplug.store.compress import RequestReader, unpack_message
from madplug.store.encode import join
from madplug.store.layout import NAME
from madplug.store.scope import SCOPE, Scope

T = TypeVar("T")
_ORDER = " ORDER BY cell, repeat, sample"
_ONE = " AND cell = ? AND repeat = ? AND sample = ?"
_ENDED = " AND outcome IS NOT NULL"
_LATEST = 253_402_300_800.0
"""Seconds since 1970: the end of the year 9999, beyond which times have no date."""
# The columns that each method reads, with the types that a study writes: the directory may be damaged, or untrusted.
_DEBATE: Mapping[str, Any] = {
    "cell": str, "repeat": int, "sample": str, "number": int, "opening": str, "agents": str | None,
    "metrics": str | None, "record": str | None}
_FIGURES: Mapping[str, Any] = {
    "cell": str, "repeat": int, "sample": str, "error": str | None, "decided": int, "agreed": int, "rounds": int,
    "calls": int, "retries": int, "prompt": int, "completion": int, "cached": int, "cost_usd": float | None,
    "seconds": float, "metrics": str}
_OVERVIEW, _CALL_FIGURES, _PAID_TYPES = map(get_type_hints, (CellOverview, CallFigures, Totals))
_CALLER: Mapping[str, Any] = {
    "cell": str | None, "repeat": int | None, "sample": str | None, "agent": int | None, "purpose": str,
    "round": int | None, "model": str, "nth": int | None}
_USED: Mapping[str, Any] = {"prompt": int, "completion": int, "cached": int, "cost_usd": float | None}
_CALL: Mapping[str, Any] = {
    "key": bytes, **_CALLER, **_USED, "text": str, "raw": str | None, "logprobs": str | None, "retries": int,
    "seconds": float, "at": float, "number": int}
_CALLS = f"SELECT {', '.join(_CALL)} FROM calls NATURAL LEFT JOIN contents"
_SUMS = """SELECT cell, coalesce(sum(outcome = 'done'), 0), coalesce(sum(outcome = 'failed'), 0),
 sum(outcome IS NULL), coalesce(sum(outcome = 'done' AND NOT decided), 0),
 coalesce(sum(outcome = 'done' AND decided IN (2, 4)), 0), coalesce(sum(outcome = 'done' AND decided > 2), 0),
 coalesce(sum(outcome = 'done' AND agreed > 1), 0), coalesce(sum(calls), 0), coalesce(sum(retries), 0),
 coalesce(sum(prompt), 0), coalesce(sum(completion), 0), coalesce(sum(cached), 0),
 CASE WHEN sum(outcome IS NOT NULL AND cost_usd IS NULL) THEN NULL ELSE coalesce(sum(cost_usd), 0.0) END,
 coalesce(sum(seconds), 0.0), max(repeat) + 1 FROM debates WHERE {} GROUP BY cell ORDER BY min(number)"""
_PAID = """SELECT count(*), coalesce(sum(prompt + completion), 0), coalesce(sum(cost_usd), 0.0),
 coalesce(sum(retries), 0), count(*) - count(cost_usd) FROM calls"""
_MESSAGES = """SELECT messages.record, contents.text FROM messages LEFT JOIN contents ON contents.number = reply
 WHERE debate = ? ORDER BY id"""
_CHANGED = """SELECT cell, repeat, sample, outcome, coalesce(messages, (SELECT count(*) FROM messages WHERE debate =
 debates.number)) FROM debates WHERE number IN (SELECT debate FROM changes WHERE tick > ?) ORDER BY number"""
_TOPS = "SELECT coalesce((SELECT max(tick) FROM changes), 0), coalesce((SELECT max(number) FROM calls), 0)"


class Reader:
    """Reads the records of a study, also while it runs. Use it in a `with` block, or close it.

    It executes nothing in the study's directory and writes nothing. Records that cannot be read raise `UserError`,
    which names the debate. everything: also give the debates of cells, repeats and samples that the latest run file no
    longer has.
    """

    def __init__(self, folder: Path, db: sqlite3.Connection, *, everything: bool = False) -> None:
        self.folder = folder
        self._everything = everything
        self._db = db
        self._requests = RequestReader(
            lambda number: self._one("SELECT base, request FROM contents WHERE number = ?", (number,)))

    def fact(self, name: str) -> Any:
        """The value recorded under a name, or None: `identity`, `planned`, `scope`, `kept.NAME`, `trained.CELL`."""
        row = self._one("SELECT value FROM facts WHERE name = ?", (name,))
        return None if row is None else self._parsed(lambda: json.loads(row[0]), f"the fact '{name}'")

    def estimated(self) -> list[str]:
        """The models whose tokens are estimated from the texts, since their endpoints report none."""
        return self._texts(ESTIMATED)

    def edited(self) -> list[str]:
        """Which plugins had another version or other code when later debates were run, a sentence each."""
        return self._texts(EDITED)

    def _texts(self, name: str) -> list[str]:
        found = self.fact(name)
        return [text for text in found if isinstance(text, str)] if isinstance(found, list) else []

    def count_facts(self, prefix: str) -> int:
        """How many facts have a name that begins like this."""
        return int(self._one("SELECT count(*) FROM facts WHERE substr(name, 1, ?) = ?", (len(prefix), prefix))[0])

    def problems(self) -> list[str]:
        """The problems of the latest run, each once."""
        return [str(row[0]) for row in self.rows("SELECT text FROM problems GROUP BY text ORDER BY min(rowid)")]

    def totals(self) -> Totals:
        """What has been paid for."""
        return Totals(**self._checked(_PAID_TYPES, self._one(_PAID), "the sums of the calls"))

    def figures(self, cell: str | None = None) -> Iterator[Mapping[str, Any]]:
        """One row per debate of a cell, or of all, that has ended, with its numbers and without its messages.

        Keys: `cell, repeat, sample, error, decided, agreed, rounds, calls, retries, prompt, completion, cached,
        cost_usd, seconds, metrics` (a mapping). `decided` is 0 without an answer, else 1, and 1 more if an agent had
        failed before the decision, and 2 more if a fallback chose it; `agreed` is 2 more if a final answer, a vote,
        or a reply in a given form could not be read.
        """
        scope = self.scope
        where, values = _of_cell(cell)
        for row in self.rows(f"SELECT {', '.join(_FIGURES)} FROM debates{where}{_ENDED}{_ORDER}", values):
            if scope.has(*row[:3]):
                what = DebateId(*row[:3])
                found = self._checked(_FIGURES, row, what)
                found["metrics"] = scope.shown(row[0], self._parsed(lambda row=row: _metrics(row[-1]), what))  # type: ignore[misc]
                yield found

    def debates(self, cell: str | None = None) -> Iterator[DebateResult]:
        """The debates of a cell, or all, streamed in the order of cell, repeat and sample id.

        A debate that is running, or was stopped or killed, has the agents and messages recorded so far, but no decision
        and no error.
        """
        return map(self._debate, self._lines(*_of_cell(cell)))

    def debate(self, id: DebateId) -> DebateResult | None:
        """One debate, even if it is running, or None."""
        return next(map(self._debate, self._lines(f" WHERE TRUE{_ONE}", id)), None)

    def results(self, cell: str | None = None) -> Iterator[DebateResult]:
        """The debates that have ended, in the order of `debates`."""
        where, values = _of_cell(cell)
        return map(self._debate, self._lines(f"{where}{_ENDED}", values))

    def result(self, id: DebateId) -> DebateResult | None:
        """A debate that has ended, or None."""
        return next(map(self._debate, self._lines(f" WHERE TRUE{_ONE}{_ENDED}", id)), None)

    def records(self, id: DebateId | None = None) -> Iterator[str]:
        """The debates that have ended, or only this one, as lines of an export, in the order of `debates`."""
        for one, line in self._lines(f" WHERE TRUE{_ENDED}{_ONE if id else ''}", id or ()):
            self._parsed(lambda line=line: parse_json(line), one)  # type: ignore[misc]
            yield line

    def overview(self) -> list[CellOverview]:
        """The sums of each cell, without reading a debate; cells in the order of the run file."""
        where, values = self.scope.condition()
        found = {row[0]: row for row in self.rows(_SUMS.format(where), values)}
        return [CellOverview(**self._checked(_OVERVIEW, found[cell], "the figures")) for cell in self._in_order(found)]

    def cells(self) -> list[str]:
        """The cells that have debates, in the order of the run file."""
        where, values = self.scope.condition()
        return self._in_order(str(row[0]) for row in self.rows(
            f"SELECT DISTINCT cell FROM debates WHERE {where} ORDER BY cell", values))

    def _in_order(self, cells: Iterable[str]) -> list[str]:
        """Cells as the run file has them, then those that it no longer has."""
        named = self.fact("settings")
        place = {cell: i for i, cell in enumerate(named if isinstance(named, Mapping) else ())}
        return sorted(cells, key=lambda cell: place.get(cell, len(place)))

    def ids(self, cell: str | None = None) -> Iterator[DebateId]:
        """The debates of a cell, or all, in the order of `debates`, without reading them."""
        scope, (where, values) = self.scope, _of_cell(cell)
        for row in self.rows(f"SELECT cell, repeat, sample FROM debates{where}{_ORDER}", values):
            if scope.has(*row):
                self._checked({"cell": str, "repeat": int, "sample": str}, row, DebateId(*row))
                yield DebateId(*row)

    def spent(self, keys: Iterable[bytes | str]) -> Spending:
        """What the calls with these keys used."""
        spent = Spending()
        for call in self.call_figures(keys):
            spent.add(Usage(call.prompt, call.completion, call.cached, call.cost_usd), call.retries)
            spent.seconds += call.seconds
        return spent

    def calls(self, cell: str | None = None, keys: Iterable[bytes | str] | None = None) -> Iterator[Mapping[str, Any]]:
        """The answered calls of a cell, or all, or those with these keys, in the order they were answered.

        Keys of a row: `key` (hexadecimal, as in `Message.calls`), `cell, repeat, sample, agent, purpose, round, nth,
        model, request, text, usage, logprobs, retries, seconds, at` (seconds since 1970).
        """
        if keys is not None:
            return map(self._call_row, sorted(self._with_keys(_CALLS, keys), key=lambda row: row[-1]))
        where, values = _of_cell(cell)
        return map(self._call_row, self.rows(f"{_CALLS}{where} ORDER BY number", values))

    def call_figures(self, keys: Iterable[bytes | str] | None = None) -> Iterator[CallFigures]:
        """The numbers of every answered call, in the order they were answered; reads no request and no reply.

        keys: only of the calls with these keys, in the order of the keys.
        """
        sql = f"SELECT {', '.join(_CALL_FIGURES)} FROM calls"
        rows = self.rows(f"{sql} ORDER BY number") if keys is None else self._with_keys(sql, keys)
        return (CallFigures(**self._checked(_CALL_FIGURES, row, _call_name(row[0]))) for row in rows)

    def call(self, key: bytes | str) -> Call | None:
        """The call recorded under a key, given as bytes or in hexadecimal digits, or None."""
        row = next(self._with_keys(_CALLS, [key]), None)
        return None if row is None else self._call(row)[1]

    def latest(self) -> str:
        """The cursor of what has been recorded so far: given to `since`, it gives what is recorded from now on."""
        return ".".join(map(str, self._one(_TOPS)))

    def since(self, cursor: str | None = None) -> tuple[Changes, str]:
        """What has been recorded since a cursor that an earlier call returned, and the next cursor.

        Without a cursor, everything. Cheap while nothing is new. Raises `UserError` for a string that is not a cursor.
        """
        try:
            tick, last = map(int, cursor.split(".")) if cursor else (0, 0)
        except ValueError:
            raise UserError(f"{cursor!r:.40} is not a cursor of a study") from None
        now = self._one(_TOPS)  # what is recorded while the rows are read may come twice, and never too late
        if now[0] < tick or now[1] < last:  # the cursor is of a study that was here before
            tick = last = 0
        rows = self.rows(_CHANGED, (tick,)) if now[0] > tick else ()
        calls = self._one("SELECT count(*) FROM calls WHERE number > ? AND number <= ?", (last, now[1]))[0]
        return (Changes({DebateId(*row[:3]): DebateProgress(row[3] or "running", row[4]) for row in rows}, calls),
                ".".join(map(str, now)))

    def rows(self, sql: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a query over the tables of `study.db`, for what no other method gives.

        The tables are those of one version of madplug. `scope.condition()` selects the debates that are reported.
        """
        try:
            for row in self._db.execute(sql, values):  # noqa: UP028 (which would close the cursor of a closed database)
                yield row
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            raise UserError(f"{self.folder}: {NAME} cannot be read: {error}") from None

    def close(self) -> None:
        """Release the study."""
        self._db.close()

    def __enter__(self) -> Reader:
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

    def _lines(self, where: str, values: Sequence[Any]) -> Iterator[tuple[DebateId, str]]:
        """Debates, each as one line of JSON."""
        scope = self.scope
        for row in self.rows(f"SELECT {', '.join(_DEBATE)} FROM debates{where}{_ORDER}", values):
            if not scope.has(*row[:3]):
                continue
            id = DebateId(*row[:3])
            found = self._checked(_DEBATE, row, id)
            scores = self._parsed(lambda found=found: _metrics(found["metrics"] or "{}"), id)  # type: ignore[misc]
            messages = self._parsed(lambda found=found: ",".join(  # type: ignore[misc]
                unpack_message(*message) for message in self.rows(_MESSAGES, (found["number"],))), id)
            metrics = to_json(scope.shown(id.cell, scores))
            line = join(found["opening"], found["agents"], messages, metrics, found["record"])
            if "\n" in line:
                raise self._broken(id, "it is not JSON on one line")
            yield id, line

    def _debate(self, found: tuple[DebateId, str]) -> DebateResult:
        id, line = found
        return self._parsed(lambda: from_row(parse_json(line)), id)

    def _with_keys(self, sql: str, keys: Iterable[bytes | str]) -> Iterator[tuple[Any, ...]]:
        """The rows of calls, in the order of their keys; without those that are not on record."""
        for key in keys:
            yield from self.rows(f"{sql} WHERE key = ?", (key_bytes(key),))

    def _call(self, row: Sequence[Any]) -> tuple[dict[str, Any], Call]:
        """The columns of `_CALLS`, and the call that they are."""
        found = self._checked(_CALL, row, what := _call_name(row[0]))
        if abs(found["at"]) > _LATEST:
            raise self._broken(what, "its time is out of range")
        return found, self._parsed(lambda: _call(found), what)

    def _call_row(self, row: Sequence[Any]) -> Mapping[str, Any]:
        found, call = self._call(row)
        done, number = call.completion, found["number"]
        request = self._parsed(lambda: parse_json(self._requests.read(number).decode()), _call_name(row[0]))
        usage = {**{name: found[name] for name in _USED}, "raw": dict(done.usage.raw)}
        return {"key": row[0].hex(), **{name: found[name] for name in _CALLER}, "request": request, "text": done.text,
                "usage": usage, "logprobs": None if done.logprobs is None else list(done.logprobs),
                "retries": call.retries, "seconds": call.seconds, "at": found["at"]}

    def _checked(self, columns: Mapping[str, Any], row: Sequence[Any], what: object) -> dict[str, Any]:
        """A row by column. Raises `UserError` for a value that no study has."""
        found = dict(zip(columns, row, strict=True))
        for name, kind in columns.items():
            value = found[name]
            if not isinstance(value, kind) or (type(value) is float and not isfinite(value)):
                raise self._broken(what, f"'{name}' is not as expected")
        return found

    def _one(self, sql: str, values: Sequence[Any] = ()) -> Any:
        return next(self.rows(sql, values), None)

    def _parsed(self, read: Callable[[], T], what: object) -> T:
        try:
            return read()
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise self._broken(what, str(error) or type(error).__name__) from None

    def _broken(self, what: object, why: str) -> UserError:
        return UserError(f"{self.folder}: {NAME}: the record of {what} cannot be read: {why}")


def _of_cell(cell: str | None) -> tuple[str, tuple[str, ...]]:
    return (" WHERE TRUE", ()) if cell is None else (" WHERE cell = ?", (cell,))


def _call_name(key: object) -> str:
    return f"the call {key.hex()}" if isinstance(key, bytes) else f"the call {key!r:.40}"


def _metrics(text: str) -> Mapping[str, float | None]:
    found = json.loads(text)
    if not isinstance(found, dict) or not all(
            v is None or (isinstance(v, int | float) and abs(v) < float_info.max) for v in found.values()):
        raise ValueError("its metrics are not a table of numbers")
    return found


@lru_cache(maxsize=4)
def _scope(text: str) -> Scope:
    """The scope from the text of its fact, which may name thousands of samples."""
    return Scope.from_fact(json.loads(text))


def _call(found: Mapping[str, Any]) -> Call:
    raw, logs = (parse_json(found[name]) if found[name] else None for name in ("raw", "logprobs"))
    usage = Usage(**{name: found[name] for name in _USED}, raw=dict(raw or {}))
    logprobs, top = logs if logs and not isinstance(logs[0], int | float) else (logs, None)
    completion = Completion(found["text"], usage, *(None if part is None else tuple(part) for part in (logprobs, top)))
    return Call(completion, found["retries"], found["seconds"])
