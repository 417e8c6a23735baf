"""The shards of a study merged into one study, equal to the one run in one piece."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from madplug.aio import maybe_await
from madplug.calls.gateway import Gateway
from madplug.components import Metric
from madplug.config import load
from madplug.config.read import read
from madplug.debate.checks import describe_error
from madplug.errors import ComponentError, Problem, UserError, listed
from madplug.records import Answered, Caller, Request
from madplug.registry.local import is_file_reference
from madplug.rows import plain
from madplug.shards import FACT, KEPT, Shard
from madplug.store import open_recorder, open_study
from madplug.store.merge import copy_records, facts_of
from madplug.store.scope import FACT as SCOPE
from madplug.store.scope import Scope
from madplug.study.compatibility import conflicts, strings
from madplug.study.directory import check_folder, read_manifest
from madplug.study.files import read_text, write_whole
from madplug.study.run import StudyRun
from madplug.study.setup import CellSetup
from madplug.study.summary import summarise
from madplug.study.trust import confirm
from madplug.text import count


class Merged:
    """What a merge has made."""

    def __init__(self, summary: Mapping[str, Any], left: int | None, different_data: str | None = None) -> None:
        self.different_data = different_data
        """Says which shards were run on other data than the first one; it is among the summary's problems, too."""
        self.summary = summary
        """As in `summary.json`."""
        self.left = left
        """Debates that no shard has run yet, or None if that is unknown."""


def merge(folders: Sequence[Path], output: Path, *, yes: bool = True) -> Merged:
    """Make one study of all shards of it. Raises `UserError` with everything that is missing, twice or foreign.

    yes: the local files that the shards name may be executed, whoever ran them.
    """
    if any(os.path.realpath(folder) == os.path.realpath(output) for folder in folders):
        raise UserError(f"--output {output}: is one of the shards; name another directory")
    check_folder(output)
    if (output / "study.db").exists():
        raise UserError(f"{output}: has a study in it already; choose a new directory with --output")
    facts = {folder: facts_of(folder) for folder in folders}
    if problems := list(_problems(facts)):
        raise UserError(problems)
    folders = sorted(facts, key=lambda folder: int(facts[folder][FACT]["number"]))
    for folder in folders:
        _check_files(folder, yes=yes)
    copy_records(folders, output)
    first = facts[folders[0]]
    kept = {name: value for name, value in first.items() if name not in (FACT, "planned", SCOPE)}
    kept["planned"] = _sum([facts[folder].get("planned") for folder in folders])
    kept[SCOPE] = _scope([facts[folder].get(SCOPE) for folder in folders])
    write_whole(output / "study.toml", read_text(folders[0] / "study.toml"))
    write_whole(output / "manifest.json", json.dumps(_manifest(folders), indent=2, ensure_ascii=False))
    return asyncio.run(_summarise(folders, output, kept))


def _check_files(folder: Path, *, yes: bool) -> None:
    """Ask before local files that a shard names are executed: its metrics may be among them."""
    table = read(folder / "study.toml", (), {})
    if any(map(is_file_reference, strings(table))):
        confirm(folder, table, yes=yes)


def _problems(facts: Mapping[Path, Mapping[str, Any]]) -> Iterator[Problem]:
    """Why some directories cannot be merged."""
    of: dict[int, list[Path]] = {}
    sizes: dict[int, Path] = {}
    first, *others = facts
    if odd := [Problem(str(folder), text) for folder, found in facts.items() if (text := _oddity(found))]:
        yield from odd
        return
    for folder, found in facts.items():
        of.setdefault(found[FACT]["number"], []).append(folder)
        sizes.setdefault(found[FACT]["of"], folder)
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


def _oddity(found: Mapping[str, Any]) -> str | None:
    """Why a study is not a shard, or not one that madplug made; None if it is."""
    shard, planned = found.get(FACT), found.get("planned")
    if not isinstance(shard, dict):
        return "is not a shard of a study; run the study with --shard I/N"
    numbers = shard.get("number"), shard.get("of")
    try:
        Shard.parse("/".join(map(str, numbers)))
        Scope.from_fact(found.get(SCOPE))
    except (UserError, ValueError):
        return "is damaged: which shard it is, or which debates belong to it, cannot be read"
    if not all(isinstance(number, int) for number in numbers):
        return "is damaged: which shard it is cannot be read"
    if not isinstance(found.get("identity") or {}, dict) or not isinstance(planned, int | None):
        return "is damaged: what the study is, or how many debates are planned, cannot be read"
    return None


