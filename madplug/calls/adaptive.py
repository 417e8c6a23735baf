"""How many requests a model gets at a time, found out while it runs, for endpoints that do not say what they can take.

The window grows from a start value for as long as most of it is used and no request is turned away: by one with each
answer at first, so that it doubles with every generation of requests, and after the first overload by one with each
generation. An overload (status 429) halves it, once for all requests that were in flight, and starts no request before
the time that the endpoint asks to wait.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from madplug.calls.slots import Slots

Interruptible = Callable[[Awaitable[None]], Awaitable[None]]


class Change(NamedTuple):
    """A turning point: the window after it had grown, or after an overload."""

    at: float
    """Seconds since 1970."""
    in_flight: int
    """The most requests at a time from then on."""
    reason: str
    """`start`, `growth`, or `overload`."""


class AdaptiveWindow:
    """The window of one model: how many of its slots can be used."""

    def __init__(self, slots: Slots, start: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._slots = slots
        self._clock = clock
        self._window = float(min(start, slots.size))
        self._doubling = True
        self._stale = 0
        """Answers and failures still to come from requests that were in flight at the last overload."""
        self._not_before = 0.0
        self.history: list[Change] = []
        """Turning points: growth without an overload in between is one."""
        self._apply("start")

    def succeeded(self) -> None:
        """A request was answered; its slot is still in use."""
        if self._stale:
            self._stale -= 1
            return
        if 2 * self._slots.in_use < self._window or self._window >= self._slots.size:
            return  # more is of no use, or there is no more
        self._window = min(self._window + (1 if self._doubling else 1 / self._window), self._slots.size)
        self._apply("growth")

    def overloaded(self, retry_after: float | None) -> None:
        """A request was turned away. retry_after: seconds that the endpoint asks to wait, or None."""
        if retry_after is not None:
            self._not_before = max(self._not_before, self._clock() + retry_after)
        if self._stale:
            self._stale -= 1
            return
        self._stale = max(self._slots.in_use - 1, 0)
        self._doubling = False
        self._window = float(max(1, int(self._window / 2)))
        self._apply("overload")

    def failed(self) -> None:
        """A request failed for another reason."""
        self._stale = max(self._stale - 1, 0)

    async def wait(self, interruptible: Interruptible) -> None:
        """Wait until the endpoint can be asked again."""
        from asyncio import sleep

        while (seconds := self._not_before - self._clock()) > 0:
            await interruptible(sleep(seconds))

    def _apply(self, reason: str) -> None:
        size = int(self._window)
        if self.history and size == self.history[-1].in_flight and reason != "overload":
            return
        if reason == "growth" and self.history[-1].reason == "growth":
            self.history.pop()
        self.history.append(Change(round(time.time(), 3), size, reason))
        self._slots.resize(size)
