"""The driver's end of the connection to one worker: carries out what the worker asks, and knows what it has."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from madplug import (
    Agent,
    AgentsCast,
    Caller,
    ComponentError,
    DebateId,
    DebateResult,
    DebateStarted,
    Event,
    Message,
    MessageRecorded,
    StudyError,
    without_exit,
)
from madplug.store import Call, CallRow
from madplug.study import Job, StudyDriver
from madplug_workers.wire import Failure, Item, Outbox, to_error, to_failure, unpack

_UNDONE_BY_LOSS = ("claim", "admit")
"""What a worker that is gone no longer wants; everything else it asked for is carried out."""

_OF_A_JOB = frozenset({"started", "cast", "message", "event", "failed"})
"""Messages that begin with the number of a job."""


class WorkerLost(Exception):
    """The worker has ended, or the connection to it."""


@dataclass
class _Running:
    """A job that the worker runs, and what has come back of it."""

    job: Job
    ended: asyncio.Future[DebateResult | None]
    agents: tuple[Agent, ...] = ()
    messages: dict[int, Message] = field(default_factory=dict)
    finishing: bool = False
    """Its result is being recorded."""


class WorkerLink:
    """One worker, as the driver sees it."""

    def __init__(self, number: int, driver: StudyDriver, send: Callable[[bytes], None]) -> None:
        self.number = number
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the worker can run jobs; an exception if it cannot."""
        self.closed = asyncio.Event()
        """The worker has closed its models and services."""
        self.lost: str | None = None
        """Why the worker is gone, or None."""
        self.running: dict[int, _Running] = {}
        self.suspects = 0
        """How many of its jobs were lost with other workers before."""
        self.unanswered = 0
        """How often it was asked for a sign of life since anything came from it."""
        self._driver = driver
        self._outbox = Outbox(self._forward, self._cannot_pack)
        self._send = send
        self._jobs = 0
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._granted: dict[int, tuple[str, Caller]] = {}
        self._claimed: set[bytes] = set()
        driver.when_stopped.append(self._tell_ending)

    # Towards the worker

    async def run(self, job: Job, *, fresh: bool = False) -> DebateResult | None:
        """Have a job run. Raises `WorkerLost` if the worker is gone before the debate is recorded.

        fresh: no call of the debate can have been answered before, so that the worker need not ask.
        """
        if self.lost is not None:
            raise WorkerLost(self.lost)
        self._jobs += 1
        number, running = self._jobs, _Running(job, asyncio.get_running_loop().create_future())
        self.running[number] = running
        self._outbox.post("job", number, job, fresh)
        try:
            return await running.ended
        finally:
            self.running.pop(number, None)

    def welcome(self, facts: dict[str, Any]) -> None:
        """Tell the worker what it is for."""
        self._outbox.post("welcome", facts)
        if self._driver.ending is not None:
            self._tell_ending()

    def ask_for_sign(self) -> None:
        """Have the worker answer, whatever it does."""
        self.unanswered += 1
        self._outbox.post("sign")

    def close(self) -> None:
        """Have the worker close its models and services, and end."""
        self._outbox.post("close")
        self._outbox.flush()

    def _tell_ending(self) -> None:
        if self.lost is None:
            self._outbox.post("ending", self._driver.ending)

    def _forward(self, data: bytes) -> None:
        if self.lost is None:
            self._send(data)

    def _cannot_pack(self, item: Item, error: Exception) -> None:
        """A job with a sample that cannot travel ends as a failed debate; anything else is a mistake of the host."""
        if item[0] != "job":
            raise error
        running = self.running[item[1]]
        if not running.ended.done():
            running.ended.set_exception(ComponentError(f"{running.job.id} cannot be sent to a worker: {error}"))

    # From the worker

    def receive(self, data: bytes) -> None:
        """Carry out a batch of messages."""
        self.unanswered = 0
        for kind, *parts in unpack(data):
            if kind not in _OF_A_JOB or parts[0] in self.running:  # a job that was cancelled has no more to say
                getattr(self, f"_on_{kind}")(*parts)

    def _on_sign(self) -> None:
        """The worker is there."""

    def _on_ready(self) -> None:
        if not self.ready.done():
            self.ready.set_result(None)

    def _on_unfit(self, failure: Failure) -> None:
        if not self.ready.done():
            self.ready.set_exception(StudyError(f"worker {self.number}: {to_error(failure)}"))

    def _on_closed(self) -> None:
        self.closed.set()

    def _on_failed(self, number: int, failure: Failure) -> None:
        """A job has raised what must end the study."""
        running = self.running[number]
        if not running.ended.done():
            error = to_error(failure)
            running.ended.set_exception(error if failure[0] else StudyError(
                f"worker {self.number}: {running.job.id}: {error}"))

    def _on_started(self, number: int) -> None:
        job = self.running[number].job
        self._tell(number, DebateStarted(job.id, job.sample, job.references, job.order))

    def _on_cast(self, number: int, agents: tuple[Agent, ...]) -> None:
        running = self.running[number]
        running.agents = agents
        self._tell(number, AgentsCast(running.job.id, agents))

    def _on_message(self, number: int, message: Message) -> None:
        running = self.running[number]
        running.messages[message.id] = message
        author = None if message.agent is None else running.agents[message.agent]
        self._tell(number, MessageRecorded(running.job.id, message, author))

    def _on_event(self, number: int, event: Event) -> None:
        self._tell(number, event)

    def _tell(self, number: int, event: Event) -> None:
        """Pass an event on; the debate of one that cannot be recorded fails, and ends the study if none can be."""
        try:
            self._driver.tell(event)
        except ComponentError as error:
            self._outbox.post("refused", number, to_failure(error))
        except StudyError as error:
            running = self.running[number]
            if not running.ended.done():
                running.ended.set_exception(error)

    def _on_log(self, line: str) -> None:
        folder = self._driver.folder
        if folder is not None:
            # The store says why it cannot write.
            with suppress(OSError), (folder / "log.jsonl").open("a", encoding="utf-8") as file:
                file.write(line)

    def _on_problem(self, text: str) -> None:
        self._driver.problem(text)

    def _on_stop(self, ending: Any) -> None:
        self._driver.stop(ending)

    def _on_release(self, grant: int, failure: Failure) -> None:
        if (granted := self._granted.pop(grant, None)) is not None:
            self._driver.release(*granted, to_error(failure))

    def _on_give_up(self, key: bytes, failure: Failure) -> None:
        if key in self._claimed:
            self._claimed.discard(key)
            self._driver.give_up(key, to_error(failure))

    def _on_cancel(self, number: int, what: str, key: bytes) -> None:
        """The worker no longer waits for something: undo it, whether it was granted already or not."""
        task = self._tasks.get(number)
        if task is not None:
            task.cancel()
        elif what == "admit":
            self._on_release(number, to_failure(asyncio.CancelledError()))
        elif what == "claim":
            self._on_give_up(key, to_failure(asyncio.CancelledError()))

    # Requests with an answer

    def _on_ask(self, number: int, what: str, *arguments: Any) -> None:
        task = asyncio.ensure_future(self._answer(number, getattr(self, f"_do_{what}")(number, *arguments)))
        self._tasks[number] = task
        task.set_name(what)
        task.add_done_callback(lambda _: self._tasks.pop(number, None))

    async def _answer(self, number: int, work: Awaitable[Any]) -> None:
        try:
            value = await work
        except Exception as error:
            self._outbox.post("error", number, to_failure(error))
        else:
            self._outbox.post("answer", number, value)

    async def _do_claim(self, number: int, key: bytes) -> Any:
        found = await self._driver.claim(key)
        if found[0] is None:
            self._claimed.add(key)
            if self.lost is not None:
                self._on_give_up(key, to_failure(WorkerLost(self.lost)))
        return found

    async def _do_admit(self, number: int, channel: str, caller: Caller, estimate: int, patience: float) -> None:
        await self._driver.admit(channel, caller, estimate, patience)
        self._granted[number] = channel, caller
        if self.lost is not None:
            self._on_release(number, to_failure(WorkerLost(self.lost)))

    def _do_keep(self, number: int, grant: int, key: bytes, model: str, request: str, call: Call) -> Awaitable[None]:
        channel, caller = self._granted.pop(grant)
        claimed = key in self._claimed
        self._claimed.discard(key)  # from here on it is stored, even if the worker is lost
        return self._keep(channel, CallRow(key, caller, model, request), call, claimed)

    async def _keep(self, channel: str, row: CallRow, call: Call, claimed: bool) -> None:
        try:
            await self._driver.keep(channel, row, call)
        except Exception as error:
            if claimed:
                self._claimed.add(row.key)
            if self.lost is not None:
                self._on_give_up(row.key, to_failure(error))
            raise

    def _do_finish(self, number: int, job: int, result: DebateResult | None, agents: tuple[Agent, ...] | None,
                   messages: tuple[int | Message, ...]) -> Awaitable[None]:
        running = self.running.get(job)
        if running is None:
            raise StudyError(f"worker {self.number} finished a job that it does not run")
        if result is not None:
            known = running.messages
            result = replace(
                result, sample=running.job.sample, references=running.job.references,
                agents=running.agents if agents is None else agents,
                messages=tuple(known[m] if isinstance(m, int) else m for m in messages))
        running.finishing = True
        return self._finish(running, result)

    async def _finish(self, running: _Running, result: DebateResult | None) -> None:
        try:
            await self._driver.finish(running.job.id, result)
        except Exception as error:
            running.finishing = False
            if self.lost is not None and not running.ended.done():
                running.ended.set_exception(error if isinstance(error, StudyError) else WorkerLost(self.lost))
            raise
        if not running.ended.done():
            running.ended.set_result(result)

    async def _do_recall(self, number: int, name: str) -> Any:
        return await self._driver.recall(name)

    async def _do_remember(self, number: int, name: str, value: Any) -> None:
        await self._driver.remember(name, value)

    async def _do_serve(self, number: int, cell: str, service: str, method: str, arguments: tuple[Any, ...],
                        named: dict[str, Any]) -> Any:
        return await without_exit(getattr(self._driver.services[cell, service], method)(*arguments, **named))

    # The end

    def lose(self, reason: str) -> list[DebateId]:
        """The worker is gone: take back its slots and claims; return the debates that have to be run again."""
        if self.lost is not None:
            return []
        self.lost = reason
        with suppress(ValueError):
            self._driver.when_stopped.remove(self._tell_ending)
        gone = WorkerLost(reason)
        for task in [t for t in self._tasks.values() if t.get_name() in _UNDONE_BY_LOSS]:
            task.cancel()
        for grant in list(self._granted):
            self._on_release(grant, to_failure(gone))
        for key in list(self._claimed):
            self._on_give_up(key, to_failure(gone))
        if not self.ready.done():
            self.ready.set_exception(gone)
            self.ready.exception()  # perhaps nothing waits for it yet
        again = [r for r in self.running.values() if not r.finishing and not r.ended.done()]
        for running in again:
            running.ended.set_exception(gone)
        return [running.job.id for running in again]
