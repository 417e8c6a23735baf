"""What lies in a study's directory beside its records: whose study it is, and what ran it."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, TypeAdapter
from typing_extensions import NotRequired, TypedDict

from madplug.component import nested_in
from madplug.errors import UserError, listed
from madplug.rows import plain
from madplug.store import SCOPE, Reader, Recorder, Scope
from madplug.study.compatibility import conflicts, is_cell, known_cells, refusal
from madplug.study.files import read_text, write_whole

if TYPE_CHECKING:
    from madplug.config import ResolvedStudy

RECORDS = "study.db"
PART = "part"
"""The fact that names the part of the study that is in a directory."""
PRICES = "prices"
"""The fact with the price of each model in the latest run."""
CELLS = "known_cells"
"""The fact with every cell that was ever run, which exists once the study has changed."""

OWN_FILES = ("study.db", "study.toml", "study.lock", "manifest.json", "summary.json", "log.jsonl")


class _Version(TypedDict):
    distribution: str
    version: str
    code: NotRequired[str]


class _Manifest(TypedDict):
    """What is read of a manifest; the rest is kept as it is."""

    __pydantic_config__ = ConfigDict(extra="allow", strict=True)  # type: ignore[misc]
    components: dict[str, _Version]
    runs: list[Any]


def check_folder(folder: Path) -> None:
    """Refuse a directory that has other files in it and no study: nothing of anybody else's is overwritten."""
    try:
        found = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        (folder / RECORDS).lstat()
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{str(folder)!r:.200}: cannot be used: {reason}; choose another directory with --output"
                        ) from None
    others = [name for name in found if not name.startswith(("study.db", "study.lock"))]
    if RECORDS not in found and others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise UserError(f"{folder}: is not empty ('{others[0]}'{more}) and has no study in it; choose an empty or new "
                        "directory with --output")


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a study's directory, empty where there is none yet.

    Raises `UserError` for a file that is not one.
    """
    path = folder / "manifest.json"
    try:
        return dict(TypeAdapter(_Manifest).validate_json(read_text(path)))
    except FileNotFoundError:
        return {"components": {}, "runs": []}
    except (OSError, ValueError):
        raise UserError(f"{path}: is not the manifest of a study; move it away, or choose another directory with "
                        "--output") from None


def decided_from(manifest: Mapping[str, Any]) -> str:
    """The name of the directory whose debates a study decides again, if its manifest has it; of one that does so."""
    runs = manifest.get("runs")
    reused = [run.get("reuse") for run in runs if isinstance(run, Mapping)] if isinstance(runs, list) else []
    return next((Path(str(paths[0])).name for paths in reversed(reused) if isinstance(paths, list) and paths), "")


def check_same_study(resolved: ResolvedStudy, recorder: Recorder, folder: Path) -> Iterator[str]:
    """Refuse the directory of another study, or of another part of it; warn of prices that have changed."""
    check_facts(recorder, folder)
    before, now = recorder.fact("identity"), plain(resolved.identity)
    parts = recorder.fact(PART) or "", resolved.part
    if before is not None and parts[0] != parts[1]:
        has, wanted = (f"part {part!s:.40}" if part else "the whole study" for part in parts)
        raise UserError(f"{folder}: contains {has} and not {wanted}; choose another directory with --output")
    if before is None or not _finished(recorder):
        return
    if found := changed_settings(resolved, recorder):
        raise UserError(f"{folder}: {refusal(found)}")
    if gone := [slug for slug in before.get("cells", {}) if slug not in now["cells"]]:
        yield (f"cells that the run file no longer has: {', '.join(gone)}; their debates stay on record, and are shown "
               "again once it has them")
    shown = recorder.reported().scope.metrics
    if gone := sorted({name for cell in resolved.plan.cells for name in shown.get(cell.slug, ())
                       if name not in cell.metrics}):
        yield (f"metrics that the run file no longer has: {', '.join(gone)}; their scores stay on record, and are "
               "shown again once it has them")
    paid = recorder.fact(PRICES)
    paid = paid if isinstance(paid, dict) else {}
    if dearer := [name for name, price in prices(resolved).items() if paid.get(name) not in (None, price)]:
        yield f"the price of {listed(dearer)} has changed; calls on record keep what they cost"


def edited_components(resolved: ResolvedStudy, recorder: Recorder, folder: Path) -> dict[str, set[str]]:
    """Warnings of components of debates on record that have changed since, each with the cells that it affects.

    A metric affects none: debates on record are scored again.
    """
    from madplug.registry.offers import versions  # components need not be imported to read a manifest

    found: dict[str, set[str]] = {}
    if not (finished := _finished(recorder)):
        return found
    plan, old = resolved.plan, read_manifest(folder)["components"]
    used = {cell.slug: {f"{own.kind} {own.full_name}" for own in [*cell.components(), *(
        own for name in cell.channels.values() for own in (plan.models[name], *nested_in(plan.models[name])))]}
        for cell in plan.cells}
    for name, new in versions(resolved.offers.values()).items():
        was, cells = {**new, **old.get(name, {})}, {slug for slug, own in used.items() if name in own}
        if was != new and cells & finished:
            before, after = (f"{one['distribution']} {one['version']:.20}" for one in (was, new))
            text = (f"{name} was {before} when this study began and is {after} now; " if before != after else
                    f"{name}: the code of {after} has changed since this study began; ")
            scored = name.startswith("metric ")
            told = "are scored again" if scored else (
                "stay as they are, and may not be comparable with new ones; with another --output all are new")
            found[f"{text}debates on record {told}"] = set() if scored else cells
    return found


def prices(resolved: ResolvedStudy) -> dict[str, Any]:
    """The price of each model, None where it is not known."""
    return {name: plain(model.price) for name, model in resolved.plan.models.items()}


def changed_settings(resolved: ResolvedStudy, recorded: Reader) -> list[str]:
    """In which of its settings a study would change debates on record, in words."""
    before = recorded.fact("identity")
    finished = _finished(recorded)
    if before is None or not finished:
        return []  # nothing was decided with other settings yet, and a call's key says with which it was answered
    cells = {slug: cell for slug, cell in known_cells(recorded.fact(CELLS), before).items() if slug in finished}
    return conflicts({**before, "cells": cells}, plain(resolved.identity))


def _finished(recorded: Reader) -> set[str]:
    """The cells of which a debate need not be run again."""
    return {cell for cell, in recorded.rows("SELECT DISTINCT cell FROM debates WHERE outcome = 'done'")}


def check_facts(recorder: Reader | Recorder, folder: Path) -> None:
    """Refuse a study whose facts, on which a run builds, are not as madplug wrote them."""
    for name in ("identity", CELLS):
        fact = recorder.fact(name)
        cells = fact.get("cells", {}) if name == "identity" and isinstance(fact, dict) else fact
        if fact is not None and not (isinstance(cells, dict) and all(map(is_cell, cells.values()))):
            raise UserError(f"{folder}: {RECORDS}: the record of the fact '{name}' cannot be read: it is not a table")
    try:
        Scope.from_fact(recorder.fact(SCOPE))
    except ValueError as error:
        raise UserError(f"{folder}: {RECORDS}: the record of the fact '{SCOPE}' cannot be read: {error}") from None


async def keep_identity(resolved: ResolvedStudy, recorder: Recorder) -> None:
    """Record what the study is now, and every cell that it has ever had."""
    before, now = recorder.fact("identity"), plain(resolved.identity)
    if before == now:
        return
    if before is not None:
        await recorder.keep_fact(CELLS, known_cells(known_cells(recorder.fact(CELLS), before), now))
    await recorder.keep_fact("identity", now)


def write_provenance(resolved: ResolvedStudy, folder: Path) -> None:
    """Write the expanded run file once, and what ran it, each time."""
    import tomli_w

    from madplug._version import __version__
    from madplug.registry.offers import versions
    from madplug.study.trust import remember

    write_whole(folder / "study.toml", tomli_w.dumps(resolved.expanded()))
    remember(folder)
    old = read_manifest(folder)
    run: dict[str, Any] = {"started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "madplug": __version__,
           "python": platform.python_version(), "platform": platform.platform(), "pid": os.getpid()}
    if files := {offer.written_as or offer.name: offer.version for offer in resolved.offers.values()
                 if ":" in offer.name}:
        run["local"] = files
    if resolved.reuse:
        run["reuse"] = [str(path) for path in resolved.reuse]
    datasets = {cell.dataset_key: cell.dataset for cell in resolved.plan.cells if cell.dataset is not None}
    data = {key: dataset.fingerprint() for key, dataset in datasets.items()}
    manifest = {"madplug": old.get("madplug", __version__), "data": data,
                "components": {**versions(resolved.offers.values()), **old["components"]}, "runs": [*old["runs"], run]}
    write_whole(folder / "manifest.json", json.dumps(manifest, indent=2, ensure_ascii=False))
