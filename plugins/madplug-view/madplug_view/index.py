"""What there is to see in each debate of a study, looked up once: for counts of filters, and sorting by changes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any

from madplug import DebateId
from madplug.store import Reader
from madplug_read import Outline
from madplug_view.queries import in_order

ALL = float("inf")
"""Seconds for an index that has to be complete."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A debate, as far as lists are filtered and sorted by it."""

    traits: frozenset[str]
    changes: int
    """Changes of mind."""
    group: str
    """Of its sample."""

    def fits(self, traits: Collection[str], group: str) -> bool:
        """Whether it has all of these traits and, if one is named, is of this group."""
        return self.traits.issuperset(traits) and group in ("", self.group)


class Index:
    """The entries of a study's debates; `update` reads those that have changed since it was last called."""

    def __init__(self, read: Callable[[Reader, DebateId], Outline | None]) -> None:
        self._read = read
        self._entries: dict[DebateId, Entry] = {}
        self._waiting: dict[DebateId, None] = {}
        self._cursor: str | None = None
        self._lock = Lock()

    def update(self, reader: Reader, seconds: float = ALL) -> bool:
        """Look at debates for so long; returns whether all were looked at."""
        until = time.monotonic() + seconds
        with self._lock:
            changes, self._cursor = reader.since(self._cursor)
            for id in changes.debates:
                self._entries.pop(id, None)
                self._waiting[id] = None
            while self._waiting and time.monotonic() < until:
                id = next(iter(self._waiting))
                del self._waiting[id]
                if reader.scope.has(*id) and (found := self._read(reader, id)) is not None:
                    self._entries[id] = Entry(frozenset(found.traits), len(found.changes), found.sample.group)
            return not self._waiting

    def get(self, id: DebateId) -> Entry | None:
        """The entry of a debate, or None if it was not looked at."""
        return self._entries.get(id)

    def counts(self, cells: Collection[str], traits: Collection[str], group: str) -> dict[str, Any]:
        """Debates of these cells that fit, by each further trait that they have, and by group."""
        named = set(cells)
        with self._lock:
            found = [entry for id, entry in self._entries.items() if id.cell in named]
        fitting = [entry for entry in found if entry.fits(traits, group)]
        groups = Counter(entry.group for entry in found if entry.fits(traits, ""))
        return {"traits": Counter(trait for entry in fitting for trait in entry.traits), "fitting": len(fitting),
                "groups": groups if len(groups) > 1 else {}}

    def by_changes(self, cell: str, *, descending: bool) -> Iterator[tuple[list[Any], DebateId]]:
        """The debates of a cell by changes of mind, each with its place in that order."""
        with self._lock:
            found = [([entry.changes, id.repeat, id.sample], id) for id, entry in self._entries.items()
                     if id.cell == cell]
        return iter(sorted(found, key=lambda one: in_order(one[0]), reverse=descending))
