"""The slots of a model: how many requests it gets at the same time, and who is served first."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Awaitable, Callable
from itertools import count

Interruptible = Callable[[Awaitable[object]], Awaitable[None]]
"""Waits for something, but no longer than the study runs."""


class Slots:
    """A number of slots, given to the lowest (round, order) first, then to the longest waiting."""

    def __init__(self, size: int) -> None:
        self.size = size
        """The most slots there can be."""
        self.in_use = 0
        """How many slots are in use: more than can be used, where there have become fewer meanwhile."""
        self._usable = size
        self.ending = False
        """The last debates are open: serve those with fewer rounds done first."""
        self.when_idle: list[Callable[[], None]] = []
        """Called when a slot is free and none is waiting for it."""
        self._waiting: list[tuple[tuple[int, int], int, asyncio.Future[None]]] = []
        self._ticket = count()

    @property
    def wanted(self) -> bool:
        """Whether a debate is waiting."""
        return any(not turn.done() for _, _, turn in self._waiting)

    @property
    def free(self) -> int:
        """How many slots are free."""
        return max(self._usable - self.in_use, 0)

    def resize(self, usable: int) -> None:
        """Change how many slots there are, up to `size`; those in use are not taken away."""
        self._usable = usable
        self._grant()

    def take(self) -> bool:
        """Take a slot if one is free that no debate is waiting for."""
        if self.in_use >= self._usable or (self._waiting and self.wanted):
            return False
        self.in_use += 1
        return True

    async def acquire(self, order: int, round: int) -> None:
        """Wait for a slot."""
        if self.take():
            return
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, ((round if self.ending else 0, order), next(self._ticket), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot was granted at the same moment
                self.release()
            raise

    def release(self) -> None:
        """Release a slot, to the next in line."""
        self.in_use -= 1
        self._grant()

    def _grant(self) -> None:
        while self._waiting and self.in_use < self._usable:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                self.in_use += 1
                turn.set_result(None)
        if self.in_use < self._usable:
            for call in self.when_idle:
                call()


class AdaptiveWindow:
    """How many slots of a model can be used, found out while it runs, for endpoints that do not say what they can take.

    The window grows from a start value for as long as most of it is used and no request is turned away: by one with
    each answer at first, so that it doubles with every generation of requests, and after the first overload by one with
    each generation. An overload (status 429) halves it, once for all requests that were in flight, and starts no
    request before the time that the endpoint asks to wait.
    """

    def __init__(self, slots: Slots, start: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._slots = slots
        self._clock = clock
        self._window = float(min(start, slots.size))
        self._doubling = True
        self._stale = 0
        """Answers and failures still to come from requests that were in flight at the last overload."""
        self._not_before = 0.0
        slots.resize(self.size)

    @property
    def size(self) -> int:
        """How many slots can be used now."""
        return int(self._window)

    def succeeded(self) -> None:
        """A request was answered; its slot is still in use."""
        if self._stale:
            self._stale -= 1
            return
        if 2 * self._slots.in_use < self._window or self._window >= self._slots.size:
            return  # more is of no use, or there is no more
        self._window = min(self._window + (1 if self._doubling else 1 / self._window), self._slots.size)
        self._slots.resize(self.size)

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
        self._slots.resize(self.size)

    def failed(self) -> None:
        """A request failed for another reason."""
        self._stale = max(self._stale - 1, 0)

    async def wait(self, interruptible: Interruptible) -> None:
        """Wait until the endpoint can be asked again."""
        while (seconds := self._not_before - self._clock()) > 0:
            await interruptible(asyncio.sleep(seconds))
