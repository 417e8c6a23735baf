"""Jobs travel: what a worker in another process needs can be pickled, and careless executors are found."""

import asyncio
import pickle
from contextlib import nullcontext
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
from madplug.study.run import StudyRun
from madplug.study.worker import Worker
from madplug_testing import Scripted, play, wait_for
from madplug_testing.contracts import ExecutorContract


@pytest.mark.parametrize("value", [
    Job("c", 0, Sample("q", "?", metadata={"a": [1]}), ("A",), 3, 7,
        DebateResult("c", 0, Sample("q", "?"), (), decision=Decision("A"))),
    Caller("c", 0, "q", 1, "discuss", 0, 2, 1), Ending("limit", "limits.calls: 5 reached"),
    CallRow(b"k", Caller("c", 0, "q"), "m", "{}"), Call(Completion("x", Usage(1, 2)), 1, 0.5),
    TransientError("503", retry_after=2.0), AccessError("401"), ModelError("gave up"), StudyStopped("enough"),
    StudyError("disk"), ComponentError("no")])
def test_what_travels_can_be_pickled_and_errors_keep_what_they_know(value):
    back = pickle.loads(pickle.dumps(value))
    if isinstance(value, Exception):
        assert (type(back), str(back), vars(back)) == (type(value), str(value), vars(value))
    else:
        assert back == value


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


@pytest.mark.parametrize("run", [everything, the_first_only, to_the_first_failure, without_the_driver])
def test_the_contract_finds_executors_that_leave_debates_out(run, tmp_path, monkeypatch):
    test = type("Under", (ExecutorContract,), {"component": InPlace, "make": lambda self: InPlace(run)})()
    with nullcontext() if run is everything else pytest.raises(AssertionError):
        test.test_debates_end_as_they_do_without_it(tmp_path, monkeypatch)


SAMPLES = [Sample(f"q{i}", f"question {i}") for i in range(8)]


def run_cells(store, matches, observers=(), samples=None):
    """Run cells that answer `A`. matches: by cell, its model and the cell that it is matched to."""
    base = play(replies=lambda r: "A", agents=1, sample=SAMPLES).debate.cell
    cells = [replace(base, slug=slug, models=(model,), channels={model: model},
                     match={"cell": to, "by": "calls"} if to else None) for slug, (model, to) in matches.items()]
    models = {name: Scripted(lambda r: "A") for name in ("one", "two")}

    async def main():
        return await asyncio.wait_for(StudyRun(StudyPlan("s", cells, models), store, observers, samples=samples).run(),
                                      20)

    return asyncio.run(main())


def test_cells_matched_crosswise_whose_debates_all_failed_before_do_not_wait_for_each_other():
    store = MemoryStore()
    for slug in "ac":
        for sample in SAMPLES:
            wait_for(store.finish_debate(DebateResult(slug, 0, sample, (), error="x")))
    matches = {"a": ("one", None), "b": ("one", "c"), "c": ("two", None), "d": ("two", "a")}
    assert run_cells(store, matches)["status"] == "finished"
    assert len(store.done()) == 32


def test_a_matched_debate_waits_for_the_other_in_whatever_order_the_samples_come_and_fails_without_it():
    async def samples(setup, repeat):
        for sample in reversed(SAMPLES) if setup.cell.slug == "b" else SAMPLES[1:]:
            yield sample, ()

    store = MemoryStore()
    for sample in SAMPLES:
        wait_for(store.finish_debate(DebateResult("a", 0, sample, (), error="an earlier run's")))
    run_cells(store, {"a": ("one", None), "b": ("two", "a")}, samples=samples)
    errors = {result.sample.id: result.error for result in store.results() if result.cell == "b"}
    assert (len(errors), [id for id, error in errors.items() if error]) == (8, ["q0"])
    assert errors["q0"].endswith("is matched to failed: the cell has no sample 'q0'")


class Enough(Observer):
    """Knows enough about two cells."""

    name = "enough"

    def open(self, run):
        run.stop("enough is known", ["a", "b"])


def test_a_decided_cell_gets_no_debates_except_those_that_another_is_matched_to():
    store = MemoryStore()
    summary = run_cells(store, {"a": ("one", None), "b": ("one", None), "c": ("two", "b")}, [Enough()])
    assert (summary["ending"], summary["reason"]) == ("decided", "enough is known")
    assert {cell.cell: cell.done for cell in store.overview()} == {"b": 8, "c": 8}
