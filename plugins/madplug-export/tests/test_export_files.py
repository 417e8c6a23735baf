"""Debates, messages and calls as files."""

import csv
import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import asdict
from io import StringIO
from itertools import count, product
from pathlib import Path

import pytest
from damage import HOSTILE, HOSTILE_ROWS

from madplug import DebateResult, Message, Sample, UserError
from madplug.store import open_recorder, open_study
from madplug_export.files import export_to
from madplug_export.flat import CALL, DEBATE, MESSAGE, Uses, debate_row, message_rows, rows_of
from madplug_testing import wait_for

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "export.md"


@pytest.fixture
def exported(program, tmp_path):
    """A study that was run, and a function that exports it: the text that was written."""
    assert program("run", "study.toml", "--set", "repeats=2").exit_code == 0

    def export(name, *words):
        done = program("export", "runs/study", "--output", name, *words, status=0)
        return done.stdout if name == "-" else (tmp_path / name).read_text(encoding="utf-8")
    return export


def table(text):
    csv.field_size_limit(10**7)
    return list(csv.DictReader(text.splitlines()))


def test_a_debate_is_one_row_of_plain_columns(exported):
    rows, whole = table(exported("x.csv")), [json.loads(line) for line in exported("-").splitlines()]
    assert len(rows) == len(whole) > 0
    assert set(rows[0]) == {*DEBATE, "metric.kit.right"}
    for row, record in zip(rows, whole, strict=True):
        assert (row["cell"], int(row["repeat"]), row["sample"], row["answer"]) == (
            record["cell"], record["repeat"], record["sample"]["id"], record["decision"]["answer"] or "")
        assert json.loads(row["references"]) == record["references"]
        assert float(row["metric.kit.right"]) == record["metrics"]["kit.right"]
        assert len(json.loads(row["first_answers"])) == len(record["agents"])


@pytest.mark.parametrize(("name", "number"), [("own.csv", "0 calls in own.csv"), ("own.parquet", "no calls to export")])
def test_where_calls_are_that_a_study_reuses_is_told(program, tmp_path, name, number):
    program("run", "study.toml", "--quiet", status=0)
    program("run", "study.toml", "--quiet", "--set", 'reuse=["runs/study"]', "--output", "again", status=0)
    done = program("export", "again", "--calls", "--output", name)
    assert number in (told := done.stdout + done.stderr)
    assert told.endswith(f"; calls that it reuses are on record in {tmp_path / 'runs/study'}\n")
    assert "reuses" not in program("export", "again", "--output", "debates.csv", status=0).stdout


@pytest.mark.parametrize("oracle", [False, True])
def test_every_debate_and_message_says_whether_components_saw_the_references(program, oracle):
    program("run", "study.toml", "--quiet", *(["--set", "oracle=true"] * oracle), status=0)
    for words in (), ("--messages",):
        as_json = program("export", "runs/study", "--output", "-", *words).stdout
        assert {json.loads(line)["oracle"] for line in as_json.splitlines()} == {oracle}
        as_csv = table(program("export", "runs/study", "--output", "-", "--format", "csv", *words).stdout)
        assert {row["oracle"] for row in as_csv} == {str(oracle)}


def test_first_answers_and_changes_by_hand():
    agents = [{"id": i, "persona": {"votes": i < 2}} for i in range(4)]
    ids = count()

    def said(number, agent, key, answer="x", retracted=False, seen=()):
        return asdict(Message(next(ids), number, 0, agent, "improve", "", answer=answer, key=key, seen=seen,
                              retracted=retracted))
    record = {
        "cell": "c", "repeat": 0, "sample": {"id": "q", "group": "", "question": "?"}, "references": ["A"],
        "agents": agents, "messages": [
            said(0, 0, "Z"), said(1, 0, "A"), said(1, 1, None), said(1, 2, "C"), said(2, 0, "D", retracted=True),
            said(2, 0, "B"), said(2, 1, "B"), said(2, 1, None, answer=""), said(3, 0, "B"), said(3, 1, "A"),
            said(3, 0, None), said(1, 3, "A"), said(1, 3, "B"), said(1, 3, "C", seen=[11, 12])],
        "decision": None, "metrics": {}, "calls": 0, "retries": 0, "seconds": 0.0, "error": "gave up", "oracle": False,
        "tokens": {"prompt": 0, "completion": 0, "cached": 0, "cost_usd": None}}
    row = debate_row(record)
    assert (row["first_answers"], row["last_answers"]) == (["A", None], ["B", "A"])
    assert [m["changed"] for m in message_rows(record)] == [
        None, True, None, None, None, True, None, None, False, True, None, None, None, None]
    assert (row["flips"], row["flipped"], row["rounds"]) == (3, 2, 3)
    assert (row["undecided"], row["error"], row["answer"]) == (False, "gave up", None)
    record["messages"].append(asdict(Message(14, 3, 0, None, "note", "", stage="failed")))
    assert [debate_row({**record, "decision": made})["partial"] for made in (None, {"key": "B"})] == [False, True]


