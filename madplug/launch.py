"""Running a study in its directory: provenance, resuming, signals, limits, and how it ends."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import platform
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from madplug.config import ResolvedStudy
from madplug.config import resolved as spell_out
from madplug.errors import StudyError, UserError
from madplug.log import open_log, trace
from madplug.registry import versions
from madplug.rows import plain
from madplug.store import StudyStore
from madplug.study import StudyRun
from madplug.terminal import Watcher, summary_table
from madplug.text import safe

FINISHED, SOME_FAILED, LIMIT, INTERRUPTED = 0, 1, 3, 130


def launch(resolved: ResolvedStudy, folder: Path, *, quiet: bool = False, messages: bool = False, traced: bool = False,
           kind: Callable[..., StudyRun] = StudyRun) -> int:
    """Run a study, or continue it; returns the exit status. kind: how its debates are held."""
    store = StudyStore(folder, write=True)
    collect_rarely()
    try:
        try:
            warnings = list(_same_study(resolved, store, folder))
            _provenance(resolved, folder)
            (folder / "summary.json").unlink(missing_ok=True)  # an earlier run's figures are not this one's
            log = open_log(folder)
            for cell in resolved.plan.cells if traced else ():
                trace(cell, log)
        except OSError as error:
            raise UserError(f"{folder}: cannot be used: {error}; choose another directory with --output") from None
        return asyncio.run(_run(resolved, store, folder, log, warnings, kind, quiet=quiet, messages=messages))
    finally:
        store.close()


def collect_rarely() -> None:
    """Let this process's garbage collector pass over what is imported: a sixth of a run's time otherwise."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


async def _run(resolved: ResolvedStudy, store: StudyStore, folder: Path, log: Any, warnings: list[str],
               kind: Callable[..., StudyRun], *, quiet: bool, messages: bool) -> int:
    total, done = planned(resolved), len(store.done())
    if store.fact("identity") is None:
        await store.keep_fact("identity", resolved.identity)
    await store.keep_fact("planned", total)
    await store.forget_problems()
    watcher = Watcher(total, done, messages=messages, quiet=quiet)

    def warn(text: str) -> None:
        log.warning("warning", text=text)
        watcher.say(text, "yellow")

    run = kind(resolved.plan, store, [watcher], lambda text: log.warning("problem", text=text), warn)
    watcher.run = run
    for text in warnings:
        watcher.say(text, "yellow")
    interrupts = _signals(run, watcher)
    log.info("run", study=resolved.plan.name, done=done, planned=total)
    try:
        with watcher:
            summary = await run.run()
    except asyncio.CancelledError:
        watcher.say("stopped; the same command continues")
        return INTERRUPTED
    except StudyError as error:
        with suppress(OSError):  # the log lies on the same disk
            log.error("stopped", reason=str(error))
        raise
    _write(folder / "summary.json", json.dumps(plain(summary), indent=2, ensure_ascii=False))
    log.info("ended", status=summary["status"], reason=summary["reason"], paid=summary["paid"])
    _conclude(summary, run, folder, quiet=quiet)
    return _status(summary, run, interrupted=bool(interrupts))


def planned(resolved: ResolvedStudy) -> int | None:
    """How many debates the study has, where the data sets know their size and no extension chooses samples."""
    if any(hasattr(e, "madplug_samples") for cell in resolved.plan.cells for e in cell.extensions):
        return None
    sizes = [cell.dataset.size() if cell.dataset else None for cell in resolved.plan.cells]
    known = [size for size in sizes if size is not None]
    return sum(known) * resolved.plan.repeats if len(known) == len(sizes) else None


def _same_study(resolved: ResolvedStudy, store: StudyStore, folder: Path) -> Iterator[str]:
    """Refuse the directory of another study; warn of plugins that have changed since."""
    before, now = store.fact("identity"), json.loads(json.dumps(plain(resolved.identity)))
    if before is None:
        return
    if before != now:
        where = list(differences(before, now))
        more = f" (and {len(where) - 5} more)" if len(where) > 5 else ""
        raise UserError(f"{folder}: holds another study; it differs in {'; '.join(where[:5])}{more}. "
                        "Choose another directory with --output, or go back to the run file it was made with")
    with suppress(OSError, ValueError):
        old = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["components"]
        for name, new in versions(resolved.offers.values()).items():
            if name in old and old[name] != new:
                yield (f"{name} was {old[name]['distribution']} {old[name]['version']} when this study began and is "
                       f"{new['distribution']} {new['version']} now; its debates may not compare")


