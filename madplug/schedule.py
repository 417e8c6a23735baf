"""Who may ask next: slots of a model, and the admission of debates to the one stream.

All debates of a study run on one event loop. A model has `max_in_flight` slots; a free one goes to the oldest
debate that waits. A debate is admitted when a slot is free that no open debate wants, and at most two times
`max_in_flight` are open. As soon as the rest fits among them, all of it is opened and those with the fewest rounds
behind them go first: oldest first to the end leaves slots idle while the last debates take their turns.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import count
from typing import Generic, Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Runs(Protocol[T_co]):
    """Something to run: a job of the stream."""

    async def run(self) -> T_co:
        """Hold it to its end."""


class Slots:
    """A counted number of slots, given to the lowest priority first, then to the longest waiting."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.free = size
        self.ending = False
        """The stream is at its end: serve debates with fewer rounds first."""
        self.idle: Callable[[], None] = lambda: None
        """Called when a slot is free and nobody waits for it."""
        self._waiting: list[tuple[tuple[int, int], int, asyncio.Future[None]]] = []
        self._ticket = count()

    @property
    def wanted(self) -> bool:
        """Whether somebody waits."""
        return any(not turn.done() for _, _, turn in self._waiting)

    async def acquire(self, order: int, round: int) -> None:
        """Wait for a slot."""
        if self.free and not self.wanted:
            self.free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, ((round if self.ending else 0, order), next(self._ticket), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot came in the same moment
                self.release()
            raise

    def release(self) -> None:
        """Give a slot back, to whoever is next."""
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self.free += 1
        self.idle()


class JobQueue(Generic[T_co]):
    """Jobs that use the same models, and the slots of these models."""

    def __init__(self, jobs: AsyncIterator[Runs[T_co]], slots: Sequence[Slots]) -> None:
        self.slots = slots
        self.most = 2 * max((s.size for s in slots), default=32)
        """Debates open at a time."""
        self.open = 0
        self._read = False
        self._jobs = jobs
        self._ahead: deque[Runs[T_co]] = deque()
        self._moved = asyncio.Event()
        for s in slots:
            _also(s, self._moved.set)

    async def feed(self, start: Callable[[Runs[T_co]], asyncio.Task[None]]) -> None:
        """Start every job, each when there is room for it."""
        while await self._look_ahead():
            while not self._room():
                self._moved.clear()
                await self._moved.wait()
            self.open += 1
            start(self._ahead.popleft()).add_done_callback(self._ended)
            for _ in range(2):  # until its first turns have asked for their slots
                await asyncio.sleep(0)

    async def _look_ahead(self) -> bool:
        """Keep as many jobs at hand as could be open; False when there are none left."""
        while not self._read and len(self._ahead) <= self.most:
            try:
                self._ahead.append(await anext(self._jobs))
            except StopAsyncIteration:
                self._read = True
        return bool(self._ahead)

    def _room(self) -> bool:
        if self.open >= self.most:
            return False
        if not self.slots:
            return True
        if self._read and self.open + len(self._ahead) <= self.most:
            for s in self.slots:
                s.ending = True
            return True
        return any(s.free for s in self.slots) and not any(s.wanted for s in self.slots)

    def _ended(self, _: object) -> None:
        self.open -= 1
        self._moved.set()


async def stream(lanes: Sequence[JobQueue[T_co]]) -> AsyncIterator[T_co]:
    """Run all jobs of all lanes and give their results as they end. The first exception ends the stream."""
    results: asyncio.Queue[T_co | BaseException | None] = asyncio.Queue()
    tasks: set[asyncio.Task[None]] = set()

    async def hold(job: Runs[T_co]) -> None:
        try:
            results.put_nowait(await job.run())
        except BaseException as error:  # also a cancellation: whoever reads the stream has to hear of it
            results.put_nowait(error)

    def start(job: Runs[T_co]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(hold(job))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    async def feed_all() -> None:
        try:
            await asyncio.gather(*(lane.feed(start) for lane in lanes))
            while tasks:
                await asyncio.wait(tasks)
            results.put_nowait(None)
        except BaseException as error:
            results.put_nowait(error)

    feeder = asyncio.ensure_future(feed_all())
    try:
        while (result := await results.get()) is not None:
            if isinstance(result, BaseException):
                raise result
            yield result
    finally:
        for task in (feeder, *tasks):
            task.cancel()
        await asyncio.gather(feeder, *tasks, return_exceptions=True)


def _also(slots: Slots, more: Callable[[], None]) -> None:
    before = slots.idle

    def both() -> None:
        before()
        more()

    slots.idle = both
