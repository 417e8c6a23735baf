"""What pages show of a study: sums by cell, and the debates of a cell a few at a time."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import islice

import pytest

from madplug import Caller, Completion, DebateResult, Decision, Message, Sample, Usage, UserError
from madplug.store import Call, CallRow, DebateId, Scope, open_recorder, open_study
from madplug.study.summary import scores_by_cell
from madplug_testing import wait_for
from madplug_view.queries import failures, metric_names, overview, scores, walk


def ended(cell, sample, repeat=0, score=1.0, **more):
    parts = {"decision": Decision("A"), "metrics": {"qa.accuracy": score, "x": 2.5}, "calls": sample, "seconds": 0.5,
             "tokens": Usage(sample * 10, 1, cost_usd=0.25), "messages": (Message(0, 1, 0, 0, "improve", "A"),)} | more
    return DebateResult(cell, repeat, Sample(f"q{sample}", "?"), ("A",), **parts)


DEBATES = [*(ended("b", i, score=float(i % 3 == 0)) for i in range(7)),
           *(ended("a", i, r, score=float((i + r) % 2)) for r in range(2) for i in range(5)),
           ended("b", 8, error="gone", decision=None, metrics={}),
           ended("b", 9, decision=Decision.undecided("tie"), score=0.0)]


def recorded(folder, *debates):
    """The recorder of these debates, which is open."""
    recorder = open_recorder(folder)
    for debate in debates:
        wait_for(recorder.finish_debate(debate))
    return recorder


@pytest.fixture
def reader(tmp_path):
    recorder = recorded(tmp_path, *DEBATES)
    recorder.start_debate(DebateId("b", 0, "q100"), Sample("q100", "?"), ())
    call = Call(Completion("text", Usage(3, 4, cost_usd=0.5)), retries=2, seconds=1.5)
    wait_for(recorder.keep_call(CallRow(b"k", Caller("b", 0, "q0"), "m", "{}"), call))
    wait_for(recorder.keep_call(CallRow(b"free", Caller("b", 0, "q0"), "m", "{}"), Call(Completion("t"))))
    with open_study(tmp_path) as opened:
        yield opened
    recorder.close()


def test_the_sums_of_a_cell_are_those_of_its_figures(reader):
    assert failures(reader) == [("gone", 1)]
    found = {cell.cell: cell for cell in overview(reader, "qa.accuracy")}
    assert list(found) == ["b", "a"]
    for name, own in scores_by_cell(reader.figures()).items():
        cell, metric = found[name], own.metrics(["qa.accuracy"])["qa.accuracy"]
        rows = list(reader.figures(name))
        assert cell.failed == len(rows) - cell.done == sum(bool(row["error"]) for row in rows)
        assert cell.undecided == sum(not row["error"] and not row["decided"] for row in rows)
        for sums in ("calls", "retries", "prompt", "completion", "cached", "cost_usd"):
            assert getattr(cell, sums) == sum(row[sums] for row in rows)
        assert (cell.score.mean, cell.score.ci95) == (
            pytest.approx(metric["mean"]), pytest.approx(metric["ci95"]))
    assert (found["b"].running, found["a"].running, found["a"].repeats) == (1, 0, 2)
    assert found["b"].score.samples == 8, "one failed"
    of_no_share = next(c for c in overview(reader, "x") if c.cell == "a")
    assert of_no_share.score.ci95 == pytest.approx((2.5, 2.5))  # normal


@pytest.mark.parametrize("metric", [None, "no.such", 'a "name" with $.x and ☃'])
def test_without_such_a_metric_there_is_no_score(reader, metric):
    assert [cell.score for cell in overview(reader, metric)] == [None, None]
    assert metric_names(reader) == metric_names(reader, 1) == ["qa.accuracy", "x"]


@pytest.mark.parametrize("order", ["sample", "started", "messages", "rounds", "calls", "tokens", "cost", "seconds",
                                   "metric:qa.accuracy"])
@pytest.mark.parametrize("descending", [False, True])
def test_every_order_can_be_continued_after_any_debate(reader, order, descending):
    whole = list(walk(reader, "b", order, descending=descending))
    assert len({id for _, id in whole}) == 10
    for i, (cursor, _) in enumerate(whole):
        assert list(walk(reader, "b", order, descending=descending, after=cursor)) == whole[i + 1:]


def test_debates_are_sorted_by_a_value_or_by_repeat_and_the_number_in_the_name_of_a_sample(reader):
    assert [id.sample for _, id in walk(reader, "b", "tokens", descending=True)][:3] == ["q9", "q8", "q6"]
    assert [id.sample for _, id in walk(reader, "b")] == [f"q{i}" for i in (*range(7), 8, 9, 100)]
    assert [(id.repeat, id.sample) for _, id in walk(reader, "a")] == [
        (r, f"q{i}") for r in range(2) for i in range(5)]


@pytest.mark.parametrize("cursor", ["", "[]", "nonsense", "[1, 2]", '["a", 0, "q"]', "[0, 0, 0]", "[" * 10_000])
def test_what_is_not_a_cursor_is_a_users_mistake(reader, cursor):
    with pytest.raises(UserError, match="not a cursor"):
        next(walk(reader, "b", after=cursor))


def test_the_scores_of_a_cell_are_by_repeat_and_sample(reader):
    assert {key: score for key, (_, score) in scores(reader, "a", "qa.accuracy").items() if key[0] == 0} == {
        (0, f"q{i}"): float(i % 2) for i in range(5)}
    assert scores(reader, "none", "qa.accuracy") == {}


def test_a_page_of_a_long_cell_reads_a_batch_and_not_the_cell(tmp_path):
    recorded(tmp_path, *(replace(ended("c", 0), sample=Sample(f"q{i:05}", "?")) for i in range(1000))).close()
    with open_study(tmp_path) as reader:
        steps = []
        reader._db.set_progress_handler(lambda: steps.append(1), 100)
        whole = len(list(walk(reader, "c"))), len(steps)
        steps.clear()
        list(islice(walk(reader, "c", after=[cursor for cursor, _ in islice(walk(reader, "c"), 50)][-1]), 50))
        assert whole[0] == 1000
        assert len(steps) < whole[1] / 3


@pytest.mark.parametrize("metrics", ["{", "[", "\\x00"])
@pytest.mark.parametrize("read", [metric_names, partial(overview, metric="qa.accuracy")])
def test_figures_that_are_damaged_are_a_message(tmp_path, metrics, read):
    recorded(tmp_path, ended("c", 1)).close()
    with closing(sqlite3.connect(tmp_path / "study.db")) as db, db:
        db.execute("UPDATE debates SET metrics = ?", (metrics,))
    with open_study(tmp_path) as reader, pytest.raises(UserError, match="cannot be read"):
        read(reader)


def test_what_left_the_run_file_is_not_browsed(tmp_path):
    scope = Scope(frozenset("ab"), 1, {"a": frozenset({"q1"})}, {"b": frozenset({"new"})})
    debates = (ended(cell, sample, repeat, metrics={"new": right} | ({} if repeat else {"old": right}))
               for cell in "abc" for sample, right in ((0, 1.0), (1, 0.0)) for repeat in (0, 1))
    with closing(recorded(tmp_path, *debates)) as recorder:
        wait_for(recorder.keep_fact("scope", scope))
        assert recorder.debate(DebateId("c", 1, "q1")) is not None, "a run may need it again"
    with open_study(tmp_path) as study:
        assert [id for _, id in walk(study, "a", "seconds")] == [("a", 0, "q0")]
        assert [id.sample for _, id in walk(study, "b")] == ["q0", "q1"]
        assert list(walk(study, "c")) == []
        assert [study.debate(DebateId(*id)) for id in (("a", 0, "q1"), ("a", 1, "q0"), ("c", 0, "q0"))] == [None] * 3
        assert study.debate(DebateId("b", 0, "q1")).metrics == {"new": 0.0}
        assert list(scores(study, "a", "new")) == [(0, "q0")]
        assert metric_names(study) == ["new", "old"]
        assert [cell.score and cell.score.mean for cell in overview(study, "old")] == [1.0, None]
        assert [cell.score.mean for cell in overview(study, "new")] == [1.0, 0.5]
    with open_study(tmp_path, everything=True) as study:
        assert (len(list(walk(study, "c"))), len(scores(study, "b", "old"))) == (4, 2)
