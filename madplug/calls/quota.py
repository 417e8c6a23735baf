"""The slots and rate limits of one model, and waiting for its endpoint while it cannot be reached."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from madplug.calls.slots import AdaptiveWindow, Interruptible, Slots
from madplug.errors import OverloadedError, UnreachableError
from madplug.options import ModelOptions
from madplug.records import Caller, DebateId, Usage

if TYPE_CHECKING:
    from aiolimiter import AsyncLimiter

FIRST_PROBE, LAST_PROBE = 0.5, 15.0
"""Seconds between two attempts to reach an endpoint that is down, at first and at most."""
shared_rates: ContextVar[dict[str, Any]] = ContextVar("madplug_shared_rates")
"""The rates, by a model's options, that studies of one event loop keep to together; not set: each by itself."""


class Quota:
    """The slots and rate limits of one model, and what is known about its answers."""

    def __init__(self, options: ModelOptions) -> None:
        self.slots = Slots(options.max_in_flight)
        self.window = AdaptiveWindow(self.slots, options.start_in_flight) if options.start_in_flight else None
        """How many of the slots can be used, if that is found out while the study runs."""
        self.answered = self.in_vain = 0
        """Calls that were answered, and attempts that have failed since the last of them."""
        self._used = 0.0
        """Tokens of this run, for the rate: one call does not count for more than the tokens of a minute."""
        self.refused: set[DebateId] = set()
        """Debates of which the endpoint refused every request since it last answered one."""
        self.options = options
        rates = limiter(options.requests_per_minute), limiter(options.tokens_per_minute)
        self._requests, self._token_rate = shared_rates.get({}).setdefault(repr(options), rates)
        self.limited = not (self._requests is None and self._token_rate is None and self.window is None)
        """Whether there is a rate, or the endpoint's own wish, to wait for."""
        self._reserving = asyncio.Lock()
        self._admitted = 0
        self._reserved = 0.0
        self.down, self.why = False, ""
        """Whether the endpoint could not be reached when it was last tried."""
        self._prober: Caller | None = None
        """The caller that tries an endpoint that is down."""
        self._probes = 0
        self._changed = asyncio.Event()

    async def wait_reachable(self, caller: Caller, patience: float, interruptible: Interruptible) -> bool:
        """While the endpoint is down, one caller at a time tries it and the others wait.

        patience: seconds after which to give up and raise `UnreachableError`. True for the caller that is to try it,
        which then has to report the outcome or call `end_probe`.
        """
        until = time.monotonic() + patience
        while self.down:
            if time.monotonic() >= until:
                raise UnreachableError(self.why)
            if self._prober is None:
                self._prober = caller
                self._probes += 1
                delay = min(FIRST_PROBE * 2 ** (self._probes - 1), LAST_PROBE, until - time.monotonic())
                try:
                    await self._wait_changed(delay, interruptible)
                except BaseException:  # also a cancellation: another caller has to try
                    self.end_probe()
                    raise
                return self._prober is caller
            await self._wait_changed(until - time.monotonic(), interruptible)
        return False

    async def _wait_changed(self, seconds: float, interruptible: Interruptible) -> None:
        self._changed.clear()
        if seconds > 0:  # else the wait would be cancelled before it began, and its coroutine never awaited
            with suppress(asyncio.TimeoutError, TimeoutError):
                await asyncio.wait_for(interruptible(self._changed.wait()), seconds)

    def end_probe(self) -> None:
        """Let another caller try the endpoint."""
        self._prober = None
        self._changed.set()

    async def wait_rates(self, estimate: int, interruptible: Interruptible) -> None:
        """Wait until the rate limits allow one more call. estimate: about how many tokens it will use."""
        if self.window is not None:
            await self.window.wait(interruptible)
        if self._requests is not None:
            await interruptible(self._requests.acquire())
        if self._token_rate is not None:
            async with self._reserving:  # one after the other, so that each goes by the latest account
                await self._reserve(self._token_rate, estimate, interruptible)

    async def _reserve(self, rate: AsyncLimiter, estimate: int, interruptible: Interruptible) -> None:
        """Reserve the tokens expected for this call, correcting earlier estimates."""
        mean = self._used / self.answered if self.answered else float(estimate)
        wanted = max(1.0, self._used + (self._admitted - self.answered + 1) * mean - self._reserved)
        self._admitted += 1
        self._reserved += wanted
        while wanted > 0:
            portion = min(wanted, rate.max_rate)
            await interruptible(rate.acquire(portion))
            wanted -= portion

    def succeeded(self, usage: Usage) -> None:
        """A call was answered."""
        self.answered, self.in_vain = self.answered + 1, 0
        self._used += min(usage.prompt + usage.completion, self.options.tokens_per_minute or 0.0)
        self.refused.clear()
        if self.window is not None:
            self.window.succeeded()

    def failed(self, error: BaseException, caller: Caller) -> bool:
        """An attempt was not answered. True for the third one in vain to reach an endpoint: the user should know."""
        self.in_vain += 1
        self._admitted = max(self._admitted - 1, 0)
        if self.window is not None and isinstance(error, OverloadedError):
            asked = error.retry_after  # no request waits beyond its deadline, so the others need not either
            self.window.overloaded(None if asked is None or asked > self.options.deadline else asked)
        elif self.window is not None:
            self.window.failed()
        if not isinstance(error, UnreachableError):
            self.reached()
            return False
        # Many calls in flight fail together when an endpoint goes down; only the one that tries it ends its try.
        if self.down and self._prober != caller:
            return False
        self.down, self.why = True, str(error)
        self.end_probe()
        return self._probes == 3

    def reached(self) -> None:
        """The endpoint has replied, so callers need not wait for it."""
        if self.down or self._prober is not None:
            self.down, self._probes = False, 0
            self.end_probe()


def limiter(per_minute: float | None) -> AsyncLimiter | None:
    """A limiter that lets 98 % of a rate through, and never more than its share in a second; None for no limit."""
    if not per_minute:
        return None
    from aiolimiter import AsyncLimiter

    whole = int(per_minute) or per_minute  # 1.5 a minute would be 2 in some
    burst = max(1.0, 0.02 * whole / 60)  # what a busy machine makes up for
    return AsyncLimiter(burst, 60 * burst / (0.98 * whole))


def estimate_tokens(text: str) -> int:
    """An estimate of the tokens in a text, from its length."""
    return len(text) // 4 + 1
