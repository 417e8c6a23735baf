"""However a study is stopped: what the endpoint has answered is kept, and none of it is asked for again."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest
from tests_support import counts

from madplug import Metric, Reply, Sample, StudyStopped
from madplug.config.plan import StudyPlan
from madplug.config.shape import Limits
from madplug.store import MemoryStore
from madplug.study.run import StudyRun
from madplug.study.stream import JobQueue, run_all
from madplug_testing import PlainStyle, Scripted, play

WIDE = ("--set", "models.m.ledger=calls.txt", "--set", "models.m.latency=0.4", "--set", "dataset.size=60", "--set",
        "models.m.max_in_flight=40")
PROGRAM = ["-m", "madplug"]
AS_ON_WINDOWS = ["-c", "import signal; del signal.pthread_kill; from madplug.cli.program import main; main()"]


def answered(tmp_path):
    ledger = tmp_path / "calls.txt"
    return ledger.read_text().splitlines() if ledger.is_file() else []


def kept(tmp_path):
    with closing(sqlite3.connect(f"file:{tmp_path / 'runs/study/study.db'}?mode=ro", uri=True)) as db:
        return db.execute("SELECT count(*) FROM calls").fetchone()[0]


def resumes_without_paying_twice(madplug, file, tmp_path):
    """What was kept is what was answered; the next run asks for the rest and for nothing else."""
    assert kept(tmp_path) == len(answered(tmp_path)) > 0
    done = madplug("run", file, *WIDE[:2], "--set", "dataset.size=60", "--set", "models.m.latency=0")
    assert done.returncode == 0, done.stderr
    calls = answered(tmp_path)
    assert len(calls) == len(set(calls)) == kept(tmp_path)
    now = counts(tmp_path / "runs/study")
    assert (now["left"], now["calls"]) == (0, len(calls))


def wait_until(true):
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def start(tmp_path, file, *more, program=PROGRAM, **streams):
    return subprocess.Popen([sys.executable, *program, "run", file, *more], cwd=tmp_path, text=True,
                            # as on a terminal: under `nohup` the signal is ignored, and the program keeps to it
                            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
                            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams})


@pytest.mark.parametrize("numbers", [[signal.SIGINT], [signal.SIGTERM], [signal.SIGHUP],
                                     [signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT]])
def test_an_interrupt_keeps_every_call_in_flight(madplug, write, tmp_path, numbers):
    """Also two different ones that arrive together."""
    process = start(tmp_path, write(), *WIDE)
    wait_until(lambda: len(answered(tmp_path)) >= 20)
    for number in numbers:
        process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "waiting for calls in flight" in errors
    assert "stopped; run the same" not in errors, "it would not have waited for them"
    resumes_without_paying_twice(madplug, write(), tmp_path)


@pytest.mark.parametrize("closed", ["stderr", "stdout"])
def test_an_interrupt_keeps_every_call_in_flight_when_nothing_reads_what_is_printed(madplug, write, tmp_path, closed):
    """As in `madplug run FILE 2>&1 | tee log`, where Ctrl-C ends `tee` first."""
    read, written = os.pipe()
    with (tmp_path / "other.txt").open("w") as other:
        process = start(tmp_path, write(), *WIDE, **{"stdout": other, "stderr": other, closed: written})
    os.close(written)
    wait_until(lambda: len(answered(tmp_path)) >= 20)
    os.close(read)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130, (tmp_path / "other.txt").read_text()
    resumes_without_paying_twice(madplug, write(), tmp_path)


@pytest.mark.parametrize(("how", "program"), [("hang", PROGRAM), ("hang in a thread", PROGRAM),
                                              ("hang stubbornly", PROGRAM), ("hang", AS_ON_WINDOWS)])
def test_a_second_interrupt_ends_the_program_whatever_a_component_does(write, tmp_path, how, program):
    process = start(tmp_path, write(), "--set", f"models.m.fault={how}", program=program)
    log = tmp_path / "runs/study/log.jsonl"
    wait_until(lambda: log.is_file() and log.read_text())
    time.sleep(1)  # until the first request is made
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    try:
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130, errors


@pytest.mark.parametrize(("limit", "value"), [("calls", 50), ("tokens", 500), ("seconds", 0.7), ("cost_usd", 0.0005)])
def test_a_limit_keeps_every_call_in_flight(madplug, write, tmp_path, limit, value):
    file = write()
    done = madplug("run", file, *WIDE, "--set", f"limits.{limit}={value}", "--set",
                   "models.m.price={prompt = 1.0, completion = 1.0}")
    assert done.returncode == 3, done.stderr
    assert f"limits.{limit}" in done.stderr
    assert "everything so far is saved; run the same command" in done.stderr
    assert limit != "calls" or len(answered(tmp_path)) == value
    resumes_without_paying_twice(madplug, file, tmp_path)


def test_a_hopeless_model_leaves_the_calls_of_another_one(madplug, write, tmp_path):
    run = write().read_text() + """
[models.shut]
use = "kit.hash"
fault = "no_access"
letters = "CD"
[[cells]]
name = "open"
debate.models = ["m"]
[[cells]]
name = "closed"
debate.models = ["shut"]
"""
    file = write(run)
    done = madplug("run", file, *WIDE, "--set", "debate.on_failed_agent=drop")
    assert done.returncode == 1
    assert "model 'shut' refuses every request, whatever on_failed_agent says" in done.stderr
    assert kept(tmp_path) == len(answered(tmp_path)) > 0


def test_the_first_exception_ends_the_jobs_under_way():
    begun, ended, all_begun = [], [], asyncio.Event()

    async def jobs():
        for n in range(5):
            yield n

    async def run(n):
        begun.append(n)
        if len(begun) == 5:
            all_begun.set()
        try:
            await (asyncio.sleep(60) if n else all_begun.wait())
            raise ValueError(n)
        finally:
            ended.append(n)

    with pytest.raises(ValueError, match="0"):
        asyncio.run(run_all([JobQueue(jobs(), [])], run))
    assert sorted(ended) == [0, 1, 2, 3, 4]


def test_a_metric_that_says_the_study_was_stopped_has_failed():
    class Quitter(Metric):
        """Gives up."""

        name = "quitter"

        def score(self, debate, references):
            raise StudyStopped("enough")

    played = play(replies=lambda r: "A", metrics={"quitter": Quitter()}, expect_failure=True)
    assert "enough" in played.problems[0]
    assert (played.decision.key, played.summary["cells"][0]["done"]) == ("A", 1)


def test_a_component_that_makes_do_without_an_answer_spoils_no_debate_when_the_study_stops():
    """Whoever catches every exception must not have a debate stored as done that a limit has cut short."""
    class Robust(PlainStyle):
        """Says something whatever happens."""

        async def respond(self, debate, turn, view):
            try:
                return await super().respond(debate, turn, view)
            except Exception:
                return Reply("dunno")

    cell = play(replies=lambda r: "A", styles=[Robust()], rounds=3, agents=2,
                sample=[Sample(f"q{i}", "?") for i in range(6)]).debate.cell
    store = MemoryStore()
    for calls, status in ((15, "stopped"), (None, "finished")):
        run = StudyRun(StudyPlan("s", [cell], {"model": Scripted(lambda r: "A")}, limits=Limits(calls=calls)), store)
        assert asyncio.run(run.run())["status"] == status
        assert {r.decision.key for r in store.results()} <= {"A"}
    assert len(list(store.results())) == 6
    assert store.totals().calls == 36
