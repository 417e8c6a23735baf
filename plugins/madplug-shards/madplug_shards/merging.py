"""The shards of a study merged into one study, equal to the one run in one piece.

A study is data here: no component of it is made, and nothing that it names is executed.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from madplug import Problem, UserError, count, listed
from madplug.store import EDITED, SCOPE, CellOverview, Reader, Scope, StudyLock, open_recorder, open_study
from madplug.study import (
    PART,
    check_folder,
    conflicts,
    read_manifest,
    read_text,
    scores_by_cell,
    write_whole,
)
from madplug_shards.copying import copy_records, facts_of
from madplug_shards.executors import PREPARED

Facts = Mapping[str, Any]
"""The facts of a study, by name."""


@dataclass(frozen=True)
class Merged:
    """What a merge has made."""

    summary: Mapping[str, Any]
    """As in `summary.json`."""
    left: int | None
    """Debates that no shard has run yet, or None if that is unknown."""
    remarks: Sequence[str]
    """What the user should know, and do."""
    missing: Sequence[str]
    """The metrics whose own figures of whole cells are not in the summary."""


def merge(folders: Sequence[Path], output: Path) -> Merged:
    """Make one study of all shards of it. Raises `UserError` with everything that is missing, twice or foreign.

    The study is made beside `output` and then moved there: a merge that is killed leaves no study behind, and can be
    repeated.
    """
    if any(os.path.realpath(folder) == os.path.realpath(output) for folder in folders):
        raise UserError(f"--output {output}: is one of the shards; name another directory")
    if output.resolve() == Path.cwd():
        raise UserError(f"--output {output}: is where madplug runs, and a merge replaces the directory; name another")
    check_folder(output)
    if (output / "study.db").exists():
        raise UserError(f"{output}: has a study in it already; choose a new directory with --output")
    facts = {folder: facts_of(folder) for folder in folders}
    if problems := list(_problems(facts)):
        raise UserError(problems)
    folders = sorted(facts, key=lambda folder: place_of(facts[folder]) or (0, 0))
    with building(output) as folder:
        copy_records(folders, folder)
        write_whole(folder / "study.toml", read_text(folders[0] / "study.toml"))
        write_whole(folder / "manifest.json", json.dumps(_manifest(folders), indent=2, ensure_ascii=False))
        return asyncio.run(_conclude(folders, folder, output, _facts_of_all([facts[one] for one in folders])))


@contextmanager
def building(output: Path) -> Iterator[Path]:
    """A new directory, which is renamed at the end. It lies in one beside the study's, which only one merge can use.

    What a killed merge has left in there is removed.
    """
    output = output.resolve()
    place = output.parent / f".{output.name}.merging"
    place.mkdir(parents=True, exist_ok=True)
    lock, folder = StudyLock(place), place / "study"
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        yield folder
        if output.is_dir():
            (output / "study.lock").unlink(missing_ok=True)
            output.rmdir()  # it is empty, and not every system renames onto it
        folder.rename(output)
    finally:
        shutil.rmtree(place, ignore_errors=True)
        lock.release()


def _facts_of_all(facts: Sequence[Facts]) -> Facts:
    """The facts of the whole study."""
    return {**{name: value for name, value in facts[0].items() if name != PART},
            "planned": _sum([found.get("planned") for found in facts]),
            SCOPE: _scope([found.get(SCOPE) for found in facts]),
            **{name: _union([found.get(name) for found in facts]) for name in ("estimated", EDITED)}}


def _union(lists: Sequence[Any]) -> list[str] | None:
    """The texts of all lists, or None if there is none."""
    found = {text for texts in lists if isinstance(texts, list) for text in texts if isinstance(text, str)}
    return sorted(found) or None


def _problems(facts: Mapping[Path, Facts]) -> Iterator[Problem]:
    """Why some directories cannot be merged."""
    of: dict[int, list[Path]] = {}
    sizes: dict[int, Path] = {}
    first, *others = facts
    if odd := [Problem(str(folder), text) for folder, found in facts.items() if (text := _oddity(found))]:
        yield from odd
        return
    for folder, found in facts.items():
        number, size = place_of(found) or (0, 0)
        of.setdefault(number, []).append(folder)
        sizes.setdefault(size, folder)
    for folder in others:
        yield from _differences(folder, facts[folder], first, facts[first])
    if len(sizes) > 1:
        yield Problem("", "the study was divided in different ways: " + ", ".join(
            f"{folder} is one of {count(size, 'shard')}" for size, folder in sizes.items()))
        return
    for number, same in sorted(of.items()):
        if len(same) > 1:
            yield Problem("", f"shard {number}/{next(iter(sizes))} is given {len(same)} times: "
                          f"{', '.join(map(str, same))}")
    missing = [f"{i}/{size}" for size in sizes for i in range(1, size + 1) if i not in of]
    if missing:
        yield Problem("", f"{count(len(missing), 'shard')} missing: {listed(missing)}")


def place_of(found: Facts) -> tuple[int, int] | None:
    """Which shard a study is, and of how many, or None."""
    written = re.fullmatch(r"([0-9]{1,6})-of-([0-9]{1,6})", str(found.get(PART)))
    number, of = map(int, written.groups()) if written else (0, 0)
    return (number, of) if 1 <= number <= of else None


def _oddity(found: Facts) -> str | None:
    """Why a study is not a shard, or not one that madplug made; None if it is."""
    if found.get(PART) is None:
        return "is not a shard of a study; run the study with --shard I/N"
    if place_of(found) is None:
        return "is not a shard, or is damaged: which shard it is cannot be read"
    try:
        Scope.from_fact(found.get(SCOPE))
    except ValueError:
        return "is damaged: which debates belong to it cannot be read"
    if not isinstance(found.get("identity") or {}, dict) or not isinstance(found.get("planned"), int | None):
        return "is damaged: what the study is, or how many debates are planned, cannot be read"
    return None


def _differences(folder: Path, found: Facts, first: Path, expected: Facts) -> Iterator[Problem]:
    """What keeps a shard from being merged with the first one."""
    before, now = expected.get("identity") or {}, found.get("identity") or {}
    if before != now:
        what = "; ".join(conflicts(before, now)) or "it has other cells, repeats or metrics"
        yield Problem(str(folder), f"is a shard of another study than {first}: {what}")
        return
    names = {name for name in {*expected, *found} if name.startswith(PREPARED)}
    for name in sorted(n for n in names if expected.get(n) != found.get(n)):
        yield Problem(str(folder), f"'{name.partition('.')[2]}' was prepared differently than in {first}; prepare once "
                      "(madplug run FILE --prepare) and run every shard with --prepared DIR")


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [n for n in numbers if n is not None]
    return sum(known) if len(known) == len(numbers) else None


def _scope(scopes: Sequence[Any]) -> Any:
    """The scope of the whole study: what a shard dropped, a sample or a metric, is dropped."""
    known = [Scope.from_fact(scope) for scope in scopes if scope]
    if not known:
        return None
    dropped = {cell: frozenset[str]().union(*(scope.dropped.get(cell, ()) for scope in known))
               for cell in known[0].metrics}
    metrics = {cell: names.intersection(*(scope.metrics.get(cell, names) for scope in known))
               for cell, names in known[0].metrics.items()}
    return replace(known[0], dropped=dropped, metrics=metrics)


def _manifest(folders: Sequence[Path]) -> dict[str, Any]:
    manifests = [read_manifest(folder) for folder in folders]
    components = {name: facts for manifest in reversed(manifests) for name, facts in manifest["components"].items()}
    return {**manifests[0], "components": components, "runs": [run for m in manifests for run in m["runs"]]}


def _different_data(folders: Sequence[Path]) -> str | None:
    """Says which shards were run on other data than the first one, by the fingerprints in their manifests."""
    first, *others = ((folder, _fingerprints(folder)) for folder in folders)
    names = [str(folder) for folder, found in others if found != first[1]]
    if not names:
        return None
    return (f"{listed(names)}: run on other data than {first[0]}, so samples may be missing or of another version; "
            "run the same run file with the merged directory as --output, which runs again what has changed")


def _fingerprints(folder: Path) -> list[str]:
    """Those of the data; not their places, which may differ from machine to machine."""
    found = read_manifest(folder).get("data")
    return sorted(map(str, found.values())) if isinstance(found, dict) else []


async def _conclude(folders: Sequence[Path], folder: Path, output: Path, facts: Facts) -> Merged:
    """Record what concerns the whole study, and write its summary."""
    summaries = [_summary_of(shard) for shard in folders]
    different = _different_data(folders)
    with closing(open_recorder(folder)) as recorder:
        for name, value in facts.items():
            if value is not None or name == "planned":
                await recorder.keep_fact(name, value)
        if different is not None:
            recorder.keep_problem(different)
    with open_study(folder) as study:
        summary = _summary(study, [_cells_of(found) for found in summaries], facts)
    ended = sum(cell["done"] + cell["failed"] for cell in summary["cells"])
    left = None if facts["planned"] is None else facts["planned"] - ended
    status = "stopped" if left else "failed" if any(cell["failed"] for cell in summary["cells"]) else "finished"
    name = next((found["study"] for found in summaries if isinstance(found.get("study"), str)), output.name)
    summary = {"study": name, "status": status, "ending": None, "reason": None, **summary}
    write_whole(folder / "summary.json", json.dumps(summary, indent=2, ensure_ascii=False))
    own = {name for found in summaries for cell in _cells_of(found).values()
           if isinstance(cell.get("figures"), dict) for name in cell["figures"]}
    remarks = [different] if different is not None else []
    if left:
        remarks.append(f"{count(left, 'debate')} not run yet; finish the shards and merge them into a new directory, "
                       f"or run the same run file with --output {output}")
    return Merged(summary, left, remarks, sorted(own))


def _summary(study: Reader, cells: Sequence[Mapping[str, Facts]], facts: Facts) -> dict[str, Any]:
    """The figures of the whole study. cells: those of each shard's summary by name, as far as it has one.

    What only these say (settings, which metrics are proportions, what preparing has cost) is taken from the first.
    """
    identity, scores, found = facts.get("identity") or {}, scores_by_cell(study.figures()), []
    sums = {cell.cell: cell for cell in study.overview()}
    for slug in identity.get("cells", {}):
        known: Facts = next((each[slug] for each in cells if slug in each), {})
        metrics = {name: figures for each in cells for name, figures in _metrics_of(each.get(slug, {})).items()}
        figures = scores[slug].report(sums.get(slug) or CellOverview(slug),
                                      [name for name, one in metrics.items() if one.get("proportion")])
        order = [name for name in metrics if name in figures["metrics"]]
        figures["metrics"] = {name: figures["metrics"][name] for name in dict.fromkeys([*order, *figures["metrics"]])}
        repeats = identity.get("repeats", 1)
        found.append({"cell": slug, "settings": known.get("settings", {}), "oracle": identity.get("oracle", False),
                      "repeats": repeats, "samples": (figures["done"] + figures["failed"]) // repeats, **figures,
                      "prepared": known.get("prepared", {"calls": 0, "tokens": 0})})
    totals, unknown = study.totals(), any(cell["cost_usd"] is None for cell in found)
    paid = {"calls": totals.calls, "tokens": totals.tokens, "cost_usd": None if unknown else totals.cost_usd}
    return {"problems": study.problems(), "estimated": study.estimated(), "paid": paid, "cells": found}


def _summary_of(folder: Path) -> Facts:
    """The summary of a shard; empty if it has none, or a damaged one."""
    try:
        found = json.loads(read_text(folder / "summary.json"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _cells_of(summary: Facts) -> dict[str, Facts]:
    """The cells of a summary by name."""
    cells = summary.get("cells")
    return {str(cell.get("cell")): cell for cell in cells if isinstance(cell, dict)} if isinstance(cells, list) else {}


def _metrics_of(cell: Facts) -> dict[str, Facts]:
    metrics = cell.get("metrics")
    return {name: found for name, found in metrics.items() if isinstance(found, dict)} \
        if isinstance(metrics, dict) else {}
