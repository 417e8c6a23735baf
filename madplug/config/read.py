"""The run file: its layers, presets and cells. What it names is looked up and made in `build`."""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from difflib import get_close_matches
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from typing_extensions import override

from madplug.config.problems import problems_of
from madplug.config.shape import MOST_CELLS, Table, tables
from madplug.errors import Problem, UserError, listed, nearest_file
from madplug.rows import storable_text
from madplug.text import count

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_TABLES = ("dataset_", "debate_", "limits_", "match_", "models_")
"""How most names in the environment begin, but for a second underscore."""
_POSITION = re.compile(r"\d{1,9}")
S = TypeVar("S", bound=BaseModel)

# Layers: the command line over the environment over the file

Settings = Sequence[str] | Mapping[str, Any]
"""Changes to a run file: `a.b=value` each, or values by dotted key."""


def read(source: Path | Mapping[str, Any], settings: Settings = (), environ: Mapping[str, str] | None = None) -> Table:
    """The run file, or its content, with the changes made by the environment and the command line.

    settings: `a.b=value` each, or values by dotted key. Raises `UserError` if there is no such file or it is not TOML.
    """
    table: Table = _as_table(source) if isinstance(source, Mapping) else {"name": source.stem, **_parse(source)}
    changes = [nested(_parts(key), _as_table(value)) for key, value in settings.items()] \
        if isinstance(settings, Mapping) else [setting(text) for text in settings]
    for change in (*_from_environment(os.environ if environ is None else environ), *changes):
        table = overlay(_cleared(table, change), change)
    return table


