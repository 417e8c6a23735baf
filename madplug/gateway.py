"""The one road to models: the record first, then a slot, a try, another try, and the record again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential

from madplug.checks import method_name, type_error
from madplug.components import Component, Model, Volatile
from madplug.errors import ModelError, RefusedError, StudyStopped, TransientError
from madplug.records import Completion, Request, Usage
from madplug.rows import to_json
from madplug.schedule import Slots
from madplug.store import Call, CallRow, Store

if TYPE_CHECKING:
    from aiolimiter import AsyncLimiter

    from madplug.debate import Debate

HOPELESS = 5
"""A model that gave this many debates the same refusal, and nobody an answer in between, ends the study."""
_backoff = wait_random_exponential(multiplier=0.5, max=60)


@dataclass(frozen=True)
class Limits:
    """What a study may use, calls of earlier runs included; `seconds` is of one run."""

    calls: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None


@dataclass
class ModelChannel:
    """A model, its slots and rates, and how it has been answering."""

    name: str
    model: Model
    slots: Slots
    identity: str
    requests: AsyncLimiter | None = None
    tokens: AsyncLimiter | None = None
    answered: int = 0
    used: int = 0
    refusals: dict[str, set[tuple[str, int, str]]] = field(default_factory=dict)
    failures: int = 0
    opened: bool = False
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)


class _OwnerCancelled(Exception):
    """Whoever paid for a call was cancelled; somebody who waits for it has to pay instead."""


class Gateway:
    """Answers requests on behalf of debates."""

    def __init__(self, models: Mapping[str, Model], store: Store, *, seed: int = 0, share: bool = True,
                 limits: Limits | None = None, report: Callable[[str], None] = lambda problem: None) -> None:
        self.channels = {name: _channel(name, model) for name, model in models.items()}
        self.report = report
        self.totals = store.totals()
        self.paid = 0
        """Calls answered by a model in this run."""
        self.retries = 0
        self.in_flight = 0
        self.stopping: str | None = None
        """Why no further call is started."""
        self.hopeless = False
        self._stopped = asyncio.Event()
        self._store = store
        self._seed = seed
        self._share = share
        self._limits = limits or Limits()
        self._pending: dict[bytes, asyncio.Future[Call]] = {}

    def stop(self, reason: str) -> None:
        """Start no further call; those in flight are answered and kept."""
        self.stopping = self.stopping or reason
        self._stopped.set()

    def line(self, debate: Debate, request: Request) -> ModelChannel:
        """The model behind a name, as the debate's cell configures it."""
        return self.channels[debate.cell.channels.get(request.model, request.model)]

    async def send(self, debate: Debate, request: Request) -> Completion:
        """Answer one request: from the record, from an identical request in flight, or from the model."""
        row = self._row(debate, request)
        call = self._store.call(row.key)
        while call is None and row.key in self._pending:
            with suppress(_OwnerCancelled):
                call = await asyncio.shield(self._pending[row.key])
        if call is None:
            call = await self._first(debate, request, row)
        debate.spent.add(call.completion.usage, call.retries)
        return call.completion

    async def _first(self, debate: Debate, request: Request, row: CallRow) -> Call:
        """Pay for a call, and let identical requests wait for it."""
        pending = self._pending[row.key] = asyncio.get_running_loop().create_future()
        try:
            call = await self._pay(debate, replace(request, seed=int.from_bytes(row.key[:4], "big") >> 1), row)
        except BaseException as error:
            pending.set_exception(error if isinstance(error, Exception) else _OwnerCancelled())
            pending.exception()  # nobody else may be waiting
            raise
        else:
            pending.set_result(call)
            return call
        finally:
            del self._pending[row.key]

    async def _pay(self, debate: Debate, request: Request, row: CallRow) -> Call:
        line = self.line(debate, request)
        first: Exception
        try:
            return await self._try(debate, line, request, row, 0)
        except TransientError as error:
            first = error
        except RefusedError as error:
            self._refused(debate, line, str(error))
            raise
        return await self._again(debate, line, request, row, first)

    async def _again(self, debate: Debate, line: ModelChannel, request: Request, row: CallRow,
                     error: Exception) -> Call:
        """The tries after the first, each after a wait; tenacity counts the first as the one that failed."""
        options, failed, tries = line.model.options, time.monotonic(), 0

        async def once() -> Call:
            nonlocal tries
            tries += 1
            if tries == 1:
                raise error
            return await self._try(debate, line, request, row, tries - 1)

        retrying = AsyncRetrying(
            sleep=self._pause, wait=_wait, reraise=True, retry=retry_if_exception_type(TransientError),
            stop=lambda state: state.attempt_number >= options.attempts
            or time.monotonic() - failed + state.upcoming_sleep >= options.deadline)
        try:
            return await retrying(once)
        except TransientError as last:
            line.failures += 1
            raise ModelError(f"model '{line.name}': gave up after {tries} tries: {last}") from last
        except RefusedError as last:
            self._refused(debate, line, str(last))
            raise

    async def _try(self, debate: Debate, line: ModelChannel, request: Request, row: CallRow, retries: int) -> Call:
        """One exchange. The slot is held until the reply is on disk, so that nothing answered can be lost."""
        await line.slots.acquire(debate.order, debate.round)
        try:
            if not line.opened:
                await self._open(line)
            await self._admit(line)
            self.in_flight += 1
            started = time.monotonic()
            try:
                answer: Any = line.model.complete(request)
                completion = _clean(await answer if hasattr(answer, "__await__") else answer, line.model)
            except BaseException as error:
                self.retries += isinstance(error, TransientError)
                self.paid -= 1
                self.totals.calls -= 1
                raise
            finally:
                self.in_flight -= 1
            call = Call(completion, retries, round(time.monotonic() - started, 4))
            await self._store.keep_call(row, call)
            self._count(line, completion.usage)
            return call
        finally:
            line.slots.release()

    async def _open(self, line: ModelChannel) -> None:
        """Open a model before its first request; one that cannot be opened ends the study."""
        async with line.opening:
            if line.opened or self.stopping is not None:
                return
            try:
                opening = line.model.open()
                if opening is not None:
                    await opening
            except Exception as error:
                self.hopeless = True
                self.stop(f"model '{line.name}' cannot be opened: {error}")
                raise StudyStopped(str(self.stopping)) from error
            line.opened = True

    async def close(self) -> None:
        """Close every model that was opened."""
        for line in self.channels.values():
            if line.opened:
                line.opened = False
                try:
                    closing = line.model.close()
                    if closing is not None:
                        await closing
                except Exception as error:
                    self.report(f"model '{line.name}': close raised {type(error).__name__}: {error}")

    async def _admit(self, line: ModelChannel) -> None:
        """Pass the rates and the limits, or raise `StudyStopped`."""
        if line.requests is not None:
            await self._or_stop(line.requests.acquire())
        if line.tokens is not None:
            mean = line.used / line.answered if line.answered else 1.0
            await self._or_stop(line.tokens.acquire(min(max(mean, 1.0), line.tokens.max_rate)))
        over = self._over()
        if over and self.stopping is None:
            self.stop(over)
        if self.stopping is not None:
            raise StudyStopped(self.stopping)
        self.paid += 1
        self.totals.calls += 1

    async def _or_stop(self, waiting: Coroutine[Any, Any, None]) -> None:
        """Wait, unless the study is being stopped."""
        tasks = [asyncio.ensure_future(waiting), asyncio.ensure_future(self._stopped.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    def _over(self) -> str | None:
        limits, totals = self._limits, self.totals
        for name, used in (("calls", totals.calls), ("tokens", totals.tokens), ("cost_usd", totals.cost_usd)):
            limit = getattr(limits, name)
            if limit is not None and used >= limit:
                return f"limits.{name}: {limit:,} reached"
        return None

    def _count(self, line: ModelChannel, usage: Usage) -> None:
        line.answered += 1
        line.used += usage.prompt + usage.completion
        line.refusals.clear()
        self.totals.tokens += usage.prompt + usage.completion
        self.totals.cost_usd += usage.cost_usd or 0.0

    def _refused(self, debate: Debate, line: ModelChannel, why: str) -> None:
        line.failures += 1
        debates = line.refusals.setdefault(why, set())
        debates.add((debate.cell.slug, debate.repeat, debate.sample.id))
        if len(debates) >= HOPELESS:
            self.hopeless = True
            self.stop(f"model '{line.name}' refuses every request: {why}")

    async def _pause(self, seconds: float) -> None:
        """Wait before another try, unless the study is being stopped."""
        try:
            await asyncio.wait_for(self._stopped.wait(), seconds)
        except (asyncio.TimeoutError, TimeoutError):
            return

    def _row(self, debate: Debate, request: Request) -> CallRow:
        """What tells this call from every other: its content, and who makes it for the how-manieth time."""
        line = self.line(debate, request)
        body = to_json({"messages": request.messages, "params": request.params, "form": request.form})
        asked = blake2b(f"{line.identity}\0{request.agent}\0{body}".encode(), digest_size=16).digest()
        times = debate.asked[asked] = debate.asked.get(asked, -1) + 1
        scope = f"{'' if self._share else debate.cell.slug}\0{self._seed}\0{debate.sample.id}\0{debate.repeat}\0{times}"
        key = blake2b(scope.encode(), key=asked, digest_size=16).digest()
        return CallRow(key, debate.cell.slug, debate.repeat, debate.sample.id, request.agent, request.purpose,
                       request.model, body)


def component_to_table(component: Component, *, volatile: bool = True) -> dict[str, Any]:
    """A component as a run file could spell it; without `volatile`, only what makes it the same in two runs."""
    fields = type(component.options).model_fields
    left_out = set() if volatile else {name for name, info in fields.items() if Volatile in info.metadata}
    values = component.options.model_dump(mode="json", exclude=left_out)
    return {"use": getattr(component, "full_name", component.name), **values}


def _channel(name: str, model: Model) -> ModelChannel:
    options = model.options
    line = ModelChannel(name, model, Slots(options.max_in_flight), to_json(component_to_table(model, volatile=False)))
    if options.requests_per_minute or options.tokens_per_minute:
        from aiolimiter import AsyncLimiter

        if options.requests_per_minute:
            line.requests = AsyncLimiter(options.requests_per_minute, 60)
        if options.tokens_per_minute:
            line.tokens = AsyncLimiter(options.tokens_per_minute, 60)
    return line


def _wait(state: RetryCallState) -> float:
    """Back off exponentially with jitter, and never less than the endpoint asked for."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, TransientError) else None
    return max(asked or 0.0, _backoff(state))


def _clean(completion: Any, model: Model) -> Completion:
    """A completion that can be stored, with its cost where the price is known."""
    if not isinstance(completion, Completion):
        raise type_error(f"{method_name(model, 'complete')} returned", completion, "Completion")
    usage, price = completion.usage, None
    if usage.cost_usd is None and (price := model.price):
        cached = price.get("cached", price.get("prompt", 0.0))
        cost = ((usage.prompt - usage.cached) * price.get("prompt", 0.0) + usage.cached * cached
                + usage.completion * price.get("completion", 0.0)) / 1e6
        usage = replace(usage, cost_usd=cost)
    text = completion.text.encode("utf-8", "replace").decode()
    return Completion(text, usage, completion.logprobs)
