"""Which changes to a run file are compatible with recorded debates: more cells, repeats, samples and metrics.

Whatever would change a recorded debate is refused, with the difference in words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from madplug.errors import UserError
from madplug.registry.installed import Registry
from madplug.rows import plain
from madplug.text import count

_MOST = 5
"""Differences that are named; the others are counted."""
_LONGEST = 60
_ABSENT = object()
Table = dict[str, Any]
_TABLES = {"debate", "models", "services", "dataset", "answers", "match", "turns", "visibility", "decision", "casting"}
_LISTS = {"styles", "personas", "phases", "metrics", "extensions"}


def is_cell(table: Any) -> bool:
    """Whether a recorded table has the shape of a cell; a study may be damaged, or from elsewhere."""
    debate = (table.get("debate") or {}) if isinstance(table, Mapping) else None
    if not isinstance(debate, Mapping):
        return False
    names = debate.get("models") or []
    parts = [*table.items(), *((key, value) for key, value in debate.items() if key != "models")]
    return (isinstance(names, list) and all(isinstance(name, str) for name in names)
            and all(isinstance(value, Mapping) for key, value in parts if key in _TABLES and value is not None)
            and all(isinstance(value, list) and all(isinstance(slot, Mapping) for slot in value)
                    for key, value in parts if key in _LISTS and value is not None))


def conflicts(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The differences of two identities that would change recorded debates, in words.

    A cell, a repeat or a metric that only one of them has is not among them; neither is a data set that has become
    larger or smaller, because samples are compared one by one.
    """
    found = [text for key in ("seed", "share_completions", "oracle") if key in before
             for text in _in_words(differences(before[key], now.get(key), key))]
    sources = before.get("recorded_from"), now.get("recorded_from")
    if all(isinstance(source, Mapping) for source in sources):
        found += [f"in the study it was decided from, {text}" for text in conflicts(*sources)]  # type: ignore[arg-type]
    elif sources[0] != sources[1]:
        found.append("one of them was decided again from another study, the other was run")
    return found + _of_cells(before.get("cells", {}), now.get("cells", {}))


def _of_cells(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    common = [slug for slug in now if slug in before]
    where: dict[str, list[str]] = {}
    for slug in common:
        for text in _in_words(differences(_debated(before[slug]), _debated(now[slug]))):
            where.setdefault(text, []).append(slug)
    return [f"{text}{_cells(slugs, common)}" for text, slugs in where.items()]


def _debated(cell: Mapping[str, Any]) -> dict[str, Any]:
    """A cell without what is measured on its debates once they have ended: metrics, and what only they name."""
    tables = {key: value for key, value in cell.items() if _are_named(value)}
    kept = {key: value for key, value in cell.items() if key != "metrics" and key not in tables}
    found, names = {key: Table() for key in tables}, set[str]()
    while names != (names := {*strings(kept), *strings(found)}):  # a service may name a model
        found = {key: {name: table for name, table in value.items() if name in names} for key, value in tables.items()}
    return {**kept, **found}


def _are_named(value: Any) -> bool:
    """Whether a value of a cell is tables by name, like those of the models."""
    return isinstance(value, Mapping) and all(isinstance(table, Mapping) and "use" in table for table in value.values())


def strings(value: Any) -> Iterator[str]:
    """Every string in a nested table; those that name models and services are among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from strings(inner)


def _cells(slugs: Sequence[str], common: Sequence[str]) -> str:
    if len(slugs) == len(common):
        return "" if len(common) == 1 else " in every cell"
    names = " and ".join(f"'{slug}'" for slug in slugs[:2])
    return f" in cell{'s' * (len(slugs) > 1)} {names}" if len(slugs) < 3 else f" in {len(slugs)} of {len(common)} cells"


def differences(a: Any, b: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(dotted key, value in a, value in b) of everything in which two nested tables differ.

    Two components with different names are one difference, whatever their options.
    """
    tables = isinstance(a, Mapping) and isinstance(b, Mapping)
    if tables and a.get("use") == b.get("use"):
        for key in dict.fromkeys([*a, *b]):
            yield from differences(a.get(key, _ABSENT), b.get(key, _ABSENT), f"{place}.{key}".strip("."))
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from differences(one, other, f"{place}[{i}]")
    elif a != b and not (a in (None, _ABSENT) and b in (None, _ABSENT)):
        yield place, a, b


def _in_words(found: Iterator[tuple[str, Any, Any]]) -> Iterator[str]:
    for place, a, b in found:
        if isinstance(a, str) and isinstance(b, str):
            same = len([*takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))])
            a, b = (f"...{text[same - 20:]}" if same > _LONGEST // 2 else text for text in (a, b))
        was = "was not set" if a in (None, _ABSENT) else f"was {brief(a)}"
        yield f"{place} {was} and {'is no longer set' if b in (None, _ABSENT) else f'is now {brief(b)}'}"


def brief(value: Any) -> str:
    """A value of a run file in a few words: a component by its name, a list by its members."""
    text = _spell(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST - 3] + "..."


def _spell(value: Any) -> str:
    if isinstance(value, Mapping):
        if "use" in value:
            return str(value["use"])
        return "{" + ", ".join(f"{key} = {_spell(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_spell, value)) + "]"
    if isinstance(value, str) and len(value.split()) != 1:
        return json.dumps(value, ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else str(value)


def decided_by(identity: Any) -> list[str]:
    """By which decision protocols recorded debates were decided again, one time after the other; none for a study that
    was run. identity: the stored fact."""
    if not (isinstance(identity, Mapping) and isinstance(identity.get("recorded_from"), Mapping)):
        return []
    named, registry = identity.get("cells"), Registry()
    cells = [cell for cell in named.values() if is_cell(cell)] if isinstance(named, Mapping) else []
    slots = [slot for cell in cells if (slot := (cell.get("debate") or {}).get("decision"))]
    names = dict.fromkeys(_with_options(slot, "decision", registry) for slot in slots)
    return [*decided_by(identity["recorded_from"]), ", ".join(names)]


def _with_options(slot: Mapping[str, Any], kind: str, registry: Registry) -> str:
    """A component with the options that are not its defaults, `plugin.name(limit=3)`; if it is not installed, all."""
    use = str(slot.get("use"))
    try:
        known = registry.find(kind, use).component.Options.model_fields
    except UserError:
        known = {}
    default = {name: brief(plain(field.get_default(call_default_factory=True))) for name, field in known.items()}
    given = {name: brief(value) for name, value in slot.items() if name != "use"}
    own = [f"{name}={text}" for name, text in given.items() if default.get(name) != text]
    return f"{use}({', '.join(own)})" if own else use


def known_cells(recorded: Any, identity: Mapping[str, Any]) -> dict[str, Any]:
    """Every cell that was ever run, including those that the run file no longer names. recorded: the stored fact."""
    return {**(recorded or {}), **identity.get("cells", {})}


def refusal(found: Sequence[str]) -> str:
    """The message about differences that would change recorded debates."""
    more = [f"and {count(len(found) - _MOST, 'more difference')}"] if len(found) > _MOST else []
    of_all = any(text.startswith(("seed ", "share_completions ", "oracle ")) for text in found)
    return "\n  ".join(["its debates were run with other settings:", *found[:_MOST], *more]) + (
        "\nA study can get further cells, repeats, samples and metrics; for anything else choose another directory "
        "with --output" + ("" if of_all else ", or give the changed cell another name"))
