"""Scheduling: when a debate is admitted to the one stream of a study.

All debates of a study run on one event loop. A model has `max_in_flight` slots; a free one goes to the oldest
debate that waits. A debate is admitted when a slot is free that no open debate wants, and at most twice
`max_in_flight` debates are open. As soon as the remaining debates fit, all of them are opened and those with the
fewest rounds done go first: serving the oldest first to the end would leave slots idle while the last debates finish.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from madplug.calls.slots import Slots
from madplug.records import Job


class JobQueue:
    """Jobs that use the same models, and the slots of these models.

    evenly: once all that are left are open, those with the fewest rounds done go first. A study that may reach a limit
    serves the oldest first to the end, so that what it paid for are whole debates.
    """

    def __init__(self, jobs: AsyncIterator[Job], slots: Sequence[Slots], *, evenly: bool = True) -> None:
        self.slots = slots
        self._evenly = evenly
        self.most = 2 * max((s.size for s in slots), default=32)
        """The most debates open at a time."""
        self.open = 0
        self._exhausted = False
        self._jobs = jobs
        self._ahead: asyncio.Queue[Job] = asyncio.Queue(self.most)
        self._moved = asyncio.Event()
        for s in slots:
            s.when_idle.append(self._moved.set)

    async def feed(self, start: Callable[[Job], asyncio.Task[None]]) -> None:
        """Start every job as soon as there is room for it."""
        reader = asyncio.ensure_future(self._read_ahead())
        try:
            while not (self._exhausted and self._ahead.empty()):
                if self._ahead.empty() or not self._room():
                    self._moved.clear()
                    await self._moved.wait()
                    continue
                self.open += 1
                start(self._ahead.get_nowait()).add_done_callback(self._ended)
                for _ in range(2):  # until its first turns have asked for their slots
                    await asyncio.sleep(0)
            await reader
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    async def _read_ahead(self) -> None:
        try:
            async for job in self._jobs:
                await self._ahead.put(job)
                self._moved.set()
        finally:
            self._exhausted = True
            self._moved.set()

    def _room(self) -> bool:
        if self.open >= self.most:
            return False
        if not self.slots:
            return True
        if self._exhausted and self.open + self._ahead.qsize() <= self.most:
            for s in self.slots:
                s.ending = self._evenly
            return True
        return any(s.free for s in self.slots) and not any(s.wanted for s in self.slots)

    def _ended(self, _: object) -> None:
        self.open -= 1
        self._moved.set()


async def run_all(queues: Sequence[JobQueue], run: Callable[[Job], Awaitable[object]]) -> None:
    """Run all jobs of all queues. The first exception ends the others, and is raised."""
    tasks: set[asyncio.Task[None]] = set()
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def or_end_all(work: Callable[..., Awaitable[object]], *job: Job) -> None:
        try:
            await work(*job)
        except BaseException as error:  # nobody else awaits this; a cancellation ends the others, too
            if not over.done():
                over.set_exception(error)

    def start(job: Job) -> asyncio.Task[None]:
        task = asyncio.ensure_future(or_end_all(run, job))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    async def feed_all() -> None:
        await asyncio.gather(*(queue.feed(start) for queue in queues))
        while tasks:
            await asyncio.wait(tasks)
        if not over.done():
            over.set_result(None)

    feeder = asyncio.ensure_future(or_end_all(feed_all))
    try:
        await over
    finally:
        for task in (feeder, *tasks):
            task.cancel()
        await asyncio.gather(feeder, *tasks, return_exceptions=True)
