"""From a debate's request to an answer: look it up, wait for a slot, attempt and retry, and have the answer stored."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from numbers import Real
from typing import Any, TypeVar

from madplug.aio import maybe_await
from madplug.calls.driver import KEPT, Driver, billed_key
from madplug.calls.quota import estimate_tokens
from madplug.component import Maybe, identity_of
from madplug.debate.cell import Cell
from madplug.debate.checks import method_name, type_error
from madplug.errors import (
    EmptyReplyError,
    ModelError,
    RefusedError,
    StudyStopped,
    TransientError,
    UnreachableError,
    error_text,
    message_of,
)
from madplug.kinds import Model
from madplug.options import ModelOptions
from madplug.records import Answered, Caller, Completion, Ending, Request, Usage
from madplug.redaction import redact
from madplug.rows import plain, storable_text
from madplug.store.base import Call, CallRow
from madplug.text import count

T = TypeVar("T")
Answer = Callable[[Model, Request, Caller, str], Maybe[Completion]]
"""Has a model answer a request: `Executor.answer`."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
"""Seconds between two attempts, at random up to the first, doubled each time up to the second."""
MOST_TOKENS, MOST_USD = 10**9, 10.0**6
"""No call uses more tokens, or costs more; an account that says so is wrong."""
_NUMBERS: tuple[Any, ...] = (int, float, Real)


class Gateway:
    """Answers the requests of debates."""

    def __init__(self, models: Mapping[str, Model], cells: Sequence[Cell], driver: Driver, *, seed: int = 0,
                 share: bool = True, answer: Answer | None = None) -> None:
        self._channels = {name: ModelChannel(name, model, answer) for name, model in models.items()}
        self._driver = driver
        self._names = {cell.slug: cell.channels for cell in cells}
        self._identities = {name: identity_of(model) for name, model in models.items()}
        self._asked = {name: blake2b(f"{text}\0".encode(), digest_size=16) for name, text in self._identities.items()}
        self._seed = seed
        self._share = share

    @property
    def opening(self) -> str | None:
        """The name of a model that is being opened, or None."""
        return next((name for name, channel in self._channels.items() if channel.opening.locked()), None)

    def identity(self, cell: str, model: str) -> str:
        """What a model of a cell is, whatever the run file calls it: its options that are not volatile, its code."""
        return self._identities[self._names[cell].get(model, model)]

    async def send(self, caller: Caller, request: Request, body: str) -> Answered:
        """Answer one request: from the record, from an identical request in flight, or from the model."""
        name = self._names[caller.cell].get(request.model, request.model)
        key = self._key(name, caller, body)
        call, source, billed = await self._driver.claim(key)
        if call is None:
            channel = self._channels[name]
            attempts = _Attempts(channel.model.options, billed)
            try:
                call = await self._until_answered(channel, request, CallRow(key, caller, request.model, body), attempts)
            except BaseException as error:  # also a cancellation: others may wait for the same call
                if isinstance(error, ModelError):
                    error.billed = _usages(key, attempts.billed)
                self._driver.give_up(key, error)
                raise
            billed = attempts.billed
        return Answered(call.completion, source, call.retries, call.seconds, key.hex(), _usages(key, billed))

    async def keep(self, name: str, value: Callable[[], Awaitable[T] | T] | T) -> T:
        """The value stored with the study under a name, or else this one, which is stored."""
        kept = await self._driver.recall(KEPT + name)
        if kept is None:
            kept = plain(await maybe_await(value() if callable(value) else value))  # as it will be read back
            await self._driver.remember(KEPT + name, kept)
        return kept  # type: ignore[no-any-return]

    async def close(self) -> None:
        """Close every model that was opened."""
        for channel in self._channels.values():
            try:
                if channel.opened:
                    await maybe_await(channel.model.close())
            except (Exception, SystemExit) as error:
                self._driver.problem(f"model '{channel.name}': close raised {message_of(error)}")

    def _key(self, channel: str, caller: Caller, body: str) -> bytes:
        """Identifies this call among all others: its content, and how often this request was made before."""
        asked = self._asked[channel].copy()
        asked.update(f"{caller.agent}\0{body}".encode())
        scope = (f"{'' if self._share else caller.cell}\0{self._seed}\0{caller.sample}\0{caller.repeat}"
                 f"\0{caller.nth}")
        return blake2b(scope.encode(), key=asked.digest(), digest_size=16).digest()

    async def _until_answered(self, channel: ModelChannel, request: Request, row: CallRow, attempts: _Attempts) -> Call:
        """Attempt a call, and retry it, until it is answered and stored, or no attempt is left."""
        attempts.check(channel.name)
        seeded = Request(request.messages, request.purpose, request.model, request.agent, request.params, request.form,
                         int.from_bytes(row.key[:4], "big") >> 1, row.caller.round)
        while True:
            try:
                return await self._attempt(channel, seeded, row, attempts)
            except TransientError as error:
                seconds = attempts.pause_after(error)
                if attempts.are_over_in(seconds):
                    made = f"{channel.model.options.deadline:g} s (deadline)" if isinstance(error, UnreachableError) \
                        else count(attempts.failed, "attempt")
                    raise ModelError(f"model '{channel.name}': gave up after {made}: {error}") from error
            if seconds:
                await self._driver.pause(seconds)

    async def _attempt(self, channel: ModelChannel, request: Request, row: CallRow, attempts: _Attempts) -> Call:
        """One exchange. The slot is kept until the reply is on disk, so that nothing answered or paid can be lost."""
        driver, name, failure = self._driver, channel.name, None
        await driver.admit(name, row.caller, estimate_tokens(row.request), attempts.begin_within)
        attempts.begin()
        try:
            if not channel.opened:
                await self._open(channel)
            started = time.monotonic()
            completion = await channel.ask(request, row)
        except BaseException as error:  # also a cancellation, or the slot would be lost
            if not isinstance(error, ModelError) or error.usage is None:
                driver.release(name, row.caller, error)
                raise
            failure, completion = error, Completion("", error.usage)
        call = Call(completion, attempts.failed, round(time.monotonic() - started, 4))
        if failure is None or attempts.accept(failure):
            await driver.keep(name, row, call)
            channel.model.kept(request)
            return call
        row, call = attempts.bill(row, call, failure)
        await driver.keep(name, row, call)
        raise failure

    async def _open(self, channel: ModelChannel) -> None:
        """Open a model, once; one that cannot be opened ends the study."""
        async with channel.opening:
            if channel.opened:
                return
            try:
                await maybe_await(channel.model.open())
            except Exception as error:
                stopped = StudyStopped(f"model '{channel.name}' cannot be opened: {error_text(error)}")
                self._driver.stop(Ending("unusable", str(stopped)))
                raise stopped from error
            channel.opened = True


