"""A study: cells x repeats x samples, run as one stream, resumed where it stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any

from madplug.calls.driver import StudyDriver
from madplug.config.check import sizes
from madplug.config.plan import StudyPlan
from madplug.context import Progress, Run
from madplug.debate.loop import run_debate
from madplug.errors import StudyError, StudyStopped
from madplug.events import StudyFinished, StudyStarted
from madplug.kinds import Observer
from madplug.records import Ending
from madplug.redaction import redact
from madplug.store import Reader, Recorder
from madplug.study.jobs import JobStream, Samples, samples_of_part
from madplug.study.observers import HURRY, Observers
from madplug.study.summary import summarise
from madplug.study.survey import check_every_row
from madplug.study.worker import Runner, Worker
from madplug.text import count


class StudyRun:
    """One run of a study, from the first debate to the summary.

    observers: in addition to those of the run file. reuse: records whose answered calls are not paid for again.
    runner: runs a debate; by default the loop. samples: gives the samples of a cell; by default those of its data set
    and extensions. rescore: the names of metrics that score recorded debates even if they have before; no debate is run
    then. None: debates are run. unfinished: what is left of the study whose records these are, in words.
    """

    def __init__(self, plan: StudyPlan, recorder: Recorder, observers: Sequence[Observer] = (),
                 report: Callable[[str], None] = lambda problem: None,
                 warn: Callable[[str], None] = lambda warning: None, *,
                 reuse: Sequence[Reader] = (), runner: Runner = run_debate, samples: Samples | None = None,
                 planned: int | None = None, rescore: Collection[str] | None = None, unfinished: str = "") -> None:
        self.plan = plan
        self.recorder = recorder
        self.planned = planned
        self.problems: list[str] = []
        self._report = report
        self.observers = Observers([*plan.observers, *observers], self.problem)
        limits = {name: limit for name in ("calls", "tokens", "cost_usd")
                  if (limit := getattr(plan.limits, name)) is not None}
        self.driver = StudyDriver(plan.models, recorder, self.observers.emit, limits=limits, counts=plan.limits.counts,
                                  reuse=reuse, report=self.problem, warn=warn, wants=self.observers.wants)
        self.driver.shares = self.driver.shares or (plan.share_completions and len(plan.cells) > 1)
        self.driver.services = {(cell.slug, name): s for cell in plan.cells for name, s in cell.services.items()}
        self._stage = "preparing"
        part = plan.executor if plan.executor is not None and plan.executor.part else None
        self._samples = samples or (samples_of_part(part) if part else None)
        self._rescore = rescore
        self._unfinished = unfinished
        self.worker = Worker(plan, self.driver, runner=runner if rescore is None else None)

    @property
    def status(self) -> str:
        """`finished`, `stopped` or `failed`."""
        if (ending := self.driver.ending) is not None:
            return "failed" if ending.kind == "unusable" else "stopped"
        return "failed" if self.driver.failed else "finished"

    def progress(self) -> Progress:
        """The progress of the run; may be called from any thread."""
        driver, opening = self.driver, self.worker.gateway.opening
        waiting = f"loading the model '{opening}'" if opening else driver.waiting() or self._stage
        return Progress(driver.paid, driver.in_flight, driver.retries, driver.tokens, driver.totals.cost_usd,
                        driver.ended.total(), waiting)

    def problem(self, text: str) -> None:
        """Record a problem of the study, which goes on."""
        text = redact(text).encode("utf-8", "replace").decode()
        if text not in self.problems:
            self.problems.append(text)
            self._report(text)
            with suppress(StudyError):  # where nothing can be written any more, the next call or debate ends the run
                self.recorder.keep_problem(text)

    async def run(self) -> dict[str, Any]:
        """Run the debates that are left and return the summary, as in `summary.json`."""
        limit, clock = self.plan.limits.seconds, asyncio.get_running_loop()
        timer = clock.call_later(limit, self.driver.stop, Ending("limit", f"limits.seconds: {limit:g} reached")) \
            if limit else None
        calls: list[Any] = [row["calls"] for row in sizes(self.plan)] if self.planned else [None]
        try:
            await self.observers.open(Run(
                self.plan.name, self.driver.folder, self.plan.repeats, self.planned, self.progress,
                lambda why, cells: clock.call_soon_threadsafe(self._decide, why, cells),
                None if None in calls else sum(calls)))
            await self._run_debates()
        except StudyStopped as stopped:
            self.driver.stop(Ending("unusable", str(stopped)))
        except BaseException:  # also a cancellation: observers are told how every debate ended
            for id in sorted(self.driver.open):
                self.driver.lose(id)
            await self.observers.close(HURRY)
            raise
        finally:
            if timer:
                timer.cancel()
            await self.worker.close()
        return await self._conclude()

    def _decide(self, why: str, cells: Collection[str]) -> None:
        """Give cells no further debates; the last one ends the study."""
        decided = self.driver.decided
        decided |= dict.fromkeys(cells, why)
        if len(decided) == len(self.plan.cells):
            self.driver.stop(Ending("decided", "; ".join(dict.fromkeys(decided.values()))))

    async def _run_debates(self) -> None:
        plan = self.plan
        jobs = JobStream(self.worker, self.driver, samples=self._samples, rescore=self._rescore,
                         rows=check_every_row(plan.cells) if self._samples is None else None)
        await jobs.keep_scope()
        if plan.executor is not None:
            await plan.executor.begin(self.driver)
        elif self._rescore is None and (waiting := self.recorder.fact("waiting")):
            self.driver.warn(f"{waiting}; this run does not wait for that, and pays for it once more")
        if plan.limits.cost_usd is not None and (unpriced := self.driver.totals.unpriced):
            self.driver.warn(f"limits.cost_usd: {count(unpriced, 'call')} of earlier runs had no price and cannot "
                             "count")
        await self.worker.open()
        self._stage = ""
        done = sum(cell.done for cell in self.recorder.reported().overview())
        self.observers.emit(StudyStarted(plan.name, tuple(self.worker.setups), self.planned, done,
                                         {cell.slug: dict(cell.settings) for cell in plan.cells}))
        await (jobs.run() if plan.executor is None else plan.executor.run(jobs, self.driver))
        if jobs.changed:
            changed = count(len(jobs.changed), "sample")
            self.driver.warn(f"{changed} changed since the last run; the debates are run again, with what is on record "
                             "of the same calls")
        await jobs.keep_scope()
        if self._unfinished:
            self.driver.stop(Ending("unfinished", self._unfinished))

    def _summary(self) -> dict[str, Any]:
        cells = summarise(self.recorder.reported(), self.worker.setups.values(), self.plan.repeats, self.problem)
        totals, ending = self.recorder.totals(), self.driver.ending
        unknown = any(cell["cost_usd"] is None for cell in cells)
        return {"study": self.plan.name, "status": self.status, "ending": ending.kind if ending else None,
                "reason": ending.reason if ending else None, "problems": self.problems,
                "estimated": self.recorder.estimated(),
                "paid": {"calls": totals.calls, "tokens": totals.tokens,
                         "cost_usd": None if unknown else totals.cost_usd}, "cells": cells}

    async def _conclude(self) -> dict[str, Any]:
        await self.driver.keep_windows()
        summary = self._summary()
        self.observers.emit(StudyFinished(self.plan.name, {**summary, "problems": list(self.problems)}))
        await self.observers.close()
        return {**summary, "problems": self.problems}
