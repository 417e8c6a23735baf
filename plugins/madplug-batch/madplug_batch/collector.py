"""The collector: holds requests until no open debate can go on without a reply, and sends them as one batch."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from madplug import (
    Caller,
    Completion,
    Model,
    ModelError,
    Request,
    StudyStopped,
    TransientError,
    Usage,
)
from madplug.study import Ending, StudyDriver, cost_of
from madplug_batch.journal import Batch, Entry, Journal, Waiting, portions, under_way
from madplug_prompting.batches import BatchStatus, BatchSupport, batches_of

if TYPE_CHECKING:
    from madplug_batch.rounds import RoundsOptions

TICK = 0.1
"""Seconds between two looks at whether every debate waits."""
TRIES = 5
"""Attempts to reach a provider after which a detached run ends."""
REPLY = 400
"""Tokens that a reply is expected to have before the first one is there."""


class Collector:
    """The requests that wait, and the batches under way. One for each run of a study."""

    def __init__(self, options: RoundsOptions, driver: StudyDriver) -> None:
        self._options = options
        self._driver = driver
        self._journal = Journal(driver)
        self._names = {id(model): name for name, model in driver.models.items()}
        self._queue: dict[str, Waiting] = {}
        """The requests that are in no batch, by key."""
        self._failed: set[str] = set()
        """The requests that a batch has left unanswered, until they are made again or the next batch is sent."""
        self._batches: list[Batch] = []
        self._where: dict[str, Batch] = {}
        """The latest batch of each request in one."""
        self._most: dict[str, int] = {}
        """The most requests that a provider has room for at a time, by model, once that is known."""
        self._arrived = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._ticking: asyncio.Task[None] | None = None
        self._replies = [0, 0]
        """How many there were, and their tokens."""
        driver.when_stopped.append(self._stop)

    async def open(self) -> None:
        """Find the batches that earlier runs have left."""
        for batch in await self._journal.load():
            self._add(batch)

    def _add(self, batch: Batch) -> None:
        self._batches.append(batch)
        self._where.update(dict.fromkeys(batch.keys, batch))

    async def answer(self, model: Model, request: Request, caller: Caller, key: str) -> Completion:
        """The answer to a request: from a batch that it is in already, or from the next one."""
        waiting = Waiting(key, model, request, caller, asyncio.get_running_loop().create_future())
        self._failed.discard(key)
        batch = self._where.get(key)
        if batch is not None and key in batch.results:
            self._where.pop(key)
            self._deliver(waiting, batch, batch.results.pop(key))
        elif batch is not None:
            batch.waiting[key] = waiting
            self._follow(batch, model)
        else:
            self._queue[key] = waiting
            for unread in [b for b in self._batches if b.is_unread and b.entry.model == self._names[id(model)]]:
                self._follow(unread, model)
        self._wake()
        self._arrived = asyncio.get_running_loop().time()
        expected = self._expected(waiting)
        self._expect(expected, 1)
        try:
            return await waiting.future
        finally:
            self._expect(expected, -1)
            self._queue.pop(key, None)
            if batch := self._where.get(key):
                batch.waiting.pop(key, None)

    def _expected(self, waiting: Waiting) -> Usage:
        """What a request will use, about."""
        text = sum(len(str(message.get("content"))) for message in waiting.request.messages)
        replies, tokens = self._replies
        usage = Usage(text // 4, tokens // replies if replies else REPLY)
        return _priced(usage, waiting.model)

    def _expect(self, usage: Usage, sign: int) -> None:
        """Count it for the limits of the study until it is answered."""
        self._driver.expected.tokens += sign * (usage.prompt + usage.completion)
        self._driver.expected.cost_usd += sign * (usage.cost_usd or 0.0)

    # When to send

    def _wake(self) -> None:
        if self._ticking is None or self._ticking.done():
            self._ticking = self._start(self._tick())

    async def _tick(self) -> None:
        """Send the requests as soon as no debate can go on without a reply."""
        while self._queue or (self._options.detach and self._all_waiting()):
            arrived = self._arrived
            await asyncio.sleep(TICK)
            if arrived != self._arrived or not self._is_quiet():
                continue
            await self._settle()
            if self._queue and not any(b.is_unread for b in self._batches) and await self._send_all():
                continue
            if not self._options.detach:
                return  # until a batch has ended
            if all(b.looked for b in self._batches if b.waiting or b.is_unread):
                self._driver.stop(Ending("detached", under_way(b.entry for b in self._batches if not b.fetched)))

    def _is_quiet(self) -> bool:
        """Whether every open debate waits for a batch; `patience` is how long one that does not is waited for."""
        waiting = self._all_waiting()
        if self._driver.in_flight > len(waiting):
            return False  # a call of another model is under way, or a reply is being stored
        if asyncio.get_running_loop().time() - self._arrived > self._options.patience:
            return True
        return not self._failed and self._driver.open <= {w.debate for w in waiting}

    async def _send_all(self) -> bool:
        """Send what waits, as far as there is room for it; whether that is anything."""
        queued, self._queue, self._failed = self._queue, {}, set()
        by_model: dict[int, list[Waiting]] = defaultdict(list)
        for waiting in queued.values():
            by_model[id(waiting.model)].append(waiting)
        batches: list[tuple[Batch, BatchSupport, list[bytes]]] = []
        for found in by_model.values():
            if len(found) < self._options.live_below:
                for waiting in found:
                    self._start(self._ask_now(waiting))
                continue
            room = self._room(self._names[id(found[0].model)], len(found))
            batches += self._divided(found[0].model, found[:room])
            self._queue |= {waiting.key: waiting for waiting in found[room:]}
        is_less = len(self._queue) < len(queued)
        for batch, support, lines in batches:
            await self._journal.plan(batch)
            if self._driver.ending is None:  # otherwise the next run finds out that it was not submitted
                batch.task = self._start(self._carry(batch, support, lines))
        return is_less

    def _room(self, model: str, wanted: int) -> int:
        """How many of so many further requests the provider has room for."""
        return max(0, min(wanted, self._most.get(model, wanted + self._taken(model)) - self._taken(model)))

    def _taken(self, model: str) -> int:
        """The requests to a model that are with the provider."""
        return sum(b.entry.requests for b in self._batches if b.entry.model == model and not b.fetched)

    async def _ask_now(self, waiting: Waiting) -> None:
        try:
            outcome: Completion | BaseException = await waiting.model.complete(waiting.request)
        except Exception as error:
            outcome = error
        _end(waiting, outcome)

    def _divided(self, model: Model, found: list[Waiting]) -> Iterator[tuple[Batch, BatchSupport, list[bytes]]]:
        """The requests to one model in as many batches as it takes, with their lines."""
        support = batches_of(model)
        assert support is not None
        lines = [support.encode(waiting.key, waiting.request) for waiting in found]
        for part in portions(lines, support):
            waiting = {one.key: one for one in found[part]}
            batch = Batch(uuid4().hex, Entry(self._names[id(model)], len(waiting)), set(waiting), waiting)
            self._add(batch)
            yield batch, support, lines[part]

    # What becomes of a batch

    def _follow(self, batch: Batch, model: Model) -> None:
        """Go on with a batch of an earlier run."""
        if batch.task is None or batch.task.done():
            support = batches_of(model)
            assert support is not None
            batch.task = self._start(self._carry(batch, support, None))

    async def _carry(self, batch: Batch, support: BatchSupport, lines: list[bytes] | None) -> None:
        """Submit a batch, or find it; wait for its end, and hand out its results.

        lines: the encoded requests, or None for a batch of an earlier run.
        """
        batch.support = support
        try:
            if not batch.entry.id:
                found = await self._place(batch, support, lines)
                if found is None:
                    await self._queue_again(batch)
                    return
                batch.entry.id, batch.entry.state = found, "submitted"
                await self._journal.write([batch])
            status = await self._poll(batch, support)
            if status.crowded and batch.entry.requests > 1:
                await self._send_fewer(batch)
                return
            await self._fetch(batch, support)
        except Exception as error:  # what the provider has goes on, and is found again by the next call in it
            self._fail(batch, error)
        self._wake()

    async def _place(self, batch: Batch, support: BatchSupport, lines: list[bytes] | None) -> str | None:
        """The provider's id, or None if an earlier run ended before it had submitted the batch.

        What may have arrived in spite of an error is looked for before it is sent again.
        """
        unsure = lines is None
        for pause in self._pauses():
            try:
                if lines is not None and not unsure:
                    return await support.submit(lines, batch.tag)
                if (found := await support.find(batch.tag)) or lines is None:
                    return found
                unsure = False
            except TransientError as error:
                unsure = True
                await self._wait_out(batch, error, pause)
            except ModelError:
                if not unsure:  # it was refused, so there is no such batch
                    self._forget(batch)
                    batch.entry.said = "refused"
                    await self._end(batch)
                raise
        raise AssertionError("there is always a further pause")

    async def _wait_out(self, batch: Batch, error: TransientError, pause: float) -> None:
        """Wait before a batch is looked at again; the first trouble with each is told.

        A detached run, which nobody watches for a day, ends after a few.
        """
        batch.troubles += 1
        said, ends = f"model '{batch.entry.model}': {error}; its batches", self._options.detach
        if batch.troubles == 1:
            self._driver.warn(f"{said} are tried again until they can be reached{f', {TRIES} times at most' * ends}")
        if ends and batch.troubles == TRIES:
            self._driver.stop(Ending("unusable", f"{said} were tried {TRIES} times"))
        await asyncio.sleep(pause)

    async def _send_fewer(self, batch: Batch) -> None:
        """Have no more requests with the provider than the others, which it has taken; without any, half as many."""
        name, requests = batch.entry.model, batch.entry.requests
        most = self._most[name] = self._taken(name) - requests or requests // 2
        self._driver.warn(f"model '{name}': the provider has no room for a batch of {requests:,} requests; from now on "
                          f"it gets {most:,} at a time")
        await self._queue_again(batch)

    async def _queue_again(self, batch: Batch) -> None:
        """Put the requests of a batch that nobody works on into the next one."""
        self._forget(batch)
        self._queue |= batch.waiting
        batch.waiting = {}
        await self._end(batch)
        self._wake()

    def _pauses(self) -> Iterator[float]:
        """Seconds between two looks at a batch."""
        seconds = self._options.poll
        while True:
            yield seconds * random.uniform(0.8, 1.2)
            seconds = min(seconds * 1.5, self._options.poll * 10)

    async def _poll(self, batch: Batch, support: BatchSupport) -> BatchStatus:
        """Wait for the end of a batch; that it cannot be looked at does not mean anything about it."""
        for pause in self._pauses():
            try:
                status = await support.poll(batch.entry.id)
            except TransientError as error:
                await self._wait_out(batch, error, pause)
                continue
            entry = batch.entry
            if (status.state, status.expires) != (entry.said, entry.expires) or status.answered != entry.answered:
                entry.said, entry.expires, entry.answered = status.state, status.expires, status.answered
                await self._journal.write([batch])
            if status.ended:
                return status
            batch.looked = True
            await asyncio.sleep(pause)
        raise AssertionError("there is always a further pause")

    async def _fetch(self, batch: Batch, support: BatchSupport) -> None:
        """Hand out the results; a request that has none is made again, and an unknown or second result is ignored."""
        asked = frozenset(batch.keys)
        for pause in self._pauses():
            seen: Counter[str] = Counter()
            try:
                async for key, outcome in support.fetch(batch.entry.id):
                    seen[key] += 1
                    if key in batch.keys or (batch.is_unread and seen[key] == 1):
                        batch.keys.discard(key)
                        self._take(batch, key, outcome)
                break
            except TransientError as error:
                await self._wait_out(batch, error, pause)
        unknown = seen.keys() - asked if batch.entry.requests else ()
        odd = Counter({"twice": sum(n > 1 for n in seen.values()), "of unknown requests": len(unknown)})
        if batch.entry.said == "completed" and batch.keys:
            odd["missing"] = len(batch.keys)
        if odd.total():
            self._driver.warn(f"batch {batch.entry.id}: results were "
                              + ", ".join(f"{what} ({number:,})" for what, number in odd.items() if number))
        if batch.entry.said == "not found":
            self._driver.warn(f"batch {batch.entry.id} is not there any more; its requests are made again")
        batch.fetched = True
        self._forget(batch)
        self._fail(batch, TransientError(f"the batch has no result for it ({batch.entry.said})"))

    def _take(self, batch: Batch, key: str, outcome: Completion | ModelError) -> None:
        waiting = batch.waiting.pop(key, None) or (self._queue.pop(key, None) if batch.is_unread else None)
        if waiting is None:
            batch.results[key] = outcome
            self._where.setdefault(key, batch)
        else:
            self._where.pop(key, None)
            self._deliver(waiting, batch, outcome)

    def _deliver(self, waiting: Waiting, batch: Batch, outcome: Completion | ModelError) -> None:
        """Give a result to the debate that waits for it, at the price of a batch."""
        usage, share = outcome.usage, batch.support.price if batch.support else 1.0
        if usage is not None:
            usage = _priced(usage, waiting.model, share)
            usage = replace(usage, raw={**usage.raw, "batch": batch.entry.id})
        if isinstance(outcome, ModelError):
            self._failed.add(waiting.key)
            outcome.usage = usage
        elif usage is not None:
            self._replies = [self._replies[0] + 1, self._replies[1] + usage.completion]
            outcome = replace(outcome, usage=usage)
        _end(waiting, outcome)

    def _forget(self, batch: Batch) -> None:
        """The requests of a batch that have no result can be in another one."""
        for key in batch.keys:
            if self._where.get(key) is batch:
                del self._where[key]

    def _fail(self, batch: Batch, error: Exception) -> None:
        """The debates that still wait for a batch get an error."""
        waiting, batch.waiting = batch.waiting, {}
        self._failed |= waiting.keys()
        for one in waiting.values():
            _end(one, error)

    # The end

    async def _end(self, batch: Batch) -> None:
        batch.entry.state = "done"
        self._batches.remove(batch)
        await self._journal.write([batch])

    async def _settle(self) -> None:
        """Note the batches of which every result is in the study's records by now."""
        if self._driver.in_flight > len(self._all_waiting()):
            return
        for batch in [b for b in self._batches if b.fetched and not b.results]:
            await self._end(batch)

    def _stop(self) -> None:
        """The study is being stopped: nothing more is sent, and what was sent goes on without this process."""
        assert self._driver.ending is not None
        for waiting in self._all_waiting():
            _end(waiting, StudyStopped(self._driver.ending.reason))

    def _all_waiting(self) -> list[Waiting]:
        return [*self._queue.values(), *chain.from_iterable(b.waiting.values() for b in self._batches)]

    async def close(self) -> None:
        """Stop looking at batches; they go on. Nobody needs them when every debate is done."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._settle()
        driver = self._driver
        for batch in [b for b in self._batches if not (driver.ending or driver.open or driver.failed)]:
            await self._end(batch)
        told = under_way(b.entry for b in self._batches if not b.fetched)
        if told and (driver.ending is None or driver.ending.kind != "detached"):
            driver.warn(f"{told}; the same command goes on with them")

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _end(waiting: Waiting, outcome: Completion | BaseException) -> None:
    if waiting.future.done():
        return  # its debate does not wait any more
    if isinstance(outcome, BaseException):
        waiting.future.set_exception(outcome)
    else:
        waiting.future.set_result(outcome)


def _priced(usage: Usage, model: Model, share: float = 1.0) -> Usage:
    """A usage with its cost in a batch, if that is known."""
    cost = usage.cost_usd
    if cost is None and (price := model.price) and (usage.prompt or usage.completion):
        cost = cost_of(usage, price)
    return usage if cost is None else replace(usage, cost_usd=cost * share)
