"""The debates left to run, as jobs: frozen records that can be pickled and run by a worker anywhere."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Optional

from madplug.aio import iterate, maybe_await
from madplug.calls.driver import StudyDriver
from madplug.context import Sampled
from madplug.debate.checks import check_iterable, describe_error
from madplug.errors import StudyError
from madplug.kinds import Executor
from madplug.records import DebateResult, Ending, Job, Sample
from madplug.store import SCOPE, DebateId, Scope, sample_digest
from madplug.study.setup import CellSetup, sampled
from madplug.study.stream import JobQueue, run_all
from madplug.study.survey import add_id
from madplug.study.worker import Worker


class JobStream:
    """The jobs of a run: every debate that is left.

    They come sample by sample across cells, so that identical requests are made close together. Debates that failed in
    an earlier run come last, with those that are matched to them. A debate of a matched cell comes once the debate it
    is matched to has ended. Debates that are on record and have not been scored by every metric of their cell come as
    jobs too. rescore: as for `StudyRun`. rows: the ids that the data have now, by cell, as far as they are known.
    """

    def __init__(self, worker: Worker, driver: StudyDriver, *, samples: Samples | None = None,
                 rescore: Collection[str] | None = None, rows: Mapping[str, Collection[str]] | None = None) -> None:
        self._worker = worker
        self._setups = setups = worker.setups
        self._driver = driver
        self._recorder = recorder = driver.recorder
        self._repeats = worker.plan.repeats
        self._samples = samples or samples_of
        self._failed = {id for id in recorder.failed() if id.cell in setups and id.repeat < self._repeats}
        dropped = recorder.reported().scope.dropped
        self._dropped = {slug: {*dropped.get(slug, ())} for slug in setups}
        """By cell, the samples on record that the data no longer have. Of cells whose rows are not given, as where an
        executor has samples of its own, it is known once their jobs have all come."""
        for slug, ids in (rows or {}).items():
            recorded = recorder.rows("SELECT DISTINCT sample FROM debates WHERE cell = ?", (slug,))
            self._dropped[slug] = {sample for sample, in recorded}.difference(ids)
        self.changed: set[str] = set()
        """The samples that are not as they were when their debates were run."""
        self._only_scores = rescore is not None
        self._rescore = frozenset(rescore or ())
        self._unscored = {slug for slug, setup in setups.items() if not self._rescore.isdisjoint(setup.metric_digests)
                          or recorder.lacks_scores(slug, setup.metric_digests)}
        """The cells that may have recorded debates to score."""
        self._matches = {slug: setup.cell.match["cell"] for slug, setup in setups.items() if setup.cell.match}
        self._ended: dict[str, _Ended] = {}
        """By cell that others are matched to, the queue in which its stream gets each end."""
        driver.when_finished.append(self._end)

    def __aiter__(self) -> AsyncIterator[Job]:
        return self._jobs([*self._setups])

    async def run(self, work: Callable[[Job], Awaitable[object]] | None = None) -> None:
        """Run every job, each as soon as a model of its cell has a free slot. The first exception ends the others.

        work: runs one; by default in this process.
        """
        queues = [JobQueue(self._jobs(slugs), [self._driver.quotas[name].slots for name in names],
                           evenly=not self._driver.limits) for names, slugs in self._by_models().items()]
        decided, left_out = self._driver.decided, set[str]()

        async def run(job: Job) -> None:
            if job.recorded is None and job.cell in decided and not any(
                    to == job.cell for slug, to in self._matches.items() if slug not in decided):
                left_out.add(decided[job.cell])
                self._end(job.id, None)
            else:
                await (work or self._worker.run)(job)

        await run_all(queues, run)
        if left_out:
            self._driver.stop(Ending("decided", "; ".join(sorted(left_out))))

    def _by_models(self) -> dict[tuple[str, ...], list[str]]:
        """The cells that are admitted together: those that use the same models, and those that are matched."""
        used: dict[str, set[str]] = defaultdict(set)
        for slug, setup in self._setups.items():
            used[self._matches.get(slug, slug)].update(setup.cell.channels.values())
        groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for slug in self._setups:
            groups[tuple(sorted(used[self._matches.get(slug, slug)]))].append(slug)
        return groups

    async def keep_scope(self) -> None:
        """Record which debates the study has now."""
        before = self._recorder.reported().scope
        dropped = {slug: frozenset(ids) for slug, ids in self._dropped.items() if ids}
        metrics = {slug: frozenset(setup.cell.metrics) for slug, setup in self._setups.items()}
        scope = Scope(frozenset(self._setups), self._repeats, dropped, metrics)
        if scope != before:
            await self._recorder.keep_fact(SCOPE, scope)

    # Matched debates

    def _end(self, id: DebateId, result: DebateResult | None) -> None:
        """A debate has ended, so those matched to it can be run."""
        if id.cell in self._ended:
            self._ended[id.cell].put_nowait((id, result))

    async def _jobs(self, slugs: Sequence[str]) -> AsyncIterator[Job]:
        """The jobs of these cells, each with the debate that it is matched to."""
        ended: _Ended = asyncio.Queue()
        self._ended |= {self._matches[slug]: ended for slug in slugs if slug in self._matches}
        self._driver.when_stopped.append(lambda: ended.put_nowait(None))
        matches = _Matches(self._failed)
        async for job in self._candidates(slugs):
            to = self._match(job.id)
            found = self._recorder.result(to) if to is not None and matches.is_settled(to) else None
            if to is not None and found is None:
                matches.waiting[to].append(job)
            else:
                if job.recorded is None and job.cell in self._ended:
                    matches.running.add(job.id)
                yield replace(job, matched=found)
            while not ended.empty():
                for released in matches.end(ended.get_nowait()):
                    yield released
        while not matches.running.isdisjoint(matches.waiting) and self._driver.ending is None:
            for released in matches.end(await ended.get()):
                yield released
        if self._driver.ending is None:
            for id, jobs in matches.waiting.items():
                for job in jobs:
                    yield replace(job, matched=_missing(id))

    def _match(self, id: DebateId) -> DebateId | None:
        to = self._matches.get(id.cell)
        return DebateId(to, id.repeat, id.sample) if to is not None else None

    # What is left

    async def _candidates(self, slugs: Sequence[str]) -> AsyncIterator[Job]:
        """Jobs in the order of the study; those that failed before come last."""
        cells = sorted((self._setups[slug] for slug in slugs), key=lambda s: s.cell.match is not None)
        for last in (False, True) if self._failed else (True,):
            order = 0
            for repeat in range(self._repeats):
                async for setup, done, (sample, references) in self._interleaved(cells, repeat, last=last):
                    job = Job(setup.cell.slug, repeat, sample, references, order, self._worker.plan.seed)
                    order += 1
                    if self._failed and last is not (job.id in self._failed or self._match(job.id) in self._failed):
                        continue
                    if (left := self._left(job, setup, done.get(sample.id))) is not None:
                        yield left

    def _left(self, job: Job, setup: CellSetup, digest: str | None) -> Job | None:
        """The job, if its debate has to be run, or scored by some metrics. digest: of the sample when it was done."""
        done = digest is not None and digest in ("", sample_digest(job.sample, job.references))
        if not done and not self._only_scores:
            self.changed |= {job.sample.id} if digest is not None else set()
            return job
        result = self._recorder.result(job.id) if job.cell in self._unscored else None
        if result is None:
            return None
        missing = tuple(name for name, current in setup.metric_digests.items()
                        if name in self._rescore or result.scored_by.get(name) != current)
        return replace(job, recorded=result, metrics=missing) if missing else None

    async def _interleaved(self, cells: Sequence[CellSetup], repeat: int, *,
                           last: bool) -> AsyncIterator[tuple[CellSetup, Mapping[str, str], Sampled]]:
        """One sample of each cell in turn, with the digests of those whose debates earlier runs have finished.

        last: no further pass over the samples follows.
        """
        sources = self._sources(cells, repeat)
        while sources and self._driver.ending is None:
            for source in list(sources):
                if (found := await self._next(source)) is not None:
                    for setup, done in source.cells:
                        self._dropped[setup.cell.slug].discard(found[0].id)
                        yield setup, done, found
                    continue
                sources.remove(source)
                if last and self._driver.ending is None:
                    self._drop_missing(source, repeat)

    def _sources(self, cells: Sequence[CellSetup], repeat: int) -> list[_Source]:
        """The samples of cells in a repeat; those of one data set are read once, unless an extension chooses them."""
        found: dict[object, _Source] = {}
        for setup in cells:
            slug = setup.cell.slug
            key = slug if setup.cell.chooses_samples or self._samples is not samples_of else id(setup.cell.dataset)
            if key not in found:
                found[key] = _Source([], self._samples(setup, repeat), set())
            found[key].cells.append((setup, dict(self._recorder.digests(slug, repeat))))
        return list(found.values())

    def _drop_missing(self, source: _Source, repeat: int) -> None:
        """Every sample was read: drop those on record that were not among them."""
        for setup, done in source.cells:
            slug = setup.cell.slug
            recorded = {*done, *(id.sample for id in self._failed if id[:2] == (slug, repeat))}
            self._dropped[slug] |= recorded - source.ids

    async def _next(self, source: _Source) -> Sampled | None:
        """The next sample. Data that cannot be read ends the study; calls in flight are still stored."""
        try:
            found = await anext(source.samples, None)
            if found is not None:
                add_id(found[0].id, source.ids)
            return found
        except StudyError:
            raise
        except (Exception, SystemExit) as error:
            slug = source.cells[0][0].cell.slug
            self._driver.stop(Ending("unusable", f"cell '{slug}': the samples cannot be read: {describe_error(error)}"))
            return None


@dataclass(frozen=True)
class _Source:
    """The samples of some cells in a repeat."""

    cells: list[tuple[CellSetup, Mapping[str, str]]]
    """Each with the digests of samples whose debates earlier runs have finished, by id."""
    samples: AsyncIterator[Sampled]
    ids: set[str]
    """Of the samples that were read so far."""


_Ended = asyncio.Queue[Optional[tuple[DebateId, Optional[DebateResult]]]]  # noqa: UP045 - evaluated on Python 3.10
"""Debates that have ended, with None for one that was stopped; None wakes the reader."""


class _Matches:
    """The debates of a stream that others are matched to, and the jobs that wait for them. failed: in earlier runs."""

    def __init__(self, failed: Collection[DebateId]) -> None:
        self.running: set[DebateId] = set()
        self.waiting: dict[DebateId, list[Job]] = defaultdict(list)
        self._failed = {*failed}

    def is_settled(self, id: DebateId) -> bool:
        """Whether what is on record of a debate is not about to be replaced."""
        return id not in self.running and id not in self._failed

    def end(self, ended: tuple[DebateId, DebateResult | None] | None) -> list[Job]:
        """The jobs that have waited for a debate; they are dropped if it was stopped."""
        if ended is None:
            return []
        id, result = ended
        self.running.discard(id)
        self._failed.discard(id)
        jobs = self.waiting.pop(id, [])
        return [replace(job, matched=result) for job in jobs if result is not None]


async def samples_of(setup: CellSetup, repeat: int) -> AsyncIterator[Sampled]:
    """The samples of a cell, according to its data set and every extension."""
    hook = "the hook 'madplug_samples' gave"
    rows = await maybe_await(setup.cell.hooks.madplug_samples(setup=setup))
    async for row in iterate(check_iterable(rows, hook)):
        yield sampled(row, hook)


def samples_of_part(executor: Executor) -> Samples:
    """The samples of a cell that belong to an executor's part of the study."""
    async def samples(setup: CellSetup, repeat: int) -> AsyncIterator[Sampled]:
        async for sample, references in samples_of(setup, repeat):
            if executor.includes(sample):
                yield sample, references
    return samples


Samples = Callable[[CellSetup, int], AsyncIterator[Sampled]]
"""Returns the samples of a cell in a repeat, with their references."""


def _missing(id: DebateId) -> DebateResult:
    """The result in place of a debate that the matched cell does not have."""
    return DebateResult(*id[:2], Sample(id.sample, ""), (), error=f"the cell has no sample '{id.sample}'")
