"""The driver: the only one that writes. It grants calls, stores answered calls, and counts what was paid for.

Workers, in this process or in another, run debates and send requests to models. Everything they need from the study
goes through the methods of `Driver`, whose arguments and results can be pickled.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol

from madplug.aio import without_exit
from madplug.calls.adaptive import Change
from madplug.calls.quota import Quota
from madplug.components import Model, Service
from madplug.config.plan import Limits
from madplug.errors import AccessError, ModelError, StudyStopped, TransientError
from madplug.events import AgentsCast, CallAnswered, DebateFinished, DebateStarted, Event, MessageRecorded
from madplug.records import Caller, DebateId, DebateResult
from madplug.store import Reader, Recorder
from madplug.store.base import Call, CallRow
from madplug.study.observers import Observers, Progress, outcome_of

HOPELESS = 5
"""An endpoint that refused every request of this many debates, and answered none in between, ends the study."""
Source = Literal["shared", "stored"]


@dataclass(frozen=True, slots=True)
class Ending:
    """Why no further call is started."""

    kind: Literal["limit", "interrupted", "unusable"]
    """A limit was reached; the user interrupted; or a model or the data cannot be used."""
    reason: str


class Driver(Protocol):
    """What a worker can ask of the study."""

    @property
    def ending(self) -> Ending | None:
        """Why no further call is started, or None while the study is running."""

    def tell(self, event: Event) -> None:
        """Record an event and pass it on to the observers; does not wait."""

    async def claim(self, key: bytes) -> tuple[Call, Source] | None:
        """An answered call, or None if the caller has to make it, and then to report it with `keep` or `give_up`."""

    async def admit(self, channel: str, caller: Caller, estimate: int, patience: float) -> None:
        """Wait for a slot of a model and for its rate limits. Raises `StudyStopped` and `UnreachableError`.

        estimate: tokens the call will use. patience: seconds to wait for an endpoint that is down.
        """

    async def keep(self, channel: str, row: CallRow, call: Call) -> None:
        """Store an answered call and release its slot; returns when the call is durable."""

    def release(self, channel: str, caller: Caller, error: BaseException) -> None:
        """Release a slot after an attempt that was not answered."""

    def give_up(self, key: bytes, error: BaseException) -> None:
        """Give up a claimed call; others that wait for it get the error, or make the call themselves."""

    def stop(self, ending: Ending) -> None:
        """Start no further call; those in flight are answered and stored."""

    async def pause(self, seconds: float) -> None:
        """Wait before another attempt, but no longer than the study runs."""

    async def finish(self, id: DebateId, result: DebateResult | None) -> None:
        """Store a debate that has ended or was scored; result is None if the study was stopped before it did."""

    async def recall(self, name: str) -> Any:
        """A value stored with the study, or None."""

    async def remember(self, name: str, value: Any) -> None:
        """Store a JSON value with the study."""

    def problem(self, text: str) -> None:
        """Record a problem of the study, which goes on."""


class StudyDriver:
    """The driver of one run of a study."""

    def __init__(self, models: Mapping[str, Model], recorder: Recorder, observers: Observers, *,
                 limits: Limits | None = None, reuse: Sequence[Reader] = (),
                 report: Callable[[str], None] = lambda problem: None,
                 warn: Callable[[str], None] = lambda warning: None) -> None:
        self.quotas = {name: Quota(name, model) for name, model in models.items()}
        self.recorder = recorder
        self.totals = recorder.totals()
        self.shares = bool(self.totals.calls or reuse)
        """Whether a debate that is run for the first time may need a call that was answered for another one, or
        before."""
        self.paid = 0
        """Calls answered by a model in this run."""
        self.retries = 0
        self.in_flight = 0
        self.failed = 0
        """Debates that failed in this run."""
        self.problem = report
        self.warn = warn
        """Reports something that does not affect results."""
        self.services: Mapping[tuple[str, str], Service] = {}
        """The services in this process, by cell and name."""
        self.when_stopped: list[Callable[[], None]] = []
        """Called when the study is being stopped."""
        self.when_finished: list[Callable[[DebateId, DebateResult | None], None]] = []
        """Called when a debate has ended, with None for one that was stopped."""
        self._ending: Ending | None = None
        self._stopped = asyncio.Event()
        self._call_ended = asyncio.Event()
        self._observers = observers
        self._limits = limits or Limits()
        self._unlimited = self._limits.calls is self._limits.tokens is self._limits.cost_usd is None
        self._reuse = tuple(reuse)
        self._pending: dict[bytes, asyncio.Future[Call] | None] = {}
        """The claimed calls, each with what those wait for who asked for the same call since, if any did."""
        self._storing: set[bytes] = set()
        self._open: set[DebateId] = set()
        self.ended = 0
        """Debates that have ended in this run."""
        self._rate_waiters = 0
        self._pauses: list[float] = []
        self._why_paused = ""

    # Stopping

    @property
    def ending(self) -> Ending | None:
        """Why no further call is started, or None while the study is running."""
        return self._ending

    def stop(self, ending: Ending) -> None:
        """Start no further call; those in flight are answered and stored. The first ending counts."""
        self._ending = self._ending or ending
        self._stopped.set()
        for call in self.when_stopped:
            call()

    async def _unless_stopped(self, waiting: Awaitable[object]) -> None:
        """Wait, but no longer than the study runs. Raises `StudyStopped` if it is being stopped."""
        tasks = [asyncio.ensure_future(waiting), asyncio.ensure_future(self._stopped.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tasks[0].done():
                tasks[0].result()
        finally:
            for task in tasks:
                task.cancel()
        self._refuse_when_stopped()

    async def pause(self, seconds: float) -> None:
        """Wait before another attempt, but no longer than the study runs."""
        until = time.monotonic() + seconds
        self._pauses.append(until)
        try:
            with suppress(asyncio.TimeoutError, TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), seconds)
        finally:
            self._pauses.remove(until)

    # Calls

    async def claim(self, key: bytes) -> tuple[Call, Source] | None:
        """An answered call, from this study's record, from those it may reuse, or from an identical one in flight."""
        call = self.recorder.call(key)
        for reader in self._reuse if call is None else ():
            call = call or reader.call(key)
        if call is not None:
            return call, "stored"
        while key in self._pending:
            pending = self._pending[key]
            if pending is None:
                pending = self._pending[key] = asyncio.get_running_loop().create_future()
            with suppress(_NobodyPaid):
                return await asyncio.shield(pending), "shared"
        self._pending[key] = None
        return None

    def give_up(self, key: bytes, error: BaseException) -> None:
        """Pass an error on to those waiting for the call, or let them make it if the error is not about the call."""
        if key in self._storing:
            return  # it was answered, and only its first claimant no longer waits for it
        pending = self._pending.pop(key)
        if pending is None:
            return
        about_the_call = isinstance(error, ModelError)
        pending.set_exception(error if about_the_call else _NobodyPaid())
        pending.exception()  # perhaps nothing is waiting

    async def admit(self, channel: str, caller: Caller, estimate: int, patience: float) -> None:
        """Wait for a slot and for the rate limits, or raise `StudyStopped`."""
        quota = self.quotas[channel]
        self._refuse_when_stopped()
        probing = quota.down and await quota.wait_reachable(caller, patience, self._unless_stopped)
        try:
            if not quota.slots.take():
                await quota.slots.acquire(caller.order, caller.round)
            if quota.limited or self._ending is not None or not self._unlimited:
                await self._pass_limits(quota, estimate)
        except BaseException:
            if probing:
                quota.end_probe()
            raise
        self.totals.calls += 1
        self.in_flight += 1

    async def _pass_limits(self, quota: Quota, estimate: int) -> None:
        """Wait for the rate limits in a slot, which is released if no call may be started after all."""
        try:
            if quota.limited:
                self._rate_waiters += 1
                try:
                    await quota.wait_rates(estimate, self._unless_stopped)
                finally:
                    self._rate_waiters -= 1
            await self._wait_for_calls_in_flight()
            self._check_limits()
            self._refuse_when_stopped()
        except BaseException:
            quota.slots.release()
            raise

    async def _wait_for_calls_in_flight(self) -> None:
        """Wait while calls in flight would use up the limit of calls: those that fail leave their place to others."""
        limit = self._limits.calls
        while limit is not None and self.totals.calls - self.in_flight < limit <= self.totals.calls:
            self._call_ended.clear()
            await self._unless_stopped(self._call_ended.wait())

    def _refuse_when_stopped(self) -> None:
        if self._ending is not None:
            raise StudyStopped(self._ending.reason)

    def _check_limits(self) -> None:
        if self._unlimited:
            return
        limits, totals = self._limits, self.totals
        for name, used in (("calls", totals.calls), ("tokens", totals.tokens), ("cost_usd", totals.cost_usd)):
            limit = getattr(limits, name)
            if limit is not None and used >= limit:
                self.stop(Ending("limit", f"limits.{name}: {limit:,} reached"))

    async def keep(self, channel: str, row: CallRow, call: Call) -> None:
        """Store an answered call, even if its debate no longer waits for it.

        Its slot is released once the call is durable, so that no answer can be lost.
        """
        quota = self.quotas[channel]
        self._storing.add(row.key)
        try:
            await self._store(quota, row, call)
        except asyncio.CancelledError:  # its debate gave up meanwhile; storing it once more changes nothing
            storing = asyncio.ensure_future(self._store(quota, row, call))
            storing.add_done_callback(partial(self._stored_alone, quota, row.key))
            raise

    def _stored_alone(self, quota: Quota, key: bytes, storing: asyncio.Future[None]) -> None:
        """A call was stored that nobody waits for but those who share it."""
        if storing.cancelled():
            self._end_call(quota, key)
        error = None if storing.cancelled() else storing.exception()
        if key in self._pending:
            self.give_up(key, error or _NobodyPaid())

    async def _store(self, quota: Quota, row: CallRow, call: Call) -> None:
        """Store a call and count it; if it cannot be stored, its slot is released."""
        try:
            await self.recorder.keep_call(row, call)
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._end_call(quota, row.key)
            raise
        self._count(quota, row.key, call)

    def _count(self, quota: Quota, key: bytes, call: Call) -> None:
        """A call is durable: it may be used, and its slot is free."""
        usage = call.completion.usage
        self.paid += 1
        self.totals.tokens += usage.prompt + usage.completion
        self.totals.cost_usd += usage.cost_usd or 0.0
        quota.succeeded(usage)
        if (pending := self._pending.pop(key, None)) is not None:
            pending.set_result(call)
        self._end_call(quota, key)

    def _end_call(self, quota: Quota, key: bytes) -> None:
        self._storing.discard(key)
        self.in_flight -= 1
        self._call_ended.set()
        quota.reached()
        quota.slots.release()

    def release(self, channel: str, caller: Caller, error: BaseException) -> None:
        """Release a slot after an attempt that was not answered; an unusable model ends the study."""
        quota = self.quotas[channel]
        self.totals.calls -= 1
        self.in_flight -= 1
        self._call_ended.set()
        if isinstance(error, TransientError):
            self.retries += 1
            self._why_paused = "rate limited" if error.retry_after else f"the last attempt failed ({str(error)[:60]})"
        quota.failed(error, caller)
        if isinstance(error, AccessError):
            quota.refused.add(DebateId(caller.cell, caller.repeat, caller.sample))
            if len(quota.refused) >= HOPELESS:
                self.stop(Ending("unusable", f"model '{channel}' refuses every request: {error}"))
        quota.slots.release()

    # Debates

    def tell(self, event: Event) -> None:
        """Record a start, the agents or a message, and pass the event on to the observers."""
        if isinstance(event, CallAnswered):
            if not self._observers.wants(CallAnswered):
                return
        elif isinstance(event, MessageRecorded):
            self.recorder.keep_message(event.debate, event.message)
        elif isinstance(event, DebateStarted):
            self.recorder.start_debate(event.debate, event.sample, event.references)
            self._open.add(event.debate)
        elif isinstance(event, AgentsCast):
            self.recorder.keep_agents(event.debate, event.agents)
        self._observers.emit(event)

    async def finish(self, id: DebateId, result: DebateResult | None) -> None:
        """Store a debate that has ended and notify the observers. Raises `ComponentError` if it cannot be stored.

        Observers are not notified of a debate that was on record and has only been scored.
        """
        if result is not None:
            await self.recorder.finish_debate(result)
            self.failed += result.error is not None
        for call in self.when_finished:
            call(id, result)
        if id in self._open:
            self._open.discard(id)
            self.ended += result is not None
            self._observers.emit(DebateFinished(id, outcome_of(result), result))

    def lose(self, id: DebateId) -> None:
        """A debate was lost with its worker, and will be started again."""
        if id in self._open:
            self._open.discard(id)
            self._observers.emit(DebateFinished(id, "stopped"))

    def abandon(self) -> None:
        """The run has broken off: notify the observers that the debates under way were stopped."""
        for id in sorted(self._open):
            self._observers.emit(DebateFinished(id, "stopped"))
        self._open.clear()

    # Facts

    async def keep_windows(self) -> None:
        """Store how many requests each adaptive model got at a time, after what earlier runs have stored."""
        for name, quota in self.quotas.items():
            if quota.window is not None and quota.answered:
                fact = f"in_flight.{name}"
                earlier = self.recorder.fact(fact) or []
                await self.recorder.keep_fact(fact, [*earlier, *map(Change._asdict, quota.window.history)])

    async def recall(self, name: str) -> Any:
        """A value stored with the study, or None."""
        return self.recorder.fact(name)

    async def remember(self, name: str, value: Any) -> None:
        """Store a JSON value with the study."""
        await self.recorder.keep_fact(name, value)

    async def serve(self, cell: str, name: str, method: str, /, *arguments: Any, **named: Any) -> Any:
        """What a method of a service returns, on behalf of a worker that has no instance of it."""
        return await without_exit(getattr(self.services[cell, name], method)(*arguments, **named))

    def wants(self, kind: type[Event]) -> bool:
        """Whether any observer has a method for these events."""
        return self._observers.wants(kind)

    def progress(self) -> Progress:
        """The progress of the run."""
        tokens = sum(quota.tokens for quota in self.quotas.values())
        return Progress(self.paid, self.in_flight, self.retries, tokens, self.totals.cost_usd, self.ended,
                        self._waiting())

    def _waiting(self) -> str:
        """What calls wait for before they are in flight, or an empty string."""
        if self._ending is not None:
            return "stopping"
        if down := [name for name, quota in self.quotas.items() if quota.down]:
            return f"model '{down[0]}' cannot be reached; trying again"
        if self.in_flight:
            return ""
        if self._rate_waiters:
            return "waiting for the rate limit"
        if pauses := list(self._pauses):
            return f"{self._why_paused}, next attempt in {max(min(pauses) - time.monotonic(), 0):.0f} s"
        return ""

    @property
    def folder(self) -> Path | None:
        """The study's directory, or None if it is stored in memory."""
        return getattr(self.recorder, "folder", None)


class _NobodyPaid(Exception):
    """A call was not made by its first claimant; one of those waiting for it has to make it."""
