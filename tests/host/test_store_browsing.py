"""What pages show of a store: sums by cell, and the debates of a cell a few at a time."""

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import islice

import pytest

from madplug import Caller, Completion, DebateResult, Decision, Message, Sample, Usage, UserError
from madplug.store import Call, CallRow, DebateId, MemoryStore, Spent, open_recorder, open_study
from madplug.study.summary import figures_by_cell
from madplug.testing import wait_for


def ended(cell, sample, repeat=0, score=1.0, **more):
    parts = {"decision": Decision("A"), "metrics": {"qa.accuracy": score, "x": 2.5}, "calls": sample, "seconds": 0.5,
             "tokens": Usage(sample * 10, 1, cost_usd=0.25), "messages": (Message(0, 1, 0, 0, "improve", "A"),)} | more
    return DebateResult(cell, repeat, Sample(f"q{sample:03}", "?"), ("A",), **parts)


DEBATES = [*(ended("b", i, score=float(i % 3 == 0)) for i in range(7)),
           *(ended("a", i, r, score=float((i + r) % 2)) for r in range(2) for i in range(5)),
           ended("b", 8, error="gone", decision=None, metrics={}),
           ended("b", 9, decision=Decision.undecided("tie"), score=0.0)]


@pytest.fixture(params=["memory", "sqlite"])
def reader(request, tmp_path):
    recorder = MemoryStore() if request.param == "memory" else open_recorder(tmp_path)
    for debate in DEBATES:
        wait_for(recorder.finish_debate(debate))
    recorder.start_debate(DebateId("b", 0, "q100"), Sample("q100", "?"), ())
    call = Call(Completion("text", Usage(3, 4, cost_usd=0.5)), retries=2, seconds=1.5)
    wait_for(recorder.keep_call(CallRow(b"k", Caller("b", 0, "q000"), "m", "{}"), call))
    wait_for(recorder.keep_call(CallRow(b"free", Caller("b", 0, "q000"), "m", "{}"), Call(Completion("t"))))
    yield recorder if request.param == "memory" else open_study(tmp_path)
    recorder.close()


def test_the_sums_of_a_cell_are_those_of_its_figures(reader):
    found = {cell.cell: cell for cell in reader.overview("qa.accuracy")}
    assert list(found) == ["b", "a"]
    for name, figures in figures_by_cell(reader.figures()).items():
        cell, metric = found[name], figures.metrics(["qa.accuracy"])["qa.accuracy"]
        assert (cell.done, cell.failed, cell.undecided, cell.calls, cell.prompt, cell.completion, cell.cost_usd) == (
            figures.done, figures.failed, figures.undecided, figures.calls, figures.prompt, figures.completion,
            figures.cost)
        assert cell.score.mean == pytest.approx(metric["mean"])
        assert cell.score.ci95 == pytest.approx(metric["ci95"])
    assert (found["b"].running, found["a"].running, found["a"].repeats) == (1, 0, 2)
    assert found["b"].score.samples == 9


def test_a_metric_that_is_no_share_has_a_normal_interval(reader):
    assert next(c.score for c in reader.overview("x") if c.cell == "a").ci95 == pytest.approx((2.5, 2.5))


@pytest.mark.parametrize("metric", [None, "no.such", 'a "name" with $.x and ☃'])
def test_without_such_a_metric_there_is_no_score(reader, metric):
    assert [cell.score for cell in reader.overview(metric)] == [None, None]


def test_the_names_of_the_cells_and_of_the_metrics(reader):
    assert reader.cells() == ["a", "b"]
    assert reader.metric_names() == ["qa.accuracy", "x"]
    assert reader.metric_names(of_each=1) == ["qa.accuracy", "x"]


def test_a_cell_is_gone_through_by_repeat_and_sample(reader):
    assert [(id.repeat, id.sample) for _, id in reader.walk("a")] == [
        (r, f"q{i:03}") for r in range(2) for i in range(5)]


@pytest.mark.parametrize("order", ["sample", "started", "messages", "rounds", "calls", "tokens", "cost", "seconds"])
@pytest.mark.parametrize("descending", [False, True])
def test_every_order_can_be_continued_after_any_debate(reader, order, descending):
    whole = list(reader.walk("b", order, descending=descending))
    assert len({id for _, id in whole}) == 10
    for i, (cursor, _) in enumerate(whole):
        assert list(reader.walk("b", order, descending=descending, after=cursor)) == whole[i + 1:]


