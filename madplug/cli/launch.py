"""A study run in the terminal: what it says meanwhile, its result, and the exit status."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from madplug.config import ResolvedStudy
from madplug.registry.installed import Registry
from madplug.store import Reader
from madplug.study.process import INTERRUPTED, STOPPING, collect_rarely, echo, exit_status, interruptible
from madplug.study.session import Session
from madplug.text import dollars, safe


def launch(resolved: ResolvedStudy, folder: Path, *, quiet: bool = False, traced: bool = False,
           registry: Registry | None = None, run: Callable[..., Awaitable[dict[str, Any]]] = Session.run) -> int:
    """Run a study, or resume it; returns the exit status.

    traced: log every hook call. run: runs the session, such as `partial(Session.run, samples=...)`.
    """
    collect_rarely()
    registry = registry or Registry()
    shown = [] if quiet else registry.progress()
    with Session(resolved, folder, traced=traced) as session:
        summary = asyncio.run(_run(partial(run, session, shown), session, quiet=quiet))
        if summary is not None and not quiet:
            echo(f"{registry.results(summary)}\n")
        for line in () if summary is None else endings(summary, session.recorder):
            echo(safe(line), err=True)
    if not quiet:
        if summary is not None:
            echo(f"results saved in {folder}{os.sep}")
        for line in registry.hints(folder):
            echo(safe(line))
        for problem in registry.problems:
            echo(f"madplug: {safe(str(problem))}", err=True)
    return INTERRUPTED if summary is None else exit_status(summary)


async def _run(run: Callable[..., Awaitable[dict[str, Any]]], session: Session, *,
               quiet: bool) -> dict[str, Any] | None:
    """The summary, or None if the study was stopped before there was one."""
    def say(text: str, color: str | None = None) -> None:
        if not quiet:
            echo(click.style(safe(text), fg=color), err=True)

    try:
        with interruptible(session.interrupt):
            return await run(warn=partial(say, color="yellow"), stopping=partial(say, STOPPING))
    except asyncio.CancelledError:
        say("stopped; run the same command to resume")
        return None


def endings(summary: Mapping[str, Any], recorded: Reader) -> Iterator[str]:
    """The problems of a study, the errors of debates that failed, and why it was stopped."""
    yield from (f"problem: {text}" for text in summary["problems"])
    rows = recorded.figures() if any(cell["failed"] for cell in summary["cells"]) else ()
    errors = Counter(row["error"] for row in rows if row["error"]).most_common()
    yield from (f"{times} failed: {error}" for error, times in errors[:5])
    if rest := sum(times for _, times in errors[5:]):
        yield f"{rest} more failed in other ways"
    if summary["reason"]:
        spent = summary["ending"] == "limit" and not summary["reason"].startswith("limits.seconds")  # those are a run's
        paid, limit = summary["paid"], summary["reason"].partition(":")[0]
        known = {"limits.tokens": f"{paid['tokens']:,}"}
        if paid["cost_usd"] is not None:
            known["limits.cost_usd"] = f"${dollars(paid['cost_usd'])}"
        used = f" ({known[limit]} with the calls in flight)" if limit in known else ""
        again = "run the same command with a higher limit to resume" if spent else "run the same command to resume"
        again = f"put that right, and {again}" if summary["ending"] == "unusable" else again
        more = "" if summary["ending"] in ("decided", "unfinished") else f"; {again}"
        yield f"stopped: {summary['reason']}{used}; everything so far is saved{more}"
