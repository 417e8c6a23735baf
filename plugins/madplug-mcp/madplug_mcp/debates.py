"""The debates of a server: they run in it, and not in the request that asks for them."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import date
from pathlib import Path
from typing import Any

from madplug import DebateResult, UserError, arun
from madplug.store import has_study, open_study
from madplug.study import ResolvedStudy, read
from madplug_ask.councils import Asked
from madplug_ask.told import recorded

Places = Mapping[str, tuple[int, int]]
"""By what a model is: how many requests of a question it may get at once, and how many at the same time in all."""


class Slots:
    """Keeps all questions together to the `max_in_flight` of their models: a question has its places for its time."""

    def __init__(self) -> None:
        self._used: Counter[str] = Counter()
        self._waiting: deque[tuple[Places, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def hold(self, places: Places) -> AsyncIterator[None]:
        """Wait for all places of a question, in the order of arrival."""
        mine = (places, asyncio.get_running_loop().create_future())
        self._waiting.append(mine)
        self._admit()
        try:
            await mine[1]
        except asyncio.CancelledError:
            if mine in self._waiting:
                self._waiting.remove(mine)
            else:
                self._release(places)
            raise
        try:
            yield
        finally:
            self._release(places)

    def _release(self, places: Places) -> None:
        self._used.subtract({model: wanted for model, (wanted, _) in places.items()})
        self._admit()

    def _admit(self) -> None:
        while self._waiting:
            places, ready = self._waiting[0]
            if any(self._used[model] + wanted > most for model, (wanted, most) in places.items()):
                return
            self._used.update({model: wanted for model, (wanted, _) in places.items()})
            self._waiting.popleft()
            if not ready.done():
                ready.set_result(None)


def places_of(resolved: ResolvedStudy) -> Places:
    """The places of a study: each model gets at most a request of every seat at once."""
    [cell] = resolved.plan.cells
    found: dict[str, tuple[int, int]] = {}
    for line in cell.channels.values():
        model = resolved.plan.models[line]
        options = model.to_table(volatile=False)
        most = model.options.max_in_flight
        wanted = found.get(str(options), (0, 0))[0] + max(1, sum(name == line for name in cell.models))
        found[str(options)] = (min(wanted, most), most)
    return found


class Debates:
    """Starts debates, waits for them, and finds those on record. base: the directory that has theirs."""

    def __init__(self, base: Path, usd_a_day: float | None = None) -> None:
        self.base = base
        self._usd_a_day = usd_a_day
        self._running: dict[str, asyncio.Task[Any]] = {}
        self._slots = Slots()

    def start(self, asked: Asked, *, again: bool = False) -> str:
        """Start a debate, unless it runs or is on record; returns its id. Raises `UserError`."""
        id = asked.folder(self.base, again=again).name
        if id not in self._running and not self._is_done(id):
            self._check_day()
            self._run(id, asked.table, asked.resolve())
        return id

    def resume(self, id: str) -> None:
        """Go on with a debate that an earlier server has left. Raises `UserError` if there is none of this id."""
        path = self.folder(id) / "study.toml"
        if id not in self._running and not self._is_done(id) and path.exists():
            from madplug.study import load

            table = read(path, environ={})
            self._run(id, table, load(path, environ={}))

    def _run(self, id: str, table: Mapping[str, Any], resolved: ResolvedStudy) -> None:
        async def run() -> None:
            async with self._slots.hold(places_of(resolved)):
                await arun(table, output=self.base / id, quiet=True, yes=True)

        task = asyncio.get_running_loop().create_task(run())
        self._running[id] = task
        task.add_done_callback(lambda _: self._running.pop(id, None))

    async def wait(self, id: str, seconds: float) -> None:
        """Wait for a debate that runs here; it goes on after that. Raises what has ended it, if not its decision."""
        if (task := self._running.get(id)) is not None:
            await asyncio.wait([task], timeout=seconds)
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error

    def runs(self, id: str) -> bool:
        """Whether a debate runs in this server."""
        return id in self._running

    def folder(self, id: str) -> Path:
        """The directory of a debate. Raises `UserError` if there is none."""
        found = self.base / id
        if found.parent != self.base or not (id in self._running or has_study(found)):
            raise UserError(f"there is no debate '{id}'; the tool 'history' lists them")
        return found

    def debate(self, id: str) -> DebateResult | None:
        """A debate on record; None before it has begun. Raises `UserError`."""
        return recorded(self.folder(id))

    def all(self) -> list[tuple[str, DebateResult, float]]:
        """Every debate with its id and when it was last written to (seconds since 1970), the newest first."""
        found = []
        for path in self.base.iterdir() if self.base.is_dir() else ():
            if has_study(path) and (debate := recorded(path)) is not None:
                found.append((path.name, debate, (path / "study.db").stat().st_mtime))
        return sorted(found, key=lambda one: -one[2])

    async def close(self) -> None:
        """Interrupt what runs: calls in flight are answered and stored first."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _is_done(self, id: str) -> bool:
        found = recorded(self.base / id) if has_study(self.base / id) else None
        return found is not None and found.decision is not None and found.error is None

    def _check_day(self) -> None:
        if self._usd_a_day is None:
            return
        spent = 0.0
        for id, _, at in self.all():
            if date.fromtimestamp(at) == date.today():
                with open_study(self.base / id) as study:
                    spent += study.totals().cost_usd
        if spent >= self._usd_a_day:
            raise UserError(f"{spent:.4f} USD were spent today, and the server's limit is {self._usd_a_day:g}; it is "
                            "answered tomorrow, or from the record")
