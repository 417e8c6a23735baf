"""The run file: its shape, its layers, and its cells. Nothing is looked up in plugins here."""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, TomlConfigSettingsSource

from madplug.errors import Problem, UserError, nearest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Table = dict[str, Any]
SLOTS = ("turns", "visibility", "decision", "casting")
LISTS = ("personas", "styles", "phases")


def _slot(value: Any) -> Any:
    return {"use": value} if isinstance(value, str) else value


Slot = Annotated[dict[str, Any], BeforeValidator(_slot)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", protected_namespaces=())


class LimitsTable(_Shape):
    """`[limits]`: each stops the study cleanly."""

    calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    cost_usd: float | None = Field(default=None, ge=0)
    seconds: float | None = Field(default=None, gt=0)


class DebateTable(_Shape):
    """`[debate]`: the slots of a debate and its size."""

    paradigm: str | None = None
    agents: int | None = Field(default=None, ge=1)
    rounds: int | None = Field(default=None, ge=1)
    models: list[str] | None = None
    personas: list[Slot] | None = None
    casting: Slot | None = None
    styles: list[Slot] | None = None
    turns: Slot | None = None
    visibility: Slot | None = None
    decision: Slot | None = None
    phases: list[Slot] | None = None


class Match(_Shape):
    """`match` of a cell: the cell it is matched to, and by what."""

    cell: str
    by: str = Field(default="calls", pattern="^(calls|tokens)$")


class CellTable(_Shape):
    """What one cell may set; a cell of a run file is a set of changes to the file."""

    dataset: Slot | None = None
    answers: Slot | None = None
    models: dict[str, Slot] = {}
    services: dict[str, Slot] = {}
    debate: DebateTable = DebateTable()
    extensions: list[Slot] = []
    metrics: list[Slot] = []
    match: Match | None = None


class RunTable(CellTable):
    """The whole run file."""

    name: str | None = None
    seed: int = 0
    repeats: int = Field(default=1, ge=1)
    share_completions: bool = True
    oracle: bool = False
    sweep: dict[str, Annotated[list[Any], Field(min_length=1)]] = {}
    cells: list[dict[str, Any]] = []
    limits: LimitsTable = LimitsTable()
    execution: Slot | None = None


# Layers: the command line over the environment over the file

class _Layers(BaseSettings):
    model_config = ConfigDict(extra="allow")  # type: ignore[assignment]


def read(path: Path, settings: Sequence[str] = (), environ: Mapping[str, str] | None = None) -> Table:
    """The run file with what the environment and the command line change in it.

    settings: `a.b=value` each. Raises `UserError` when there is no such file or it is not TOML.
    """
    if not path.is_file():
        here = sorted(str(p) for p in path.parent.glob("*.toml")) if path.parent.is_dir() else []
        raise UserError(f"{path}: no such file{nearest(str(path), here)}")
    try:
        table: Table = TomlConfigSettingsSource(_Layers, path)()
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: not valid TOML: {error}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not valid TOML: not UTF-8 at byte {error.start}") from None
    for change in (*_from_environment(os.environ if environ is None else environ), *map(setting, settings)):
        table = overlay(_cleared(table, change), change)
    table.setdefault("name", path.stem)
    return table


def _from_environment(environ: Mapping[str, str]) -> Iterator[Table]:
    for name, value in sorted(environ.items()):
        if name.upper().startswith("MADPLUG_") and "__" in name:
            yield nested(name[len("MADPLUG_"):].lower().split("__"), as_toml(value))


def setting(text: str) -> Table:
    """`a.b=value` as a table; the value is read as TOML, else as text."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UserError(f"--set {text}: expected KEY=VALUE, such as --set debate.rounds=3")
    return nested(_parts(key), as_toml(value))


def _parts(key: str) -> list[str]:
    """The parts of a dotted key as TOML has them: quotes keep one together, as in `sweep."debate.agents"`."""
    try:
        left: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        return key.strip().split(".")
    parts = []
    while isinstance(left, Mapping):
        if len(left) != 1:
            return key.strip().split(".")
        [(part, left)] = left.items()
        parts.append(part)
    return parts


def _cleared(table: Any, change: Mapping[str, Any]) -> Any:
    """The table without what a change sets to an empty table, as `--set sweep={}` does."""
    if not isinstance(table, Mapping):
        return table
    return {key: _cleared(value, change[key]) if isinstance(change.get(key), Mapping) else value
            for key, value in table.items() if change.get(key) != {}}


def as_toml(text: str) -> Any:
    """A value as TOML reads it, else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def nested(keys: Sequence[str], value: Any) -> Table:
    """`{"a": {"b": value}}` for the keys a, b."""
    for key in reversed(keys):
        value = {key: value}
    return value  # type: ignore[no-any-return]


def overlay(base: Any, change: Any) -> Any:
    """`change` laid over `base`: tables merge; a table with `use` (or a string in a slot's place) replaces the slot."""
    if not isinstance(base, Mapping) or not isinstance(change, Mapping):
        if isinstance(base, str) and isinstance(change, Mapping) and "use" not in change:
            base = {"use": base}
        else:
            return deepcopy(change)
    if "use" in change:
        return deepcopy(dict(change))
    merged = dict(base)
    for key, value in change.items():
        merged[key] = overlay(base[key], value) if key in base else deepcopy(value)
    return merged


# Cells

def cells(table: Table) -> Iterator[tuple[str, Table, Table]]:
    """(slug, changes by dotted key, the cell's own table) of every cell: the sweep's, then those listed."""
    used: dict[str, int] = {}
    for name, change in _changes(table):
        flat = dict(dotted(change))
        slug = name or ",".join(f"{k.rpartition('.')[2]}={_short(v)}" for k, v in flat.items()) or "main"
        used[slug] = used.get(slug, 0) + 1
        yield slug if used[slug] == 1 else f"{slug}#{used[slug]}", flat, _cell(table, change)


def _changes(table: Table) -> Iterator[tuple[str, Table]]:
    sweep, listed = table.get("sweep") or {}, table.get("cells") or []
    if sweep:
        for values in itertools.product(*sweep.values()):
            change: Table = {}
            for key, value in zip(sweep, values, strict=True):
                change = overlay(change, nested(key.split("."), value))
            yield "", change
    for cell in listed:
        yield str(cell.get("name", "")), {k: v for k, v in cell.items() if k != "name"}
    if not sweep and not listed:
        yield "", {}


def _cell(table: Table, change: Table) -> Table:
    base = {k: v for k, v in table.items() if k in CellTable.model_fields}
    debate = change.get("debate")
    if isinstance(debate, Mapping) and "paradigm" in debate and isinstance(base.get("debate"), Mapping):
        base["debate"] = {k: v for k, v in base["debate"].items() if k == "models"}
    merged: Table = overlay(base, change)
    return merged


def dotted(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted key, value) of a table, down to slots and values."""
    for key, value in table.items():
        if isinstance(value, Mapping) and "use" not in value:
            yield from dotted(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        options = ",".join(f"{k}={_short(v)}" for k, v in value.items() if k != "use")
        return f"{value.get('use', '')}({options})" if options else str(value.get("use", ""))
    if isinstance(value, list):
        return "+".join(map(_short, value)) or "none"
    return str(value)


# Problems

_WORDS = {"missing": "is required", "int_type": "expected a whole number", "int_parsing": "expected a whole number",
          "string_type": "expected text", "bool_type": "expected true or false", "list_type": "expected a list",
          "bool_parsing": "expected true or false", "dict_type": "expected a table", "model_type": "expected a table",
          "float_type": "expected a number", "float_parsing": "expected a number", "tuple_type": "expected a list"}
_SECRET = re.compile(r"((sk|rk|pk|xai)-|(hf|gsk|ghp|sk|pk)_|AIza|Bearer )(?=\S*\d)[-_A-Za-z0-9]{15,}")
_SECRET_NAME = re.compile(r"(^|[_-])(api[_-]?key|access[_-]?token|auth[_-]?token|password|secret|authorization)$",
                          re.IGNORECASE)


def problems_of(error: ValidationError, place: str, known: Iterable[str], what: str) -> Iterator[Problem]:
    """What pydantic found, in words; values are never repeated, since one of them may be a key."""
    known = list(known)
    for found in error.errors(include_url=False, include_input=False, include_context=False):
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in found["loc"])
        where = (place + "".join(steps)).strip(".")
        last = str(found["loc"][-1]) if found["loc"] else ""
        if found["type"] == "extra_forbidden":
            yield Problem(where, key_refused(last) if _SECRET_NAME.search(last) else
                          f"{what} has no such {'option' if '.' in what else 'key'}{nearest(last, known)}")
        else:
            yield Problem(where, _WORDS.get(found["type"], _lower(found["msg"])))


def key_refused(option: str) -> str:
    """What to say to a secret in a run file."""
    return (f"this looks like a secret, and a run file holds none; remove '{option}', put the key into an "
            "environment variable and name that variable with api_key_env")


def secrets(table: Any, place: str = "") -> Iterator[Problem]:
    """Values anywhere in the file that look like keys."""
    if isinstance(table, Mapping):
        for key, value in table.items():
            where = f"{place}.{key}".strip(".")
            if _SECRET_NAME.search(key) and isinstance(value, str):
                yield Problem(where, key_refused(key))
            else:
                yield from secrets(value, where)
    elif isinstance(table, list):
        for i, value in enumerate(table):
            yield from secrets(value, f"{place}[{i}]")
    elif isinstance(table, str) and _SECRET.fullmatch(table.strip()):
        yield Problem(place, key_refused(place.rpartition(".")[2]))


def _lower(message: str) -> str:
    message = message.removeprefix("Value error, ").removeprefix("Input ")
    return message[:1].lower() + message[1:]
