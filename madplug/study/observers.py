"""Delivery of events to observers, off the path of every call.

Each observer has a bounded queue and a task that drains it. Plain methods run in a worker thread, so that one that
blocks delays no debate; `async` methods run on the study's event loop. An observer that falls behind misses calls and
messages, never the start or the end of a debate, and the study reports that when it ends.
"""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from madplug.aio import ends_the_run, maybe_await
from madplug.context import Run
from madplug.debate.checks import describe_error
from madplug.errors import StudyError
from madplug.events import METHODS, CallAnswered, Event, MessageRecorded
from madplug.kinds import Observer

T = TypeVar("T")
CAPACITY = 20_000
"""The most events that are queued for one observer."""
PATIENCE = 30.0
"""Seconds that an observer has for the queued events once the study has ended, and then for its `close`."""
HURRY = 1.0
"""Likewise when the run ends with an error, or at once."""
_DISPENSABLE = (CallAnswered, MessageRecorded)


class Observers:
    """The observers of a run."""

    def __init__(self, observers: Sequence[Observer], report: Callable[[str], None]) -> None:
        self._followers = [_Follower(observer, report) for observer in observers]
        self._wanted = frozenset(kind for f in self._followers for kind in f.methods)

    def wants(self, kind: type[Event]) -> bool:
        """Whether any observer has a method for these events."""
        return kind in self._wanted

    async def open(self, run: Run) -> None:
        """Open every observer and start delivering events."""
        for follower in self._followers:
            await follower.open(run)

    def emit(self, event: Event) -> None:
        """Queue an event for every observer that has a method for it."""
        for follower in self._followers:
            follower.put(event)

    async def close(self, patience: float | None = None) -> None:
        """Deliver the queued events and close every observer. patience: seconds for each; by default `PATIENCE`."""
        for follower in self._followers:
            await follower.close(PATIENCE if patience is None else patience)


class _Follower:
    """One observer, its queue, and the task that drains it."""

    def __init__(self, observer: Observer, report: Callable[[str], None]) -> None:
        self.name = observer.full_name
        self.methods = {kind: getattr(observer, name) for kind, name in METHODS.items()
                        if getattr(type(observer), name) is not getattr(Observer, name)}
        self._observer = observer
        self._report = report
        self._queue: deque[Event] = deque()
        self._lost = 0
        self._arrived = asyncio.Event()
        self._closing = self._given_up = False
        self._task: asyncio.Task[None] | None = None
        self._aside: _Aside | None = None

    async def open(self, run: Any) -> None:
        if not await self._guard("open", run):
            return  # it gets no events
        self._aside = _Aside(f"observer {self.name}")
        self._task = asyncio.ensure_future(self._follow())

    def put(self, event: Event) -> None:
        if type(event) not in self.methods or self._task is None:
            return
        if len(self._queue) >= CAPACITY and isinstance(event, _DISPENSABLE):
            self._lost += 1
            return
        self._queue.append(event)
        self._arrived.set()

    async def close(self, patience: float) -> None:
        self._closing = True
        self._arrived.set()
        if self._task is not None and not await self._ended(self._task, patience):
            left = f", {len(self._queue)} events were not delivered" if self._queue else ""
            self._report(f"observer {self.name}: still busy {patience:g} s after the end of the study{left}")
        if self._lost:
            self._report(f"observer {self.name}: fell behind; {self._lost} calls and messages were not delivered")
        if not await self._ended(asyncio.ensure_future(self._guard("close")), patience):
            self._report(f"observer {self.name}: close did not return within {patience:g} s")
        if self._aside is not None:
            self._aside.end()

    async def _ended(self, task: asyncio.Task[Any], patience: float) -> bool:
        """Whether a task ends by itself within so many seconds."""
        await asyncio.wait([task], timeout=patience)
        if task.done():
            return True
        self._given_up = True
        task.cancel()
        await asyncio.wait([task], timeout=patience)
        return False

    async def _follow(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._queue:
                await self._deliver()
            if self._closing:
                return

    async def _deliver(self) -> None:
        """Deliver queued events: in a thread, up to the first one whose method is asynchronous."""
        if inspect.iscoroutinefunction(self.methods[type(self._queue[0])]):
            event = self._queue.popleft()
            await self._guard(METHODS[type(event)], event)
            return
        batch = []
        while self._queue and not inspect.iscoroutinefunction(self.methods[type(self._queue[0])]):
            batch.append(self._queue.popleft())
        assert self._aside is not None
        for error in await self._aside.do(lambda: self._call_all(batch)):
            self._report(error)

    def _call_all(self, batch: Sequence[Event]) -> list[str]:
        failures = []
        for event in batch:
            try:
                self.methods[type(event)](event)
            except BaseException as error:  # nothing may end the thread
                failures.append(self._failure(METHODS[type(event)], error))
        return failures

    async def _guard(self, method: str, *arguments: Any) -> bool:
        """Call a method of the observer; False when it raised, which is reported."""
        try:
            await maybe_await(getattr(self._observer, method)(*arguments))
        except BaseException as error:  # libraries raise what is no `Exception`, too
            if ends_the_run(error) or (self._given_up and not isinstance(error, StudyError)):
                raise
            self._report(self._failure(method, error))  # also if time is up: it says what is lost
            return False
        return True

    def _failure(self, method: str, error: BaseException) -> str:
        return f"observer {self.name}: {method}: {describe_error(error)}"


class _Aside:
    """A thread for calls that may block, one after the other.

    Unlike those of `asyncio.to_thread`, it does not keep the program from ending when a call never returns.
    """

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    async def do(self, call: Callable[[], T]) -> T:
        """The result of a call, which must not raise."""
        done: Future[T] = Future()
        self._calls.put((call, done))
        return await asyncio.wrap_future(done)

    def end(self) -> None:
        """End the thread after the calls before."""
        self._calls.put(None)

    def _run(self) -> None:
        while (given := self._calls.get()) is not None:
            call, done = given
            if done.set_running_or_notify_cancel():
                done.set_result(call())
