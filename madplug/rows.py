"""Debates to JSON and back: the rows of `madplug export` and of the store."""

from __future__ import annotations

import inspect
import json
from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from math import isfinite
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import orjson

from madplug.records import DebateResult, Picture

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
    result: DebateResult = _make(DebateResult, row, "")
    return result


def _make(kind: Any, row: Any, place: str) -> Any:
    """A record, and the records in it. place: where the row is, for errors."""
    if not isinstance(row, Mapping):
        raise ValueError(f"{place or 'the record'}: expected a table, not {_kind(row)}")
    found: dict[str, Any] = {}
    for name, (kinds, inner, required) in _shape(kind).items():
        if name not in row:
            if required:
                raise ValueError(f"{f'{place}.{name}'.lstrip('.')}: missing")
            continue
        found[name] = value = row[name]
        if not isinstance(value, kinds):
            raise ValueError(f"{f'{place}.{name}'.lstrip('.')}: unexpected {_kind(value)}")
        if inner is not None and isinstance(value, list | tuple):
            found[name] = tuple([_make(inner, v, f"{place}.{name}[{i}]".lstrip(".")) for i, v in enumerate(value)])
        elif inner is not None and value is not None:
            found[name] = _make(inner, value, f"{place}.{name}".lstrip("."))
        elif type(value) is list:
            found[name] = tuple([tuple(v) if type(v) is list else v for v in value])
    return kind(**found)


@cache
def _shape(kind: type) -> dict[str, tuple[tuple[type, ...], Any, bool]]:
    """For every field, the types it can have in JSON, the record in it, and whether it is required."""
    hints = get_type_hints(kind)
    return {f.name: (tuple(Mapping if is_dataclass(k) else k for k in python_kinds(hints[f.name])),
                     _record_in(hints[f.name]),
                     f.default is MISSING and f.default_factory is MISSING) for f in fields(kind)}


MOST_PICTURES = 50
MOST_PICTURE_ROWS = 2_000


def pictures_in(tables: Any) -> Iterator[tuple[str, Picture]]:
    """The pictures that plugins noted with a debate or a cell, by the name they stand under.

    tables: what was noted, by plugin or metric. Raises `ValueError` for what is not one: records may be anyone's.
    """
    found = 0
    for name, table in tables.items() if isinstance(tables, Mapping) else ():
        for i, row in enumerate(table.get("pictures") or () if isinstance(table, Mapping) else ()):
            place = f"{name}.pictures[{i}]"
            picture: Picture = _make(Picture, row, place)
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


def _record_in(hint: Any) -> Any:
    return next((part for part in (hint, *get_args(hint)) if is_dataclass(part)), None)


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
