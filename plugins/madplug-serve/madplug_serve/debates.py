"""Runs the debates that clients ask for, in a study that has no end of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator
from contextlib import contextmanager

from madplug import (
    AnswerFormat,
    DebateId,
    DebateResult,
    Executor,
    Jobs,
    MessageRecorded,
    Observer,
    RunDriver,
    Sample,
    StudyError,
    redact,
)
from madplug.study import Job, StudyDriver, Worker
from madplug_serve.conversation import Asked, RequestError
from madplug_serve.dataset import Conversations

Messages = asyncio.Queue[MessageRecorded]


class Relay(Observer):
    """Passes messages on to the streams of the clients that wait for them."""

    name = "relay"

    def __init__(self) -> None:
        super().__init__()
        self._streams: dict[DebateId, list[Messages]] = {}

    @contextmanager
    def stream(self, debate: DebateId) -> Iterator[Messages]:
        """The messages of a debate as they are recorded; with a seed, several clients may wait for the same debate."""
        messages: Messages = asyncio.Queue()
        streams = self._streams.setdefault(debate, [])
        streams.append(messages)
        try:
            yield messages
        finally:
            streams.remove(messages)
            if not streams:
                del self._streams[debate]

    async def message_recorded(self, event: MessageRecorded) -> None:
        """Pass a message on."""
        for messages in self._streams.get(event.debate, ()):
            messages.put_nowait(event)


class Debates(Executor):
    """Where the debates of a served study run: in this process, when a client asks for one.

    A conversation is a sample. Asked again, it is debated again, as the next sample; with a `seed`, the same request
    is the same sample, which is debated once and then answered from the record. A debate that failed or was broken
    off, because its client left or the server was stopped, is run again by the next request for the same
    conversation, and pays for no call twice.
    """

    name = "debates"

    def __init__(self) -> None:
        super().__init__()
        self.relay = Relay()
        self.opened = asyncio.Event()
        """Set as soon as debates can be run."""
        self.closed = asyncio.Event()
        """Set when no further debate is accepted."""
        self._ended = asyncio.Event()
        self._broken: StudyError | None = None
        self._driver: StudyDriver | None = None
        self._worker: Worker | None = None
        self._taken: set[DebateId] = set()
        """The debates that are done or under way."""
        self._free: dict[tuple[str, str], int] = {}
        """By cell and conversation, a number below which none is free."""
        self._running: dict[DebateId, asyncio.Event] = {}
        self._order = 0
        self._seed = 0

    def use(self, worker: Worker, done: Iterable[DebateId]) -> None:
        """Use a worker. done: the debates on record."""
        self._worker = worker
        self._seed = worker.plan.seed
        self._taken.update(done)

    async def run(self, jobs: Jobs, driver: RunDriver) -> None:
        """Run what clients ask for, until `end` is called. jobs: ignored, the study has none of its own."""
        assert isinstance(driver, StudyDriver)  # whose record answers repeated requests
        self._driver = driver
        self.opened.set()
        await self._ended.wait()
        if self._broken is not None:
            raise self._broken

    def close(self) -> None:
        """Accept no further debate."""
        self.closed.set()

    def end(self) -> None:
        """The last request was answered, so the study may end."""
        self.closed.set()
        self._ended.set()

    def allot(self, asked: Asked, cell: str) -> list[DebateId]:
        """The debates of a request, which are under way from now on unless they have a seed."""
        self.check_open()
        if asked.seed is not None:
            return [DebateId(cell, 0, f"{asked.digest}-seed-{asked.seed}-{i + 1}") for i in range(asked.n)]
        found: list[DebateId] = []
        number = self._free.get((cell, asked.digest), 1)
        while len(found) < asked.n:
            id = DebateId(cell, 0, f"{asked.digest}-{number}")
            number += 1
            if id not in self._taken:
                self._taken.add(id)
                found.append(id)
        self._free[cell, asked.digest] = number
        return found

    def _give_back(self, id: DebateId) -> None:
        """A debate has not ended, so the next request for its conversation goes on with it."""
        self._taken.discard(id)
        digest, _, number = id.sample.rpartition("-")
        if (id.cell, digest) in self._free:
            self._free[id.cell, digest] = min(self._free[id.cell, digest], int(number))

    async def debate(self, id: DebateId, asked: Asked) -> DebateResult:
        """Run a debate, or wait for the one under way. Raises `RequestError` if it fails or is stopped."""
        while id in self._running:
            await self._running[id].wait()
        if asked.seed is not None and (recorded := self._recorded(id)) is not None:
            return recorded
        ended = self._running[id] = asyncio.Event()
        try:
            result = await self._run(id, asked)
            self._taken.add(id)
            return result
        except BaseException:
            self._give_back(id)
            raise
        finally:
            del self._running[id]
            ended.set()

    def _recorded(self, id: DebateId) -> DebateResult | None:
        assert self._driver is not None
        found = self._driver.recorder.result(id)
        return None if found is None or found.error else found

    async def _run(self, id: DebateId, asked: Asked) -> DebateResult:
        assert self._worker is not None
        assert self._driver is not None
        self.check_open()
        self._order += 1
        try:
            result = await self._worker.run(Job(id.cell, 0, self._sample(id, asked), (), self._order, self._seed))
        except asyncio.CancelledError:  # the client has left
            await self._driver.finish(id, None)
            raise
        except StudyError as error:  # nothing can be recorded any more
            self._broken = self._broken or error
            self.close()
            raise RequestError(503, redact(str(error)), "stopped", retry=False) from error
        if result is None:
            self.check_open()
            raise RequestError(503, "the debate was stopped", "stopped")
        if result.error:
            raise RequestError(502, f"the debate failed: {redact(result.error)}", "debate_failed")
        return result

    def _sample(self, id: DebateId, asked: Asked) -> Sample:
        assert self._worker is not None
        dataset = self._worker.setups[id.cell].cell.dataset
        known = dataset.metadata if isinstance(dataset, Conversations) else {}
        return Sample(id.sample, asked.question, images=asked.images, metadata=known)

    def check_fits(self, asked: Asked) -> None:
        """Raise `RequestError` if the question cannot be debated by the cell, or answered in its format."""
        self.check_open()
        assert self._worker is not None
        cell, sample = self._worker.setups[asked.model].cell, self._sample(DebateId(asked.model, 0, ""), asked)
        for one in cell.components():
            if (one is cell.answers or not isinstance(one, AnswerFormat)) and (why := one.misfit(sample, ())):
                raise RequestError(400, f"the question does not fit {one.full_name}, the {one.label} of "
                                   f"'{asked.model}': {why}", "invalid_request", "messages")

    def check_open(self) -> None:
        """Raise `RequestError` if no further debate is run."""
        ending = self._driver.ending if self._driver else None
        if ending is not None and ending.kind == "limit":
            raise RequestError(429, f"the study has reached its limit: {ending.reason}", "insufficient_quota",
                               retry=False)
        if ending is not None and ending.kind == "unusable":
            raise RequestError(503, redact(ending.reason), "unusable", retry=False)
        if ending is not None or self._driver is None or self.closed.is_set():
            raise RequestError(503, "the server is being stopped", "stopped")


async def gather_or_cancel(debates: Iterable[Awaitable[DebateResult]]) -> list[DebateResult]:
    """The results of all debates of a request; the first error, or the client's leaving, ends the others."""
    tasks = [asyncio.ensure_future(debate) for debate in debates]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