def _differences(folder: Path, found: Mapping[str, Any], first: Path, expected: Mapping[str, Any]) -> Iterator[Problem]:
    """What keeps a shard from being merged with the first one."""
    before, now = expected.get("identity") or {}, found.get("identity") or {}
    if before != now:
        what = "; ".join(conflicts(before, now)) or "it has other cells, repeats or metrics"
        yield Problem(str(folder), f"is a shard of another study than {first}: {what}")
        return
    names = {name for name in {*expected, *found} if name.startswith(KEPT)}
    for name in sorted(n for n in names if expected.get(n) != found.get(n)):
        yield Problem(str(folder), f"'{name.partition('.')[2]}' was prepared differently than in {first}; prepare once "
                      "(madplug run FILE --prepare) and run every shard with --prepared DIR")


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [n for n in numbers if n is not None]
    return sum(known) if len(known) == len(numbers) else None


def _scope(scopes: Sequence[Any]) -> Any:
    """The scope of the whole study: a sample that a shard dropped is dropped."""
    found = next((dict(scope) for scope in scopes if scope), None)
    if found is not None:
        dropped: dict[str, set[str]] = {}
        for scope in scopes:
            for cell, ids in ((scope or {}).get("dropped") or {}).items():
                dropped.setdefault(cell, set()).update(ids)
        found["dropped"] = {cell: sorted(ids) for cell, ids in dropped.items()}
    return found


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


async def _summarise(folders: Sequence[Path], output: Path, facts: Mapping[str, Any]) -> Merged:
    """Record what concerns the whole study, and write its summary."""
    plan = load(output / "study.toml", environ={}).plan
    different = _different_data(folders)
    with closing(open_recorder(output)) as recorder:
        for name, value in facts.items():
            if value is not None or name == "planned":
                await recorder.keep_fact(name, value)
        run = StudyRun(plan, recorder)
        ended = 0
        for row in recorder.figures():
            ended += 1
            run.driver.failed += row["error"] is not None
        with open_study(output) as study:
            run.problems += study.problems()
        if different is not None:
            run.problems.append(different)
            await recorder.keep_problem(different)
        async for text in _prepare_metrics(run):
            run.problems.append(text)
            await recorder.keep_problem(text)
        summary = plain(summarise(run))
    prepared = {cell.get("cell"): cell for cell in _summary_of(folders[0]).get("cells", [])}
    for cell in summary["cells"]:
        cell["prepared"] = prepared.get(cell["cell"], cell).get("prepared", cell["prepared"])
        cell["settings"] = prepared.get(cell["cell"], cell).get("settings", cell["settings"])
    left = None if facts["planned"] is None else facts["planned"] - ended
    summary["status"] = "stopped" if left else summary["status"]
    write_whole(output / "summary.json", json.dumps(summary, indent=2, ensure_ascii=False))
    return Merged(summary, left, different)


class _WithoutCalls:
    """A client for components that take up again what they prepared in the shards; no model is asked to merge."""

    def __init__(self, gateway: Gateway) -> None:
        self.identity = gateway.identity

    async def send(self, caller: Caller, request: Request, body: str) -> Answered:
        """Raise `ComponentError`."""
        raise ComponentError("what it prepared is not in the shards, and no model is asked to merge them")


async def _prepare_metrics(run: StudyRun) -> AsyncIterator[str]:
    """Prepare the metrics with figures for whole cells: some rest on what was prepared, such as a calibration.

    Yields what went wrong.
    """
    for cell in run.plan.cells:
        setup = CellSetup(cell, _WithoutCalls(run.worker.gateway), run.driver, run.plan.seed)
        for name, metric in cell.metrics.items():
            if type(metric).summarise is not Metric.summarise:
                try:
                    await maybe_await(metric.prepare(setup))
                except Exception as error:
                    yield (f"metric {name}: its figures are incomplete: {describe_error(error)}")


def _summary_of(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_text(folder / "summary.json"))
    except (OSError, ValueError, RecursionError):
        return {}
    cells = found.get("cells") if isinstance(found, dict) else None
    return {"cells": [cell for cell in cells if isinstance(cell, dict)] if isinstance(cells, list) else []}
