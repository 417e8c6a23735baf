"""Scheduling: slots of a model, and the admission of debates to the one stream of a study.

All debates of a study run on one event loop. A model has `max_in_flight` slots; a free one goes to the oldest
debate that waits. A debate is admitted when a slot is free that no open debate wants, and at most twice
`max_in_flight` debates are open. As soon as the remaining debates fit, all of them are opened and those with the
fewest rounds done go first: serving the oldest first to the end would leave slots idle while the last debates finish.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from itertools import count
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")
R = TypeVar("R")


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


class JobQueue(Generic[T]):
    """Jobs that use the same models, and the slots of these models."""

    def __init__(self, jobs: AsyncIterator[T], slots: Sequence[Slots]) -> None:
        self.slots = slots
        self.most = 2 * max((s.size for s in slots), default=32)
        """The most debates open at a time."""
        self.open = 0
        self._exhausted = False
        self._jobs = jobs
        self._ahead: deque[T] = deque()
        self._moved = asyncio.Event()
        self._drained = asyncio.Event()
        for s in slots:
            s.when_idle.append(self._moved.set)

    async def feed(self, start: Callable[[T], asyncio.Task[None]]) -> None:
        """Start every job as soon as there is room for it."""
        reader = asyncio.ensure_future(self._read_ahead())
        try:
            while not (self._exhausted and not self._ahead):
                if not (self._ahead and self._room()):
                    self._moved.clear()
                    await self._moved.wait()
                    continue
                self.open += 1
                start(self._ahead.popleft()).add_done_callback(self._ended)
                self._drained.set()
                for _ in range(2):  # until its first turns have asked for their slots
                    await asyncio.sleep(0)
            await reader
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    async def _read_ahead(self) -> None:
        """Read as many jobs ahead as could be open."""
        try:
            async for job in self._jobs:
                self._ahead.append(job)
                self._moved.set()
                while len(self._ahead) > self.most:
                    self._drained.clear()
                    await self._drained.wait()
        finally:
            self._exhausted = True
            self._moved.set()

    def _room(self) -> bool:
        if self.open >= self.most:
            return False
        if not self.slots:
            return True
        if self._exhausted and self.open + len(self._ahead) <= self.most:
            for s in self.slots:
                s.ending = True
            return True
        return any(s.free for s in self.slots) and not any(s.wanted for s in self.slots)

    def _ended(self, _: object) -> None:
        self.open -= 1
        self._moved.set()


_END = object()
"""Marks the end of a stream; no result of a job can be mistaken for it."""


async def stream(queues: Sequence[JobQueue[T]], run: Callable[[T], Awaitable[R]]) -> AsyncIterator[R]:
    """Run all jobs of all queues and yield their results as they end. The first exception ends the stream."""
    results: asyncio.Queue[Any] = asyncio.Queue()
    tasks: set[asyncio.Task[None]] = set()

    async def run_job(job: T) -> None:
        try:
            results.put_nowait(await run(job))
        except BaseException as error:  # the reader of the stream has to know of a cancellation too
            results.put_nowait(_Failed(error))

    def start(job: T) -> asyncio.Task[None]:
        task = asyncio.ensure_future(run_job(job))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    async def feed_all() -> None:
        try:
            await asyncio.gather(*(queue.feed(start) for queue in queues))
            while tasks:
                await asyncio.wait(tasks)
            results.put_nowait(_END)
        except BaseException as error:
            results.put_nowait(_Failed(error))

    feeder = asyncio.ensure_future(feed_all())
    try:
        while (result := await results.get()) is not _END:
            if isinstance(result, _Failed):
                raise result.error
            yield result
    finally:
        for task in (feeder, *tasks):
            task.cancel()
        await asyncio.gather(feeder, *tasks, return_exceptions=True)


class _Failed(NamedTuple):
    error: BaseException
