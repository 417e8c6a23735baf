"""A study is read by inspect_ai's own functions and shown by its own viewer."""

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
import zipfile
from contextlib import closing, suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from madplug import UserError
from madplug.cli.program import main
from madplug_testing.endpoint import completion, running_endpoint

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed: tox run -e integrations")
from madplug_inspect.logs import write_logs

KEY = "sk-inspect-0123456789"
STUDY = """
name = "small"
repeats = 2
dataset = {{use = "files.table", path = "q.jsonl", answers = "answers.choice"}}
debate = {{paradigm = "som.debate", agents = 2, rounds = 2}}
metrics = ["qa.oracle", "qa.accuracy"]
observers = ["inspect.logs"]
[models.m]
use = "openai.chat"
model = "fake"
base_url = "{url}"
attempts = 1
price = {{prompt = 1.0, completion = 2.0}}
[[cells]]
name = "two rounds"
[[cells]]
name = "one/round"
debate.rounds = 1
"""


def reply(body):
    asked = str(body["messages"])
    if "broken" in asked:
        return {"error": {"message": "no"}}
    return completion(f"Final answer: ({'A' if 'capital' in asked else 'B'})", 10)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    for plugin in ("openai", "answers", "files", "som", "qa"):
        pytest.importorskip(f"madplug_{plugin}")
    folder = tmp_path_factory.mktemp("study")
    rows = [{"id": "q1", "question": "The capital?", "choices": ["Rome", "Oslo"], "reference": "A"},
            {"id": "q2", "question": "Which?", "choices": ["one", "two"], "reference": "A"},
            {"id": "q3", "question": "broken", "choices": ["one", "two"], "reference": "A"}]
    (folder / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with running_endpoint(reply) as endpoint:
        (folder / "small.toml").write_text(STUDY.format(url=endpoint.url))
        done = subprocess.run([sys.executable, "-m", "madplug", "run", "small.toml"], cwd=folder, text=True,
                              capture_output=True, timeout=120, check=False, env={**os.environ, "OPENAI_API_KEY": KEY})
        assert done.returncode == 1, done.stdout + done.stderr  # the broken question
        assert "observer" not in done.stderr
    return folder / "runs" / "small"


@pytest.fixture(scope="module")
def logs(study):
    """What the observer wrote, read by inspect_ai, by task."""
    code = """
import sys
from inspect_ai.log import list_eval_logs, read_eval_log
print("[" + ",".join(read_eval_log(info).model_dump_json() for info in list_eval_logs(sys.argv[1])) + "]")
"""
    done = subprocess.run([sys.executable, "-c", code, str(study / "inspect")], capture_output=True, text=True,
                          timeout=120, check=True)
    return {log["eval"]["task"]: log for log in json.loads(done.stdout)}


def test_each_cell_is_a_log_with_its_samples_epochs_and_scores_in_the_order_of_the_run_file(logs, study):
    assert set(logs) == {"small/two rounds", "small/one/round"}
    log = logs["small/two rounds"]
    assert (log["status"], log["eval"]["config"]["epochs"]) == ("error", 2)
    assert (log["eval"]["model"], log["eval"]["dataset"]["sample_ids"]) == ("madplug/fake", ["q1", "q2", "q3"])
    assert [(s["id"], s["epoch"]) for s in log["samples"]] == [(q, e) for e in (1, 2) for q in ("q1", "q2", "q3")]
    first = log["samples"][0]
    assert (first["target"], first["choices"]) == (["A"], ["Rome", "Oslo"])
    assert first["messages"][1]["content"].startswith("Agent 1:\n\n")
    values = {(s["id"], s["epoch"]): s["scores"]["qa.accuracy"]["value"] for s in log["samples"] if s["scores"]}
    assert (values["q1", 1], values["q2", 1]) == (1, 0)
    [scored] = [e for e in first["events"] if e["event"] == "score"]
    assert list(scored["score"]["value"]) == ["qa.oracle", "qa.accuracy"]
    _, score = log["results"]["scores"]
    assert [score["name"] for score in log["results"]["scores"]] == ["qa.oracle", "qa.accuracy"]
    summary = json.loads((study / "summary.json").read_text())["cells"][0]["metrics"]["qa.accuracy"]
    assert [score["metrics"][name]["value"] for name in ("mean", "ci95_low", "ci95_high")] == [
        summary["mean"], *summary["ci95"]]
    failed = [s for s in log["samples"] if s["error"]]
    assert {s["id"] for s in failed} == {"q3"}
    assert log["results"]["completed_samples"] == 4


def test_agents_are_spans_within_rounds_and_calls_are_model_events(logs):
    events = logs["small/two rounds"]["samples"][0]["events"]
    spans = {e["id"]: e for e in events if e["event"] == "span_begin"}
    agents = [e for e in spans.values() if e["type"] == "agent"]
    assert [a["name"] for a in agents] == ["Agent 1", "Agent 2"] * 2
    assert [spans[a["parent_id"]]["name"] for a in agents] == ["round 1"] * 2 + ["round 2"] * 2
    calls = [e for e in events if e["event"] == "model"]
    assert [spans[c["span_id"]]["name"] for c in calls] == ["Agent 1", "Agent 2"] * 2
    assert all("Final answer: (A)" in c["output"]["choices"][0]["message"]["content"] for c in calls)
    assert {e["id"] for e in events if e["event"] == "span_end"} == set(spans)
    answers = [(spans[e["span_id"]]["name"], e["data"]) for e in events if e.get("source", "").startswith("answers of")]
    assert answers == [(f"round {i}", "- Agent 1: A\n- Agent 2: A") for i in (1, 2)], "or the viewer leaves rounds out"


def test_usage_is_that_of_the_debate_even_if_another_cell_paid(logs):
    for task, calls in (("small/two rounds", 4), ("small/one/round", 2)):
        usage = logs[task]["samples"][0]["model_usage"]["m"]
        assert (usage["input_tokens"], usage["output_tokens"]) == (10 * calls, 3 * calls)
        assert usage["total_cost"] == pytest.approx(calls * 16e-6)


def test_no_key_is_in_a_log(study):
    for path in (study / "inspect").iterdir():
        assert KEY.encode() not in path.read_bytes()
        with zipfile.ZipFile(path) as file:
            for name in file.namelist():
                with suppress(NotImplementedError):  # a compression that this Python does not know
                    assert KEY.encode() not in file.read(name)


def test_the_command_writes_the_same_logs_again_for_cells_with_debates_that_have_ended(study, tmp_path):
    copy = shutil.copytree(study, tmp_path / study.name)  # logs are named after the folder
    names = {path.name for path in (study / "inspect").iterdir()}
    for change, expected in (("SELECT 1", names), ("DELETE FROM debates WHERE cell = 'two rounds'", {
            name for name in names if name.startswith("one-round")}), ("DELETE FROM debates", set())):
        with closing(sqlite3.connect(copy / "study.db")) as db, db:
            db.execute(change)
        output = tmp_path / f"{len(expected)} logs"
        done = CliRunner().invoke(main, ["inspect", str(copy), "--output", str(output)])
        assert done.exit_code == (0 if expected else 2), done.output
        assert ("2 logs in" in done.stdout, "no debate has ended yet" in done.stderr) == (
            len(expected) == 2, not expected)
        assert {path.name for path in output.glob("*")} == expected


def get(url, process):
    for _ in range(600):
        assert process.poll() is None
        try:
            with urlopen(url, timeout=30) as response:
                return response.read()
        except URLError as error:
            if hasattr(error, "status"):
                raise
            time.sleep(0.1)
    raise AssertionError(f"{url} does not answer")


def test_its_viewer_shows_them(study):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = Path(sys.executable).with_name("inspect")
    viewer = subprocess.Popen([program, "view", "start", "--log-dir", str(study / "inspect"), "--port", str(port)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        listed = json.loads(get(f"http://127.0.0.1:{port}/api/logs", viewer))
        assert len(listed["files"]) == 2
        name = listed["files"][0]["name"]
        shown = json.loads(get(f"http://127.0.0.1:{port}/api/logs/{name.replace('/', '%2F')}", viewer))
        assert shown["eval"]["task"].startswith("small/")
    finally:
        viewer.terminate()
        viewer.wait()


def test_no_link_of_somebody_elses_study_is_followed(study, tmp_path):
    theirs, mine, own = tmp_path / study.name, tmp_path / "mine", tmp_path / "own.txt"
    shutil.copytree(study, theirs)
    log = sorted((theirs / "inspect").iterdir())[0]
    own.write_text("own")
    mine.mkdir()
    for name in (log, log.with_name(f"{log.name}.part")):
        log.unlink()
        name.symlink_to(own)
        write_logs(theirs, theirs / "inspect")
        assert own.read_text() == "own"
        assert {path.suffix for path in (theirs / "inspect").iterdir()} == {".eval"}
    shutil.rmtree(theirs / "inspect")
    (theirs / "inspect").symlink_to(mine)
    with pytest.raises(UserError, match="symbolic link"):
        write_logs(theirs, theirs / "inspect")
    assert not list(mine.iterdir())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_in_a_study_does_not_keep_the_reader_waiting(study, tmp_path):
    shutil.copytree(study, tmp_path / study.name)
    (tmp_path / study.name / "summary.json").unlink()
    os.mkfifo(tmp_path / study.name / "summary.json")
    assert len(write_logs(tmp_path / study.name, tmp_path / "logs")) == 2


@pytest.mark.parametrize("damage", [
    "UPDATE calls SET at = 1e300", "UPDATE calls SET seconds = 'x'", "UPDATE contents SET request = x'00', base = NULL",
    "UPDATE messages SET record = replace(record, '\"agent\":1', '\"agent\":99')",
    "UPDATE facts SET value = '{\"cells\": {\"two rounds\": 5}}' WHERE name = 'identity'",
    "UPDATE facts SET value = '{\"repeats\": \"x\"}' WHERE name = 'identity'"])
def test_damaged_records_are_told(study, tmp_path, damage):
    shutil.copytree(study, tmp_path / "study")
    with closing(sqlite3.connect(tmp_path / "study" / "study.db")) as db, db:
        db.execute(damage)
    with pytest.raises(UserError, match=r"cannot be read|not as madplug writes them"):
        write_logs(tmp_path / "study", tmp_path / "logs")
