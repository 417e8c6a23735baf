"""Tells when one step of the event loop has lasted too long, and in whose code.

Every debate of a study waits while a component computes or sleeps without awaiting. A thread looks a few times a
second at what the loop's thread is doing; that costs nothing on the path of a call, and names the line.
"""

from __future__ import annotations

import sys
import threading
import time
from asyncio import Handle
from collections.abc import Callable, Collection
from types import FrameType

EVERY = 0.1
LONG = 0.5
"""Seconds between two looks, and from which on a step is told of."""
_STEP = Handle._run.__code__


class Watchdog:
    """Watches the thread it is entered on; `tell` is called from another thread, once for each place."""

    def __init__(self, packages: Collection[str], tell: Callable[[str], object]) -> None:
        self._packages = frozenset(packages)
        self._tell = tell
        self._told: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="madplug-watchdog", daemon=True)

    def __enter__(self) -> Watchdog:
        self._watched = threading.get_ident()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        step: FrameType | None = None
        place, since, before, used = "", 0.0, time.monotonic(), time.process_time()
        while True:
            ended = self._over.wait(EVERY)
            now, busy = time.monotonic(), time.process_time()
            current, here = self._look()
            idle = now - before > 3 * EVERY and busy - used < (now - before) / 2  # the whole process had to wait
            if ended or idle or current is not step:
                if place and now - since >= LONG and not idle:
                    self._report(place, now - since)
                # Where this thread could not look at all, the step has held the interpreter since the last look.
                step, place, since = current, here, before if now - before >= LONG and not idle else now
            else:
                place = here or place
            if ended:
                return
            before, used = now, busy

    def _look(self) -> tuple[FrameType | None, str]:
        """The step that the loop is in, and the innermost line of a plugin in it."""
        frame, place = sys._current_frames().get(self._watched), ""
        while frame is not None and frame.f_code is not _STEP:
            module = str(frame.f_globals.get("__name__", ""))
            if not place and module.partition(".")[0] in self._packages:
                name = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
                place = f"{module}.{name}, line {frame.f_lineno}"
            frame = frame.f_back
        return (frame, place) if frame is not None else (None, "")

    def _report(self, place: str, seconds: float) -> None:
        if place not in self._told:
            self._told.add(place)
            self._tell(f"{place} held up every debate for {seconds:.1f} s; await what takes time (an async client, "
                       "asyncio.sleep), or hand it to asyncio.to_thread")
