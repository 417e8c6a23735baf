"""What large studies are counted by: sums that are recorded as calls are, and an index with the numbers of debates."""

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from madplug import Caller, Completion, DebateResult, Decision, Sample, Usage, UserError
from madplug.cli.status import status_of
from madplug.store import (
    Call,
    CallRow,
    DebateId,
    Scope,
    Totals,
    browsing,
    copy_records,
    open_recorder,
    open_study,
    sqlite,
)
from madplug.store.scope import SCOPE
from madplug.testing import wait_for


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """Record sums after a few calls already."""
    monkeypatch.setattr(sqlite, "_PAID_EVERY", 4)


async def pay(recorder, numbers):
    """Record calls of 10 tokens and half a dollar, each answered at the third attempt."""
    await asyncio.gather(*(recorder.keep_call(
        CallRow(key(i), Caller("c", 0, "q"), "m", "{}"), Call(Completion(f"text {i}", Usage(7, 3, cost_usd=0.5)), 2))
        for i in numbers))


def key(number):
    return number.to_bytes(8, "big") * 2


def rows(folder):
    with closing(sqlite3.connect(folder / "study.db")) as db:
        return db.execute("SELECT calls, tokens, cost_usd, retries FROM paid ORDER BY number").fetchall()


@pytest.mark.parametrize("runs", [[range(3)], [range(4)], [range(11)], [range(11), range(11, 19)],
                                  [range(9), range(5, 14)]])
def test_totals_are_the_sums_over_all_calls_each_counted_once(tmp_path, runs):
    for numbers in runs:
        with closing(open_recorder(tmp_path)) as recorder:
            for i in numbers:
                wait_for(pay(recorder, [i]))
            expected = max(numbers) + 1
            assert recorder.totals() == Totals(expected, 10 * expected, 0.5 * expected)
            assert recorder.retries() == 2 * expected
    with open_study(tmp_path) as study:
        assert (study.totals().calls, study.retries()) == (expected, 2 * expected)
    assert rows(tmp_path)[-1] == (expected, 10 * expected, 0.5 * expected, 2 * expected)


def test_without_calls_totals_are_zero(tmp_path):
    with closing(open_recorder(tmp_path)) as recorder:
        assert (recorder.totals(), recorder.retries()) == (Totals(0, 0, 0.0), 0)
    assert rows(tmp_path) == []


def test_calls_of_a_killed_run_count_although_their_sums_were_not_recorded(tmp_path):
    recorder = open_recorder(tmp_path)
    wait_for(pay(recorder, range(6)))
    with open_study(tmp_path) as study:
        assert study.totals().calls == 6
    recorder.close()


def test_a_merged_study_has_its_own_sums(tmp_path):
    for i in range(2):
        with closing(open_recorder(tmp_path / str(i))) as recorder:
            wait_for(pay(recorder, range(i * 3, i * 3 + 5)))  # two calls are the same
    copy_records([tmp_path / "0", tmp_path / "1"], tmp_path / "merged")
    with open_study(tmp_path / "merged") as study:
        assert (study.totals().calls, study.retries()) == (8, 16)
    assert rows(tmp_path / "merged")[-1][0] == 8


def test_damaged_sums_are_a_message(tmp_path):
    with closing(open_recorder(tmp_path)) as recorder:
        wait_for(pay(recorder, range(5)))
    with closing(sqlite3.connect(tmp_path / "study.db")) as db:
        db.execute("UPDATE paid SET tokens = 'many'")
        db.commit()
    with open_study(tmp_path) as study, pytest.raises(UserError, match="the sums of the calls cannot be read"):
        study.totals()


def test_a_recorder_knows_its_calls_and_those_of_earlier_runs_and_no_others(tmp_path):
    for numbers in (range(50), range(50, 60)):
        with closing(open_recorder(tmp_path)) as recorder:
            assert all(recorder.call(key(i)) is None for i in numbers)
            wait_for(pay(recorder, numbers))
            assert [recorder.call(key(i)).completion.text for i in range(numbers.stop)] == [
                f"text {i}" for i in range(numbers.stop)]
            assert recorder.call(key(99)) is None
            assert recorder.call(key(3)[:4] + b"another") is None  # has the same place in the filter