class ModelChannel:
    """A model of the study, which is opened before its first request."""

    def __init__(self, name: str, model: Model, answer: Answer | None) -> None:
        self.name = name
        self.model = model
        self._answer = answer
        self.opened = False
        self.opening = asyncio.Lock()

    async def ask(self, request: Request, row: CallRow) -> Completion:
        """Make one attempt at a request. An error about a reply that is billed has its usage."""
        try:
            completion = await maybe_await(
                self.model.complete(request) if self._answer is None else
                self._answer(self.model, request, row.caller, row.key.hex()))
        except ModelError as error:
            if error.usage is not None or isinstance(error, EmptyReplyError):
                error.usage = self._priced(error.usage or Usage(), row.request, "")
            raise
        if not isinstance(completion, Completion):
            raise type_error(f"{method_name(self.model, 'complete')} returned", completion, "Completion")
        if not isinstance(completion.text, str):
            raise type_error(f"{method_name(self.model, 'complete')} returned a Completion whose text is",
                             completion.text, "a string")
        text = storable_text(completion.text)
        return replace(completion, text=text, usage=self._priced(completion.usage, row.request, text))

    def _priced(self, usage: Usage, body: str, text: str) -> Usage:
        """The usage with its cost, or an estimate marked as one if the endpoint reports none."""
        usage = clamp_usage(usage)
        if not usage.prompt and not usage.completion:
            usage = replace(usage, prompt=estimate_tokens(body), completion=estimate_tokens(text) if text else 0,
                            raw={**usage.raw, "estimated": True})
        if usage.cost_usd is None and (price := self.model.price):
            return replace(usage, cost_usd=cost_of(usage, price))
        return usage