def _as_table(value: Any) -> Any:
    """A value of Python as TOML has it: tuples as lists, paths as text."""
    if isinstance(value, Mapping):
        return {str(key): _as_table(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_as_table(inner) for inner in value]
    if isinstance(value, Iterator):
        raise UserError(f"{value!r:.80} cannot be used in a run file; give a list")
    return str(value) if isinstance(value, Path) else value


def _table_in(path: Path) -> Table:
    from pydantic_settings import BaseSettings, TomlConfigSettingsSource  # a tenth of a second, where a file is read

    class RunFile(TomlConfigSettingsSource):
        @override
        def _read_file(self, file_path: Path) -> Table:  # some editors begin a file with a mark
            return dict(tomllib.loads(file_path.read_text(encoding="utf-8-sig")))

    return dict(RunFile(BaseSettings, path)())


def _parse(path: Path) -> Table:
    try:
        if not path.is_file():
            what = "is a directory, not a run file" if path.is_dir() else "no such file"
            raise UserError(f"{path}: {what}{nearest_file(path, '.toml')}")
        return _table_in(path)
    except OSError as error:
        raise UserError(f"{path!s:.200}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid TOML: {error}") from None


def _from_environment(environ: Mapping[str, str]) -> Iterator[Table]:
    for name, value in sorted(environ.items()):
        start, _, key = name.lower().partition("_")
        if start != "madplug":
            continue
        known = tables().run.model_fields
        if "__" in key or key in known:
            yield nested(key.split("__"), as_toml(value))
            continue
        near = [key.replace("_", "__", 1)] if key.startswith(_TABLES) else get_close_matches(key, known, 1, 0.7)
        if near:
            raise UserError(f"{name}: a run file has no key '{key}'; did you mean MADPLUG_{near[0].upper()}?")


def setting(text: str) -> Table:
    """`a.b=value` as a table; the value is read as TOML, or as text if it is not TOML."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UserError(f"--set {text}: expected KEY=VALUE, such as --set debate.rounds=3")
    return nested(_parts(key), as_toml(value))


def _parts(key: str) -> list[str]:
    """The parts of a dotted key as in TOML, where quotes keep a part together: `sweep."debate.agents"`."""
    parts = []
    try:
        left: Any = tomllib.loads(f"{key} = 0")
        while isinstance(left, Mapping):
            [(part, left)] = left.items()
            parts.append(part)
    except ValueError:  # not a key of TOML, or several lines of it
        return key.strip().split(".")
    return parts


def _cleared(table: Any, change: Mapping[str, Any]) -> Any:
    """The table without what a change sets to an empty table, such as `--set sweep={}`."""
    if not isinstance(table, Mapping):
        return table
    return {key: _cleared(value, change[key]) if isinstance(change.get(key), Mapping) else value
            for key, value in table.items() if change.get(key) != {}}


def as_toml(text: str) -> Any:
    """A value read as TOML, or else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return text


def nested(keys: Sequence[str], value: Any) -> Table:
    """`{"a": {"b": value}}` for the keys a, b."""
    for key in reversed(keys):
        value = {key: value}
    return value  # type: ignore[no-any-return]


def overlay(base: Any, change: Any, place: str = "") -> Any:
    """`change` merged into `base`: tables merge; a table with `use` (or a string) replaces a whole slot.

    In a list, a table of positions from 0, or of its items' names, changes these: `extensions.0.share`,
    `cells.debate.match`. place: of `base` in the file.
    """
    if isinstance(base, list) and isinstance(change, Mapping) and change:
        names = {item["name"]: i for i, item in enumerate(base)
                 if isinstance(item, Mapping) and isinstance(item.get("name"), str)}
        if names or all(map(_POSITION.fullmatch, change)):
            return _overlay_items(base, change, names, place)
    base = {"use": base} if isinstance(base, str) else base
    if not isinstance(base, Mapping) or not isinstance(change, Mapping) or "use" in change:
        return deepcopy(change)
    merged = dict(base)
    for key, value in change.items():
        merged[key] = overlay(base[key], value, f"{place}.{key}".lstrip(".")) if key in base else deepcopy(value)
    return merged


def _overlay_items(base: list[Any], change: Mapping[str, Any], names: Mapping[Any, int], place: str) -> list[Any]:
    places = {key: names.get(key, int(key) if _POSITION.fullmatch(key) else len(base)) for key in change}
    if missing := [key for key, i in places.items() if i >= len(base)]:
        there = f"there is no such item; the list has {count(len(base), 'item')}, counted from 0"
        raise UserError([Problem(f"{place}.{key}", there + (f", or by name: {listed(list(names), near=key)}"
                                                            if names else "")) for key in missing])
    items = deepcopy(base)
    for key, i in places.items():
        items[i] = overlay(items[i], change[key], f"{place}.{key}")
    return items


# Cells

def cells(table: Table, keys: Collection[str]) -> Iterator[tuple[str, Table, Table]]:
    """(slug, changes by dotted key, the cell's own table) of every cell: those of the sweep, then the listed ones.

    keys: what a cell can set. Raises `UserError` for more than `MOST_CELLS`.
    """
    changes = list(itertools.islice(_changes(table), MOST_CELLS + 1))
    if len(changes) > MOST_CELLS:
        raise UserError([Problem("sweep", f"makes more than {MOST_CELLS:,} cells, the most that a study has")])
    shared = {k: v for k, v in table.items() if k in keys}
    used: dict[str, int] = {}
    for name, change in changes:
        flat = dict(dotted(change))
        made = name or ",".join(f"{k.rpartition('.')[2]}={_short(v)}" for k, v in flat.items()) or "main"
        slug = first = storable_text(made)
        while slug in used:
            used[first] += 1
            slug = f"{first}#{used[first]}"
        used[slug] = 1
        yield slug, flat, _cell(shared, change)


def unreached(table: Table, keys: Iterable[str]) -> Iterator[Problem]:
    """Of these dotted keys of `[debate]`, those without which every cell is the same, with the place in a cell."""
    place = "cells.0.{}" if table.get("cells") else "sweep.'{}' = [...]"
    own = [cell for *_, cell in cells(table, table)]
    for key in keys:
        if own == [cell for *_, cell in cells(_without(table, [tuple(_parts(key))]), table)]:
            yield Problem(key, "reaches no cell: each sets its own, or starts from the paradigm that it names alone; "
                          f"set it there: {place.format(key)}")


def start_alone(table: Table) -> bool:
    """Whether every cell names its own paradigm, and so takes nothing but the models of `[debate]`."""
    return all("paradigm" in change.get("debate", {}) for _, change in _changes(table))


def _changes(table: Table) -> Iterator[tuple[str, Table]]:
    sweep, listed = table.get("sweep") or {}, table.get("cells") or []
    if sweep:
        paths = {key: _parts(key) for key in sweep}
        order = _outer_first(paths)
        for values in itertools.product(*sweep.values()):
            chosen, change = dict(zip(sweep, values, strict=True)), Table()
            for key in order:
                change = overlay(change, nested(paths[key], chosen[key]))
            yield "", change
    for cell in listed:
        yield cell.get("name", ""), {k: v for k, v in cell.items() if k != "name"}
    if not sweep and not listed:
        yield "", {}


def _outer_first(paths: Mapping[str, Sequence[str]]) -> list[str]:
    """The keys of a sweep in their order, but a slot before its options, which it would otherwise replace."""
    order: list[str] = []
    for key, path in paths.items():
        inside = (i for i, other in enumerate(order) if paths[other][:len(path)] == path)
        order.insert(next(inside, len(order)), key)
    return order


def _cell(shared: Table, change: Table) -> Table:
    debate = change.get("debate")
    if isinstance(debate, Mapping) and "paradigm" in debate and isinstance(shared.get("debate"), Mapping):
        shared = {**shared, "debate": {k: v for k, v in shared["debate"].items() if k == "models"}}
    merged: Table = overlay(shared, change)
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


def validate_lenient(kind: type[S], table: Table, problems: list[Problem], what: str,
                     more: Callable[[], Sequence[str]]) -> tuple[S, Table]:
    """The validated table, and the table without invalid values, so that one mistake does not hide the others."""
    try:
        return kind.model_validate(table), table
    except ValidationError as error:
        problems += problems_of(error, "", kind, what, more())
        table = _without(table, [found["loc"][:-1] if found["type"] == "missing" else found["loc"]
                                 for found in error.errors(include_input=False)])
        return validate_lenient(kind, table, problems, what, more)


def _without(table: Table, places: Sequence[Sequence[str | int]]) -> Table:
    """A copy of a nested table without some values."""
    table = deepcopy(table)
    for first, *path in reversed(list(dict.fromkeys(places))):  # the last item of a list first, so that the others stay
        *between, last = (first, *path)
        try:
            del reduce(getitem, between, table)[last]  # type: ignore[arg-type]
        except (KeyError, IndexError, TypeError):  # not a place in the table, but a part of its type
            table.pop(str(first), None)
    return table
