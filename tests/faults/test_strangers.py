"""The directory of a study that somebody else made: data to those who read it; to run it, the user is asked once."""

import os
import pty
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from tests_support import RUN

from madplug import UserError, run
from madplug.cli.launch import launch
from madplug.config import load
from madplug.study.files import read_text
from madplug.study.trust import remember

MAGIC = bytes.fromhex("d9d505f920a163d7")
"""How SQLite's journals begin, and how those end that name another one."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished study."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "study.toml").write_text(RUN)
    assert launch(load(folder / "study.toml"), folder / "study", quiet=True) == 0
    return folder / "study"


@pytest.fixture
def foreign(finished, tmp_path):
    """A study as it came from somebody else, and that the user has agreed to run."""
    folder = shutil.copytree(finished, tmp_path / "foreign")
    remember(folder)
    return folder


def change(folder, statement, *values):
    """Change the records of a study."""
    with closing(sqlite3.connect(folder / "study.db")) as db, db:
        db.execute(statement, values)


# What lies in it

def test_a_directory_may_be_reached_by_a_link_and_one_to_itself_is_no_study(program, foreign, tmp_path):
    (tmp_path / "link").symlink_to(foreign)
    assert program("rescore", "link", "--quiet").returncode == 0
    (tmp_path / "loop").symlink_to("loop")
    for words in ("report loop", "view loop --no-browser", "merge loop --output merged", "status loop"):
        done = program(*words.split())
        assert (done.returncode, "no study here" in done.stderr) == (2, True), words


def make_journal(database, named):
    """A journal of SQLite that says that it belongs together with the journal of another name."""
    header, text = database.read_bytes()[:32], str(named).encode()
    journal = MAGIC + bytes(4) + bytes(4) + header[28:32] + (512).to_bytes(4, "big") + bytes(2) + header[16:18]
    ends = (2**30 // int.from_bytes(header[16:18], "big") + 1).to_bytes(4, "big") + text
    ends += len(text).to_bytes(4, "big") + sum(text).to_bytes(4, "big") + MAGIC
    database.with_name(f"{database.name}-journal").write_bytes(journal.ljust(512, b"\0") + ends)


def test_reading_obeys_no_journal(program, write, foreign, tmp_path):
    """Which would delete a file of the user's."""
    (tmp_path / "precious.txt").write_text("precious")
    assert program("run", write(), "--shard", "1/1", "--output", "shard").returncode == 0
    for words, status in (("status foreign", 0), ("merge shard --output merged", 2)):
        make_journal(tmp_path / words.split()[1] / "study.db", tmp_path / "precious.txt")
        done = program(*words.split())
        assert (done.returncode, (tmp_path / "precious.txt").exists()) == (status, True), done.stderr
    assert "cannot be merged" in done.stderr


@pytest.mark.parametrize("name", ["manifest.json", "summary.json"])
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/etc/passwd")])
def test_neither_a_pipe_nor_a_link_is_read(foreign, name, make):
    (foreign / name).unlink()
    make(foreign / name)
    with pytest.raises(OSError, match=r"regular file|[Ss]ymbolic|links"):
        read_text(foreign / name)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink(os.devnull, path)])
@pytest.mark.parametrize("name", ["study.db-wal", "study.db-shm", "study.db-journal"])
def test_nothing_but_regular_files_is_opened_to_read_it(foreign, name, make):
    (foreign / name).unlink(missing_ok=True)
    make(foreign / name)
    command = [sys.executable, "-c", "import sys; from madplug.store import open_study; open_study(sys.argv[1])"]
    done = subprocess.run([*command, foreign], text=True, capture_output=True, timeout=60, check=False)
    assert f"{name} is not a regular file" in done.stderr


# The question

MINE = """
with open("ran", "a") as file:
    file.write("x")
from madplug import Metric
class Half(Metric):
    def score(self, debate, references):
        return 0.5
"""
WAYS = [("rescore", "DIR"), ("decide", "DIR", "--decision", "kit.last_round", "--output", "again"),
        ("run", "DIR/study.toml", "--output", "again"), ("run", "DIR/study.toml", "--output", "DIR")]


@pytest.fixture
def theirs(foreign, tmp_path):
    """A study of somebody else that names a local file, and a model at an address of this machine."""
    (tmp_path / "mine.py").write_text(MINE)
    lines = (foreign / "study.toml").read_text().replace('"kit.right"', f'"{tmp_path}/mine.py:Half"').splitlines()
    begins = lines.index('use = "kit.hash"')
    ends = next(i for i in range(begins, len(lines) + 1) if i == len(lines) or lines[i].startswith("["))
    model = 'use = "openai.chat"\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\nattempts = 1'
    (foreign / "study.toml").write_text("\n".join([*lines[:begins], model, *lines[ends:]]))
    return foreign