def differences(a: Any, b: Any, place: str = "") -> Iterator[str]:
    """Where two nested tables differ, as dotted keys with both values."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in dict.fromkeys([*a, *b]):
            yield from differences(a.get(key), b.get(key), f"{place}.{key}".strip("."))
    elif a != b:
        yield f"{place}: {_brief(a)} there, {_brief(b)} here"


def _brief(value: Any) -> str:
    if isinstance(value, Mapping | list):
        return f"a table of {len(value)}"
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _provenance(resolved: ResolvedStudy, folder: Path) -> None:
    """Write the expanded run file once, and what ran it, each time."""
    import tomli_w

    from madplug import __version__

    plan = resolved.plan
    expanded = {
        "name": plan.name, "seed": plan.seed, "repeats": plan.repeats, "share_completions": plan.share_completions,
        "oracle": any(cell.oracle for cell in plan.cells),
        "cells": [{"name": c.slug, **spell_out(c, plan.models)} for c in plan.cells]}
    _write(folder / "study.toml", tomli_w.dumps(_without_none(plain(expanded))))
    path = folder / "manifest.json"
    old: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    run = {"started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "madplug": __version__,
           "python": platform.python_version(), "platform": platform.platform(), "pid": os.getpid()}
    manifest = {"madplug": old.get("madplug", __version__), "data": resolved.identity["data"],
                "components": {**versions(resolved.offers.values()), **old.get("components", {})},
                "runs": [*old.get("runs", []), run]}
    _write(path, json.dumps(manifest, indent=2, ensure_ascii=False))


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_none(v) for k, v in value.items() if v is not None}
    return [_without_none(v) for v in value if v is not None] if isinstance(value, list) else value


def _write(path: Path, text: str) -> None:
    """All of it or nothing: written beside, then renamed."""
    beside = path.with_name(path.name + ".part")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def _signals(run: StudyRun, watcher: Watcher) -> list[int]:
    """The first interrupt finishes the calls in flight, the second stops at once."""
    came: list[int] = []
    task = asyncio.current_task()

    def interrupted(number: int) -> None:
        came.append(number)
        if len(came) == 1:
            watcher.say("stopping: the calls in flight are finished and kept; press Ctrl-C again to stop at once")
            run.stop("interrupted")
        elif task:
            task.cancel()

    with suppress(NotImplementedError, ValueError, RuntimeError):  # not on Windows, not outside the main thread
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, interrupted, number)
    return came


def _conclude(summary: Mapping[str, Any], run: StudyRun, folder: Path, *, quiet: bool) -> None:
    """The result on standard output, and what went wrong beside it."""
    if not quiet:
        click.echo(f"{summary['study']}: {summary['status']}\n\n{summary_table(summary)}\n")
    for text in summary["problems"]:
        click.echo(f"problem: {safe(text)}", err=True)
    for error, count in failures(run.store):
        click.echo(f"{count} failed: {safe(error)}", err=True)
    if summary["reason"]:
        click.echo(f"stopped: {safe(summary['reason'])}; what was recorded is kept, and the same command continues",
                   err=True)
    if not quiet:
        click.echo(f"kept in {folder}{os.sep}")


def failures(store: Any, most: int = 5) -> list[tuple[str, int]]:
    """The commonest errors of failed debates, with their counts."""
    counts: dict[str, int] = {}
    for row in store.figures():
        if row["error"]:
            counts[row["error"]] = counts.get(row["error"], 0) + 1
    return sorted(counts.items(), key=lambda item: -item[1])[:most]


def _status(summary: Mapping[str, Any], run: StudyRun, *, interrupted: bool) -> int:
    if interrupted:
        return INTERRUPTED
    if str(summary["reason"] or "").startswith("limits."):
        return LIMIT
    failed = summary["status"] != "finished" or summary["problems"] or run.failed
    return SOME_FAILED if failed else FINISHED
