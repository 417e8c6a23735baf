"""What cells differ in: the settings that some name, and how the others have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

FILES = "the file's"
"""The paradigm of a cell that names none: `[debate]`, of which a study records the parts."""

MATCHED = "matched"
"""The agents of a cell that is matched to another one, which are as many as that one's debate allows."""


def levels(settings: Mapping[str, Mapping[str, Any]], resolved: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By cell: every setting that any cell names, as this cell names or inherits it; left out where it has none.

    settings: what each cell names. resolved: each cell with every option, as the study's identity has it.
    """
    found: dict[str, dict[str, Any]] = {cell: dict(own) for cell, own in settings.items()}
    for key in dict.fromkeys(key for own in settings.values() for key in own):
        values = {cell: _resolved(resolved.get(cell), key) for cell in settings}
        for cell, own in settings.items():
            if key not in own and values[cell] is not None:
                same = (other[key] for slug, other in settings.items() if key in other and values[slug] == values[cell])
                found[cell][key] = next(same, _short(values[cell], list(values.values())))
            elif key not in own and key == "debate.paradigm":
                found[cell][key] = FILES
            if key == "debate.agents" and _resolved(resolved.get(cell), "match.cell") is not None:
                found[cell][key] = MATCHED
    return found


def _resolved(table: Any, key: str) -> Any:
    for part in key.split("."):
        table = table.get(part) if isinstance(table, Mapping) else None
    return table


def _short(value: Any, others: Sequence[Any]) -> Any:
    """A component with only those options that others of its name have otherwise."""
    if isinstance(value, list):
        items = [item for other in others if isinstance(other, list) for item in other]
        return [_short(item, items) for item in value]
    if not isinstance(value, Mapping) or "use" not in value:
        return value
    alike = [other for other in others if isinstance(other, Mapping) and other.get("use") == value["use"]]
    return {name: option for name, option in value.items()
            if name == "use" or any(other.get(name) != option for other in alike)}
