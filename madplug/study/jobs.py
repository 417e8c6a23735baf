"""The debates left to run, as jobs: frozen records that can be pickled and run by a worker anywhere."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence, Set
from dataclasses import replace
from typing import Optional

from madplug.aio import iterate, maybe_await
from madplug.calls.driver import StudyDriver
from madplug.context import Sampled
from madplug.debate.cell import Cell
from madplug.debate.checks import check_iterable, describe_error
from madplug.errors import StudyError
from madplug.kinds import Executor
from madplug.records import DebateResult, Ending, Job, Sample
from madplug.store import SCOPE, DebateId, Scope, sample_digest
from madplug.study.scoring import Scoring
from madplug.study.setup import CellSetup, sampled
from madplug.study.stream import JobQueue, run_all
from madplug.study.survey import Ids, Survey
from madplug.study.worker import Worker
from madplug.text import count

WAITING = 1_000
"""The most debates that wait in memory for the matched debate of another queue."""


class JobStream:
    """The jobs of a run: every debate that is left.

    They come sample by sample across cells, so that identical requests are made close together. Debates that failed in
    an earlier run come last, with those that are matched to them. A debate of a matched cell comes once the debate it
    is matched to has ended. Debates that are on record and have not been scored by every metric of their cell come as
    jobs too. rescore: as for `StudyRun`.
    """

    def __init__(self, worker: Worker, driver: StudyDriver, *, samples: Samples | None = None,
                 surveys: Mapping[str, Survey] | None = None, rescore: Collection[str] | None = None) -> None:
        self._worker = worker
        self._setups = setups = worker.setups
        self._driver = driver
        self._recorder = recorder = driver.recorder
        self._repeats = worker.plan.repeats
        self._samples = samples or samples_of
        self._surveys = surveys or {}
        counts = recorder.done_counts()
        self._counts = {place: n for place, n in counts.items() if self._is_ours(*place)}
        self._failed = {id for id in recorder.failed() if self._is_ours(id.cell, id.repeat)}
        self._digests: dict[tuple[str, int], dict[str, str]] = {}
        self._dropped: dict[str, Collection[str]] = {}
        self._unseen: dict[str, set[str]] = defaultdict(set)
        """Samples on record that were not among those of their cell, where these were read to the end."""
        self._redone: set[DebateId] = set()
        self._told = 0
        self._only_scores = rescore is not None
        self._scoring = Scoring(setups, recorder, rescore or ())
        self._matches = {slug: s.cell.match for slug, s in setups.items() if s.cell.match}
        self._waited_for = {match["cell"] for match in self._matches.values()}
        self._issued: set[DebateId] = set()
        self._waiting: dict[DebateId, list[tuple[Job, _Ready]]] = defaultdict(list)
        self._ended: set[DebateId] = set()
        self._stopped: set[DebateId] = set()
        self._exhausted: set[tuple[str, int]] = set()
        self._queues: list[_Ready] = []
        driver.when_stopped.append(self._wake)
        driver.when_finished.append(self.ended)

    def __aiter__(self) -> AsyncIterator[Job]:
        return self._jobs([slug for slugs in self._by_models().values() for slug in slugs])

    async def run(self, work: Callable[[Job], Awaitable[object]] | None = None) -> None:
        """Run every job, each as soon as a model of its cell has a free slot. The first exception ends the others.

        work: runs one; by default in this process.
        """
        queues = [JobQueue(self._jobs(slugs), [self._driver.quotas[name].slots for name in names])
                  for names, slugs in self._by_models().items()]
        decided, left_out = self._driver.decided, set[str]()

        async def run(job: Job) -> None:
            if job.recorded is None and job.cell in decided and not any(
                    match["cell"] == job.cell for slug, match in self._matches.items() if slug not in decided):
                left_out.add(decided[job.cell])
                self.ended(job.id, None)
            else:
                await (work or self._worker.run)(job)

        await run_all(queues, run)
        if left_out:
            self._driver.stop(Ending("decided", "; ".join(sorted(left_out))))

    def _by_models(self) -> dict[tuple[str, ...], list[str]]:
        """The cells that are admitted together, because they use the same models."""
        groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for slug, setup in self._setups.items():
            groups[tuple(sorted(set(setup.cell.channels.values())))].append(slug)
        return groups

    async def begin(self) -> None:
        """Record which debates the study has now."""
        before = self._recorder.reported().scope
        for slug in self._setups:
            # One that the data have again is no longer dropped. One that they lack is dropped at the end of the jobs:
            # an executor may have samples of its own, as a server has.
            gone = before.dropped.get(slug, frozenset())
            self._dropped[slug] = gone.intersection(self._surveys.get(slug, before).dropped.get(slug, ()))
        await self._keep_scope(before)

    async def conclude(self) -> None:
        """The same, after the last job has ended, of cells whose samples were all read only now."""
        read = {slug: self._unseen[slug] for slug in self._setups
                if all((slug, repeat) in self._exhausted for repeat in range(self._repeats))}
        if any(set(self._dropped[slug]) != unseen for slug, unseen in read.items()):
            self._dropped |= read
            await self._keep_scope(self._recorder.reported().scope)

    async def _keep_scope(self, before: Scope) -> None:
        cells = {slug: tuple(setup.cell.metrics) for slug, setup in self._setups.items()}
        await self._recorder.keep_fact(SCOPE, before.followed_by(cells, self._repeats, self._dropped).to_fact())

    def _is_ours(self, cell: str, repeat: int) -> bool:
        return cell in self._setups and repeat < self._repeats

    def ended(self, id: DebateId, result: DebateResult | None) -> None:
        """A debate has ended, so those matched to it can be run."""
        if id.cell not in self._waited_for:
            return
        (self._stopped if result is None else self._ended).add(id)
        for job, ready in self._waiting.pop(id, ()):
            ready.put_nowait(None if result is None else replace(job, matched=result))

    @property
    def done(self) -> int:
        """How many debates earlier runs have finished."""
        return sum(self._counts.values())

    def _wake(self) -> None:
        """The study is being stopped; stop waiting for debates that will not be run."""
        for ready in self._queues:
            ready.put_nowait(None)

    async def _jobs(self, slugs: Sequence[str]) -> AsyncIterator[Job]:
        ready: _Ready = asyncio.Queue()
        self._queues.append(ready)
        waiting = 0
        async for job in self._candidates(slugs):
            matched = self._match(job.id)
            if matched is None:
                yield job
            elif (found := self._result_of(matched)) is not None:
                yield replace(job, matched=found)
            elif matched not in self._stopped:
                self._waiting[matched].append((job, ready))
                waiting += 1
            while not ready.empty() or (waiting > WAITING and matched is not None and matched.cell not in slugs
                                        and self._driver.ending is None):
                waiting -= 1
                if (released := await ready.get()) is not None:
                    yield released
        while waiting and self._driver.ending is None:
            waiting -= 1
            if (released := await ready.get()) is not None:
                yield released

    def _match(self, id: DebateId) -> DebateId | None:
        match = self._matches.get(id.cell)
        return DebateId(match["cell"], id.repeat, id.sample) if match else None

    def _result_of(self, id: DebateId) -> DebateResult | None:
        """The result of a matched debate, or None while it runs; a failed result if there is no such debate."""
        recorded = id in self._ended or id.cell not in self._setups or self._counts.get(id[:2])
        result = self._recorder.result(id) if recorded else None
        if result is not None and id not in self._ended and (result.error is not None or id in self._redone):
            result = None  # it will be run again
        if result is None and (id.cell, id.repeat) in self._exhausted and id not in self._issued:
            result = _missing(id)
        return result

    async def _candidates(self, slugs: Sequence[str]) -> AsyncIterator[Job]:
        """Jobs in the order of the study; those that failed before come last."""
        cells = sorted((self._setups[slug] for slug in slugs), key=lambda s: s.cell.match is not None)
        again = bool(self._failed)
        for failed in (False, True) if again else (False,):
            order = 0
            for repeat in range(self._repeats):
                async for setup, sample, references in self._interleaved(cells, repeat, last=failed or not again):
                    id = DebateId(setup.cell.slug, repeat, sample.id)
                    order += 1
                    if (id in self._failed or self._match(id) in self._failed) is not failed:
                        continue
                    job = Job(*id[:2], sample, references, order - 1, self._worker.plan.seed)
                    if not self._only_scores and not self._is_done(id, sample, references):
                        if id.cell in self._waited_for:
                            self._issued.add(id)
                        yield job
                    elif unscored := self._scoring.of(id):
                        yield replace(job, recorded=unscored[0], metrics=unscored[1])
        changed = len({id.sample for id in self._redone})
        if changed > self._told:
            self._told = changed
            self._driver.warn(f"{count(changed, 'sample')} changed since the last run; the debates are run again")

    def _is_done(self, id: DebateId, sample: Sample, references: tuple[str, ...]) -> bool:
        digest = self._recorded(*id[:2]).get(id.sample)
        if digest is None or id in self._redone:
            return False
        changed = digest not in ("", sample_digest(sample, references))
        if changed:
            self._redone.add(id)
        return not changed

    def _recorded(self, cell: str, repeat: int) -> Mapping[str, str]:
        """The digests of the samples whose debates of a cell and repeat earlier runs have finished, by id."""
        place = cell, repeat
        if place not in self._digests:
            self._digests[place] = dict(self._recorder.digests(cell, repeat)) if place in self._counts else {}
        return self._digests[place]

    def _samples_left(self, setup: CellSetup, repeat: int) -> AsyncIterator[Sampled]:
        """The samples of a cell, or only those with debates left where these are known."""
        found = self._survey_of(setup.cell.slug)
        return self._samples(setup, repeat) if found is None else iterate(found.left)

    def _survey_of(self, cell: str) -> Survey | None:
        """What is left of a cell, unless its recorded debates have to be looked at, too."""
        return None if self._scoring.has_left(cell) else self._surveys.get(cell)

    async def _interleaved(self, cells: Sequence[CellSetup], repeat: int, *,
                           last: bool) -> AsyncIterator[tuple[CellSetup, Sample, tuple[str, ...]]]:
        """One sample of each cell in turn. last: no further pass over the samples follows."""
        sources = [(s, self._samples_left(s, repeat), self._on_record(s.cell.slug, repeat) if last else set())
                   for s in cells]
        while sources and self._driver.ending is None:
            for source in list(sources):
                setup, samples, unseen = source
                found = await self._next(setup.cell, samples)
                if found is not None:
                    unseen.discard(found[0].id)
                    yield (setup, *found)
                    continue
                sources.remove(source)
                if last and self._driver.ending is None:
                    self._exhaust(setup.cell.slug, repeat, unseen)

    def _on_record(self, cell: str, repeat: int) -> set[str]:
        """The samples on record of which it is not known yet whether the data set still has them."""
        if (found := self._survey_of(cell)) is not None:
            return {*found.dropped.get(cell, ())}
        return {*self._recorded(cell, repeat), *(id.sample for id in self._failed if id[:2] == (cell, repeat))}

    def _exhaust(self, cell: str, repeat: int, unseen: Set[str]) -> None:
        """Every sample of a cell and repeat was read; the data set no longer has those that are on record beside."""
        self._unseen[cell] |= unseen
        self._digests.pop((cell, repeat), None)
        self._exhausted.add((cell, repeat))
        self._release_missing()

    async def _next(self, cell: Cell, samples: AsyncIterator[Sampled]) -> Sampled | None:
        """The next sample. Data that cannot be read ends the study; calls in flight are still stored."""
        try:
            return await anext(samples, None)
        except StudyError:
            raise
        except (Exception, SystemExit) as error:
            self._driver.stop(Ending("unusable",
                                     f"cell '{cell.slug}': the samples cannot be read: {describe_error(error)}"))
            return None

    def _release_missing(self) -> None:
        for id in [id for id in self._waiting if (id.cell, id.repeat) in self._exhausted and id not in self._issued]:
            for job, ready in self._waiting.pop(id):
                ready.put_nowait(replace(job, matched=_missing(id)))


_Ready = asyncio.Queue[Optional[Job]]  # noqa: UP045 - evaluated on Python 3.10
"""Jobs whose matched debate has ended; None wakes the reader."""


async def samples_of(setup: CellSetup, repeat: int) -> AsyncIterator[Sampled]:
    """The samples of a cell, according to its data set and every extension."""
    hook = "the hook 'madplug_samples' gave"
    rows = await maybe_await(setup.cell.hooks.madplug_samples(setup=setup))
    ids = Ids()
    async for row in iterate(check_iterable(rows, hook)):
        sample, references = sampled(row, hook)
        ids.add(sample.id)
        yield sample, references


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
