"""Debates as JSON: the rows of `madplug export` and of the store, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from madplug.records import Agent, DebateResult, Decision, Message, Persona, Sample, Usage, Vote

_FIELDS: dict[type, tuple[str, ...]] = {}


def plain(value: Any) -> Any:
    """A record, and everything in it, as dicts and lists."""
    if is_dataclass(value):
        kind = type(value)
        names = _FIELDS.get(kind) or _FIELDS.setdefault(kind, tuple(f.name for f in fields(value)))
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, str) or value is None or isinstance(value, int | float):
        return value
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(v) for v in value]
    return str(value)


def to_json(value: Any) -> str:
    """One line of JSON; text stays readable, and what no encoding can hold is replaced."""
    text = json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace").decode()


def from_row(row: Mapping[str, Any]) -> DebateResult:
    """The debate of an exported or stored row."""
    tokens = row.get("tokens") or {}
    return DebateResult(
        cell=row["cell"], repeat=row["repeat"], sample=_sample(row["sample"]), references=tuple(row["references"]),
        agents=tuple(Agent(a["id"], Persona(**a["persona"]), a["model"], a.get("style")) for a in row["agents"]),
        messages=tuple(Message(**{**m, "seen": tuple(m["seen"])}) for m in row["messages"]),
        decision=_decision(row["decision"]), metrics=row["metrics"], calls=row["calls"],
        retries=row.get("retries", 0), tokens=Usage(**tokens), seconds=row["seconds"], error=row["error"],
        notes=row.get("notes", {}))


def _sample(row: Mapping[str, Any]) -> Sample:
    fields_: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
    return Sample(**fields_)


def _decision(row: Mapping[str, Any] | None) -> Decision | None:
    return Decision(**{**row, "votes": tuple(Vote(**v) for v in row["votes"])}) if row else None
