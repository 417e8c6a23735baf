"""A study directory as it may be found: damaged, foreign, read-only, in use, moved away while it is written."""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from damage import HOSTILE

from madplug import Completion, DebateResult, Decision, Message, Sample, StudyError, UserError
from madplug.records import Caller
from madplug.store import Call, CallRow, DebateId, open_recorder, open_study

ID = DebateId("c", 0, "q")


def ended(sample="q", **more):
    decision = None if "error" in more else Decision("A", "A")
    return DebateResult("c", 0, Sample(sample, "?"), ("A",), messages=(Message(0, 1, 0, 0, "draft", "A"),),
                        decision=decision, **more)


def call_row(key):
    return CallRow(key, Caller("c", 0, "q"), "m", "{}")


def record(recorder, *results, calls=()):
    async def all_of_them():
        await asyncio.gather(*map(recorder.finish_debate, results),
                             *(recorder.keep_call(call_row(k), Call(Completion("A"))) for k in calls))
    asyncio.run(all_of_them())


@pytest.fixture
def folder(tmp_path):
    """A study of three debates."""
    recorder = open_recorder(tmp_path / "runs/study")
    record(recorder, ended("q"), ended("r"), ended("s", error="no"), calls=[b"k" * 16])
    recorder.close()
    return tmp_path / "runs/study"


def change(folder, *statements):
    """What another program does to the database."""
    db = sqlite3.connect(folder / "study.db", isolation_level=None)
    for sql in statements:
        db.execute(sql)
    db.close()


def read_all(folder):
    with open_study(folder) as study:
        return list(study.figures()), list(study.debates()), study.totals()


# What is found

def rewritten(made):
    """Puts other bytes in the place of the database's."""
    def found(folder):
        (folder / "study.db").write_bytes(made((folder / "study.db").read_bytes()))
    return found


def changed(*statements):
    return lambda folder: change(folder, *statements)


def replaced(make):
    """Puts something else in the place of the database."""
    def found(folder):
        (folder / "study.db").unlink()
        make(folder)
    return found


