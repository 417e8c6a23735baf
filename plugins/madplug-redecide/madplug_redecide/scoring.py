"""Recorded debates scored again, by the study's own metrics or by further ones; no debate is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from madplug import Component, Problem, UserError
from madplug.study import Registry, Resolver
from madplug_redecide.deciding import absolute, file_of, recorded_table

if TYPE_CHECKING:
    from madplug.study import ResolvedStudy


def resolve_rescored(folder: Path, metrics: Sequence[Any], here: Path,
                     components: Sequence[type[Component]] = (), *,
                     yes: bool = False) -> tuple[ResolvedStudy, frozenset[str]]:
    """The study in a directory with further metrics, and the names of the metrics that are to score it.

    metrics: names, or tables with `use` and options; one that a cell has already takes the other's place. Without any,
    every metric of the study scores it again. here: what the paths of local files are relative to. components: classes
    of a Python session that they may name.
    yes: the user has agreed to what a study that was begun by others names.
    """
    table, registry = recorded_table(folder, yes=yes), Registry(classes=components)
    slots = [{"use": metric} if isinstance(metric, str) else metric for metric in metrics]
    if odd := next((slot for slot in slots if not isinstance(slot, Mapping)), None):
        raise UserError(f"--metric {odd}: expected a name, or {{use = \"NAME\", ...}}")
    slots = [{**slot, "use": absolute(slot["use"], here)} if isinstance(slot.get("use"), str) else slot
             for slot in slots]
    names = {_full_name(slot["use"], registry) for slot in slots if isinstance(slot.get("use"), str)}
    for cell in table["cells"]:
        cell["metrics"] = _with(cell.get("metrics", []), slots, registry)
    try:
        resolved = Resolver(table, folder, registry, recorded=True).resolve()
    except UserError as error:
        if slots and any("there is no [models." in problem.message for problem in error.problems):
            error = UserError([*error.problems, Problem("", (
                "a metric goes into the run file together with the model that it asks; `madplug run` then scores the "
                "debates on record too"))])
        raise error from None
    scores = {score: metric.full_name for cell in resolved.plan.cells for score, metric in cell.metrics.items()}
    return resolved, frozenset(score for score, name in scores.items() if not names or name in names)


def _with(metrics: Sequence[Mapping[str, Any]], slots: Sequence[Mapping[str, Any]],
          registry: Registry) -> list[Mapping[str, Any]]:
    """The metrics of a cell with these in the place of those they score again, and the others at the end.

    Of several with one name, a slot takes the place of the one that has its options, or else of the first.
    """
    found, taken = list(metrics), set[int]()
    names = [_full_name(slot["use"], registry) for slot in metrics]
    for slot in slots:
        use = slot.get("use")
        name = _full_name(use, registry) if isinstance(use, str) else None
        same = [i for i, other in enumerate(names) if other == name and i not in taken]
        place = next((i for i in same if all(metrics[i].get(key) == value for key, value in slot.items()
                                             if key != "use")), next(iter(same), None))
        if place is None:
            found.append(slot)
        else:
            found[place] = slot
            taken.add(place)
    return found


def _full_name(use: str, registry: Registry) -> str:
    file = file_of(use, Path())
    return registry.find("metric", use).name if file is None else f"{file.name}:{use.rpartition(':')[2]}"
