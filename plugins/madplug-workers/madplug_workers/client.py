"""The worker's end: makes the components of a study, runs the jobs it gets, and asks the driver for all else."""

from __future__ import annotations

import asyncio
import itertools
import platform
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from contextvars import ContextVar
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from madplug import (
    Agent,
    AgentsCast,
    CallAnswered,
    Caller,
    DebateId,
    DebateResult,
    DebateStarted,
    Event,
    Message,
    MessageRecorded,
    Sample,
    StudyError,
)
from madplug.store import Call, CallRow
from madplug.study import Ending, Job, Source, Worker, redirect_log
from madplug_workers.services import live_once
from madplug_workers.wire import Failure, Item, Outbox, to_error, to_failure, unpack

_fresh: ContextVar[bool] = ContextVar("fresh", default=False)
"""Whether no call of the current debate can have been answered before."""


class _Ran:
    """What the driver already knows about a running job."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.agents: tuple[Agent, ...] = ()
        self.messages: dict[int, Message] = {}
        self.error: Exception | None = None
        """Why the driver could not record what it was told."""


class RemoteDriver:
    """The driver of a study, as a worker in another process reaches it; implements `madplug.study.Driver`."""

    def __init__(self, outbox: Outbox, *, wants_calls: bool) -> None:
        self._outbox = outbox
        self._wants_calls = wants_calls
        self._ending: Ending | None = None
        self._stopped = asyncio.Event()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._granted: dict[tuple[str, Caller], list[int]] = {}
        self._jobs: dict[DebateId, _Ran] = {}

    # Jobs

    def begin(self, number: int, job: Job) -> None:
        """A job is about to run."""
        self._jobs[job.id] = _Ran(number)

    def end(self, job: Job) -> None:
        """A job has run."""
        self._jobs.pop(job.id, None)

    def refuse(self, number: int, error: Exception) -> None:
        """The driver could not record something about a job, which fails with this error."""
        for ran in self._jobs.values():
            if ran.number == number:
                ran.error = error

    def tell(self, event: Event) -> None:
        """Record an event and pass it on to the observers; does not wait."""
        if isinstance(event, CallAnswered) and not (self._wants_calls and event.debate.sample):
            return  # the driver has prepared the cells itself, and reported those calls
        ran = self._jobs[event.debate]  # type: ignore[union-attr]
        if ran.error is not None:
            raise ran.error
        if isinstance(event, MessageRecorded):
            ran.messages[event.message.id] = event.message
            self._outbox.post("message", ran.number, event.message)
        elif isinstance(event, DebateStarted):
            self._outbox.post("started", ran.number)
        elif isinstance(event, AgentsCast):
            ran.agents = event.agents
            self._outbox.post("cast", ran.number, event.agents)
        else:
            self._outbox.post("event", ran.number, event)

    async def finish(self, id: DebateId, result: DebateResult | None) -> None:
        """Store a debate that has ended; only what the driver does not know yet is sent."""
        ran = self._jobs[id]
        agents: tuple[Agent, ...] | None = None
        messages: tuple[int | Message, ...] = ()
        if result is not None:
            agents = None if result.agents is ran.agents else result.agents
            messages = tuple(m.id if ran.messages.get(m.id) is m else m for m in result.messages)
            result = replace(result, sample=_ELSEWHERE, references=(), agents=(), messages=())
        await self._ask("finish", ran.number, result, agents, messages)

    # Stopping

    @property
    def ending(self) -> Ending | None:
        """Why no further call is started, or None while the study is running."""
        return self._ending

    def set_ending(self, ending: Ending) -> None:
        """The driver says that the study is being stopped."""
        self._ending = self._ending or ending
        self._stopped.set()

    def stop(self, ending: Ending) -> None:
        """Start no further call; those in flight are answered and stored."""
        self.set_ending(ending)
        self._outbox.post("stop", ending)

    async def pause(self, seconds: float) -> None:
        """Wait before another attempt, but no longer than the study runs."""
        with suppress(asyncio.TimeoutError, TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), seconds)

    # Calls

    async def claim(self, key: bytes) -> tuple[Call | None, Source, Sequence[Call]]:
        """An answered call, or None if the caller has to make it."""
        if _fresh.get():
            return None, "paid", ()
        found: tuple[Call | None, Source, Sequence[Call]] = await self._ask("claim", key)
        return found

    async def admit(self, channel: str, caller: Caller, estimate: int, patience: float) -> None:
        """Wait for a slot of a model and for its rate limits, which the driver grants."""
        number = next(self._numbers)
        await self._ask("admit", channel, caller, estimate, patience, number=number)
        self._granted.setdefault((channel, caller), []).append(number)

    async def keep(self, channel: str, row: CallRow, call: Call) -> None:
        """Store an answered call and release its slot; returns when the call is durable."""
        await self._ask("keep", self._take(channel, row.caller), row.key, row.model, row.request, call)

    def release(self, channel: str, caller: Caller, error: BaseException) -> None:
        """Release a slot after an attempt that was not answered."""
        self._outbox.post("release", self._take(channel, caller), to_failure(error))

    def give_up(self, key: bytes, error: BaseException) -> None:
        """Give up a claimed call."""
        self._outbox.post("give_up", key, to_failure(error))

    def _take(self, channel: str, caller: Caller) -> int:
        """The number of a slot that was granted to this caller."""
        numbers = self._granted[channel, caller]
        number = numbers.pop()
        if not numbers:
            del self._granted[channel, caller]
        return number

    # Facts, problems, services

    async def recall(self, name: str) -> Any:
        """A value stored with the study, or None."""
        return await self._ask("recall", name)

    async def remember(self, name: str, value: Any) -> None:
        """Store a JSON value with the study."""
        await self._ask("remember", name, value)

    def problem(self, text: str) -> None:
        """Record a problem of the study, which goes on."""
        self._outbox.post("problem", text)

    async def serve(self, cell: str, name: str, method: str, /, *arguments: Any, **named: Any) -> Any:
        """What a service in the driver's process returns."""
        return await self._ask("serve", cell, name, method, arguments, named)

    # Requests

    async def _ask(self, what: str, *arguments: Any, number: int | None = None) -> Any:
        number = next(self._numbers) if number is None else number
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._outbox.post("ask", number, what, *arguments)
        try:
            return await waiting
        except asyncio.CancelledError:
            if what in ("claim", "admit"):
                self._outbox.post("cancel", number, what, arguments[0] if what == "claim" else b"")
            raise
        finally:
            self._waiting.pop(number, None)

    def answer(self, number: int, value: Any) -> None:
        """An answer has come."""
        if (waiting := self._waiting.get(number)) is not None and not waiting.done():
            waiting.set_result(value)

    def fail(self, number: int, error: Exception) -> None:
        """A request has failed."""
        if (waiting := self._waiting.get(number)) is not None and not waiting.done():
            waiting.set_exception(error)


