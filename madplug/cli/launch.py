"""A study run in the terminal: what it says meanwhile, its result, and the exit status."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from madplug.cli.tables import WIDTH, conclusion, summary_table
from madplug.config import ResolvedStudy
from madplug.registry.installed import Registry
from madplug.store import Recorder
from madplug.study.process import INTERRUPTED, STOPPING, collect_rarely, echo, exit_status, interruptible
from madplug.study.session import Session
from madplug.text import safe


def launch(resolved: ResolvedStudy, folder: Path, *, quiet: bool = False, traced: bool = False,
           registry: Registry | None = None, run: Callable[..., Awaitable[dict[str, Any]]] = Session.run) -> int:
    """Run a study, or resume it; returns the exit status.

    traced: log every hook call. run: runs the session, such as `partial(Session.run, samples=...)`.
    """
    collect_rarely()
    registry = registry or Registry()
    shown = [] if quiet else registry.progress()
    with Session(resolved, folder, traced=traced) as session:
        status = asyncio.run(_run(partial(run, session, shown), session, quiet=quiet))
    if not quiet:
        for line in registry.hints(folder):
            echo(safe(line))
        for problem in registry.problems:
            echo(f"madplug: {safe(str(problem))}", err=True)
    return status


async def _run(run: Callable[..., Awaitable[dict[str, Any]]], session: Session, *, quiet: bool) -> int:
    def say(text: str, color: str | None = None) -> None:
        if not quiet:
            echo(click.style(safe(text), fg=color), err=True)

    try:
        with interruptible(session.interrupt):
            summary = await run(warn=partial(say, color="yellow"), stopping=partial(say, STOPPING))
    except asyncio.CancelledError:
        say("stopped; run the same command to resume")
        return INTERRUPTED
    _conclude(summary, session.recorder, session.folder, quiet=quiet)
    return exit_status(summary)


def _conclude(summary: Mapping[str, Any], recorder: Recorder, folder: Path, *, quiet: bool) -> None:
    if not quiet:
        width = shutil.get_terminal_size((WIDTH, 24)).columns
        echo(f"{summary['study']}: {summary['status']}\n\n{summary_table(summary, width)}\n")
        if sentence := conclusion(summary):
            echo(f"{textwrap.fill(sentence, width) if sys.stdout.isatty() else sentence}\n")
    for text in summary["problems"]:
        echo(f"problem: {safe(text)}", err=True)
    rows = recorder.figures() if any(cell["failed"] for cell in summary["cells"]) else ()
    errors = Counter(row["error"] for row in rows if row["error"]).most_common()
    for error, times in errors[:5]:
        echo(f"{times} failed: {safe(error)}", err=True)
    if rest := sum(times for _, times in errors[5:]):
        echo(f"{rest} more failed in other ways", err=True)
    if summary["reason"]:
        spent = summary["ending"] == "limit" and not summary["reason"].startswith("limits.seconds")  # those are a run's
        again = "run the same command with a higher limit to resume" if spent else "run the same command to resume"
        more = "" if summary["ending"] in ("decided", "unfinished") else f"; {again}"
        echo(f"stopped: {safe(summary['reason'])}; everything so far is saved{more}", err=True)
    if not quiet:
        echo(f"results saved in {folder}{os.sep}")