class _Attempts:
    """The attempts at one call: which of them count, and until when further ones are made.

    billed: the replies that were paid and were no answer, those of earlier runs included.
    """

    def __init__(self, options: ModelOptions, billed: Sequence[Call]) -> None:
        self._options = options
        self.billed = list(billed)
        self.failed = self._counted = len(self.billed)
        self._deadline: float | None = None

    def check(self, model: str) -> None:
        """Refuse a request whose replies on record say that another attempt would be paid for nothing."""
        raw = self.billed[-1].completion.usage.raw if self.billed else {}
        most = self._options.attempts if raw.get("retried") else min(self._options.empty_attempts,
                                                                     self._options.attempts)
        if len(self.billed) >= most:
            made = count(len(self.billed), "paid attempt")
            raise RefusedError(f"model '{model}': {raw.get('unanswered')} ({made} on record; raise empty_attempts or "
                               "attempts to make another)")

    def begin(self) -> None:
        """An attempt is made: waiting for the first slot does not count for the deadline, nor does an exchange."""
        self._deadline = self._deadline or time.monotonic() + self._options.deadline

    @property
    def begin_within(self) -> float:
        """The seconds in which another attempt can begin."""
        return self._options.deadline if self._deadline is None else max(self._deadline - time.monotonic(), 0.0)

    def accept(self, error: ModelError) -> bool:
        """Whether a reply without text is the answer, and not worth another attempt."""
        return isinstance(error, EmptyReplyError) and (len(self.billed) + 1 >= self._options.empty_attempts
                                                       or self._counted + 1 >= self._options.attempts)

    def bill(self, row: CallRow, call: Call, error: ModelError) -> tuple[CallRow, Call]:
        """A paid reply that is no answer, as it is kept beside the call: under a key of its own."""
        usage = call.completion.usage
        raw = {**usage.raw, "unanswered": redact(str(error)), "retried": isinstance(error, TransientError)}
        billed = replace(call, completion=Completion("", replace(usage, raw=raw)), retries=0)
        row = replace(row, key=billed_key(row.key, len(self.billed)))
        self.billed.append(billed)
        return row, billed

    def pause_after(self, error: TransientError) -> float:
        """Count a failed attempt. Returns the seconds before the next one, never fewer than the endpoint asked for."""
        pause = random.uniform(0, min(FIRST_PAUSE * 2 ** min(self.failed, 10), LONGEST_PAUSE))
        self.failed += 1
        if isinstance(error, UnreachableError):
            return 0.0  # uses up no attempt; the model's quota says which caller tries next, and when
        self._counted += 1
        self._deadline = time.monotonic() + self._options.deadline  # however long this attempt took, or its queue
        # An empty reply needs no back-off: the endpoint works.
        return 0.0 if isinstance(error, EmptyReplyError) else max(error.retry_after or 0.0, pause)

    def are_over_in(self, seconds: float) -> bool:
        """Whether no attempt is left then; always, if the endpoint was never reached in all the time there was."""
        return (self._counted >= self._options.attempts or self._deadline is None
                or self.begin_within <= seconds)


def _usages(key: bytes, billed: Sequence[Call]) -> tuple[tuple[str, Usage], ...]:
    """What paid replies without an answer used, each with its key."""
    return tuple([(billed_key(key, n).hex(), call.completion.usage) for n, call in enumerate(billed)])


def clamp_usage(usage: Usage) -> Usage:
    """A usage with every number in a plausible range, and of Python's own types.

    Negative tokens and those that are not a number become zero, more than `MOST_TOKENS` become that many; a cost that
    is negative, above `MOST_USD` or not a number becomes unknown. `raw["clamped"]` is then true.
    """
    given = (usage.prompt, usage.completion, usage.cached, usage.cost_usd)
    spent = usage.cost_usd
    cost = float(spent) if isinstance(spent, _NUMBERS) and 0 <= spent <= MOST_USD else None
    kept = (_clamp_tokens(usage.prompt), _clamp_tokens(usage.completion), _clamp_tokens(usage.cached), cost)
    raw = usage.raw if isinstance(usage.raw, Mapping) else {}
    return Usage(kept[0], kept[1], kept[2], kept[3], raw if kept == given else {**raw, "clamped": True})


def _clamp_tokens(value: Any) -> int:
    return int(max(0, min(value, MOST_TOKENS))) if isinstance(value, _NUMBERS) and value == value else 0


def cost_of(usage: Usage, price: Mapping[str, float]) -> float:
    """USD of a call. price: USD per million tokens, by `prompt`, `completion` and `cached`."""
    cached = min(usage.cached, usage.prompt)  # some endpoints count them apart from the prompt's
    return ((usage.prompt - cached) * price.get("prompt", 0.0) + cached * price.get("cached", price.get("prompt", 0.0))
            + usage.completion * price.get("completion", 0.0)) / 1e6