_ELSEWHERE = Sample("", "")
"""Takes the place of a sample that the driver has."""


class WorkerEnd:
    """A worker, apart from how bytes reach it: `receive` takes those of the driver, `send` those for it."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._outbox = Outbox(send, self._cannot_pack)
        self._driver: RemoteDriver | None = None
        self._worker: Worker | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._around = ExitStack()
        self.closed = asyncio.Event()
        """Everything is closed, and the driver was told."""

    def receive(self, data: bytes) -> None:
        """Carry out a batch of messages."""
        for kind, *parts in unpack(data):
            getattr(self, f"_on_{kind}")(*parts)

    @property
    def driver(self) -> RemoteDriver:
        """The driver, once it has said what the worker is for."""
        assert self._driver is not None
        return self._driver

    def _on_answer(self, number: int, value: Any) -> None:
        self.driver.answer(number, value)

    def _on_error(self, number: int, failure: Failure) -> None:
        self.driver.fail(number, to_error(failure))

    def _on_refused(self, number: int, failure: Failure) -> None:
        self.driver.refuse(number, to_error(failure))

    def _on_ending(self, ending: Ending) -> None:
        self.driver.set_ending(ending)

    def _on_welcome(self, facts: dict[str, Any]) -> None:
        self._driver = RemoteDriver(self._outbox, wants_calls=facts["wants_calls"])
        self._start(self._open(facts))

    def _on_job(self, number: int, job: Job, fresh: bool) -> None:
        self._start(self._run(number, job, fresh))

    def _on_sign(self) -> None:
        self._outbox.post("sign")

    def _on_close(self) -> None:
        self._start(self._close())

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _open(self, facts: dict[str, Any]) -> None:
        """Make the study's components, as the driver has them, and prepare them."""
        try:
            self._around.enter_context(redirect_log(lambda line: self._outbox.post("log", line)))
            worker = _make(facts, self.driver)
            self._worker = worker
            await worker.open()
        except Exception as error:
            self._outbox.post("unfit", to_failure(error))
        else:
            self._outbox.post("ready")

    async def _run(self, number: int, job: Job, fresh: bool) -> None:
        assert self._worker is not None
        _fresh.set(fresh)
        self.driver.begin(number, job)
        try:
            await self._worker.run(job)
        except Exception as error:
            self._outbox.post("failed", number, to_failure(error))
        finally:
            self.driver.end(job)

    async def _close(self) -> None:
        if self._worker is not None:
            await self._worker.close()
        self._around.close()
        self._outbox.post("closed")
        self._outbox.flush()
        self.closed.set()

    def _cannot_pack(self, item: Item, error: Exception) -> None:
        """What cannot travel cannot be recorded either: the request fails, or the debate."""
        failure = StudyError(f"cannot be sent to the driver: {error}")
        if item[0] == "ask":
            self.driver.fail(item[1], failure)
        elif item[0] in ("message", "cast", "event"):
            self.driver.refuse(item[1], failure)
        else:
            raise error


def _make(facts: dict[str, Any], driver: RemoteDriver) -> Worker:
    """The worker of a study. Raises `StudyError` if this process has other versions than the driver's."""
    from madplug.study import load

    mismatch = "; ".join(mismatches(facts["versions"]))
    if mismatch:
        raise StudyError(mismatch)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.toml"
        path.write_text(facts["study"], encoding="utf-8")
        plan = load(path, environ={}).plan
    for cell in plan.cells:
        cell.services = {name: live_once(cell.slug, name, service, driver) for name, service in cell.services.items()}
    return Worker(plan, driver)


def versions_here(distributions: list[str]) -> dict[str, str]:
    """The versions of Python and of distributions in this process; "" for one that is missing."""
    found = {"Python": ".".join(platform.python_version_tuple()[:2])}
    for name in sorted({"madplug", *distributions}):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return found


def mismatches(wanted: dict[str, str]) -> list[str]:
    """What this process has in another version than the driver's, or lacks."""
    here = versions_here([name for name in wanted if name != "Python"])
    return [f"{name} {here[name]} is installed here, and the study runs with {name} {there}" if here[name] else
            f"{name} is not installed here, and the study runs with {name} {there}"
            for name, there in wanted.items() if here[name] != there]


__all__ = ["RemoteDriver", "WorkerEnd", "mismatches", "versions_here"]
