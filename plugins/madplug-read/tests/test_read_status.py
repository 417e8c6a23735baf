"""`madplug status`: how far a study is, and a list of several."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from madplug import Caller, Completion, DebateResult, Decision, Sample, Usage
from madplug.store import Call, CallRow, DebateId, open_recorder
from madplug_testing import wait_for

TWINS = """
from dataclasses import replace
from madplug import Extension, hookimpl
class Twins(Extension):
    name = "twins"
    @hookimpl(wrapper=True)
    def madplug_samples(self, setup):
        rows = yield
        return [(replace(sample, id=sample.id + end, hidden_from={"context": ["judge"]}), references)
                for sample, references in rows for end in ("", "~")]
"""


def ended(sample, right=1.0, cost=0.5, cell="c"):
    return DebateResult(cell, 0, Sample(sample, "?"), (), decision=Decision("A"), metrics={"qa.accuracy": right},
                        calls=4, tokens=Usage(30, 10, cost_usd=cost))


@pytest.fixture
def made(program):
    """Make a study of four planned debates: `made("runs/a", ended("q1"))`; gives its recorder, which is open."""
    def made(folder, *debates):
        recorder = open_recorder(folder)
        for result in debates:
            wait_for(recorder.finish_debate(result))
            row = CallRow(result.sample.id.encode(), Caller(result.cell, 0, result.sample.id), "m", "{}")
            wait_for(recorder.keep_call(row, Call(Completion("A", result.tokens))))
        wait_for(recorder.keep_fact("planned", 4))
        cell = {"metrics": [{"use": "qa.accuracy"}], "models": {"m": {"use": "openai.chat", "model": "large"}}}
        wait_for(recorder.keep_fact("identity", {"cells": {"c": cell}}))
        return recorder

    return made


@pytest.fixture
def status(program):
    return lambda *words, **more: program("status", *words, **more)


def test_it_says_how_far_a_study_is_also_while_it_runs(status, made):
    recorder = made("s", ended("q1"), ended("q2"))
    recorder.start_debate(DebateId("begun", 0, "q1"), Sample("q1", "?"), ())
    wait_for(recorder.keep_fact("waiting", "one batch is under way"))
    wait_for(recorder.keep_fact("edited", ["decision d: the code has changed"]))
    wait_for(recorder.keep_fact("settings", {"c": {}, "begun": {}, "later": {}, "last": {}}))
    assert status("s").stdout.splitlines() == [
        "cell   done  failed  undecided  calls  tokens",
        "c      2     0       0          8      80",
        "begun  0     0       0          0      0",
        "2 done, 0 failed, 2 left; 2 calls paid, 80 tokens, $1.00", "not begun: later, last", "one batch is under way",
        "decision d: the code has changed"]
    recorder.close()


def test_a_study_that_is_served_has_no_debates_left_that_it_could_have_begun(status, made):
    recorder = made("s", ended("q1"))
    cell = {"dataset": {"use": "serve.conversations"}}
    cells = {"c": cell, "matched": {**cell, "match": {"cell": "c", "by": "calls"}}}
    settings = {"c": {}, "d": {}, "matched": {}}
    for name, value in {"planned": None, "identity": {"cells": cells}, "settings": settings}.items():
        wait_for(recorder.keep_fact(name, value))
    assert status("s").stdout.splitlines()[-1] == "serving; not asked yet: d"
    recorder.close()
    assert status("s").stdout.splitlines()[-1] == "served; not asked yet: d"


@pytest.mark.parametrize(("costs", "known", "told"), [
    ((0.5, 0.25), 0.75, ", $0.7500"), ((0.5, None), None, ", $0.5000 and what has no known price"),
    ((None,), None, "")])
def test_where_the_cost_of_a_debate_is_unknown_the_part_that_is_known_is_told(status, made, costs, known, told):
    made("s", *(ended(f"q{i}", cost=cost) for i, cost in enumerate(costs))).close()
    assert json.loads(status("s", "--json").stdout)["cost_usd"] == known
    assert status("s").stdout.splitlines()[-1].partition(" tokens")[2] == told


def test_studies_in_a_folder_are_listed_newest_first_and_a_live_one_is_told_from_a_dead_one(status, made):
    made("runs/whole", *(ended(f"q{i}", right=i % 2) for i in range(4))).close()
    made("runs/part", ended("q1")).close()
    live = made("runs/live")
    Path("runs/notes").mkdir()
    for folder, year in (("whole", 2026), ("part", 2025), ("live", 2024)):
        manifest = {"components": {}, "runs": [{"started": f"{year}-01-01T00:00:00Z"}]}
        (Path("runs") / folder / "manifest.json").write_text(json.dumps(manifest))
    lines = [re.split("  +", line) for line in status("runs").stdout.splitlines()]
    assert lines[1] == ["runs/whole", "2026-01-01 00:00", "finished", "1", "4", "qa.accuracy 0.500", "[0.15, 0.85]",
                        "$2.00", "large"]
    assert [(row[0], row[2], row[4]) for row in lines[2:]] == [
        ("runs/part", "stopped", "1 of 4"), ("runs/live", "running", "0 of 4")]
    listed = json.loads(status("runs", "--json").stdout)
    assert [row["folder"] for row in listed] == ["runs/whole", "runs/part", "runs/live"]
    live.close()


def test_check_tells_what_of_a_grown_study_is_paid_and_left_and_where_its_limits_are(program):
    limits = ("--set", "limits.calls=25", "--set", "limits.seconds=60", "--set", "limits.cost_usd=3")
    grown = ("check", "study.toml", "--set", "dataset.size=8", "--set", "models.m.price={prompt=1e5,completion=0}")
    told = program(*grown, *limits, status=0).stdout
    assert "[limits] stops the study at 25 calls, or $3.00, or 60 seconds of one run" in told
    assert "on record" not in told
    program("run", *grown[1:2], *grown[4:], "--quiet", status=0)
    told = program(*grown, *limits).stdout
    assert "on record in runs/study: 6 debates, 2 left to run; 24 calls paid, 264 tokens, $24.00\n" in told
    assert "[limits] stops the study at 25 calls (24 so far), or $3.00 (reached: $24.00 so far), or 60 seconds" in told
    assert "6 debates, 0 left to run" in program(*grown, "--set", "dataset.size=4").stdout
    with_another = program(*grown, "--set", "dataset.size=4", "--set", 'sweep."debate.rounds"=[1,2]').stdout
    assert "6 debates, 8 left to run" in with_another
    other = program(*grown, "--set", "seed=5").stdout
    assert "warning: they were run with other settings (seed was 0 and is now 5), so that run refuses" in other
    assert "left to run" not in other
    Path("mine.py").write_text(TWINS)
    own = ("study.toml", "--set", 'extensions=["./mine.py:Twins"]')
    program("run", *own, "--output", "runs/twins", "--quiet", "--yes", status=0)
    told = program("check", *own, "--output", "runs/twins").stdout  # other rows than the data set's: not compared
    assert ("on record in runs/twins: 12 debates; 48 calls" in told, "changed since" in told) == (True, False)
    with closing(sqlite3.connect("runs/study/study.db")) as db, db:
        db.execute("UPDATE debates SET digest = 'other' WHERE sample = 'q0001'")
    told = program(*grown).stdout
    assert ("6 debates, 3 left to run" in told, "warning: 1 sample changed since then" in told) == (True, True)
    Path("runs/study/study.db").write_bytes(b"no records" * 99)
    assert "runs/study: " in program(*grown, status=0).stdout


@pytest.mark.parametrize("statement", ["PRAGMA user_version = 99", "DROP TABLE messages",
                                       "UPDATE debates SET calls = x'00'", "UPDATE facts SET value = '{'"])
def test_what_cannot_be_read_is_a_message_and_a_line_in_the_list(status, made, statement):
    made("runs/a", ended("q1")).close()
    made("runs/b", ended("q1")).close()
    with closing(sqlite3.connect("runs/a/study.db")) as db, db:
        db.execute(statement)
    assert status("runs/a", status=2).stderr.startswith("madplug: runs/a: ")
    lines = status("runs").stdout.splitlines()
    assert ("unknown" in lines[2], lines[3].startswith("problem: runs/a: ")) == (True, True), lines


def test_where_no_study_is_that_is_said(status, program, made):
    Path("empty").mkdir()
    assert status("empty", status=2).stderr == "madplug: empty: no study here (there is no study.db)\n"
    made("runs/capitals").close()
    assert status("runs/captals").stderr.endswith("(there is no study.db); did you mean 'capitals'?\n")
    assert program("read", "runs").stderr.endswith("name one of the studies in it: capitals\n")