FOUND = {
    "no file": replaced(lambda folder: None), "random bytes": rewritten(lambda data: os.urandom(50_000)),
    "a picture": rewritten(lambda data: b"\x89PNG\r\n\x1a\n" + b"text " * 3000),
    "half of it": rewritten(lambda data: data[:len(data) // 2]), "its first bytes": rewritten(lambda data: data[:50]),
    "zeroed pages": rewritten(lambda data: data[:4096] + bytes(len(data) - 4096)),
    "newer": changed("PRAGMA user_version = 99"), "older": changed("PRAGMA user_version = 1"),
    "another program": replaced(changed("CREATE TABLE guests (name TEXT)")),
    "a folder": replaced(lambda folder: (folder / "study.db").mkdir()),
    "a missing table": changed("DROP TABLE messages")}
VERSIONS = {"newer": "made by a newer madplug", "older": "made by an older madplug"}


@pytest.mark.parametrize("found", FOUND)
def test_what_is_not_a_study_is_a_message_when_it_is_opened_or_read(folder, found):
    FOUND[found](folder)
    with pytest.raises(UserError) as refused:
        read_all(folder)
    assert str(folder) in str(refused.value)
    assert VERSIONS.get(found, "study.db") in str(refused.value)


@pytest.mark.parametrize("found", sorted(FOUND.keys() - {"no file", "half of it", "zeroed pages"}))
def test_what_is_not_a_study_is_not_written_to(folder, found):
    FOUND[found](folder)
    before = (folder / "study.db").read_bytes() if (folder / "study.db").is_file() else None
    with pytest.raises(UserError, match="study"):
        open_recorder(folder)
    assert before is None or (folder / "study.db").read_bytes() == before


# Every command

@pytest.fixture
def run(write, program, tmp_path):
    """The directory of a study that was run."""
    write()
    assert program("run", "study.toml", "--quiet").returncode == 0
    return tmp_path / "runs/study"


@pytest.mark.parametrize("found", ["random bytes", "half of it", "newer"])
def test_running_has_a_message_for_what_is_not_a_study(run, program, found):
    FOUND[found](run)
    done = program("run", "study.toml")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert "runs/study" in done.stderr


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_record_is_a_message_that_names_the_debate(folder, hostile):
    change(folder, HOSTILE[hostile])
    with open_study(folder) as study:
        with pytest.raises(UserError, match=r"the record of cell 'c', repeat 0, sample 'q' cannot be read"):
            list(study.debates())
        assert study.debate(DebateId("c", 0, "r")) == ended("r")


@pytest.mark.parametrize("column", ["calls", "seconds", "decided", "rounds", "cost_usd", "error"])
def test_hostile_figures_are_a_message_that_names_the_debate(folder, column):
    change(folder, f"UPDATE debates SET {column} = x'00' WHERE sample = 'q'")
    with open_study(folder) as study, pytest.raises(UserError, match=r"repeat 0, sample 'q' cannot be read"):
        list(study.figures())


@pytest.mark.parametrize(("column", "value"), [
    ("at", "'soon'"), ("at", "1e300"), ("seconds", "9e999"), ("cost_usd", "-9e999"), ("retries", "'x'"),
    ("repeat", "x'00'"), ("purpose", "x'00'"), ("contents.text", "x'00'"), ("contents.raw", "'{'"),
    ("contents.raw", "'[1]'"), ("contents.logprobs", "'7'"), ("contents.request", "'{'")])
def test_hostile_values_of_a_call_are_a_message_that_names_the_call(folder, column, value):
    table, _, column = column.rpartition(".")
    change(folder, f"UPDATE {table or 'calls'} SET {column} = {value}")
    with open_study(folder) as study:
        for keys in (None, [b"k" * 16]):
            with pytest.raises(UserError, match=r"the record of the call 6b6b\w+ cannot be read"):
                list(study.calls(keys=keys))


# A foreign directory

@pytest.mark.parametrize("statement", [
    "CREATE TRIGGER t AFTER INSERT ON calls BEGIN DELETE FROM debates; END",
    "CREATE INDEX i ON debates (abs(repeat))",
    "ALTER TABLE debates ADD COLUMN more TEXT AS (hex(zeroblob(100000000)))",
    "ALTER TABLE messages RENAME TO messages_1"])
def test_a_schema_that_madplug_did_not_make_is_refused(folder, statement):
    change(folder, statement)
    for opened in (open_study, open_recorder):
        with pytest.raises(UserError, match="is not as madplug made it"):
            opened(folder)


def test_a_view_in_the_place_of_a_table_is_not_read(folder):
    change(folder, "ALTER TABLE problems RENAME TO p", "CREATE VIEW problems AS WITH RECURSIVE n (i) AS (SELECT 1 UNION"
           " ALL SELECT i + 1 FROM n) SELECT i AS at, 'x' AS text FROM n")
    with pytest.raises(UserError, match="'problems' is missing, changed or added"):
        open_study(folder)


def test_a_view_that_a_user_added_for_looking_at_the_study_is_left_alone(folder):
    change(folder, "CREATE VIEW mine AS SELECT cell, error FROM debates")
    assert len(read_all(folder)[1]) == 3


def test_reading_changes_no_byte(folder):
    before = (folder / "study.db").read_bytes()
    with open_study(folder) as study:
        list(study.debates())
        list(study.calls())
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            study._db.execute("DELETE FROM debates")
    assert (folder / "study.db").read_bytes() == before


# Read-only

READ = """
import os, sys
import madplug.config, madplug.store.reading, pydantic.dataclasses  # while files may still be read
from madplug.store import open_study
if os.getuid() == 0:
    os.setuid(65534)
with open_study(sys.argv[1]) as study:
    print(len(list(study.debates())))
"""


def read_without_writing(folder):
    """Read the study as a user who may not write to its directory."""
    with tempfile.TemporaryDirectory() as parent:  # pytest's own are closed to other users
        place = Path(parent) / "study"
        shutil.copytree(folder, place)
        for path in (*place.iterdir(), place):
            path.chmod(0o555 if path.is_dir() else 0o444)
        Path(parent).chmod(0o755)
        try:
            return subprocess.run([sys.executable, "-c", READ, str(place)], capture_output=True, text=True, check=False)
        finally:
            place.chmod(0o755)


def test_a_study_on_a_disk_that_cannot_be_written_to_is_read(folder):
    assert {p.name for p in folder.iterdir()} == {"study.db", "study.lock"}
    done = read_without_writing(folder)
    assert done.stdout.strip() == "3", done.stderr


@pytest.mark.parametrize("index", [True, False])
def test_a_killed_study_on_such_a_disk_is_read_with_all_that_it_had_or_refused(tmp_path, index):
    recorder = open_recorder(tmp_path / "live")
    record(recorder, ended("q"), ended("r"))
    shutil.copytree(tmp_path / "live", tmp_path / "killed")  # as a kill leaves it: with its write-ahead file
    recorder.close()
    assert (tmp_path / "killed/study.db-wal").stat().st_size
    if not index:
        (tmp_path / "killed/study.db-shm").unlink()
    done = read_without_writing(tmp_path / "killed")
    assert done.stdout.strip() == "2" or "copy the directory to a disk that can be written to" in done.stderr


# In use

OPEN = """
import sys
from madplug import UserError
from madplug.store import open_recorder
try:
    recorder = open_recorder(sys.argv[1])
except UserError as error:
    print(error, flush=True)
    sys.exit(2)
print("open", flush=True)
sys.stdin.read()
"""


def open_elsewhere(folder):
    """Another process that opens a study for writing, and what it says."""
    process = subprocess.Popen([sys.executable, "-c", OPEN, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True)
    return process, process.stdout.readline()


@pytest.mark.parametrize("between", ["nothing", "remove", "replace", "move", "link"])
def test_two_processes_never_write_to_one_study(tmp_path, between):
    folder = place = tmp_path / "study"
    process, said = open_elsewhere(folder)
    try:
        assert said == "open\n"
        if between in ("remove", "replace"):
            (folder / "study.lock").unlink()
        if between == "replace":
            (folder / "study.lock").write_bytes(b"")
        if between == "move":
            place = folder.rename(tmp_path / "elsewhere")
        if between == "link":
            place = tmp_path / "link"
            place.symlink_to(folder)
        second, refused = open_elsewhere(place)
        second.communicate()
        assert "another process is running this study" in refused
        with pytest.raises(UserError, match="another process is running this study"):
            open_recorder(place)
    finally:
        process.communicate()
    open_recorder(place).close()


def test_one_process_does_not_open_a_study_twice_for_writing(tmp_path):
    recorder = open_recorder(tmp_path)
    with pytest.raises(UserError, match="another process is running this study"):
        open_recorder(tmp_path)
    open_study(tmp_path).close()  # which must not release the lock
    process, refused = open_elsewhere(tmp_path)
    process.communicate()
    assert "another process" in refused
    recorder.close()


# Taken away while it runs

@pytest.mark.parametrize("away", ["delete", "replace", "move", "wal"])
def test_a_study_that_is_taken_away_while_it_runs_is_noticed_by_the_next_commit(tmp_path, away):
    folder = tmp_path / "study"
    recorder = open_recorder(folder)
    record(recorder, ended("q"))
    if away == "delete":
        (folder / "study.db").unlink()
    if away == "replace":
        shutil.copy(folder / "study.db", tmp_path / "copy")
        (tmp_path / "copy").replace(folder / "study.db")
    if away == "move":
        folder.rename(tmp_path / "elsewhere")
    if away == "wal":
        (folder / "study.db-wal").unlink()
    for _ in range(2):  # and from then on
        with pytest.raises(StudyError, match="was deleted, moved or replaced while the study was running"):
            record(recorder, calls=[b"k"])
    with pytest.raises(StudyError, match="was deleted"):
        recorder.start_debate(ID, Sample("q", "?"), ())
    recorder.close()


# What reading costs

def test_following_reads_a_handful_of_rows_while_nothing_is_new(tmp_path):
    """If this fails: `since` looks through what it has told before."""
    recorder = open_recorder(tmp_path)
    record(recorder, *(ended(f"q{i:04}") for i in range(2000)), calls=[i.to_bytes(4, "big") for i in range(2000)])
    with open_study(tmp_path) as study:
        cursor, steps = study.since()[1], []
        study._db.set_progress_handler(lambda: steps.append(1), 1)
        changes, cursor = study.since(cursor)
        assert (changes.debates, changes.calls) == ({}, 0)
        assert len(steps) < 100  # of SQLite's virtual machine
        steps.clear()
        record(recorder, ended("one more"))
        assert list(study.since(cursor)[0].debates) == [DebateId("c", 0, "one more")]
        assert len(steps) < 300
    recorder.close()


def test_debates_are_read_one_at_a_time(tmp_path):
    """If this fails: reading gathers what it should stream, or sorts what an index has in order."""
    recorder = open_recorder(tmp_path)
    record(recorder, *(ended(f"q{i:04}") for i in range(2000)))
    with open_study(tmp_path) as study:
        steps = []
        study._db.set_progress_handler(lambda: steps.append(1), 1)
        assert next(study.debates("c")).sample.id == "q0000"
        assert len(steps) < 300
    recorder.close()