@pytest.mark.parametrize("way", WAYS)
def test_a_study_that_cannot_be_read_is_refused_without_a_question(program, theirs, way):
    change(theirs, "PRAGMA user_version = 1")
    done = program(*(word.replace("DIR", str(theirs)) for word in way))
    assert (done.returncode, "made by an older madplug" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("way", WAYS)
def test_without_a_terminal_what_others_began_is_refused_before_anything_is_executed(program, theirs, tmp_path, way):
    done = program(*(word.replace("DIR", str(theirs)) for word in way))
    assert (done.returncode, (tmp_path / "ran").exists()) == (2, False)
    for words in ("you did not begin this study on this machine", f"belong to {theirs.owner()}",
                  "the addresses http://127.0.0.1:9/v1; ", f"the local files {tmp_path}/mine.py:Half; ",
                  "the components ", "openai.chat", "if you trust it, add --yes"):
        assert words in done.stderr


def test_what_the_directory_names_is_asked_about_also_where_another_run_file_is_run(program, write, theirs, tmp_path):
    done = program("run", write(), "--output", theirs)
    assert done.returncode == 2
    assert f"the local files {tmp_path}/mine.py:Half; " in done.stderr


@pytest.mark.parametrize("way", WAYS[:2])
def test_agreeing_once_is_enough(program, theirs, tmp_path, way):
    words = [word.replace("DIR", str(theirs)) for word in way]
    assert "add --yes" not in program(*words, "--yes").stderr
    assert (tmp_path / "ran").exists()
    assert "add --yes" not in program(*words).stderr
    (theirs / "study.toml").write_text((theirs / "study.toml").read_text().replace("127.0.0.1:9", "127.0.0.1:8"))
    assert "add --yes" in program(*words).stderr


@pytest.mark.parametrize(("answer", "status"), [(b"n\n", 2), (b"y\n", 0)])
def test_on_a_terminal_the_user_is_asked(foreign, tmp_path, monkeypatch, answer, status):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    done = subprocess.run([sys.executable, "-m", "madplug", "rescore", foreign], stdin=theirs, capture_output=True,
                          text=True, timeout=120, check=False)
    os.close(ours)
    os.close(theirs)
    assert (done.returncode, "Go on? [y/N]" in done.stderr) == (status, True)


def test_from_python_what_others_began_is_refused_too(theirs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="yes=True"):
        run(theirs / "study.toml", output="again")
    assert not (tmp_path / "ran").exists()


def test_what_the_user_ran_is_run_and_scored_again_without_asking(program, write, tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    file = write(RUN + '[[metrics]]\nuse = "./mine.py:Half"\n')
    assert program("run", file).returncode == 0
    (tmp_path / "runs" / "study").rename(tmp_path / "moved")
    assert program("run", file, "--output", "moved").returncode == 0
    assert program("rescore", "moved").returncode == 0
    assert (tmp_path / "ran").read_text() == "x", "one module, loaded once by this process"


def test_without_a_home_every_study_is_asked_about(program, write, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert program("run", write()).returncode == 0
    assert program("rescore", "runs/study").returncode == 2
    assert program("rescore", "runs/study", "--yes").returncode == 0


# Damage

def test_a_study_toml_that_madplug_did_not_write_is_told(program, foreign):
    for text in ("x = 1", "cells = 5", "[[cells]]\nname = 'a'", "[[cells]]\ndebate = {}"):
        (foreign / "study.toml").write_text(text)
        done = program("rescore", foreign, "--yes")
        assert (done.returncode, "study.toml: is not what madplug writes there" in done.stderr) == (2, True), text


def test_a_lock_that_is_no_database_is_told(program, foreign):
    (foreign / "study.lock").write_bytes(b"random" * 999)
    done = program("rescore", foreign)
    assert (done.returncode, "study.lock: file is not a database; remove it" in done.stderr) == (2, True)


def test_a_summary_that_cannot_be_written_is_told(program, foreign):
    (foreign / "summary.json.part").mkdir()
    done = program("rescore", foreign, "--quiet")
    assert (done.returncode, "summary.json cannot be written" in done.stderr) == (1, True)


@pytest.mark.parametrize(("name", "value"), [
    ("identity", "[]"), ("identity", '"x"'), ("identity", '{"cells": 5}'), ("identity", '{"cells": {"main": 3}}'),
    ("known_cells", "[1]"), ("scope", "5"), ("scope", '{"cells": 5}')])
def test_a_fact_of_another_shape_is_told(program, write, foreign, name, value):
    change(foreign, "INSERT OR REPLACE INTO facts VALUES (?, ?)", name, value)
    done = program("run", write(), "--output", foreign)
    assert done.returncode == 2
    assert f"study.db: the record of the fact '{name}' cannot be read" in done.stderr


@pytest.mark.parametrize("damage", [
    "contents SET text = 5", "contents SET text = x'ff'", "calls SET prompt = 'many'", "calls SET cost_usd = 'x'",
    "calls SET retries = 'x'", "contents SET raw = '{'", "contents SET logprobs = '5'"])
def test_calls_of_a_damaged_study_are_not_reused(program, write, foreign, damage):
    change(foreign, f"UPDATE {damage}")
    done = program("run", write(f'reuse = ["{foreign}"]\n{RUN}'), "--quiet")
    assert done.returncode == (0 if damage == "contents SET text = 5" else 1)  # the column makes it a text
    assert done.returncode == 0 or "study.db: the record of the call" in done.stderr


@pytest.mark.parametrize("damage", [
    "calls SET cost_usd = 9e999", "calls SET seconds = 9e999", "debates SET seconds = 9e999",
    "debates SET metrics = '{\"kit.right\": NaN}'", "debates SET record = record || '}'",
    "debates SET repeat = 'first'", "debates SET sample = x'00'"])
def test_what_is_no_number_or_no_json_is_told_and_not_passed_on(program, foreign, damage):
    change(foreign, f"UPDATE {damage} WHERE number = (SELECT max(number) FROM {damage.split()[0]})")
    said = [program(words[0], foreign, *words[1:]) for words in (
        ["status", "--json"], ["read"], ["export", "--output", "all.jsonl"], ["report", "--output", "report"],
        ["rescore", "--quiet"])]
    assert not any(word in done.stdout for done in said for word in ("NaN", "Infinity"))
    assert any("study.db: the record of " in done.stderr or "cannot be read" in done.stderr for done in said)
