"""A study: cells x repeats x samples, held as one stream, resumed where it stopped."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite
from typing import Any, TypeVar

from madplug.cell import Cell
from madplug.checks import check_iterable, locate_error
from madplug.components import Component, Executor, Metric, Model, Service
from madplug.debate import Debate, iterate, maybe_await, run_debate
from madplug.errors import ComponentError, MadplugError, StudyError, StudyStopped
from madplug.gateway import Gateway, Limits
from madplug.log import redact
from madplug.records import DebateResult, Decision, Sample
from madplug.schedule import JobQueue, stream
from madplug.setup import Sampled, Setup, sampled
from madplug.store import Store
from madplug.summary import summarise
from madplug.watchdog import Watchdog

T = TypeVar("T")


@dataclass
class StudyPlan:
    """What a run file describes, resolved."""

    name: str
    cells: Sequence[Cell]
    models: Mapping[str, Model] = field(default_factory=dict)
    seed: int = 0
    repeats: int = 1
    share_completions: bool = True
    limits: Limits = field(default_factory=Limits)
    executor: Executor | None = None


@dataclass(slots=True)
class Job:
    """One debate to hold."""

    run_of: StudyRun
    study: Setup
    repeat: int
    sample: Sample
    references: tuple[str, ...]
    order: int

    async def run(self) -> DebateResult | None:
        """Hold the debate; None when the study was stopped before it ended."""
        return await self.run_of.hold(self)


class StudyRun:
    """One run of a study, from the first debate to the summary."""

    def __init__(self, plan: StudyPlan, store: Store, watchers: Sequence[object] = (),
                 report: Callable[[str], None] | None = None, warn: Callable[[str], None] | None = None) -> None:
        self.plan = plan
        self.store = store
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self._report = report or (lambda problem: None)
        self._warn = warn or (lambda warning: None)
        self.gateway = Gateway(plan.models, store, seed=plan.seed, share=plan.share_completions, limits=plan.limits,
                               report=self.problem)
        self.studies = {cell.slug: Setup(cell, self.gateway, store, plan.seed) for cell in plan.cells}
        self.failed = 0
        self._ended: dict[tuple[str, int, str], asyncio.Future[DebateResult | None]] = {}
        self._issued: set[tuple[str, int, str]] = set()
        self._read: set[tuple[str, int]] = set()
        self._waited_for = {cell.match["cell"] for cell in plan.cells if cell.match}
        self._kept: set[asyncio.Task[None]] = set()
        for cell in plan.cells:
            for watcher in watchers:
                if not cell.manager.is_registered(watcher):
                    cell.manager.register(watcher)

    def stop(self, reason: str) -> None:
        """Start nothing new; what is in flight is finished and kept."""
        self.gateway.stop(reason)

    def problem(self, text: str) -> None:
        """Record a problem of the study; nothing stops for it."""
        text = redact(text).encode("utf-8", "replace").decode()
        if text not in self.problems:
            self.problems.append(text)
            self._report(text)
            task = asyncio.ensure_future(self.store.keep_problem(text))
            self._kept.add(task)
            task.add_done_callback(self._kept.discard)

    async def run(self) -> dict[str, Any]:
        """Hold what is left to hold; returns the summary, as in `summary.json`."""
        limit, clock = self.plan.limits.seconds, asyncio.get_running_loop()
        timer = clock.call_later(limit, self.stop, f"limits.seconds: {limit:g} reached") if limit else None
        opened: list[Service] = []
        try:
            with Watchdog(self._packages(), lambda text: clock.call_soon_threadsafe(self.warn, text)):
                await self._open(opened)
                await self._prepare()
                await self._hold_all()
        except StudyStopped as stopped:
            self.stop(str(stopped))
        finally:
            if timer:
                timer.cancel()
            await self.gateway.close()
            for service in reversed(opened):
                try:
                    await maybe_await(service.close())
                except Exception as error:
                    self.problem(f"service {service.name}: close raised {describe_error(error)}")
            await asyncio.gather(*self._kept)
        summary = summarise(self)
        for study in self.studies.values():
            study.cell.tell("madplug_study_finished", self.problem, study=study, summary=summary)
        await asyncio.gather(*self._kept)
        return {**summary, "problems": self.problems}

    def warn(self, text: str) -> None:
        """Tell of something that spoils no result."""
        self.warnings.append(text)
        self._warn(text)

    def _packages(self) -> set[str]:
        """Where the components of this study come from."""
        components = [c for study in self.studies.values() for c in study.cell.components()]
        return {type(c).__module__.partition(".")[0] for c in (*components, *self.plan.models.values())} - {"madplug"}

    @property
    def status(self) -> str:
        """`finished`, `stopped` or `failed`."""
        if self.gateway.hopeless:
            return "failed"
        return "stopped" if self.gateway.stopping else "failed" if self.failed else "finished"

    async def _open(self, opened: list[Service]) -> None:
        """Open the services; a model is opened before its first request."""
        services = {id(s): s for study in self.studies.values() for s in study.cell.services.values()}
        for service in services.values():
            await run_setup_step(service, "open", service.open)
            opened.append(service)

    async def _prepare(self) -> None:
        done: set[int] = set()
        for study in self.studies.values():
            for component in study.cell.components():
                if id(component) not in done:
                    done.add(id(component))
                    await run_setup_step(component, "prepare", partial(component.prepare, study))
            if study.read:
                await self.store.keep_fact(f"trained.{study.cell.slug}", study.read)
            study.cell.tell("madplug_study_started", self.problem, study=study)

    async def _hold_all(self) -> None:
        if self.plan.executor is not None:
            jobs = self._jobs(list(self.studies.values()))
            results: AsyncIterator[DebateResult | None] = self.plan.executor.run(jobs)
        else:
            results = stream([JobQueue(self._jobs(studies), [self.gateway.channels[name].slots for name in names])
                              for names, studies in self._by_models().items()])
        async for _ in results:
            pass

    def _by_models(self) -> dict[tuple[str, ...], list[Setup]]:
        """The cells that can be admitted together: those that use the same models. A cell another is matched to
        stands first."""
        lanes: dict[tuple[str, ...], list[Setup]] = defaultdict(list)
        for study in sorted(self.studies.values(), key=lambda s: s.cell.match is not None):
            lanes[tuple(sorted(set(study.cell.channels.values())))].append(study)
        return lanes

    async def _jobs(self, studies: Sequence[Setup]) -> AsyncIterator[Job]:
        """Every debate that is left, sample by sample across cells: identical requests then meet each other."""
        done, order = self.store.done(), 0
        for repeat in range(self.plan.repeats):
            sources = [(study, self._samples(study, repeat)) for study in studies]
            while sources:
                if self.gateway.stopping is not None:
                    self._release()
                    return
                for source in list(sources):
                    study, samples = source
                    found = await self._next(study, samples)
                    if found is None:
                        sources.remove(source)
                        self._exhausted(study.cell.slug, repeat)
                        continue
                    sample, references = found
                    if study.cell.slug in self._waited_for:
                        self._issued.add((study.cell.slug, repeat, sample.id))
                    if (study.cell.slug, repeat, sample.id) not in done:
                        yield Job(self, study, repeat, sample, references, order)
                    order += 1

    async def _next(self, study: Setup, samples: AsyncIterator[Sampled]) -> Sampled | None:
        """The next sample; data that cannot be read ends the study, and what is in flight is kept."""
        try:
            return await anext(samples, None)
        except StudyError:
            raise
        except Exception as error:
            self.gateway.hopeless = True
            self.stop(f"cell '{study.cell.slug}': the samples cannot be read: {describe_error(error)}")
            return None

    def _exhausted(self, cell: str, repeat: int) -> None:
        """A cell has no further sample in this repeat: whoever waits for one it does not have must not wait."""
        self._read.add((cell, repeat))
        for name, future in self._ended.items():
            if name[:2] == (cell, repeat) and name not in self._issued and not future.done():
                future.set_result(None)

    async def _samples(self, study: Setup, repeat: int) -> AsyncIterator[tuple[Sample, tuple[str, ...]]]:
        seen: set[str] = set()
        rows = await maybe_await(study.cell.hooks.madplug_samples(setup=study))
        hook = "the hook 'madplug_samples' gave"
        async for row in iterate(check_iterable(rows, hook)):
            sample, references = sampled(row, hook)
            if not isinstance(sample.id, str):
                raise StudyError(f"dataset: the sample id {sample.id!r:.80} is no text")
            if sample.id in seen:
                raise StudyError(f"dataset: two samples have the id '{sample.id}'")
            seen.add(sample.id)
            yield sample, references

    async def hold(self, job: Job) -> DebateResult | None:
        """One debate: hold it, score it, store it."""
        cell, loop = job.study.cell, asyncio.get_running_loop()
        ended = self._future(cell.slug, job.repeat, job.sample.id) if cell.slug in self._waited_for else None
        debate = Debate(cell, job.sample, job.references, road=self.gateway, repeat=job.repeat,
                        seed=self.plan.seed, order=job.order)
        result = await self._held(job, debate, loop.time())
        if ended is not None and not ended.done():
            ended.set_result(result)
        return result

    async def _held(self, job: Job, debate: Debate, started: float) -> DebateResult | None:
        error: Exception | None = None
        loop = asyncio.get_running_loop()
        try:
            debate.matched = await self._matched(job)
            await self._run_debate(debate)
        except StudyError:
            raise
        except StudyStopped:
            if self.gateway.stopping is None:
                raise
            return None
        except Exception as problem:
            error = problem
        result = debate.result(error=describe_error(error) if error else None, seconds=round(loop.time() - started, 4))
        try:
            metrics, problem_of_metric = await score(debate, result)
        except StudyStopped:
            return None
        error = error or problem_of_metric
        result = replace(result, metrics=metrics, error=describe_error(error) if error else None,
                         decision=None if error else result.decision)
        await self.store.keep_debate(result)
        if error is not None:
            self.failed += 1
            debate.tell("madplug_debate_failed", error=error)
        debate.tell("madplug_debate_finished", result=result)
        return result

    async def _run_debate(self, debate: Debate) -> None:
        await run_debate(debate)

    async def _matched(self, job: Job) -> DebateResult | None:
        """The same sample's debate in the cell this one is matched to, waiting for it if need be."""
        match = job.study.cell.match
        if not match:
            return None
        name = (match["cell"], job.repeat, job.sample.id)
        result = self.store.result(*name)
        if result is None or result.error:
            if self.gateway.stopping is not None:
                raise StudyStopped(self.gateway.stopping)
            missing = name[:2] in self._read and name not in self._issued
            result = None if missing else await asyncio.shield(self._future(*name))
        if result is None and self.gateway.stopping is not None:
            raise StudyStopped("stopped before the matched debate ended")
        if result is None:
            raise ComponentError(f"cell '{match['cell']}', which this one is matched to, has no sample "
                                 f"'{job.sample.id}'")
        if result.error:
            raise ComponentError(f"the debate of cell '{match['cell']}' this one is matched to failed: {result.error}")
        return result

    def _release(self) -> None:
        """Let nobody wait for a debate that will not be held in this run."""
        for future in self._ended.values():
            if not future.done():
                future.set_result(None)

    def _future(self, cell: str, repeat: int, sample: str) -> asyncio.Future[DebateResult | None]:
        name = (cell, repeat, sample)
        if name not in self._ended:
            self._ended[name] = asyncio.get_running_loop().create_future()
        return self._ended[name]


