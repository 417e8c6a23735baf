"""A study in offline runs of Weights & Biases, read with its own reader."""

import json

import pytest

from madplug_testing import play
from madplug_wandb import Runs
from madplug_wandb.runs import allowed

KEY, OWN = "sk-wandb-0123456789", "0123456789abcdef0123456789abcdef01234567"
wandb = pytest.mark.skipif("not __import__('importlib.util').util.find_spec('wandb')",
                           reason="wandb is not installed: tox run -e integrations")


def test_without_wandb_the_study_says_what_to_install(monkeypatch):
    from madplug_wandb import runs

    monkeypatch.setattr(runs, "find_spec", lambda name: None)
    played = play(replies=lambda request: "A", observers=[Runs()])
    assert "pip install 'madplug-wandb[wandb]'" in played.problems[0]
    assert played.result.error is None


def test_names_have_only_characters_that_are_allowed():
    assert allowed("a study/of: two") == "a_study_of__two"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, run_tracked):
    folder = tmp_path_factory.mktemp("wandb")
    environ = {"OPENAI_API_KEY": KEY, "WANDB_API_KEY": OWN, "WANDB_ERROR_REPORTING": "false"}
    printed = run_tracked(folder, 'use = "wandb.runs"', 3, environ)
    assert "wandb" not in printed, "nothing of it on the terminal"
    return folder


@pytest.fixture(scope="module")
def records(folder):
    """The records of each run, by its name, as pairs of a kind and facts."""
    found = {}
    for path in (folder / "runs" / "small" / "wandb").glob("offline-run-*/*.wandb"):
        rows = [row for record in chunks(path.read_bytes()) for row in facts_of(record)]
        found[next(facts["name"] for kind, facts in rows if kind == "run")] = rows
    return found


def chunks(data):
    """The records of a run's file: a header of 7 bytes, and then a log in blocks of 32 KiB as LevelDB writes it."""
    at, record = 7, b""
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        size, kind = int.from_bytes(data[at + 4:at + 6], "little"), data[at + 6]
        record += data[at + 7:at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield record
            record = b""


def facts_of(data):
    from wandb.proto import wandb_internal_pb2 as pb

    record = pb.Record.FromString(data)
    if record.HasField("history"):
        yield "history", {i.key or "/".join(i.nested_key): json.loads(i.value_json) for i in record.history.item}
    if record.HasField("run"):
        run = record.run
        config = {u.key or "/".join(u.nested_key): json.loads(u.value_json) for u in run.config.update}
        yield "run", {"group": run.run_group, "name": run.display_name, "project": run.project, **config}
    if record.HasField("artifact"):
        yield "artifact", {"files": [e.path for e in record.artifact.manifest.contents]}


@wandb
def test_each_cell_is_a_run_in_the_group_of_the_study(records):
    assert set(records) == {"one", "two"}
    runs = {name: next(facts for kind, facts in rows if kind == "run") for name, rows in records.items()}
    assert runs["one"]["group"] == runs["two"]["group"]
    assert runs["one"]["group"].startswith("small ")
    assert runs["one"]["project"] == "small"
    assert runs["one"]["debate.rounds"] == "1"
    assert runs["two"]["dataset.use"] == "puzzles.ordering"


@wandb
def test_figures_come_debate_by_debate_and_the_report_is_an_artefact(records):
    history = [facts for kind, facts in records["two"] if kind == "history"]
    assert [row["debates"] for row in history] == [1, 2, 3]
    assert history[-1]["calls"] == 12
    assert 0 <= history[-1]["qa.accuracy"] <= 1
    [artifact] = [facts for rows in records.values() for kind, facts in rows if kind == "artifact"]
    assert {"summary.json", "study.toml", "report/report.html"} <= set(artifact["files"])


@wandb
def test_neither_key_is_in_what_it_writes(folder):
    written = [p for p in (folder / "runs" / "small" / "wandb").rglob("*") if p.is_file() and not p.is_symlink()]
    assert written
    for path in written:
        text = path.read_bytes()
        assert KEY.encode() not in text, path
        assert OWN.encode() not in text, path
