"""Jobs travel: what a worker in another process needs can be pickled, and careless executors are found."""

import asyncio
import pickle
import tracemalloc
from dataclasses import replace

import pytest

from madplug import (
    AccessError,
    ComponentError,
    Decision,
    Executor,
    ModelError,
    Observer,
    Sample,
    StudyError,
    StudyStopped,
    TransientError,
)
from madplug.config import load
from madplug.config.plan import StudyPlan
from madplug.records import Caller, Completion, DebateResult, Ending, Job, Usage
from madplug.store import Call, CallRow, MemoryStore
from madplug.study.jobs import Ids
from madplug.study.run import StudyRun
from madplug.study.worker import Worker
from madplug_testing import Scripted, play, wait_for


@pytest.mark.parametrize("value", [
    Job("c", 0, Sample("q", "?", metadata={"a": [1]}), ("A",), 3, 7,
        DebateResult("c", 0, Sample("q", "?"), (), decision=Decision("A"))),
    Caller("c", 0, "q", 1, "discuss", 0, 2, 1), Ending("limit", "limits.calls: 5 reached"),
    CallRow(b"k", Caller("c", 0, "q"), "m", "{}"), Call(Completion("x", Usage(1, 2)), 1, 0.5)])
def test_what_travels_can_be_pickled(value):
    assert pickle.loads(pickle.dumps(value)) == value


def test_the_ids_of_many_samples_take_little_memory_and_an_equal_one_is_found():
    ids = Ids()
    tracemalloc.start()
    for i in range(40_000):
        ids.add(f"a long name of a sample, as some data sets have it: {i}")
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 120 * 40_000
    for i in (0, 1, 39_999):
        with pytest.raises(StudyError, match="two samples have the id"):
            ids.add(f"a long name of a sample, as some data sets have it: {i}")


@pytest.mark.parametrize("error", [TransientError("503", retry_after=2.0), AccessError("401"), ModelError("gave up"),
                                   StudyStopped("enough"), StudyError("disk"), ComponentError("no")])
def test_errors_travel_with_what_they_know(error):
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), str(back), vars(back)) == (type(error), str(error), vars(error))


class InPlace(Executor):
    """Runs jobs here, as `run` says."""

    name = "in_place"

    def __init__(self, run):
        self.run_with = run

    def check(self, cell):
        return ()

    async def run(self, jobs, driver):
        worker = Worker(load(driver.folder / "study.toml", environ={}).plan, driver)
        await worker.open()
        await self.run_with(worker, jobs)
        await worker.close()


async def everything(worker, jobs):
    await asyncio.gather(*[worker.run(job) async for job in jobs])


async def the_first_only(worker, jobs):
    async for job in jobs:
        await worker.run(job)
        return


async def to_the_first_failure(worker, jobs):
    async for job in jobs:
        if (await worker.run(job)).error:
            return


async def without_the_driver(worker, jobs):
    async for _ in jobs:
        pass


@pytest.mark.parametrize(("run", "sound"), [(everything, True), (the_first_only, False), (to_the_first_failure, False),
                                            (without_the_driver, False)])
def test_the_contract_finds_executors_that_leave_debates_out(run, sound, tmp_path, monkeypatch):
    from madplug_testing.contracts import CONTRACTS

    contract = CONTRACTS["executor"]
    test = type("Under", (contract,), {"component": InPlace, "make": lambda self: InPlace(run)})()
    if sound:
        test.test_debates_end_as_they_do_without_it(tmp_path, monkeypatch)
        return
    with pytest.raises(AssertionError):
        test.test_debates_end_as_they_do_without_it(tmp_path, monkeypatch)


SAMPLES = [Sample(f"q{i}", f"question {i}") for i in range(8)]


def run_cells(store, matches, observers=()):
    """Run cells that answer `A`. matches: by cell, its model and the cell that it is matched to."""
    base = play(replies=lambda r: "A", agents=1, sample=SAMPLES).debate.cell
    cells = [replace(base, slug=slug, models=(model,), channels={model: model},
                     match={"cell": to, "by": "calls"} if to else None) for slug, (model, to) in matches.items()]
    models = {name: Scripted(lambda r: "A") for name in ("one", "two")}

    async def main():
        return await asyncio.wait_for(StudyRun(StudyPlan("s", cells, models), store, observers).run(), 20)

    return asyncio.run(main())


def test_cells_matched_crosswise_whose_debates_all_failed_before_do_not_wait_for_each_other(monkeypatch):
    """Two queues must not each put off what the other one waits for."""
    monkeypatch.setattr("madplug.study.jobs.WAITING", 2)
    store = MemoryStore()
    for slug in "ac":
        for sample in SAMPLES:
            wait_for(store.finish_debate(DebateResult(slug, 0, sample, (), error="x")))
    matches = {"a": ("one", None), "b": ("one", "c"), "c": ("two", None), "d": ("two", "a")}
    assert run_cells(store, matches)["status"] == "finished"
    assert len(store.done()) == 32


class Enough(Observer):
    """Knows enough about two cells."""

    name = "enough"

    def open(self, run):
        run.stop("enough is known", ["a", "b"])


def test_a_decided_cell_gets_no_debates_except_those_that_another_is_matched_to():
    store = MemoryStore()
    summary = run_cells(store, {"a": ("one", None), "b": ("one", None), "c": ("two", "b")}, [Enough()])
    assert (summary["ending"], summary["reason"]) == ("decided", "enough is known")
    assert {slug: n for (slug, _), n in store.done_counts().items()} == {"b": 8, "c": 8}
