"""A study run in the terminal: its progress, its result, and the exit status."""

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

from madplug.cli.tables import WIDTH, conclusion, summary_table
from madplug.cli.terminal import Terminal
from madplug.config import ResolvedStudy
from madplug.store import DebateId, Recorder
from madplug.study.process import INTERRUPTED, STOPPING, collect_rarely, echo, exit_status, interruptible
from madplug.study.session import Session
from madplug.text import count, safe


def launch(resolved: ResolvedStudy, folder: Path, *, quiet: bool = False, traced: bool = False,
           run: Callable[..., Awaitable[dict[str, Any]]] = Session.run) -> int:
    """Run a study, or resume it; returns the exit status.

    traced: log every hook call. run: runs the session, such as `partial(Session.run, samples=...)`.
    """
    collect_rarely()
    with Session(resolved, folder, traced=traced) as session:
        return asyncio.run(_run(partial(run, session), session, Terminal(quiet=quiet)))


async def _run(run: Callable[..., Awaitable[dict[str, Any]]], session: Session, terminal: Terminal) -> int:
    try:
        with interruptible(session.interrupt):
            summary = await run([terminal], warn=lambda text: terminal.say(text, "yellow"),
                                stopping=lambda: terminal.say(STOPPING))
    except asyncio.CancelledError:
        terminal.say("stopped; run the same command to resume")
        return INTERRUPTED
    finally:
        terminal.close()
    _conclude(summary, session.recorder, session.folder, quiet=terminal.quiet)
    return exit_status(summary)


def _conclude(summary: Mapping[str, Any], recorder: Recorder, folder: Path, *, quiet: bool) -> None:
    if not quiet:
        width = shutil.get_terminal_size((WIDTH, 24)).columns
        echo(f"{summary['study']}: {summary['status']}\n\n{summary_table(summary, width)}\n")
        if sentence := conclusion(summary):
            echo(f"{textwrap.fill(sentence, width) if sys.stdout.isatty() else sentence}\n")
    for text in summary["problems"]:
        echo(f"problem: {safe(text)}", err=True)
    for cell in [] if quiet else [cell for cell in summary["cells"] if cell["fallback"]]:
        first = next(row for row in recorder.figures(cell["cell"]) if row["decided"] > 2)
        result = recorder.result(DebateId(first["cell"], first["repeat"], first["sample"]))
        why = result.decision.reason if result is not None and result.decision else ""
        echo(f"{cell['fallback']} of {count(cell['done'], 'debate')} of '{safe(cell['cell'])}' were decided by the "
             f"fallback ({safe(why)}); madplug read {folder} --fallback lists them", err=True)
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
