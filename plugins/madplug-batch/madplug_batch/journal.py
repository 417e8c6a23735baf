"""What is known about batches, stored with the study before anything is paid: a killed run finds them again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from madplug import Caller, Completion, DebateId, Model, ModelError, Request, count
from madplug.study import Driver
from madplug_prompting.batches import BatchSupport

INDEX = "batches"
"""The fact with every batch of the study, by tag."""
KEYS = "batch."
"""How the names of facts with the keys of one batch begin."""
State = Literal["planned", "submitted", "done"]


@dataclass(eq=False, slots=True)
class Waiting:
    """A request that waits for its answer."""

    key: str
    model: Model
    request: Request
    caller: Caller
    future: asyncio.Future[Completion]

    @property
    def debate(self) -> DebateId:
        """The debate that waits for it."""
        return DebateId(self.caller.cell, self.caller.repeat, self.caller.sample)


@dataclass
class Entry:
    """A batch as it is stored."""

    model: str
    """The model's name in the study."""
    requests: int
    """0 for a batch that was adopted: any request may be in it."""
    state: State = "planned"
    id: str = ""
    """The provider's id, once it is known."""
    said: str = ""
    """The state in the provider's words."""
    answered: int = 0
    expires: float | None = None
    """In seconds since 1970."""


@dataclass(eq=False)
class Batch:
    """A batch that is not done."""

    tag: str
    entry: Entry
    keys: set[str]
    """The requests in it that have no result yet."""
    waiting: dict[str, Waiting] = field(default_factory=dict)
    """Those of them that a debate waits for."""
    results: dict[str, Completion | ModelError] = field(default_factory=dict)
    """Results that no debate has asked for yet."""
    task: asyncio.Task[None] | None = None
    """What waits for the batch to end."""
    support: BatchSupport | None = None
    looked: bool = False
    """Whether this run has seen that it is not at its end."""
    fetched: bool = False
    troubles: int = 0
    """How often it could not be looked at."""

    @property
    def is_unread(self) -> bool:
        """Whether any request may be in it, until its results are there."""
        return not self.entry.requests and not self.fetched


class Journal:
    """The batches of a study. What `write` and `plan` were given is durable when they return."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._entries: dict[str, Entry] = {}

    async def load(self) -> list[Batch]:
        """The batches that earlier runs have left, in the order in which they were planned."""
        self._entries = entries_in(await self._driver.recall(INDEX))
        return [Batch(tag, entry, set(await self._driver.recall(KEYS + tag) or ()))
                for tag, entry in self._entries.items() if entry.state != "done"]

    async def plan(self, batch: Batch) -> None:
        """Store a batch before it is submitted."""
        await self._driver.remember(KEYS + batch.tag, sorted(batch.keys))
        await self.write([batch])

    async def write(self, batches: Iterable[Batch]) -> None:
        """Store what has become of batches, also in words; of those that are done, the keys are not needed any more."""
        for batch in batches:
            self._entries[batch.tag] = batch.entry
            if batch.entry.state == "done":
                await self._driver.remember(KEYS + batch.tag, [])
        await self._driver.remember(INDEX, {tag: asdict(entry) for tag, entry in self._entries.items()})
        until = max((e.expires or 0.0 for e in self._entries.values() if e.state == "submitted"), default=0.0)
        await self._driver.remember("waiting", under_way(self._entries.values())
                                    + (f", which expire by {local(until)}" if until else ""))


def entries_in(fact: Any) -> dict[str, Entry]:
    """The batches in the fact `INDEX`, by tag."""
    return {tag: Entry(**entry) for tag, entry in (fact or {}).items()}


def under_way(entries: Iterable[Entry]) -> str:
    """How many of these batches are with the provider, in words; empty if none is."""
    found = [entry for entry in entries if entry.state == "submitted"]
    requests = count(sum(entry.requests for entry in found), "request")
    return f"batches under way: {len(found)}, with {requests}" if found else ""


def local(seconds: float) -> str:
    """A time since 1970, as clocks here show it."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def portions(lines: Collection[bytes], support: BatchSupport) -> Iterable[slice]:
    """Lines divided into as few batches as the provider's limits allow."""
    start = end = size = 0
    for line in lines:
        if end > start and (end - start >= support.most_requests or size + len(line) > support.most_bytes):
            yield slice(start, end)
            start, size = end, 0
        end, size = end + 1, size + len(line)
    if end > start:
        yield slice(start, end)