def test_a_message_is_one_row_and_its_calls_can_be_joined(exported):
    messages, calls = table(exported("m.csv", "--messages")), table(exported("c.csv", "--calls"))
    assert (set(messages[0]), set(calls[0])) == ({*MESSAGE}, {*CALL})
    by_key = {row["key"]: row for row in calls}
    joined = 0
    for message in messages:
        for key in json.loads(message["calls"]):
            call = by_key[key]
            assert (call["agent"], call["round"]) == (message["agent"], message["round"])
            if all(call[name] == message[name] for name in ("cell", "repeat", "sample")):
                assert call["message"] == message["message"]
                joined += 1
    assert joined > 0
    assert sum(int(row["uses"]) for row in calls) >= joined


def test_calls_are_exported_without_reading_every_debate_first(exported, tmp_path, monkeypatch):
    """If this fails: the first row of a large study's calls takes as long as the whole export."""
    exported("c.csv", "--calls")
    read = []
    with open_study(tmp_path / "runs" / "study") as study:
        records = study.records
        monkeypatch.setattr(study, "records", lambda id=None: read.append(id) or records(id))
        uses, calls = Uses(study), study.calls()
        uses.of(next(calls))
        assert 0 < len(read) <= len(study.cells())
        for call in calls:
            uses.of(call)
        debates = sum(1 for _ in records())
    assert None not in read
    assert len(read) == debates  # each once


@pytest.mark.parametrize(("words", "said"), [
    (("x.csv", "--calls", "--messages"), "a file each"), (("x.xlsx",), "must end in .jsonl, .csv or .parquet"),
    (("-", "--format", "parquet"), "must end in .jsonl, .csv or .parquet")])
def test_two_tables_in_one_file_and_a_form_that_is_not_known_are_refused(exported, program, tmp_path, words, said):
    assert said in program("export", "runs/study", "--output", *words, status=2).stderr
    assert not (tmp_path / words[0]).exists()


