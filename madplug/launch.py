"""Running a study in its directory: signals, limits, and how it ends."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from madplug.config import ResolvedStudy
from madplug.directory import check_folder, check_same_study, write_provenance, write_whole
from madplug.driver import Ending
from madplug.errors import StudyError, UserError
from madplug.log import open_log, trace
from madplug.redecide import Redecider
from madplug.rows import plain
from madplug.store import Recorder, open_recorder
from madplug.study import StudyRun
from madplug.terminal import Terminal, summary_table
from madplug.text import safe

FINISHED, SOME_FAILED, LIMIT, INTERRUPTED = 0, 1, 3, 130
PATIENCE = 2.0
"""Seconds between a second interrupt and the interruption of whatever code is running, and from then to the end of the
process."""


def launch(resolved: ResolvedStudy, folder: Path, *, quiet: bool = False, messages: bool = False,
           traced: bool = False, redecider: Redecider | None = None) -> int:
    """Run a study, or resume it; returns the exit status.

    messages: show every message. traced: log every hook call. redecider: decide recorded debates again instead.
    """
    check_folder(folder)
    collect_rarely()
    with ExitStack() as stack:
        recorder = stack.enter_context(closing(open_recorder(folder)))
        try:
            warnings = list(check_same_study(resolved, recorder, folder))
            write_provenance(resolved, folder)
            (folder / "summary.json").unlink(missing_ok=True)  # an earlier run's figures are not this one's
            log = stack.enter_context(open_log(folder))
            for cell in resolved.plan.cells if traced else ():
                trace(cell, log)
        except OSError as error:
            raise UserError(f"{folder}: cannot be used: {error}; choose another directory with --output") from None
        terminal = Terminal(len(recorder.done()), messages=messages, quiet=quiet)
        return asyncio.run(_run(resolved, recorder, folder, log, warnings, terminal, redecider))


def collect_rarely() -> None:
    """Keep the garbage collector away from imported modules, which would cost a sixth of a run's time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


async def _run(resolved: ResolvedStudy, recorder: Recorder, folder: Path, log: Any, warnings: list[str],
               terminal: Terminal, redecider: Redecider | None) -> int:
    total = planned(resolved)
    if recorder.fact("identity") is None:
        await recorder.keep_fact("identity", resolved.identity)
    await recorder.keep_fact("planned", total)
    await recorder.forget_problems()

    def warn(text: str) -> None:
        log.warning("warning", text=text)
        terminal.say(text, "yellow")

    again: dict[str, Any] = {} if redecider is None else {
        "runner": redecider.run, "samples": redecider.samples, "reuse": [redecider.recorded]}
    run = StudyRun(resolved.plan, recorder, [terminal], lambda text: log.warning("problem", text=text), warn,
                   planned=total, **again)
    for text in warnings:
        terminal.say(text, "yellow")
    log.info("run", study=resolved.plan.name, planned=total)
    try:
        with interruptible(run, terminal):
            summary = await run.run()
    except asyncio.CancelledError:
        terminal.say("stopped; run the same command to resume")
        return INTERRUPTED
    except StudyError as error:
        with suppress(OSError):  # the log lies on the same disk
            log.error("stopped", reason=str(error))
        raise
    finally:
        terminal.close()
    write_whole(folder / "summary.json", json.dumps(plain(summary), indent=2, ensure_ascii=False))
    log.info("ended", status=summary["status"], reason=summary["reason"], paid=summary["paid"])
    _conclude(summary, recorder, folder, quiet=terminal.quiet)
    return _status(summary, run)


def planned(resolved: ResolvedStudy) -> int | None:
    """How many debates the study has, or None if a data set does not know its size or an extension chooses samples."""
    if any(hasattr(e, "madplug_samples") for cell in resolved.plan.cells for e in cell.extensions):
        return None
    sizes = [cell.dataset.size() if cell.dataset else None for cell in resolved.plan.cells]
    known = [size for size in sizes if size is not None]
    return sum(known) * resolved.plan.repeats if len(known) == len(sizes) else None


@contextmanager
def interruptible(run: StudyRun, terminal: Terminal) -> Iterator[None]:
    """The first interrupt lets calls in flight finish; the second ends the run at once, whatever it is doing."""
    loop, main, over = asyncio.get_running_loop(), asyncio.current_task(), threading.Event()
    came: list[int] = []

    def interrupted(number: int, _: object) -> None:
        came.append(number)
        if len(came) == 1:
            loop.call_soon_threadsafe(stop)
            return
        if len(came) == 2 and main is not None:
            loop.call_soon_threadsafe(main.cancel)
            threading.Thread(target=insist, daemon=True).start()
            return
        raise KeyboardInterrupt

    def stop() -> None:
        terminal.say("stopping: waiting for calls in flight; press Ctrl-C again to stop at once")
        run.stop(Ending("interrupted", "interrupted"))

    def insist() -> None:
        """A component that never yields to the event loop cannot be cancelled: interrupt what it is doing.

        If not even that helps, because it catches everything or blocks a thread, end the process.
        """
        if not over.wait(PATIENCE):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)  # also wakes it up
        time.sleep(PATIENCE)
        click.echo("madplug: interrupted; a component would not stop; run the same command to resume", err=True)
        os._exit(INTERRUPTED)

    before = {}
    with suppress(ValueError):  # not outside the main thread
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, interrupted)
    try:
        yield
    finally:
        over.set()
        for number, handler in before.items():
            signal.signal(number, handler)


def _conclude(summary: Mapping[str, Any], recorder: Recorder, folder: Path, *, quiet: bool) -> None:
    """Print the result to standard output, and problems and failures to standard error."""
    if not quiet:
        click.echo(f"{summary['study']}: {summary['status']}\n\n{summary_table(summary)}\n")
    for text in summary["problems"]:
        click.echo(f"problem: {safe(text)}", err=True)
    for error, count in failures(recorder):
        click.echo(f"{count} failed: {safe(error)}", err=True)
    if summary["reason"]:
        click.echo(f"stopped: {safe(summary['reason'])}; everything so far is saved; run the same command to resume",
                   err=True)
    if not quiet:
        click.echo(f"results saved in {folder}{os.sep}")


def failures(recorder: Recorder, most: int = 5) -> list[tuple[str, int]]:
    """The most common errors of failed debates, with their counts."""
    counts: dict[str, int] = {}
    for row in recorder.figures():
        if row["error"]:
            counts[row["error"]] = counts.get(row["error"], 0) + 1
    return sorted(counts.items(), key=lambda item: -item[1])[:most]


def _status(summary: Mapping[str, Any], run: StudyRun) -> int:
    if run.ending is not None and run.ending.kind != "unusable":
        return INTERRUPTED if run.ending.kind == "interrupted" else LIMIT
    failed = summary["status"] != "finished" or summary["problems"] or run.driver.failed
    return SOME_FAILED if failed else FINISHED
