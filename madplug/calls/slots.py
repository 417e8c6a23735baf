"""The slots of a model: how many requests it gets at the same time, and who is served first."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from itertools import count


class Slots:
    """A number of slots, given to the lowest (round, order) first, then to the longest waiting."""

    def __init__(self, size: int) -> None:
        self.size = size
        """The most slots there can be."""
        self.free = size
        self._usable = size
        self._excess = 0
        """Slots in use that are given up when they are released."""
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
    def in_use(self) -> int:
        """How many slots are in use."""
        return self._usable + self._excess - self.free

    def resize(self, usable: int) -> None:
        """Change how many slots there are, up to `size`; those in use are not taken away."""
        in_use = self.in_use
        self._usable, self._excess = usable, max(in_use - usable, 0)
        more = max(usable - in_use, 0) - self.free
        self.free = min(self.free, max(usable - in_use, 0))
        for _ in range(more):
            self._grant()

    def take(self) -> bool:
        """Take a slot if one is free that no debate is waiting for."""
        if not self.free or (self._waiting and self.wanted):
            return False
        self.free -= 1
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
        if self._excess:
            self._excess -= 1
            return
        self._grant()

    def _grant(self) -> None:
        """Give a slot to the next in line, or leave it free."""
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self.free += 1
        for call in self.when_idle:
            call()
