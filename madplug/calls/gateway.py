"""How a worker reaches the models: look up the record, wait for a slot, attempt and retry, and record the answer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential

from madplug.calls.channel import ModelChannel
from madplug.calls.driver import Driver
from madplug.calls.quota import estimate_tokens
from madplug.component import identity_of
from madplug.components import Model
from madplug.debate.cell import Cell
from madplug.debate.checks import error_text
from madplug.errors import EmptyReplyError, ModelError, StudyStopped, TransientError, UnreachableError
from madplug.records import Answered, Caller, Ending, Request
from madplug.store.base import Call, CallRow

_backoff = wait_random_exponential(multiplier=0.5, max=60)


class Gateway:
    """Answers requests on behalf of debates."""

    def __init__(self, models: Mapping[str, Model], cells: Sequence[Cell], driver: Driver, *, seed: int = 0,
                 share: bool = True) -> None:
        self.channels = {name: ModelChannel(name, model) for name, model in models.items()}
        self._driver = driver
        self._names = {cell.slug: cell.channels for cell in cells}
        self._identities = {name: identity_of(model) for name, model in models.items()}
        self._asked = {name: blake2b(f"{text}\0".encode(), digest_size=16) for name, text in self._identities.items()}
        self._seed = seed
        self._share = share

    async def send(self, caller: Caller, request: Request, body: str) -> Answered:
        """Answer one request: from the record, from an identical request in flight, or from the model."""
        names = self._names[caller.cell]
        name = names.get(request.model, request.model)
        key = self._key(name, caller, body)
        found = await self._driver.claim(key)
        if found is not None:
            call, source = found
            return Answered(call.completion, source, call.retries, call.seconds, key.hex())
        row = CallRow(key, caller, request.model, body)
        seeded = Request(request.messages, request.purpose, request.model, request.agent, request.params, request.form,
                         int.from_bytes(key[:4], "big") >> 1)
        try:
            call = await self._pay(self.channels[name], seeded, row)
        except BaseException as error:
            self._driver.give_up(key, error)
            raise
        return Answered(call.completion, "paid", call.retries, call.seconds, key.hex())

    def identity(self, cell: str, model: str) -> str:
        """What a model of a cell is, whatever the run file calls it: its options that are not volatile, its code."""
        return self._identities[self._names[cell].get(model, model)]

    async def _pay(self, channel: ModelChannel, request: Request, row: CallRow) -> Call:
        """Make attempts until one is answered."""
        options = channel.model.options
        patience = _Patience(options.deadline)
        try:
            return await self._attempt(channel, request, row, 0, patience,
                                       accept_empty=min(options.empty_attempts, options.attempts) <= 1)
        except TransientError as error:
            first = error
        return await self._pay_after(first, channel, request, row, patience)

    async def _pay_after(self, first: TransientError, channel: ModelChannel, request: Request, row: CallRow,
                         patience: _Patience) -> Call:
        """Make further attempts; tenacity waits in between. Only those that reach the endpoint count."""
        options, retries = channel.model.options, 1
        attempts = 0 if isinstance(first, UnreachableError) else 1
        empty = int(isinstance(first, EmptyReplyError))

        async def attempt() -> Call:
            nonlocal attempts, retries, empty
            attempts += 1
            accept = empty + 1 >= options.empty_attempts or attempts >= options.attempts
            try:
                return await self._attempt(channel, request, row, retries, patience, accept_empty=accept)
            except TransientError as error:
                retries += 1
                attempts -= isinstance(error, UnreachableError)
                empty += isinstance(error, EmptyReplyError)
                raise

        retrying = AsyncRetrying(
            sleep=self._driver.pause, wait=_wait, reraise=True, retry=retry_if_exception_type(TransientError),
            stop=lambda state: attempts >= options.attempts or patience.ends_within(state.upcoming_sleep))
        try:
            return await retrying(_after(first, attempt))
        except TransientError as last:
            tries = f"{max(retries, 1)} attempt{'s' if retries > 1 else ''}"
            raise ModelError(f"model '{channel.name}': gave up after {tries}: {last}") from last

    async def _attempt(self, channel: ModelChannel, request: Request, row: CallRow, retries: int,
                       patience: _Patience, *, accept_empty: bool) -> Call:
        """One exchange. The slot is kept until the reply is on disk, so that nothing answered can be lost.

        accept_empty: a reply without text is the answer, and not worth another attempt.
        """
        caller, driver = row.caller, self._driver
        await driver.admit(channel.name, caller, estimate_tokens(row.request), patience.left)
        patience.begin()
        try:
            if not channel.opened:
                await self._open(channel)
            started = time.monotonic()
            completion = await channel.ask(request, row.request, accept_empty=accept_empty)
        except BaseException as error:
            driver.release(channel.name, caller, error)
            raise
        call = Call(completion, retries, round(time.monotonic() - started, 4))
        await driver.keep(channel.name, row, call)
        return call

    async def _open(self, channel: ModelChannel) -> None:
        """Open a model before its first request; one that cannot be opened ends the study."""
        try:
            await channel.open()
        except StudyStopped as error:
            self._driver.stop(Ending("unusable", error_text(error)))
            raise

    async def close(self) -> None:
        """Close every model that was opened."""
        for channel in self.channels.values():
            try:
                await channel.close()
            except ModelError as error:
                self._driver.problem(str(error))

    def _key(self, channel: str, caller: Caller, body: str) -> bytes:
        """Identifies this call among all others: its content, and how often this request was made before."""
        asked = self._asked[channel].copy()
        asked.update(f"{caller.agent}\0{body}".encode())
        scope = (f"{'' if self._share else caller.cell}\0{self._seed}\0{caller.sample}\0{caller.repeat}"
                 f"\0{caller.nth}")
        return blake2b(scope.encode(), key=asked.digest(), digest_size=16).digest()


class _Patience:
    """The seconds after which a request is not retried, from its first attempt: waiting for a slot does not count."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began: float | None = None

    def begin(self) -> None:
        """An attempt is made."""
        self._began = time.monotonic() if self._began is None else self._began

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self._seconds if self._began is None else max(self._began + self._seconds - time.monotonic(), 0.0)

    def ends_within(self, seconds: float) -> bool:
        """Whether it is at an end by then; always, if the endpoint was never reached in all the time there was."""
        return self._began is None or self.left <= seconds


def _after(first: TransientError, attempt: Any) -> Any:
    """An attempt for tenacity, for which the one that has already failed counts as the first."""
    pending: list[TransientError] = [first]

    async def again() -> Call:
        if pending:
            raise pending.pop()
        call: Call = await attempt()
        return call

    return again


def _wait(state: RetryCallState) -> float:
    """Back off exponentially with jitter, and never less than the endpoint asked for."""
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, UnreachableError):
        return 0.0  # the model's quota says which caller tries next, and when
    if isinstance(error, EmptyReplyError):
        return 0.0  # the endpoint is well; it had nothing to say
    asked = error.retry_after if isinstance(error, TransientError) else None
    return max(asked or 0.0, _backoff(state))