def test_an_order_sorts_by_its_value(reader):
    samples = [id.sample for _, id in reader.walk("b", "tokens", descending=True)]
    assert samples[:3] == ["q009", "q008", "q006"]


@pytest.mark.parametrize("cursor", ["", "[]", "nonsense", "[1, 2]", '["a", 0, "q"]', "[0, 0, 0]", "[" * 10_000])
def test_what_is_not_a_cursor_is_a_users_mistake(reader, cursor):
    with pytest.raises(UserError, match="not a cursor"):
        next(reader.walk("b", after=cursor))


def test_an_unknown_order_is_a_users_mistake(reader):
    with pytest.raises(UserError, match="not an order"):
        next(reader.walk("b", "colour"))


def test_what_calls_used_is_added_up(reader):
    assert reader.spent([b"k", b"unknown", "not hexadecimal"]) == Spent(1, 3, 4, 0.5, 1.5, 2)
    assert reader.spent([b"k".hex(), b"free"]) == Spent(2, 3, 4, None, 1.5, 2)
    assert reader.spent([]) == Spent()


@pytest.mark.parametrize(("damage", "read"), [
    ("UPDATE calls SET retries = 'x'", lambda study: study.spent([b"k"])),
    ("UPDATE calls SET purpose = x'00'", lambda study: list(study.call_figures()))])
def test_damaged_calls_are_told(tmp_path, damage, read):
    with open_recorder(tmp_path) as recorder:
        row = CallRow(b"k", Caller("b", 0, "q", 0, "discuss"), "m", "{}")
        asyncio.run(recorder.keep_call(row, Call(Completion("A"), 0, 0.1)))
    with closing(sqlite3.connect(tmp_path / "study.db")) as db, db:
        db.execute(damage)
    with open_study(tmp_path) as study, pytest.raises(UserError, match="call"):
        read(study)


def test_a_directory_that_cannot_be_looked_into_is_told(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        open_study(tmp_path / ("x" * 300))


def test_two_cells_are_contrasted_by_the_scores_of_the_same_debates(reader):
    assert reader.contrast("b", "a", "qa.accuracy") == {(1.0, 0.0): 1, (1.0, 1.0): 1, (0.0, 1.0): 1, (0.0, 0.0): 2}
    assert reader.contrast("b", "none", "qa.accuracy") == {}


def test_a_page_of_a_long_cell_reads_a_batch_and_not_the_cell(tmp_path):
    recorder = open_recorder(tmp_path)
    many = [replace(ended("c", 0), sample=Sample(f"q{i:05}", "?")) for i in range(2000)]

    async def keep():
        for debate in many[:-1]:
            recorder_task.append(recorder.finish_debate(debate))
        for task in recorder_task:
            await task
        await recorder.finish_debate(many[-1])

    recorder_task = []
    wait_for(keep())
    with open_study(tmp_path) as reader:
        steps = []
        reader._db.set_progress_handler(lambda: steps.append(1), 100)
        whole = len(list(reader.walk("c"))), len(steps)
        steps.clear()
        cursor = [cursor for cursor, _ in islice(reader.walk("c"), 50)][-1]
        list(islice(reader.walk("c", after=cursor), 50))
        assert whole[0] == 2000
        assert len(steps) < whole[1] / 5
    recorder.close()


@pytest.mark.parametrize("metrics", ["{", "[", "\\x00"])
def test_figures_that_are_damaged_are_a_message(tmp_path, metrics):
    recorder = open_recorder(tmp_path)
    wait_for(recorder.finish_debate(ended("c", 1)))
    recorder.close()
    db = sqlite3.connect(tmp_path / "study.db")
    db.execute("UPDATE debates SET metrics = ?", (metrics,))
    db.commit()
    db.close()
    with open_study(tmp_path) as reader:
        for read in (reader.metric_names, partial(reader.overview, "qa.accuracy")):
            with pytest.raises(UserError, match="cannot be read"):
                read()