def ended(cell, repeat, sample):
    return DebateResult(cell, repeat, Sample(sample, "?"), (), decision=Decision("A"), calls=2, tokens=Usage(5, 1))


def test_the_status_counts_what_belongs_to_the_study_now(tmp_path):
    scope = Scope(frozenset("ab"), 2, {"a": frozenset({"q1"})})
    with closing(open_recorder(tmp_path)) as recorder:
        for cell in "abc":
            for repeat in range(3):
                for i in range(4):
                    wait_for(recorder.finish_debate(ended(cell, repeat, f"q{i}")))
        recorder.start_debate(DebateId("d", 0, "q"), Sample("q", "?"), ())
        wait_for(recorder.keep_fact(SCOPE, scope.to_fact()))
    cells = status_of(tmp_path)["cells"]
    assert [(c["cell"], c["done"], c["calls"], c["tokens"]) for c in cells] == [("a", 6, 12, 36), ("b", 8, 16, 48)]
    with open_study(tmp_path) as study:
        counted = [row["cell"] for row in study.figures()]
    assert (counted.count("a"), counted.count("b"), len(counted)) == (6, 8, 14)


def test_the_status_of_a_thousand_cells_that_have_lost_a_sample_is_counted(tmp_path):
    dropped = {f"c{i}": frozenset({"q1"}) for i in range(1100)}
    with closing(open_recorder(tmp_path)) as recorder:
        for i in range(2):
            wait_for(recorder.finish_debate(ended("c7", 0, f"q{i}")))
        wait_for(recorder.keep_fact(SCOPE, Scope(frozenset(dropped), 1, dropped).to_fact()))
    assert [(c["cell"], c["done"]) for c in status_of(tmp_path)["cells"]] == [("c7", 1)]


def test_counting_the_debates_of_cells_reads_an_index_alone(tmp_path):
    """If this fails: the status of a large study reads every debate."""
    open_recorder(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "study.db")) as db:
        plan = db.execute("EXPLAIN QUERY PLAN " + browsing._UNSCORED.format(within="TRUE")).fetchall()
    assert [row[3] for row in plan] == ["SCAN debates USING COVERING INDEX debate_numbers"]


def scored(cell, sample, repeat=0, **metrics):
    return replace(ended(cell, repeat, sample), metrics=metrics)


def test_what_left_the_run_file_is_not_browsed(tmp_path):
    scope = Scope(frozenset("ab"), 1, {"a": frozenset({"q1"})}, {"b": ("new",)}, {"b": frozenset({"old"})})
    with closing(open_recorder(tmp_path)) as recorder:
        for cell in "abc":
            for sample, right in (("q0", 1.0), ("q1", 0.0)):
                wait_for(recorder.finish_debate(scored(cell, sample, new=right, old=right)))
                wait_for(recorder.finish_debate(scored(cell, sample, 1, new=right)))
        wait_for(recorder.keep_fact(SCOPE, scope.to_fact()))
        assert recorder.debate(DebateId("c", 1, "q1")) is not None, "a run may need it again"
    with open_study(tmp_path) as study:
        assert [id for _, id in study.walk("a", "seconds")] == [("a", 0, "q0")]
        assert [id.sample for _, id in study.walk("b")] == ["q0", "q1"]
        assert list(study.walk("c")) == []
        assert [study.debate(DebateId(*id)) for id in (("a", 0, "q1"), ("a", 1, "q0"), ("c", 0, "q0"))] == [None] * 3
        assert study.debate(DebateId("b", 0, "q1")).metrics == {"new": 0.0}
        assert study.contrast("a", "b", "new") == study.contrast("b", "a", "new") == {(1.0, 1.0): 1}
        assert study.metric_names() == ["new", "old"]
        assert [cell.score and cell.score.mean for cell in study.overview("old")] == [1.0, None]
        assert [cell.score.mean for cell in study.overview("new")] == [1.0, 0.5]
    with open_study(tmp_path, everything=True) as study:
        assert len(list(study.walk("c"))) == 4
        assert study.contrast("a", "b", "old") == {(1.0, 1.0): 1, (0.0, 0.0): 1}
