"""Debates as JSON: the rows of `madplug export` and of the store, and back."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any

from madplug.records import Agent, DebateResult, Decision, Message, Persona, Sample, Usage, Vote

_FIELDS: dict[type, tuple[str, ...]] = {}


def _open(value: Any) -> Any:
    """What JSON has no word for: a record becomes its fields, a collection a list, anything else its text."""
    kind = type(value)
    if kind in _FIELDS or is_dataclass(kind):
        names = _FIELDS.get(kind) or _FIELDS.setdefault(kind, tuple(f.name for f in fields(kind)))
        return {name: getattr(value, name) for name in names}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Collection) and not isinstance(value, str | bytes):
        return list(value)
    return str(value)


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_open, allow_nan=False).encode


def to_jsonable(value: Any) -> Any:
    """What JSON cannot hold, in a form it can: keys become text, numbers that are none become null."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, str | int) or value is None:
        return value
    opened = value if isinstance(value, Mapping | list | tuple) else _open(value)
    if isinstance(opened, Mapping):
        return {str(k): to_jsonable(v) for k, v in opened.items()}
    return [to_jsonable(v) for v in opened] if isinstance(opened, list | tuple) else opened


def to_json(value: Any) -> str:
    """A record, and everything in it, as one line of JSON; what no encoding can hold is replaced."""
    try:
        text = _encode(value)
    except (TypeError, ValueError):
        text = _encode(to_jsonable(value))
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def plain(value: Any) -> Any:
    """A record, and everything in it, as dicts, lists, text and numbers."""
    return json.loads(to_json(value))


def from_row(row: Mapping[str, Any]) -> DebateResult:
    """The debate of an exported or stored row."""
    tokens = row.get("tokens") or {}
    return DebateResult(
        cell=row["cell"], repeat=row["repeat"], sample=_sample(row["sample"]), references=tuple(row["references"]),
        agents=tuple(Agent(a["id"], Persona(**a["persona"]), a["model"], a.get("style")) for a in row["agents"]),
        messages=tuple(_message(m) for m in row["messages"]),
        decision=_decision(row["decision"]), metrics=row["metrics"], calls=row["calls"],
        retries=row.get("retries", 0), tokens=Usage(**tokens), seconds=row["seconds"], error=row["error"],
        notes=row.get("notes", {}))


def _message(row: Mapping[str, Any]) -> Message:
    return Message(**{**row, **{name: tuple(row.get(name, ())) for name in ("seen", "altered", "calls")}})


def _sample(row: Mapping[str, Any]) -> Sample:
    fields_: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
    return Sample(**fields_)


def _decision(row: Mapping[str, Any] | None) -> Decision | None:
    return Decision(**{**row, "votes": tuple(Vote(**v) for v in row["votes"])}) if row else None
