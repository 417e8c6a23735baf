"""The driver of a study: it grants calls, stores what was answered, and counts what was paid. Only the driver writes.

Workers, in this process or in another, run debates and send requests to models. Everything they need from the study
goes through the methods of `Driver`, whose arguments and results can be pickled.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from mmap import mmap
from pathlib import Path
from typing import Any, Literal, Protocol

from madplug.calls.quota import Quota
from madplug.errors import AccessError, ModelError, StudyStopped, TransientError
from madplug.events import AgentsCast, DebateFinished, DebateStarted, Event, MessageRecorded
from madplug.kinds import Model, Service
from madplug.records import Caller, Completion, DebateId, DebateResult, Ending, Usage
from madplug.redaction import redact
from madplug.store import MemoryStore, Reader, Recorder
from madplug.store.base import ESTIMATED, Call, CallRow, Totals

HOPELESS, HOPELESS_NOW = 5, 40
"""An endpoint ends the study that refused every request of this many debates since it last answered one: if it never
answered, and if it did in this run, where some of its servers may know the key while others do not."""
IN_VAIN = 20
"""Attempts in a row after whose failure the user is told why."""
MARKS = 1 << 24
"""Bytes that tell a new study which calls it has not recorded; of a million calls, a new one in 17 is looked for.

