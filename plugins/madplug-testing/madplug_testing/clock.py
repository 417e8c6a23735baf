"""An event loop whose clock jumps to the next event: hours of latency pass in a moment, without noise."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
LEAST = 1e-9
"""Seconds that pass in every turn of the loop: whoever waits for the next instant must not wait for ever."""


class _Jump(selectors.SelectSelector):
    """Advances the time instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready and timeout is None:
            return super().select(None)
        if not ready:
            self.now += max(timeout or 0.0, LEAST)
        return ready


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """An event loop with virtual time. Code on it must wait only for timers, not for sockets or threads."""

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        """Seconds of virtual time."""
        return self._jump.now


def on_virtual_clock(main: Coroutine[Any, Any, T]) -> tuple[T, float]:
    """Run a coroutine on virtual time; return its result and the seconds it took."""
    loop = VirtualClockLoop()
    try:
        return loop.run_until_complete(main), loop.time()
    finally:
        loop.close()
