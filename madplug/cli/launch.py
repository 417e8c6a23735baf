"""A study run in the terminal: what it says meanwhile, its result, and the exit status."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import click

from madplug.cli.tables import WIDTH, conclusion, summary_table
from madplug.config import ResolvedStudy
from madplug.registry.installed import Registry
from madplug.store import DebateId, Recorder
from madplug.study.process import INTERRUPTED, STOPPING, collect_rarely, echo, exit_status, interruptible
from madplug.study.session import Session
from madplug.text import count, safe

MOST_CELLS, LOOKED_AT = 6, 100
"""Of how many cells is told how debates ended, and the debates of each whose reasons are compared."""
_TOLD: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], bool]]] = {
    "undecided": ("{} ended undecided", lambda row: row["error"] is None and not row["decided"]),
    "fallback": ("{} were decided by the fallback", lambda row: row["decided"] > 2),
    "unread": ("in {} an answer, a ballot or another reply could not be read", lambda row: False)}


def launch(resolved: ResolvedStudy, folder: Path, *, quiet: bool = False, traced: bool = False,
           run: Callable[..., Awaitable[dict[str, Any]]] = Session.run) -> int:
    """Run a study, or resume it; returns the exit status.

    traced: log every hook call. run: runs the session, such as `partial(Session.run, samples=...)`.
    """
    collect_rarely()
    with Session(resolved, folder, traced=traced) as session:
        return asyncio.run(_run(partial(run, session), session, quiet=quiet))


async def _run(run: Callable[..., Awaitable[dict[str, Any]]], session: Session, *, quiet: bool) -> int:
    def say(text: str, color: str | None = None) -> None:
        if not quiet:
            echo(click.style(safe(text), fg=color), err=True)

    try:
        with interruptible(session.interrupt):
            summary = await run([] if quiet else Registry().progress(), warn=partial(say, color="yellow"),
                                stopping=partial(say, STOPPING))
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
    for sentence in () if quiet else _told(summary["cells"], recorder, folder):
        echo(sentence, err=True)
    failed = any(cell["failed"] for cell in summary["cells"])
    errors = Counter(row["error"] for row in recorder.figures() if row["error"]) if failed else Counter[str]()
    for error, times in errors.most_common(5):
        echo(f"{times} failed: {safe(error)}", err=True)
    if summary["reason"]:
        spent = summary["ending"] == "limit" and not summary["reason"].startswith("limits.seconds")  # those are a run's
        again = "run the same command with a higher limit to resume" if spent else "run the same command to resume"
        more = "" if summary["ending"] == "decided" else f"; {again}"
        echo(f"stopped: {safe(summary['reason'])}; everything so far is saved{more}", err=True)
    if not quiet:
        echo(f"results saved in {folder}{os.sep}")


def _told(cells: Sequence[Mapping[str, Any]], recorder: Recorder, folder: Path) -> Iterator[str]:
    """How debates ended that a user should know of, with the commonest reason, for the cells with most of them."""
    for name, (what, has) in _TOLD.items():
        found = sorted((cell for cell in cells if cell[name]), key=lambda cell: -cell[name])
        for cell in found[:MOST_CELLS]:
            rows = (row for row in recorder.figures(cell["cell"]) if has(row))
            ids = (DebateId(row["cell"], row["repeat"], row["sample"]) for row in islice(rows, LOOKED_AT))
            reasons = Counter(result.decision.reason for id in ids
                              if (result := recorder.result(id)) and result.decision)
            why = "".join(f" ({safe(reason)})" for reason, _ in reasons.most_common(1))
            many = f"{cell[name]} of {count(cell['done'], 'debate')} of '{safe(cell['cell'])}'"
            yield f"{what.format(many)}{why}; madplug read {folder} --{name} lists them"
        if len(found) > MOST_CELLS:
            yield what.format(f"debates of {count(len(found) - MOST_CELLS, 'more cell')}")
