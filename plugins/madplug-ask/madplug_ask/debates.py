"""The debates of a server, of assistants or of a page: they run in it, and not in the request that asks for them."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any

from madplug import DebateResult, Observer, UserError, arun, dollars, message_of
from madplug.store import has_study, is_running, open_study
from madplug.study import Registry, ResolvedStudy, load, read, shared_rates
from madplug_ask.councils import Asked
from madplug_ask.told import recorded, told

MOST_SHOWN, RECENT = 200, 50
"""Characters of a question and of an answer in a list; debates that are looked at for how long one takes."""

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
    """Starts debates, waits for them, and finds those on record.

    base: the directory that has theirs. around: is entered around each debate, by its id, and gives its observers.
    """

    def __init__(self, base: Path, usd_a_day: float | None = None,
                 around: Callable[[str], AbstractContextManager[Sequence[Observer]]] | None = None) -> None:
        self.base = base
        self.registry = Registry()
        """For the thread of the event loop alone; to scan what is installed for each question would delay it."""
        self.problems: dict[str, str] = {}
        """What has ended debates before their decision, by id."""
        self.limited: set[str] = set()
        """Those that a limit has ended."""
        self._usd_a_day = usd_a_day
        self._around = around or (lambda id: nullcontext(()))
        self._running: dict[str, asyncio.Task[None]] = {}
        self._slots = Slots()
        self._rates: dict[str, Any] = {}

    def start(self, asked: Asked, *, again: bool = False) -> str:
        """Start a debate, unless it runs or is on record; returns its id. Raises `UserError`."""
        id = asked.folder(self.base, again=again).name
        if not self.is_known(asked, again=again):
            self._check_day()
            self._run(id, asked.resolve(self.registry))
        return id

    def is_known(self, asked: Asked, *, again: bool = False) -> bool:
        """Whether a debate runs or is on record."""
        id = asked.folder(self.base, again=again).name
        return id in self._running or self._is_done(id)

    def resume(self, id: str, *, unlimited: bool = False) -> None:
        """Go on with a debate that an earlier server has left. Raises `UserError` if there is none of this id.

        unlimited: beyond the budget it was asked with.
        """
        path = self.folder(id) / "study.toml"
        if id not in self._running and not self._is_done(id) and path.exists():
            table = read(path, environ={})
            most = table["cells"][0]["dataset"].get("max_usd")
            limits = {} if unlimited or most is None else {"cost_usd": most}
            self._run(id, load({**table, "limits": limits}, registry=self.registry, environ={}))

    def _run(self, id: str, resolved: ResolvedStudy) -> None:
        async def run() -> None:
            shared_rates.set(self._rates)  # of this task
            async with self._slots.hold(places_of(resolved)):
                with self._around(id) as observers:
                    result = await arun(resolved, output=self.base / id, observers=observers, quiet=True, yes=True)
            if result.summary["ending"] == "limit":
                self.problems[id] = f"its budget is spent: {result.summary['reason']}"
                self.limited.add(id)

        def ended(task: asyncio.Task[None]) -> None:
            self._running.pop(id, None)
            if not task.cancelled() and (error := task.exception()) is not None:
                self.problems[id] = message_of(error)

        self.problems.pop(id, None)
        self.limited.discard(id)
        self._running[id] = asyncio.get_running_loop().create_task(run())
        self._running[id].add_done_callback(ended)

    async def wait(self, id: str, seconds: float, until: Callable[[], Awaitable[None]]) -> None:
        """Wait for a debate that runs here, or until something; it goes on. Raises what has ended it early."""
        if (task := self._running.get(id)) is not None:
            other = asyncio.ensure_future(until())
            await asyncio.wait([task, other], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            other.cancel()
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error

    def runs(self, id: str) -> bool:
        """Whether a debate runs in this server."""
        return id in self._running

    def status(self, id: str, recorded: str) -> str:
        """What has come of a debate; one that has no end on record, and that no process goes on with, has stopped."""
        runs = recorded != "running" or self.runs(id) or is_running(self.base / id)
        return recorded if runs else "stopped"

    def folder(self, id: str) -> Path:
        """The directory of a debate. Raises `UserError` if there is none."""
        found = self.base / id
        if found.parent != self.base or not (id in self._running or has_study(found)):
            raise UserError(f"there is no debate '{id}'")
        return found

    def debate(self, id: str) -> DebateResult | None:
        """A debate on record; None before it has begun. Raises `UserError`."""
        return recorded(self.folder(id))

    def all(self) -> Iterator[tuple[str, DebateResult, date]]:
        """Every debate with its id and the day it was last written to, the newest first; read one by one."""
        for path, day in self._dated():
            if (debate := recorded(path)) is not None:
                yield path.name, debate, day

    def seconds_of(self, resolved: ResolvedStudy) -> list[float]:
        """How long recent questions to the same seats took, with as many rounds."""
        [cell] = resolved.plan.cells
        models = [cell.models[i % len(cell.models)] for i in range(cell.wanted)]
        recent = (debate for _, debate, _ in islice(self.all(), RECENT) if debate.decision is not None)
        return [debate.seconds for debate in recent
                if ([a.model for a in debate.agents], debate.rounds) == (models, cell.rounds)]

    def history(self, query: str = "", limit: int = 20, before: str = "") -> list[dict[str, Any]]:
        """The newest debates whose question or answer has these words, in short. before: a day, as 2026-11-23."""
        words, found = query.casefold(), list[dict[str, Any]]()
        for id, debate, day in self.all():
            facts = told(debate)
            if before and day.isoformat() >= before:
                continue
            if words in f"{debate.sample.question}\n{facts['answer']}".casefold():
                found.append({"debate": id, "day": day.isoformat(), "question": debate.sample.question[:MOST_SHOWN],
                              "status": self.status(id, facts["status"]),
                              "answer": (facts["answer"] or "")[:MOST_SHOWN], "cost_usd": facts["cost_usd"]})
            if len(found) == limit:
                break
        return found

    async def stop(self, *ids: str) -> None:
        """Interrupt debates that run here: calls in flight are answered and stored first."""
        tasks = [self._running[id] for id in ids if id in self._running]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """Interrupt what runs."""
        await self.stop(*self._running)

    def _is_done(self, id: str) -> bool:
        found = recorded(self.base / id) if has_study(self.base / id) else None
        return found is not None and found.decision is not None and found.error is None

    def _dated(self) -> list[tuple[Path, date]]:
        found = []
        for path in self.base.iterdir() if self.base.is_dir() else ():
            with suppress(OSError):  # no study, or one that is being removed
                found.append((path, (path / "study.db").stat().st_mtime))
        return [(path, date.fromtimestamp(at)) for path, at in sorted(found, key=lambda one: -one[1])]

    def _check_day(self) -> None:
        if self._usd_a_day is None:
            return
        spent = 0.0
        for path in (path for path, day in self._dated() if day == date.today()):
            with open_study(path) as study:
                spent += study.totals().cost_usd
        if spent >= self._usd_a_day:
            raise UserError(f"${dollars(spent)} were spent today, and the server's limit is ${self._usd_a_day:g}; it "
                            "is answered tomorrow, or from the record")
