"""Debates to JSON and back: the rows of `madplug export` and of the store."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import fields, is_dataclass
from functools import cache
from math import isfinite
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from madplug.records import DebateResult, Picture

_MEMBER = re.compile(r"(constrained-)?(int|float|str|bool|none)|((constrained-)?\w+\[|function-|literal\[).*")
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
    """What a line of JSON says; a whole number beyond 64 bits is rounded. Raises `ValueError` or `RecursionError`."""
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
    except (TypeError, ValueError):  # keys that are not text, integers beyond 64 bits, lone surrogates, deep nesting
        return storable_text(json.dumps(to_jsonable(value), ensure_ascii=False, separators=(",", ":")))


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
    result: DebateResult = _made(DebateResult, row, "")
    return result


@cache
def validator_of(kind: Any) -> Any:
    """What validates a record: a list becomes a tuple, and a number in a text a number."""
    return TypeAdapter(kind).validator


def place_in(steps: Iterable[int | str], outer: str = "") -> str:
    """A place as users write it: `messages[0].round`. outer: where the first step starts from."""
    inner = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in without_members(steps))
    return (outer + "".join(inner)).strip(".")


def without_members(steps: Iterable[int | str]) -> tuple[int | str, ...]:
    """The steps to a wrong value, without the types of a union that pydantic names among them."""
    return tuple(step for step in steps if isinstance(step, int) or not _MEMBER.fullmatch(step))


def _made(kind: Any, row: Any, place: str) -> Any:
    try:
        return validator_of(kind).validate_python(row)
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
        raise ValueError(f"{place_in(found['loc'], place)}: {found['msg']}") from None


MOST_PICTURES = 50


def pictures_in(tables: Any) -> Iterator[tuple[str, Picture]]:
    """The pictures that plugins noted with a debate or a cell, by the name they stand under.

    tables: what was noted, by plugin or metric. Raises `ValueError` for what is not one: records may be anyone's.
    """
    found = 0
    for name, table in tables.items() if isinstance(tables, Mapping) else ():
        for i, row in enumerate(table.get("pictures") or () if isinstance(table, Mapping) else ()):
            picture: Picture = _made(Picture, row, f"{name}.pictures[{i}]")
            columns = {picture.x, picture.y, picture.series} - {""}
            if any(columns - line.keys() for line in picture.rows):
                raise ValueError(f"{name}.pictures[{i}]: expected rows with {', '.join(sorted(columns))}")
            found += 1
            if found > MOST_PICTURES:
                raise ValueError(f"{name}: more than {MOST_PICTURES} pictures")
            yield str(name), picture