async def score(debate: Debate, result: DebateResult) -> tuple[dict[str, float | None], Exception | None]:
    """Every metric of the cell on one debate, and the first error; a failed debate is scored as without an answer.

    A metric that fails does not take the others along: a debate must not leave one mean because of another.
    """
    if result.error:
        debate.decision = Decision.undecided(f"failed: {result.error}")
    scores: dict[str, float | None] = {}
    first: Exception | None = None
    for name, metric in debate.cell.metrics.items():
        try:
            scores |= parts(name, metric, await maybe_await(metric.score(debate, result.references)))
        except (StudyStopped, StudyError):
            raise
        except Exception as error:
            first = first or error
    return scores, first


def parts(name: str, metric: Metric, value: Any) -> dict[str, float | None]:
    """A metric's score by name: one number, or several."""
    found = {f"{name}.{k}": v for k, v in value.items()} if isinstance(value, Mapping) else {name: value}
    for part, number in found.items():
        if number is not None and not (isinstance(number, int | float) and isfinite(number)):
            raise ComponentError(f"{type(metric).__qualname__}.score gave {number!r:.40} for {part}; "
                                 "expected a number")
    return {part: None if number is None else float(number) for part, number in found.items()}


async def run_setup_step(component: Component, what: str, step: Callable[[], Any]) -> None:
    """A step before the first debate; what it raises ends the study with the component's name."""
    try:
        await maybe_await(step())
    except MadplugError:
        raise
    except Exception as error:
        name = getattr(component, "full_name", component.name)
        raise StudyError(f"{component.kind} {name}: {what} failed: {describe_error(error)}") from error


def describe_error(error: BaseException) -> str:
    """An error as one line: what it is, and in whose code it arose."""
    text = redact(" ".join(str(error).split()))[:2000].encode("utf-8", "replace").decode()
    if isinstance(error, MadplugError) and not isinstance(error, ComponentError):
        return text
    own = text if isinstance(error, ComponentError) else f"{type(error).__name__}: {text}"
    place = locate_error(error)
    return own if not place or place.partition(",")[0] in own else f"{own} (in {place})"
