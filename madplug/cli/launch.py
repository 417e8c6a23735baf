"""Running a study in its directory: signals, limits, and how it ends."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import shutil
import signal
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import click

from madplug.cli.tables import WIDTH, conclusion, summary_table
from madplug.cli.terminal import Terminal
from madplug.config import ResolvedStudy
from madplug.shards import Shard
from madplug.store import Recorder
from madplug.study.open_files import discard
from madplug.study.run import StudyRun
from madplug.study.session import Session, Task, open_session
from madplug.text import safe

FINISHED, SOME_FAILED, LIMIT, INTERRUPTED = 0, 1, 3, 130
STOPPING = "stopping: waiting for calls in flight; press Ctrl-C again to stop at once"
PATIENCE = 2.0
"""Seconds between a second interrupt and the interruption of whatever code is running, and from then to the end of the
process."""
TOGETHER = 0.2
"""Seconds within which two different signals are one interrupt: a shell and a scheduler may both send theirs."""
_HANGUP = getattr(signal, "SIGHUP", None)
"""The signal of a closed terminal; Windows has none."""


def launch(resolved: ResolvedStudy, folder: Path, *, quiet: bool = False, traced: bool = False,
           task: Task | None = None, shard: Shard | None = None, prepared: Path | None = None) -> int:
    """Run a study, or resume it; returns the exit status.

    traced: log every hook call. task: do this with recorded debates instead. shard: run only this part. prepared: a
    directory in which components were prepared.
    """
    collect_rarely()
    with open_session(resolved, folder, traced=traced, task=task, shard=shard, prepared=prepared) as session:
        return asyncio.run(_run(session, Terminal(quiet=quiet)))


def collect_rarely() -> None:
    """Keep the garbage collector away from imported modules, which would cost a sixth of a run's time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


async def _run(session: Session, terminal: Terminal) -> int:
    runs: list[StudyRun] = []
    try:
        with ExitStack() as stack:
            def begun(run: StudyRun) -> None:
                runs.append(run)
                stack.enter_context(interruptible(partial(_stop, run, terminal)))

            summary = await session.run([terminal], lambda text: terminal.say(text, "yellow"), begun)
    except asyncio.CancelledError:
        terminal.say("stopped; run the same command to resume")
        return INTERRUPTED
    finally:
        terminal.close()
    _conclude(summary, session.recorder, session.folder, quiet=terminal.quiet)
    return _status(summary, runs[0])


def _stop(run: StudyRun, terminal: Terminal) -> None:
    run.interrupt()
    terminal.say(STOPPING)


@contextmanager
def interruptible(stop: Callable[[], None]) -> Iterator[None]:
    """The first interrupt lets calls in flight finish; the second ends the run at once, whatever it is doing.

    That the terminal is closed is an interrupt too. stop: called on the event loop by the first one.
    """
    interrupts, before = _Interrupts(stop), {}
    with suppress(ValueError):  # not outside the main thread
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, interrupts.handle)
        if _HANGUP is not None and signal.getsignal(_HANGUP) == signal.SIG_DFL:  # under `nohup` it is ignored
            before[_HANGUP] = signal.signal(_HANGUP, interrupts.handle)
    try:
        yield
    finally:
        interrupts.over.set()
        for number, handler in before.items():
            signal.signal(number, handler)


class _Interrupts:
    """Counts the interrupts of a run, and does what each of them asks for."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._loop, self._main = asyncio.get_running_loop(), asyncio.current_task()
        self._came, self._last = 0, (0, 0.0)
        self.over = threading.Event()
        """Set when the run has ended."""

    def handle(self, number: int, _: object) -> None:
        """Handle a signal: stop, then cancel, then interrupt whatever code is running."""
        now, (last, before) = time.monotonic(), self._last
        if self._came and (number == _HANGUP or (number != last and now - before < TOGETHER)):
            return  # the shell and the system may both say so
        self._came, self._last = self._came + 1, (number, now)
        if self._came == 1:
            self._loop.call_soon_threadsafe(self._stop)
            return
        if self._came == 2 and self._main is not None:
            self._loop.call_soon_threadsafe(self._main.cancel)
            threading.Thread(target=self._insist, daemon=True).start()
            return
        raise KeyboardInterrupt

    def _insist(self) -> None:
        """A component that never yields to the event loop cannot be cancelled: interrupt what it is doing.

        If not even that helps, because it catches everything or blocks a thread, end the process.
        """
        if not self.over.wait(PATIENCE):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)  # also wakes it up
        time.sleep(PATIENCE)
        try:
            echo("madplug: interrupted; a component would not stop; run the same command to resume", err=True)
        finally:
            os._exit(INTERRUPTED)


def echo(text: str, *, err: bool = False) -> None:
    """Print a line; into a pipe that is no longer read, or on a terminal that is gone, neither it nor any other."""
    try:
        click.echo(text, err=err)
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EIO):
            raise
        discard(2 if err else 1)


def _conclude(summary: Mapping[str, Any], recorder: Recorder, folder: Path, *, quiet: bool) -> None:
    """Print the result to standard output, and problems and failures to standard error."""
    if not quiet:
        width = shutil.get_terminal_size((WIDTH, 24)).columns
        echo(f"{summary['study']}: {summary['status']}\n\n{summary_table(summary, width)}\n")
        if sentence := conclusion(summary):
            echo(f"{textwrap.fill(sentence, width) if sys.stdout.isatty() else sentence}\n")
    for text in summary["problems"]:
        echo(f"problem: {safe(text)}", err=True)
    failed = any(cell["failed"] for cell in summary["cells"])
    for error, count in failures(recorder) if failed else ():
        echo(f"{count} failed: {safe(error)}", err=True)
    if summary["reason"]:
        echo(f"stopped: {safe(summary['reason'])}; everything so far is saved; run the same command to resume",
                   err=True)
    if not quiet:
        echo(f"results saved in {folder}{os.sep}")


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