They take memory only where they are used.
"""
KEPT = "kept."
"""What the names of the facts begin with that components keep."""
Source = Literal["paid", "shared", "stored"]


class Driver(Protocol):
    """What a worker can ask of the study."""

    @property
    def ending(self) -> Ending | None:
        """Why no further call is started, or None while the study is running."""

    def tell(self, event: Event) -> None:
        """Record an event and pass it on to the observers; does not wait."""

    async def claim(self, key: bytes) -> tuple[Call | None, Source, Sequence[Call]]:
        """An answered call, or None if the caller has to make it, and then to report it with `keep` or `give_up`.

        Last come the replies on record that were paid and were no answer (`billed_key`).
        """

    async def admit(self, channel: str, caller: Caller, estimate: int, patience: float) -> None:
        """Wait for a slot of a model and for its rate limits. Raises `StudyStopped` and `UnreachableError`.

        estimate: tokens the call will use. patience: seconds to wait for an endpoint that is down.
        """

    async def keep(self, channel: str, row: CallRow, call: Call) -> None:
        """Store an answered call, or a reply that was paid, and release its slot; returns when it is durable."""

    def release(self, channel: str, caller: Caller, error: BaseException) -> None:
        """Release a slot after an attempt that cost nothing."""

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


def _place(key: bytes) -> int:
    return int.from_bytes(key[:3], "big")


def billed_key(key: bytes, number: int) -> bytes:
    """The key of a paid reply that was no answer to the call with this key. number: which one of them, from 0."""
    return blake2b(f"billed {number}".encode(), key=key, digest_size=16).digest()


class StudyDriver:
    """The driver of one run of a study.

    emit: called with every event. limits: the most `calls`, `tokens` and `cost_usd` of the study, by name. counts: the
    most of what components count. reuse: records whose answered calls are not paid for again. wants: whether anything
    receives events of a kind.
    """

    def __init__(self, models: Mapping[str, Model], recorder: Recorder, emit: Callable[[Event], None], *,
                 limits: Mapping[str, float] | None = None, counts: Mapping[str, int] | None = None,
                 reuse: Sequence[Reader] = (),
                 report: Callable[[str], None] = lambda problem: None,
                 warn: Callable[[str], None] = lambda warning: None,
                 wants: Callable[[type[Event]], bool] = lambda kind: True) -> None:
        self.models = models
        self.quotas = {name: Quota(model.options) for name, model in models.items()}
        self.recorder = recorder
        self.totals = recorder.totals()
        self.expected = Totals()
        """Tokens and cost that calls in flight will use, as far as an executor says so."""
        self.shares = bool(self.totals.calls or reuse)
        """Whether a debate that is run for the first time may need a call that was answered for another one, or
        before."""
        self.paid = self.tokens = self.retries = self.in_flight = self.failed = 0
        """Of this run: replies that were paid for, tokens, attempts to be repeated, calls under way, failed debates."""
        self.ended = Counter[str]()
        """Debates of this run that ended, by cell."""
        self.problem = report
        self.warn = warn
        """Reports something that does not affect results."""
        self.wants = wants
        self.services: Mapping[tuple[str, str], Service] = {}
        """The services in this process, by cell and name."""
        self.when_stopped: list[Callable[[], None]] = []
        """Called when the study is being stopped."""
        self.when_finished: list[Callable[[DebateId, DebateResult | None], None]] = []
        """Called when a debate has ended, with None for one that was stopped."""
        self.ending: Ending | None = None
        self._stopped = asyncio.Event()
        self._call_ended = asyncio.Event()
        self._emit = emit
        self.limits: Mapping[str, float] = dict(limits or {})
        """The most calls, tokens and dollars of the study, by name."""
        self._most = dict(counts or {})
        self._counted = {name: recorder.count_facts(f"{KEPT}{name}:") for name in self._most}
        self._records: tuple[Recorder | Reader, ...] = (recorder, *reuse)
        self._warned: set[str] = set()
        self._estimated = {*recorder.estimated()}
        self._marks = None if self.shares else mmap(-1, MARKS)
        """Not 0 where the first bytes of a recorded call's key lead; None if calls of earlier runs are on record."""
        self._any_billed = self.shares
        """Whether replies that were no answers may be on record."""
        self._pending: dict[bytes, asyncio.Future[Call]] = {}
        """Calls in progress, each with the future that later callers of the same request await."""
        self._storing: set[bytes] = set()
        """Calls that are being stored; their first claimants may no longer wait for them."""
        self.decided: dict[str, str] = {}
        """Cells that get no further debates, and why."""
        self.open: set[DebateId] = set()
        """The debates under way."""
        self._rate_waiters = 0
        self._pauses: list[float] = []
        self._why_paused = ""

    def stop(self, ending: Ending) -> None:
        """Start no further call; those in flight are answered and stored. The first ending counts."""
        self.ending = self.ending or replace(ending, reason=redact(ending.reason))
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
        """Wait before another attempt. Raises `StudyStopped` if the study is being stopped."""
        until = time.monotonic() + seconds
        self._pauses.append(until)
        try:
            await self._unless_stopped(asyncio.sleep(seconds))
        finally:
            self._pauses.remove(until)

    async def claim(self, key: bytes) -> tuple[Call | None, Source, Sequence[Call]]:
        """An answered call, from this study's record, from those it may reuse, or from an identical one in flight."""
        call = self._recorded(key)
        source: Source = "stored"
        while call is None and key in self._pending:
            with suppress(_NobodyPaid):
                call, source = await asyncio.shield(self._pending[key]), "shared"
        if call is None:
            self._pending[key], source = asyncio.get_running_loop().create_future(), "paid"
        return call, source, self._billed(key) if (self._any_billed if call is None else call.retries) else ()

    def _recorded(self, key: bytes) -> Call | None:
        if self._marks is not None and not self._marks[_place(key)]:
            return None  # a query costs a quarter of a call: the writer's last commit has emptied the reader's cache
        for records in self._records:
            if (call := records.call(key)) is not None:
                return call
        return None

    def _billed(self, key: bytes) -> Sequence[Call]:
        found: list[Call] = []
        while (call := self._recorded(billed_key(key, len(found)))) is not None:
            found.append(call)
        return found

    def give_up(self, key: bytes, error: BaseException) -> None:
        """Pass an error on to those waiting for the call, or let them make it if the error is not about the call."""
        pending = None if key in self._storing else self._pending.pop(key, None)
        if pending is not None:
            pending.set_exception(error if isinstance(error, ModelError) else _NobodyPaid())
            pending.exception()  # perhaps nothing is waiting

    async def admit(self, channel: str, caller: Caller, estimate: int, patience: float) -> None:
        """Wait for a slot and for the rate limits, or raise `StudyStopped`."""
        quota = self.quotas[channel]
        self._refuse_when_stopped()
        probing = quota.down and await quota.wait_reachable(caller, patience, self._unless_stopped)
        try:
            await quota.slots.acquire(caller.order, caller.round)
            if quota.limited or self.ending is not None or self.limits:
                await self._pass_limits(quota, estimate)
        except BaseException:  # also a cancellation: another caller has to try the endpoint
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
            await self._wait_for_limits()
        except BaseException:  # also a cancellation, or the slot would be lost
            quota.slots.release()
            raise

    async def _wait_for_limits(self) -> None:
        """Wait while calls in flight would use up a limit: those that fail leave their place to others."""
        while any(self._settled(name) < limit <= getattr(self.totals, name) + getattr(self.expected, name)
                  for name, limit in self.limits.items()):
            self._call_ended.clear()
            await self._unless_stopped(self._call_ended.wait())
        for name, limit in self.limits.items():
            if self._settled(name) >= limit:
                self.stop(Ending("limit", f"limits.{name}: {limit:,} reached"))
        self._refuse_when_stopped()

    def _settled(self, name: str) -> float:
        """What calls that have ended used up of a limit."""
        return self.totals.calls - self.in_flight if name == "calls" else getattr(self.totals, name)

    def widen(self, name: str, most: int) -> None:
        """Let a model have this many calls in flight, at any rate: for an executor that sends them together."""
        changes = {"max_in_flight": most, "start_in_flight": None, "requests_per_minute": None,
                   "tokens_per_minute": None}
        self.quotas[name] = Quota(self.models[name].options.model_copy(update=changes))

    def _refuse_when_stopped(self) -> None:
        if self.ending is not None:
            raise StudyStopped(self.ending.reason)

    async def keep(self, channel: str, row: CallRow, call: Call) -> None:
        """Store an answered call, or a reply that was paid, even if its debate no longer waits for it.

        Its slot is released once it is durable, so that nothing that was paid can be lost.
        """
        self._look_at(channel, call.completion)
        self._storing.add(row.key)
        await asyncio.shield(self._store(self.quotas[channel], row, call))
        if channel not in self._estimated and call.completion.usage.raw.get("estimated"):
            self._estimated.add(channel)
            await self.recorder.keep_fact(ESTIMATED, sorted(self._estimated))

    async def _store(self, quota: Quota, row: CallRow, call: Call) -> None:
        """Store a call, count it, and wake those that share it; whatever happens, its slot is released."""
        try:
            await self.recorder.keep_call(row, call)
            if self._marks is not None:
                self._marks[_place(row.key)] = 1
            self._count(quota, call.completion.usage)
            if (pending := self._pending.pop(row.key, None)) is not None:
                pending.set_result(call)
        finally:
            self._storing.remove(row.key)
            if row.key in self._pending:  # it could not be stored
                self.give_up(row.key, _NobodyPaid())
            self.in_flight -= 1
            self._call_ended.set()
            quota.reached()
            quota.slots.release()

    def _count(self, quota: Quota, usage: Usage) -> None:
        self.paid += 1
        if "unanswered" in usage.raw:
            self._any_billed = True
            self.retries += 1
        self.tokens += usage.prompt + usage.completion
        self.totals.tokens += usage.prompt + usage.completion
        self.totals.cost_usd += usage.cost_usd or 0.0
        quota.succeeded(usage)

    def _look_at(self, channel: str, completion: Completion) -> None:
        """Say once what is not as the user expects it in a model's replies."""
        if completion.usage.raw.get("finish_reason") == "length":
            if completion.text:
                self._warn_once(f"model '{channel}': replies were cut off; if answers cannot be read, raise "
                                "max_tokens and run with another --output")
            else:
                self.problem(f"model '{channel}': replies were empty because their tokens were used up before the "
                             "answer began; raise max_tokens and run with another --output")
        if completion.usage.raw.get("estimated"):
            self._warn_once(f"model '{channel}': the endpoint reports no tokens; they are estimated from the texts")

    def _warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self.warn(text)

    def release(self, channel: str, caller: Caller, error: BaseException) -> None:
        """Release a slot after an attempt that cost nothing; an unusable model ends the study."""
        quota = self.quotas[channel]
        self.totals.calls -= 1
        self.in_flight -= 1
        self._call_ended.set()
        if isinstance(error, TransientError):
            self.retries += 1
            self._why_paused = "rate limited" if error.retry_after else f"the last attempt failed ({str(error)[:60]})"
        again = f"trying again, for {quota.options.deadline:g} s at most (deadline)"
        if quota.failed(error, caller):
            self.warn(f"model '{channel}' cannot be reached; {again}: {quota.why}")
        elif quota.in_vain == IN_VAIN and isinstance(error, TransientError):
            self.warn(f"model '{channel}': the last {IN_VAIN} attempts failed; {again}: {str(error)[:200]}")
        if isinstance(error, AccessError):
            quota.refused.add(DebateId(caller.cell, caller.repeat, caller.sample))
            if len(quota.refused) >= (HOPELESS_NOW if quota.answered else HOPELESS):
                which = f"refused the last {HOPELESS_NOW} debates" if quota.answered else "refuses every request"
                self.stop(Ending("unusable", f"model '{channel}' {which}, whatever on_failed_agent says: {error}"))
        quota.slots.release()

    def tell(self, event: Event) -> None:
        """Record a start, the agents or a message, and pass the event on to the observers."""
        if isinstance(event, MessageRecorded):
            self.recorder.keep_message(event.debate, event.message)
        elif isinstance(event, DebateStarted):
            self.recorder.start_debate(event.debate, event.sample, event.references)
            self.open.add(event.debate)
        elif isinstance(event, AgentsCast):
            self.recorder.keep_agents(event.debate, event.agents)
        self._emit(event)

    async def finish(self, id: DebateId, result: DebateResult | None) -> None:
        """Store a debate that has ended and notify the observers. Raises `ComponentError` if it cannot be stored.

        Observers are not notified of a debate that was on record and has only been scored.
        """
        if result is not None:
            await self.recorder.finish_debate(result)
            self.failed += result.error is not None
        for call in self.when_finished:
            call(id, result)
        if id in self.open:
            self.open.discard(id)
            self.ended[id.cell] += result is not None
            outcome: Literal["done", "failed", "stopped"] = (
                "stopped" if result is None else "failed" if result.error else "done")
            self._emit(DebateFinished(id, outcome, result))

    def lose(self, id: DebateId) -> None:
        """A debate was lost with its worker, or with the run, and will be started again."""
        if id in self.open:
            self.open.discard(id)
            self._emit(DebateFinished(id, "stopped"))

    async def keep_windows(self) -> None:
        """Store how many requests each adaptive model got at a time in the end."""
        for name, quota in self.quotas.items():
            if quota.window is not None and quota.answered:
                await self.recorder.keep_fact(f"in_flight.{name}", quota.window.size)

    async def recall(self, name: str) -> Any:
        """A value stored with the study, or None; what is then made is counted. Raises `StudyStopped` at a limit."""
        found, count = self.recorder.fact(name), name.removeprefix(KEPT).partition(":")[0]
        if found is None and count in self._most:
            if self._counted[count] >= self._most[count]:
                self.stop(Ending("limit", f"limits.{count}: {self._most[count]:,} reached"))
            self._refuse_when_stopped()
            self._counted[count] += 1
        return found

    async def remember(self, name: str, value: Any) -> None:
        """Store a JSON value with the study."""
        await self.recorder.keep_fact(name, value)

    def waiting(self) -> str:
        """What calls wait for before they are in flight, or an empty string."""
        if self.ending is not None:
            return "stopping"
        if down := next(((name, quota.why) for name, quota in self.quotas.items() if quota.down), None):
            return f"model '{down[0]}' cannot be reached; trying again: {down[1]}"
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
        return None if isinstance(self.recorder, MemoryStore) else self.recorder.folder


class _NobodyPaid(Exception):
    """A call was not made by its first claimant; one of those waiting for it has to make it."""
