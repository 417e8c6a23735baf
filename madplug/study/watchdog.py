"""Reports a step of the event loop that takes too long, and the plugin's line that causes it.

Every debate of a study waits while a component computes or sleeps without awaiting. A thread looks a few times a
second at what the loop's thread is doing; that costs nothing on the path of a call, and finds the line. Time that the
loop's thread spent waiting for a processor, or for another thread that holds the interpreter, is not counted.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from asyncio import Handle
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

EVERY = 0.1
LONG = 0.5
HANGS = 5.0
"""Seconds: between two looks; a step is reported when it ends, from this on; and while it still runs, from this on."""
_STEP = Handle._run.__code__
_LOOKING = threading.Lock()
_UNSEEN = "a component (in code that lets no other thread run, such as a long regular expression)"


@dataclass
class _Step:
    """A step of the loop, as far as it was observed."""

    frame: FrameType | None
    place: str
    since: float
    waited: float
    """Seconds that the thread had waited for a processor when the step began."""


class Watchdog:
    """Watches the thread it is entered on; `tell` is called from another thread, once for each place."""

    def __init__(self, packages: Collection[str], tell: Callable[[str], object]) -> None:
        self._packages = frozenset(packages)
        self._tell = tell
        self._reported: set[str] = set()
        self._over = threading.Event()
        self._begun = False
        self._thread = threading.Thread(target=self._watch, name="madplug-watchdog", daemon=True)

    def __enter__(self) -> Watchdog:
        self._watched = threading.get_ident()
        self._schedule = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
        # Before the thread starts: the first step may let it run only when it is over.
        self._entered, self._entered_times = time.monotonic(), self._schedule_times()
        self._measured = any(self._entered_times)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def begin(self) -> None:
        """Debates start now; loading components before may have taken long."""
        self._begun = True

    def _watch(self) -> None:
        before, (used_before, waited_before) = self._entered, self._entered_times
        step = _Step(None, "", before, waited_before)
        while True:
            over = self._over.wait(EVERY)
            now = time.monotonic()
            frame, place = self._look()  # at once: reading a file lets the loop's thread go on
            used, waited = self._schedule_times()
            unseen = now - before >= LONG
            if unseen and self._measured and used - used_before < LONG:
                # Another thread let none run, such as one that loads a model: the step waited, too.
                step.since += now - before
                before = now
            elif unseen and not place and used - used_before >= LONG and self._begun:
                self._report(_UNSEEN, f"blocked every debate for {now - before:.1f} s")
            # A step that was not seen to end between two looks has lasted since the last one.
            lasted = now - step.since
            if over or frame is not step.frame:
                self._report_end(step, lasted, waited)
                step = _Step(frame, place, before if unseen else now, waited)
            else:
                step.place = place or step.place
                self._report_hang(step, lasted, waited)
            before, used_before = now, used
            if over:
                return

    def _look(self) -> tuple[FrameType | None, str]:
        """The current step of the loop, and the innermost line of a plugin in it."""
        with _without_collection():
            frame, place = sys._current_frames().get(self._watched), ""
            while frame is not None and frame.f_code is not _STEP:
                module = str(frame.f_globals.get("__name__", ""))
                if not place and module.partition(".")[0] in self._packages:
                    name = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
                    place = f"{module}.{name}, line {frame.f_lineno}"
                frame = frame.f_back
            return (frame, place) if frame is not None else (None, "")

    def _schedule_times(self) -> tuple[float, float]:
        """Seconds the watched thread has run, and has waited for a processor, where the system says so."""
        try:
            used, waited = self._schedule.read_text().split()[:2]
            return int(used) / 1e9, int(waited) / 1e9
        except (OSError, ValueError):
            return 0.0, 0.0

    def _is_blamed(self, step: _Step, lasted: float, waited: float, least: float) -> bool:
        """Whether a step itself took so long, not counting the time in which other processes had the processor."""
        return bool(step.place) and self._begun and lasted - (waited - step.waited) >= least

    def _report_end(self, step: _Step, lasted: float, waited: float) -> None:
        if self._is_blamed(step, lasted, waited, LONG):
            self._report(step.place, f"blocked every debate for {lasted:.1f} s")

    def _report_hang(self, step: _Step, lasted: float, waited: float) -> None:
        if self._is_blamed(step, lasted, waited, HANGS):
            self._report(step.place, f"has been blocking every debate for {lasted:.0f} s and still is")

    def _report(self, place: str, what: str) -> None:
        if place not in self._reported:
            self._reported.add(place)
            self._tell(f"{place} {what}; await what takes time (an async client, asyncio.sleep), or run it with "
                       "asyncio.to_thread")


@contextmanager
def _without_collection() -> Iterator[None]:
    """No garbage collection: Python 3.11 crashes if one lets a thread go on while its frames are read."""
    with _LOOKING:
        enabled = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if enabled:
                gc.enable()
