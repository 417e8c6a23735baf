"""Debates to JSON and back: the rows of `madplug export` and of the store."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from math import isfinite
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import orjson

from madplug.records import Agent, DebateResult, Decision, Message, Persona, Picture, Sample, Usage, Vote

T = TypeVar("T")
_FIELDS: dict[type, tuple[str, ...]] = {}


def _open(value: Any) -> Any:
    """What JSON has no type for: a record becomes its fields, a collection a list, anything else its text."""
    kind = type(value)
    if kind in _FIELDS or is_dataclass(kind):
        names = _FIELDS.get(kind) or _FIELDS.setdefault(kind, tuple(f.name for f in fields(kind)))
        return {name: getattr(value, name) for name in names}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set):
        return sorted(value, key=repr)  # the same text in every process
    if isinstance(value, Collection) and not isinstance(value, str | bytes):
        return list(value)
    return str(value)


_plain_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_open, allow_nan=False).encode


def to_jsonable(value: Any) -> Any:
    """A value in a form that JSON can represent: keys become strings, NaN and infinity become null."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, str | int) or value is None:
        return value
    opened = value if isinstance(value, Mapping | list | tuple) else _open(value)
    if isinstance(opened, Mapping):
        return {str(k): to_jsonable(v) for k, v in opened.items()}
    return [to_jsonable(v) for v in opened] if isinstance(opened, list | tuple) else opened


def parse_json(line: str) -> Any:
    """What a line of JSON says, with whole numbers of any size. Raises `ValueError` or `RecursionError`."""
    try:
        return orjson.loads(line)
    except ValueError:
        return json.loads(line, parse_constant=_refuse)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def to_json(value: Any) -> str:
    """A record, and everything in it, as one line of JSON; characters that cannot be encoded are replaced."""
    try:
        return orjson.dumps(value, _open).decode()
    except (TypeError, ValueError):
        pass  # keys that are not text, integers beyond 64 bits, lone surrogates, deep nesting
    try:
        text = _plain_encode(value)
    except (TypeError, ValueError):
        text = _plain_encode(to_jsonable(value))
    return storable_text(text)


def plain(value: Any) -> Any:
    """A record, and everything in it, as dictionaries, lists, strings and numbers."""
    return json.loads(to_json(value))


def storable_text(text: str) -> str:
    """The text without characters that cannot be encoded."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def from_row(row: Any) -> DebateResult:
    """The debate of an exported or stored row.

    Raises `ValueError` with the place in the row where something is missing or has the wrong type.
    """
    found = _record(DebateResult, row, "")
    return DebateResult(**{
        **found, "sample": _make(Sample, found["sample"], "sample"), "references": tuple(found["references"]),
        "agents": tuple(_agent(a, f"agents[{i}]") for i, a in enumerate(found.get("agents", ()))),
        "messages": tuple(_make(Message, m, f"messages[{i}]") for i, m in enumerate(found.get("messages", ()))),
        "decision": _decision(found.get("decision")), "tokens": _make(Usage, found.get("tokens") or {}, "tokens"),
        "opening_calls": tuple(found.get("opening_calls", ())), "other_calls": tuple(found.get("other_calls", ())),
        "decision_notes": tuple(map(tuple, found.get("decision_notes", ()))),
        "phase_notes": tuple(map(tuple, found.get("phase_notes", ())))})


def _agent(row: Any, place: str) -> Agent:
    found = _record(Agent, row, place)
    return Agent(**{**found, "persona": _make(Persona, found["persona"], f"{place}.persona")})


def _decision(row: Any) -> Decision | None:
    if row is None:
        return None
    found = _record(Decision, row, "decision")
    votes = tuple(_make(Vote, v, f"decision.votes[{i}]") for i, v in enumerate(found.get("votes", ())))
    return Decision(**{**found, "votes": votes})


def _make(kind: Callable[..., T], row: Any, place: str) -> T:
    """A record without nested records."""
    found = _record(kind, row, place)
    for name, value in found.items():
        if type(value) is list:
            found[name] = tuple(value)
    return kind(**found)


MOST_PICTURES = 50
MOST_PICTURE_ROWS = 2_000


def pictures_in(tables: Any) -> Iterator[tuple[str, Picture]]:
    """The pictures that plugins noted with a debate or a cell, by the name they stand under.

    tables: what was noted, by plugin or metric. Raises `ValueError` for what is not one: records may be anyone's.
    """
    found = 0
    for name, table in tables.items() if isinstance(tables, Mapping) else ():
        for i, row in enumerate(table.get("pictures") or () if isinstance(table, Mapping) else ()):
            picture, place = _make(Picture, row, f"{name}.pictures[{i}]"), f"{name}.pictures[{i}]"
            columns = [c for c in (picture.x, picture.y, picture.series) if c]
            if picture.kind not in ("line", "bars", "table", "heat") or len(picture.rows) > MOST_PICTURE_ROWS:
                raise ValueError(f"{place}: expected a line, bars, table or heat of at most {MOST_PICTURE_ROWS:,} rows")
            for line in picture.rows:
                if not isinstance(line, Mapping) or any(c not in line for c in columns) or not all(
                        isinstance(v, str | int | float | None) for v in line.values()):
                    raise ValueError(f"{place}: expected rows of labels and numbers with {', '.join(columns)}")
            found += 1
            if found > MOST_PICTURES:
                raise ValueError(f"{name}: more than {MOST_PICTURES} pictures")
            yield str(name), picture


def _record(kind: Any, row: Any, place: str) -> dict[str, Any]:
    """The known fields of a row, checked for their types."""
    if not isinstance(row, Mapping):
        raise ValueError(f"{place or 'the record'}: expected a table, not {_kind(row)}")
    found = {}
    for name, (kinds, required) in _shape(kind).items():
        if name in row:
            value = row[name]
            if not isinstance(value, kinds):
                raise ValueError(f"{f'{place}.{name}'.lstrip('.')}: unexpected {_kind(value)}")
            found[name] = value
        elif required:
            raise ValueError(f"{f'{place}.{name}'.lstrip('.')}: missing")
    return found


@cache
def _shape(kind: type) -> dict[str, tuple[tuple[type, ...], bool]]:
    """For every field, the types it can have in JSON, and whether it is required."""
    hints = get_type_hints(kind)
    return {f.name: (tuple(Mapping if is_dataclass(k) else k for k in python_kinds(hints[f.name])),
                     f.default is MISSING and f.default_factory is MISSING) for f in fields(kind)}


def python_kinds(hint: Any) -> Iterator[type]:
    """The classes of which a value annotated like this is an instance, those of its parts aside."""
    origin = get_origin(hint) or hint
    if origin in (Union, UnionType):
        for part in get_args(hint):
            yield from python_kinds(part)
    elif origin is float:
        yield from (float, int)
    elif origin is tuple:
        yield from (tuple, list)
    elif origin is Literal:
        yield from {type(value) for value in get_args(hint)}
    else:
        yield Mapping if inspect.isclass(origin) and issubclass(origin, Mapping) else origin


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__
