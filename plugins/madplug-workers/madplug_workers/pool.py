"""Workers and their jobs: a job goes to the worker with the fewest, and to another one if its worker is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from madplug import CallAnswered, DebateResult, Jobs, RunDriver, StudyError, count
from madplug.study import Job, StudyDriver, read_manifest
from madplug_workers.client import versions_here
from madplug_workers.link import WorkerLink, WorkerLost

ATTEMPTS = 3
"""How many workers a debate may take down, or be lost with, before it fails."""
STARTS = 3
"""How many workers in a row may end before they can run a job."""
GRACE = 10.0
"""Seconds that a worker has to close its models and services."""


SILENCE = 120.0
"""Seconds after which a worker that answers nothing counts as lost: one that was stopped, or whose machine sleeps."""
QUESTIONS = 10
"""How often a worker is asked for a sign of life in these seconds, as the driver counts them: if it stands still itself
no worker is lost."""


class Transport(Protocol):
    """How bytes reach a worker; made by the executor for each worker it starts."""

    def send(self, data: bytes) -> None:
        """Send a batch; does not wait. Batches arrive in order."""

    async def end(self) -> None:
        """Wait until the worker has ended by itself, and end it if it takes too long."""

    def kill(self) -> None:
        """End the worker at once."""


Start = Callable[[int, Callable[[bytes], None], Callable[[str], None]], Awaitable[Transport]]
"""Starts a worker: its number, from 1; what to call with each batch it sends; what to call once when it is gone, with
the reason."""


class Pool:
    """The workers of a run."""

    def __init__(self, driver: RunDriver, workers: int, start: Start, *, silence: float = SILENCE) -> None:
        assert isinstance(driver, StudyDriver)
        folder = driver.folder
        if folder is None:
            raise StudyError("workers in other processes need a study in a directory")
        self._driver = driver
        self._size = workers
        self._start_worker = start
        self._silence = silence
        self._facts = _facts(driver, (folder / "study.toml").read_text(encoding="utf-8"))
        self._links: list[WorkerLink] = []
        self._transports: dict[WorkerLink, Transport] = {}
        self._starting: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._failure: BaseException | None = None
        self._closing = False
        self._ended_early = 0

    async def run(self, jobs: Jobs) -> None:
        """Run every job. Raises `StudyError` if workers cannot be started, or one of them ends the study."""
        watching = asyncio.ensure_future(self._watch())
        try:
            for number in range(1, self._size + 1):
                self._add(number)
            await jobs.run(self._run)
            if self._failure is not None:  # the other workers have run everything meanwhile
                self._driver.warn(str(self._failure))
            watching.cancel()
            await self._close()
        finally:
            self._closing = True
            for task in (watching, *self._starting):
                task.cancel()
            await asyncio.gather(watching, *self._starting, return_exceptions=True)
            for transport in self._transports.values():
                transport.kill()

    # Jobs

    async def _run(self, job: Job) -> DebateResult | None:
        for attempt in range(1, ATTEMPTS + 1):
            last = attempt == ATTEMPTS
            link = await self._choose(last)
            link.suspects += last
            try:
                return await link.run(job, fresh=attempt == 1 and not self._driver.shares)
            except WorkerLost:
                if self._driver.ending is not None:
                    await self._driver.finish(job.id, None)
                    return None
                self._driver.lose(job.id)
            finally:
                link.suspects -= last
                if last:
                    self._changed.set()
        result = DebateResult(job.cell, job.repeat, job.sample, job.references,
                              error=f"the worker that ran this debate was lost {ATTEMPTS} times")
        await self._driver.finish(job.id, result)
        return result

    async def _choose(self, alone: bool) -> WorkerLink:
        """The worker with the fewest jobs. alone: with no other job that was lost as often as this one."""
        while True:
            if self._failure is not None:
                raise self._failure
            fit = [link for link in self._links if link.lost is None and link.ready.done()
                   and not (alone and link.suspects)]
            if fit:
                return min(fit, key=lambda link: len(link.running))
            self._changed.clear()
            await self._changed.wait()

    # Workers

    def _add(self, number: int) -> None:
        task = asyncio.ensure_future(self._start(number))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _start(self, number: int) -> None:
        """Start a worker, and wait until it can run jobs."""
        transport: list[Transport] = []
        link = WorkerLink(number, self._driver, lambda data: transport[0].send(data))
        try:
            transport.append(await self._start_worker(number, link.receive, lambda reason: self._lose(link, reason)))
            self._transports[link] = transport[0]
            self._links.append(link)
            link.welcome(self._facts)
            await link.ready
            self._ended_early = 0
        except WorkerLost as lost:
            self._ended_early += 1
            if self._ended_early >= STARTS:
                self._fail(StudyError(f"{count(STARTS, 'worker')} in a row ended before they could run a debate; the "
                                      f"last one {lost}"))
        except Exception as error:
            self._fail(error)
        finally:
            self._changed.set()

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error

    def _lose(self, link: WorkerLink, reason: str) -> None:
        """A worker is gone: another one takes its place."""
        self._transports.pop(link, None)
        if link in self._links:
            self._links.remove(link)
        again = link.lose(reason)
        if self._closing:
            link.closed.set()
            return
        if self._failure is None:
            more = f"; {count(len(again), 'debate')} will be run again" if again else ""
            self._driver.warn(f"worker {link.number} {reason}{more}")
            self._add(link.number)

    async def _watch(self) -> None:
        """End the workers that give no sign of life; one that starts may be busy importing for long."""
        while True:
            await asyncio.sleep(self._silence / QUESTIONS)
            for link in [link for link in self._links if link.ready.done()]:
                if link.unanswered >= QUESTIONS:
                    self._transports[link].kill()
                    self._lose(link, f"stood still for {self._silence:g} s")
                else:
                    link.ask_for_sign()

    async def _close(self) -> None:
        """Have every worker close what it has opened, and end."""
        self._closing = True
        links = [link for link in self._links if link.ready.done() and link.lost is None]
        for link in links:
            link.close()
        closed = asyncio.gather(*(link.closed.wait() for link in links))
        await asyncio.wait([asyncio.ensure_future(closed)], timeout=GRACE)
        closed.cancel()
        await asyncio.gather(*(self._transports[link].end() for link in links if link in self._transports))


def _facts(driver: StudyDriver, study: str) -> dict[str, Any]:
    """What a worker has to know: the study, and what runs it."""
    assert driver.folder is not None
    components = read_manifest(driver.folder)["components"].values()
    distributions = sorted({component["distribution"] for component in components})
    return {"study": study, "versions": versions_here(distributions), "wants_calls": driver.wants(CallAnswered)}