def test_a_reader_that_has_had_enough_is_no_error_and_a_closed_output_is_told(program, tmp_path):
    program("run", "study.toml", "--set", "dataset.size=200", "--quiet")
    command = f"{sys.executable} -m madplug export runs/study --output -"
    done = subprocess.run(f"{command} | head -1", shell=True, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["cell"]
    assert "Traceback" not in done.stderr
    done = subprocess.run(f"{command} >&-", shell=True, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (2, "madplug: --output -: standard output is closed\n")


@pytest.mark.parametrize("what", [(), ("--messages",), ("--calls",)])
def test_parquet_and_standard_output_have_the_same_rows(exported, program, tmp_path, what):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    rows = [json.loads(line) for line in exported("x.jsonl", *what).splitlines()]
    program("export", "runs/study", "--output", "x.parquet", *what, status=0)
    found = parquet.read_table(tmp_path / "x.parquet").to_pylist()
    assert [row["cell"] for row in found] == [row["cell"] for row in table(exported("-", "--format", "csv", *what))]
    assert [row["cell"] for row in found] == [row["cell"] for row in rows]
    if not what:
        assert [row["reference"] for row in found] == [row["references"][0] for row in rows]
        assert all(isinstance(row["first_answers"], list) for row in found)


@pytest.mark.parametrize("columns", [DEBATE, MESSAGE, CALL])
def test_every_column_is_documented(columns):
    rows = "\n".join(f"| `{name}` | {what} |" for name, what in columns.items())
    assert rows in DOCUMENT.read_text(encoding="utf-8")


def test_a_study_that_is_damaged_or_hostile_is_a_message(program, tmp_path):
    """If this fails: the exception that is raised here would have reached the user."""
    damaged = ["record = 'x'", "record = '{}'", "agents = '[7]'", "opening = '{\"cell\":7}'",
               "record = '{\"decision\":7}'"]
    program("run", "study.toml", "--quiet")
    shutil.move(tmp_path / "runs/study", tmp_path / "whole")
    for statement in (*HOSTILE.values(), *HOSTILE_ROWS, *(f"UPDATE debates SET {text}" for text in damaged)):
        shutil.copytree(tmp_path / "whole", tmp_path / "runs/study", dirs_exist_ok=True)
        with closing(sqlite3.connect(tmp_path / "runs/study/study.db")) as db, db:
            db.execute(statement.replace("sample = 'q'", "sample = 'q0000'"))
        for what, form in product(("debates", "messages", "calls"), ("jsonl", "csv", "parquet")):
            with suppress(UserError):
                export_to(tmp_path / "runs/study", tmp_path / f"rows.{form}", what)
    (tmp_path / "runs/study/study.db").write_bytes(b"\x89PNG" * 3000)
    assert "runs/study: " in program("export", "runs/study", "--output", "x.jsonl", status=2).stderr


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_a_whole_number_of_any_size_in_a_row_of_the_data_does_not_keep_a_study_from_being_exported(tmp_path, form):
    if form == "parquet":
        pytest.importorskip("pyarrow")
    folder = recorded(tmp_path / "study", {}, metadata={"n": 10**400})
    assert export_to(folder, tmp_path / f"rows.{form}") == 1
    with open_study(folder) as study:
        assert json.loads(next(study.records()))["sample"]["metadata"] == {"n": 10**400}
    assert rows_of(f'{{"n": {10**3000}}}', lambda record: record["n"]) == 10**3000


def test_no_file_of_a_study_is_written_over(program, tmp_path):
    program("run", "study.toml", status=0)
    study = tmp_path / "runs/study"
    shutil.copy(study / "study.db", tmp_path / "other.db")
    (tmp_path / "link").symlink_to(study / "study.db")
    (tmp_path / "folder").symlink_to(tmp_path / "runs")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for name in ("runs/study/study.db", "runs/study/log.jsonl", "runs/study/study.db-wal", "other.db", "link",
                 "folder/study/manifest.json"):
        done = program("export", "runs/study", "--output", name, "--format", "csv", status=2)
        assert "is a file of a study, which would be lost" in done.stderr
    assert before == {path: path.read_bytes() for path in before}


def recorded(folder, *metrics, **sample):
    """A study with a debate for each table of metrics."""
    with closing(open_recorder(folder)) as recorder:
        for i, found in enumerate(metrics):
            made = Sample(f"s{i}", **{"question": "?", **sample})
            wait_for(recorder.finish_debate(DebateResult("c", 0, made, (), metrics=found)))
    return folder


def read_csv(path):
    return list(csv.DictReader(StringIO(path.read_bytes().decode(), newline="")))


@pytest.mark.parametrize(("metrics", "columns"), [
    ([{"m.round_1": 1.0}, {"m.round_1": 1.0, "m.round_2": 0.5}], ["metric.m.round_1", "metric.m.round_2"]),
    ([{"m": None}, {"m.a": 1.0}], ["metric.m.a"]),
    ([{"m.a": None}, {"m.a": 1.0}], ["metric.m.a"]),
    ([{"m": None}, {"m": None}], ["metric.m"]),
    ([{}, {"m": 0.0}], ["metric.m"])])
def test_every_score_that_any_debate_has_is_a_column(tmp_path, metrics, columns):
    export_to(recorded(tmp_path / "study", *metrics), tmp_path / "out.csv")
    rows = read_csv(tmp_path / "out.csv")
    assert [name for name in rows[0] if name.startswith("metric.")] == columns
    assert [[row[name] for name in columns] for row in rows] == [
        ["" if (value := found.get(name.removeprefix("metric."))) is None else str(value) for name in columns]
        for found in metrics]


@pytest.mark.parametrize("text", ["a\rb", "a\r", "\r", "a\r\nb", "a\nb", 'a"b\r,c', "a\u2028b\x85"])
def test_no_text_breaks_a_row_of_csv(tmp_path, text):
    export_to(recorded(tmp_path / "study", {}, {}, question=text), tmp_path / "out.csv")
    assert [(row["sample"], row["question"]) for row in read_csv(tmp_path / "out.csv")] == [("s0", text), ("s1", text)]
