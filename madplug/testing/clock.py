"""A loop whose clock jumps to the next event: hours of latency in a moment, without noise."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jump(selectors.SelectSelector):
    """Instead of waiting, lets the time pass."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready and timeout:
            self.now += timeout
        if not ready and timeout is None:
            return super().select(None)
        return ready


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """An event loop on virtual time. Whatever runs on it must wait for timers only, not for sockets or threads."""

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        """Seconds of virtual time."""
        return self._jump.now


def on_virtual_clock(main: Coroutine[Any, Any, T]) -> tuple[T, float]:
    """Run a coroutine on virtual time; its result, and the seconds it took."""
    loop = VirtualClockLoop()
    try:
        return loop.run_until_complete(main), loop.time()
    finally:
        loop.close()
