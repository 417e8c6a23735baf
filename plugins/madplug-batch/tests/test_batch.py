"""Studies whose requests are sent as batches, over HTTP to a provider that answers as it is told to."""

import json
import shutil
import signal
import subprocess
import sys
import time
from urllib.request import Request, urlopen

import pytest
from click.testing import CliRunner

import madplug
from madplug_testing.batches import Plan
from madplug_testing.endpoint import running_endpoint

for plugin in ("openai", "puzzles", "som", "qa"):
    pytest.importorskip(f"madplug_{plugin}")
RUN = """
name = "s"
dataset = {{use = "puzzles.ordering", size = 6}}
debate = {{paradigm = "som.debate", agents = 2, rounds = 2}}
metrics = ["qa.accuracy"]
[models.m]
use = "openai.chat"
model = "fake"
base_url = "{url}"
price = {{prompt = 1.0, completion = 2.0}}
"""
BATCHED = {"use": "batch.rounds", "poll": 0.02, "patience": 0.3}
RUN_IT = ("run", "s.toml", "--set", "execution={use = 'batch.rounds', poll = 0.02}")
DETACHED = (*RUN_IT, "--detach")
CALLS = 24


class Study:
    """A study of 6 debates with 24 calls in a folder, and the batches of its provider."""

    def __init__(self, folder, endpoint):
        self.folder, self.batches, self.stats = folder, endpoint.endpoint.batches, endpoint.stats
        self.url = endpoint.url
        self.write()

    def write(self, old="", new=""):
        """Write the run file, with a change."""
        (self.folder / "s.toml").write_text(RUN.format(url=self.url).replace(old, new))

    def run(self, output="out", *, batched=True, limits=None, **options):
        """Run the study in this process. Gives its summary, and the debates."""
        settings = {"limits": limits or {}} | ({"execution": {**BATCHED, **options}} if batched else {})
        result = madplug.run(self.folder / "s.toml", output=self.folder / output, settings=settings, quiet=True)
        return result.summary, self.debates(output)

    def debates(self, output):
        """What is on record of every debate."""
        with madplug.open_study(self.folder / output) as study:
            return [(d.sample.id, d.decision, d.metrics, d.messages)
                    for d in sorted(study.results(), key=lambda d: d.sample.id)]

    def start(self, *words):
        """Run the program in a process of its own."""
        command = [sys.executable, "-m", "madplug", *words]
        return subprocess.Popen(command, cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def said(self, *words, status=0):
        """What the program prints."""
        done = CliRunner().invoke(madplug.main, words)
        assert done.exit_code == status, done.output
        return done.output

    def detached(self, *words):
        """What a run prints that waits for no batch; its exit status is 3 until the study is finished."""
        done = CliRunner().invoke(madplug.main, (*DETACHED, *words))
        assert done.exit_code == (0 if "s: finished" in done.output else 3), done.output
        return done.output


@pytest.fixture
def study(tmp_path, monkeypatch):
    """The study, in its folder."""
    monkeypatch.chdir(tmp_path)
    with running_endpoint() as endpoint:
        yield Study(tmp_path, endpoint)


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """The debates of the study as they are without batches."""
    with running_endpoint() as endpoint:
        return Study(tmp_path_factory.mktemp("live"), endpoint).run(batched=False)[1]


def eventually(what):
    """Wait until something is the case."""
    for _ in range(3000):
        if what():
            return
        time.sleep(0.02)
    raise AssertionError("it never came to pass")


@pytest.mark.parametrize("paradigm", ["som.debate", "debunc.debate"])  # the latter reads all of what a reply has
def test_a_batched_study_has_the_results_of_a_live_one_for_half_the_dollars_and_its_time_apart(study, paradigm):
    pytest.importorskip("madplug_debunc")
    pytest.importorskip("madplug_report")
    study.write("som.debate", paradigm)
    live, debates = study.run("live", batched=False)
    batched, same = study.run("batched")
    assert same == debates
    assert batched["cells"][0]["cost_usd"] == pytest.approx(live["cells"][0]["cost_usd"] / 2) != 0
    assert batched["cells"][0]["calls"] == CALLS
    assert len(study.batches.made) == 2  # one for each round of all debates
    live, batched = (json.loads(study.said("report", output, "--json"))["cells"][0]["spending"]["critical"]
                     for output in ("live", "batched"))
    assert live["seconds"] > 0 == live["queued"]
    assert batched["queued"] > 0 == batched["seconds"]


@pytest.mark.parametrize("plan", [
    Plan(ends="expired", answers=0.5), Plan(ends="cancelled", answers=0.25), Plan(answers=0), Plan(missing=3),
    Plan(twice=2, unknown=2), Plan(statuses=[500, 500, 429]),
    Plan(ends="failed", errors=[{"code": "token_limit_exceeded", "message": "too much", "line": None}]),
], ids=["expired", "cancelled", "error file only", "missing", "twice and unknown", "failed items", "refused"])
def test_what_a_batch_leaves_unanswered_is_asked_again_and_nothing_else(study, live, plan):
    study.batches.plans.append(plan)
    assert study.run()[1] == live
    answered = study.batches.answered
    assert (len(answered), answered.total()) == (CALLS, CALLS + plan.missing)  # those were lost by the provider


def test_what_is_asked_again_after_pauses_of_different_lengths_is_one_batch(study):
    study.write("size = 6", "size = 1")
    study.batches.plans.extend([Plan(answers=0)] * 3)
    study.run(patience=60)
    assert len(study.batches.made) == 3 + 2


def test_as_many_requests_are_under_way_as_the_provider_has_room_for(study, live):
    study.batches.room = 4
    study.write('model = "fake"', 'model = "fake"\nattempts = 1')
    assert study.run()[1] == live
    taken = [batch for batch in study.batches.made.values() if batch["status"] == "completed"]
    assert [batch["request_counts"]["total"] for batch in taken] == [3] * 8


def test_a_line_that_the_provider_refuses_fails_its_debate_alone(study):
    study.batches.plans.append(Plan(ends="failed", errors=[{"line": 2, "message": "too long"}]))
    study.run()
    with madplug.open_study(study.folder / "out") as records:
        assert ["too long" in d.error for d in records.results() if d.error] == [True]


@pytest.mark.parametrize(("when", "replies"), [("planned", [200, 0]), ("submitted", [200, 200]), ("fetched", [200, 0])])
def test_a_detached_study_that_is_killed_and_moved_is_finished_by_the_same_command_and_nothing_is_paid_twice(
        study, live, monkeypatch, when, replies):
    batches = study.batches
    if when == "fetched":  # by the second process
        batches.hold = True
        study.detached()
        batches.finish()
    batches.faults.extend([*replies, *[503] * 10_000])
    process = study.start(*DETACHED, "--set", "execution.poll=1")
    eventually(lambda: len(batches.faults) < 10_000)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    batches.hold, _ = False, batches.faults.clear()
    study.folder = study.folder.rename(study.folder.with_name(f"moved-{when}"))
    monkeypatch.chdir(study.folder)
    while "s: finished" not in (said := study.detached()):
        assert "batches under way: 1, with 12 requests" in said
    assert study.debates("runs/s") == live
    assert len(batches.answered) == CALLS
    assert set(batches.answered.values()) == {1}
    assert len(batches.made) == 2


@pytest.mark.parametrize(("fault", "told", "listed"), [
    (404, "has no batch interface (HTTP 404", "done   refused"), (503, "its batches were tried 5 times", "planned")])
def test_a_detached_study_whose_batches_cannot_be_sent_ends_with_the_reason(study, fault, told, listed):
    study.batches.faults.extend([fault] * 1000)
    assert told in study.said(*DETACHED, status=1)
    assert listed in study.said("batch", "list", "runs/s")


def test_a_second_process_on_a_study_is_refused_and_sends_nothing(study):
    study.batches.hold = True
    first = study.start(*RUN_IT)
    eventually(lambda: study.batches.made)
    second = study.start(*RUN_IT)
    assert "another process is running this study" in second.communicate()[0]
    first.send_signal(signal.SIGINT)
    said = first.communicate()[0]
    assert first.returncode == 130
    assert "batches under way: 1, with 12 requests" in said
    assert len(study.batches.made) == 1


def test_limits_count_what_is_submitted(study):
    assert study.run(limits={"calls": 7})[0]["ending"] == "limit"
    assert len(study.batches.answered) == 7
    assert study.run("usd", limits={"cost_usd": 0.0008})[0]["ending"] == "limit"
    assert 0 < len(study.batches.answered) - 7 < 12


def test_fewer_requests_than_are_worth_a_batch_are_sent_at_once(study):
    study.run(live_below=13)
    assert not study.batches.made
    assert study.stats()["ok"] == CALLS


def test_a_detached_study_is_finished_by_runs_that_wait_for_nothing(study, live):
    study.batches.hold = True
    assert "batches under way: 1, with 12 requests" in study.detached()
    listed = study.said("batch", "list", "runs/s").splitlines()
    assert listed[1].split()[:3] == ["batch_0", "m", "submitted"]
    assert "batches under way: 1, with 12 requests, which expire by 20" in study.said("status", "runs/s")
    for outcome in ("s: stopped", "s: finished"):
        study.batches.finish()
        assert outcome in study.detached()
    assert study.debates("runs/s") == live
    assert "under way" not in study.said("status", "runs/s")
    assert len(study.batches.made) == 2


def test_a_run_without_batches_says_that_it_pays_for_those_under_way_once_more(study):
    study.batches.hold = True
    study.detached()
    assert "once more" not in study.said("rescore", "runs/s"), "debates that are not done are not run"
    assert "; this run does not wait for that, and pays for it once more" in study.said("run", "s.toml")


def test_a_batch_that_may_not_be_looked_at_fails_its_debates_and_is_kept_for_the_next_run(study, live):
    study.batches.hold = True
    study.detached("--output", "out")
    study.batches.finish()
    study.batches.faults.extend([400] * 10_000)
    assert study.run()[0]["cells"][0]["failed"] == 6
    study.batches.faults.clear()
    study.batches.hold = False
    assert study.run()[1] == live
    assert study.batches.answered.total() == CALLS


def test_batches_as_files_are_answered_by_another_program(study, live):
    while "s: finished" not in study.detached("--set", "models.m.batch_folder=jobs"):
        for path in set(study.folder.glob("jobs/*.jsonl")) - set(study.folder.glob("jobs/*.out.jsonl")):
            results = [answered(study, json.loads(line)) for line in path.read_text().splitlines()]
            path.with_suffix(".out.jsonl").write_text("".join(results[::-1]))
    assert study.debates("runs/s") == live
    assert len([*study.folder.glob("jobs/*")]) == 4


def answered(study, line):
    """The result of a request in a file: what the endpoint of a study says to it."""
    body = json.dumps(line["body"], ensure_ascii=False, separators=(",", ":")).encode()
    with urlopen(Request(f"{study.url}/chat/completions", body)) as reply:
        response = {"status_code": 200, "body": json.load(reply)}
    return json.dumps({"custom_id": line["custom_id"], "response": response}) + "\n"


def test_what_a_cancelled_batch_has_answered_is_kept(study, live):
    study.batches.plans.append(Plan(answers=0.5))
    study.batches.hold = True
    study.detached("--output", "out")
    assert study.said("batch", "cancel", "out") == "batch_0: cancelled\n"
    study.batches.hold = False
    assert study.run()[1] == live
    assert study.batches.answered.total() == CALLS


def test_a_batch_that_a_study_does_not_know_of_can_be_adopted(study, live):
    study.run(batched=False, limits={"calls": 1})
    shutil.copytree(study.folder / "out", study.folder / "lost")
    study.batches.hold = True
    study.detached("--output", "lost")
    shutil.rmtree(study.folder / "lost")
    assert "batch_0: in_progress" in study.said("batch", "adopt", "out", "batch_0")
    assert "knows of batch batch_0 already" in study.said("batch", "adopt", "out", "batch_0", status=2)
    study.batches.hold = False
    assert study.run()[1] == live
    assert study.batches.answered.total() == CALLS - 1


def test_check_says_how_many_batches_follow_one_another_and_refuses_many_and_what_is_not_merged(study):
    words = ("check", "s.toml", "--set", "execution=batch.rounds", "--set")
    said = study.said(*words, "models.m.samples_per_request=8")
    assert "up to 2 batches one after the other" in said
    assert "model 'm': samples_per_request = 8 is about single requests" in said
    assert "set execution.max_steps = 13" in study.said(*words, "debate.rounds=13", status=2)
    refused = study.said("run", "s.toml", "--batch", "--set", "execution.max_steps=1", status=2)
    assert "set execution.max_steps = 2" in refused
    assert "s: finished" in study.said("run", "s.toml", "--set", "execution={max_steps = 13, poll = 0.02, "
                                       "patience = 0.3}", "--batch")
