"""Recorded debates scored again, by the study's own metrics or by further ones; no debate is run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from madplug.config import ResolvedStudy, Resolver
from madplug.errors import UserError
from madplug.redecide import recorded_table, sent_by
from madplug.registry.installed import Registry
from madplug.registry.local import absolute, file_of
from madplug.store import Reader
from madplug.study.setup import Sampled, Setup
from madplug.study.trust import Ask


def resolve_rescored(folder: Path, metrics: Sequence[Any], here: Path,
                     ask: Ask) -> tuple[ResolvedStudy, frozenset[str]]:
    """The study in a directory with further metrics, and the names of the metrics that are to score it.

    metrics: names, or tables with `use` and options; one that a cell has already takes the other's place. Without any,
    every metric of the study scores it again. here: what the paths of local files are relative to.
    ask: is told what the study would execute, and what it may send.
    """
    table, registry = recorded_table(folder, ask=ask), Registry()
    slots = [{"use": metric} if isinstance(metric, str) else metric for metric in metrics]
    if odd := next((slot for slot in slots if not isinstance(slot, Mapping)), None):
        raise UserError(f"--metric {odd}: expected a name, or {{use = \"NAME\", ...}}")
    slots = [{**slot, "use": absolute(slot["use"], here)} if isinstance(slot.get("use"), str) else slot
             for slot in slots]
    names = {_full_name(slot["use"], registry) for slot in slots if isinstance(slot.get("use"), str)}
    for cell in table["cells"]:
        cell["metrics"] = _with(cell.get("metrics", []), slots, registry)
    resolved = Resolver(table, folder, registry, recorded=True).resolve()
    ask(sent_by(resolved))
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


class Rescorer:
    """Has the debates of a study scored again. recorded: the study. metrics: the names of the scores to be replaced."""

    def __init__(self, recorded: Reader, metrics: frozenset[str]) -> None:
        self.recorded = recorded
        self.metrics = metrics

    def options(self) -> dict[str, Any]:
        """The arguments of `StudyRun`."""
        return {"samples": self.samples, "rescore": self.metrics}

    async def samples(self, setup: Setup, repeat: int) -> AsyncIterator[Sampled]:
        """The samples of a cell's debates that have ended, with or without an error."""
        for result in self.recorded.debates(setup.cell.slug):
            if result.repeat == repeat and (result.decision or result.error):
                yield result.sample, result.references
