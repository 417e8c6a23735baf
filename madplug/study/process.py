"""The process of a program that runs a study: its interrupts, its exit status, its output and memory.

The first interrupt lets calls in flight finish, the second ends the run at once.
"""

from __future__ import annotations

import _thread
import asyncio
import errno
import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

FINISHED, SOME_FAILED, LIMIT, INTERRUPTED = 0, 1, 3, 130
"""Exit statuses."""
_STATUSES = {"interrupted": INTERRUPTED, "limit": LIMIT, "detached": LIMIT, "decided": FINISHED,
             "unfinished": FINISHED}
STOPPING = "stopping: waiting for calls in flight; press Ctrl-C again to stop at once"
PATIENCE = 2.0
"""Seconds between a second interrupt and the interruption of whatever code is running, and from then to the end of the
process."""
TOGETHER = 0.2
"""Seconds within which two different signals are one interrupt: a shell and a scheduler may both send theirs."""
_HANGUP = getattr(signal, "SIGHUP", None)
"""The signal of a closed terminal; Windows has none."""
PROGRAM = tuple(n for n in (signal.SIGINT, signal.SIGTERM, _HANGUP) if n is not None)
"""What interrupts a program: the user, a scheduler, or the end of its terminal."""
_LEFT = b"madplug: interrupted; a component would not stop; run the same command to resume\n"


@contextmanager
def interruptible(stop: Callable[[], None], end: Callable[[], None] | None = None,
                  signals: Sequence[int] = PROGRAM) -> Iterator[None]:
    """Call `stop` on the first interrupt and `end` on the second; a third raises `KeyboardInterrupt`.

    Both are called where the signal is handled, between any two instructions of the main thread. end: by default, the
    current task is cancelled, and the process ended if a component does not let it end.
    """
    if threading.current_thread() is not threading.main_thread():  # signals are handled there, and nowhere else
        yield
        return
    over = threading.Event()
    steps, last, at = [stop, end or _ending_of_process(over)], 0, 0.0

    def handle(number: int, _: object) -> None:
        nonlocal last, at
        now = time.monotonic()
        if last and (number == _HANGUP or (number != last and now - at < TOGETHER)):
            return  # the shell and the system may both say so
        last, at = number, now
        if not steps:
            raise KeyboardInterrupt
        steps.pop(0)()

    before = {}
    for number in signals:
        if number != _HANGUP or signal.getsignal(number) == signal.SIG_DFL:  # under `nohup` it is ignored
            before[number] = signal.signal(number, handle)
    try:
        yield
    finally:
        over.set()
        for number, handler in before.items():
            signal.signal(number, handler)


def _ending_of_process(over: threading.Event) -> Callable[[], None]:
    """Ends the current task, or else the process. over: set when the task has left the interruptible block."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def insist() -> None:
        """Interrupt a component that never yields to the event loop; if it catches even that, end the process."""
        if not over.wait(PATIENCE):
            if hasattr(signal, "pthread_kill"):
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)  # also wakes it up
            else:  # Windows
                _thread.interrupt_main()
        time.sleep(PATIENCE)
        with suppress(OSError):
            os.write(2, _LEFT)
        os._exit(INTERRUPTED)

    def end() -> None:
        loop.call_soon_threadsafe(task.cancel)
        threading.Thread(target=insist, daemon=True).start()

    return end


def collect_rarely() -> None:
    """Keep the garbage collector away from imported modules, which would cost a sixth of a run's time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def discard(number: int) -> None:
    """Have what is written to an open file go nowhere, also what is still in a buffer and written at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def echo(text: str, *, err: bool = False) -> None:
    """Print a line; silently stop printing once the output is closed: a pipe is not read, or a terminal is gone.

    What goes to stderr never fails, also where its disk is full.
    """
    import click

    try:
        click.echo(text, err=err)
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EIO) and not err:
            raise
        discard(2 if err else 1)


def exit_status(summary: Mapping[str, Any]) -> int:
    """The exit status of a command that has run a study."""
    if summary["ending"] in _STATUSES:
        return _STATUSES[summary["ending"]]
    return SOME_FAILED if summary["status"] != "finished" or summary["problems"] else FINISHED
