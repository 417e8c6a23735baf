"""The directory of a study that somebody else made: nothing else is written to, and what it names is asked about."""

import os
import pty
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from click.testing import CliRunner
from tests_support import RUN

from madplug import UserError
from madplug.cli.program import main
from madplug.merge import merge
from madplug.study.trust import destinations

MAGIC = bytes.fromhex("d9d505f920a163d7")
"""How SQLite's journals begin, and how those end that name another one."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished study."""
    from madplug.cli.launch import launch
    from madplug.config import load

    folder = tmp_path_factory.mktemp("finished")
    (folder / "study.toml").write_text(RUN)
    assert launch(load(folder / "study.toml"), folder / "study", quiet=True) == 0
    return folder / "study"


@pytest.fixture
def foreign(finished, tmp_path):
    """A study as it came from somebody else."""
    return shutil.copytree(finished, tmp_path / "foreign")


@pytest.fixture
def precious(tmp_path):
    """A file of the user's."""
    path = tmp_path / "home" / "precious.txt"
    path.parent.mkdir()
    path.write_text("precious")
    return path


DATABASES = [f"study.{name}{ending}" for name in ("db", "lock") for ending in ("-wal", "-shm", "-journal")]


@pytest.mark.parametrize("name", [*DATABASES, "study.lock", "log.jsonl", "summary.json.part", "study.toml.part",
                                  "manifest.json.part", "summary.json"])
def test_no_link_is_followed(program, foreign, precious, name):
    (foreign / name).unlink(missing_ok=True)
    (foreign / name).symlink_to(precious)
    done = program("rescore", foreign, "--quiet")
    assert precious.read_text() == "precious"
    assert [path.name for path in precious.parent.iterdir()] == ["precious.txt"]
    assert done.returncode == 0 or name in done.stderr or "cannot be read" in done.stderr


def test_a_database_elsewhere_is_not_written_to(program, write, foreign, precious):
    precious.write_text("")
    (foreign / "study.db").unlink()
    (foreign / "study.db").symlink_to(precious)
    done = program("run", write(), "--output", foreign)
    assert (done.returncode, precious.read_text()) == (2, "")
    assert "study.db is a symbolic link; link the whole directory instead" in done.stderr


def test_a_directory_may_be_reached_by_a_link(program, foreign, tmp_path):
    (tmp_path / "link").symlink_to(foreign)
    assert program("rescore", tmp_path / "link", "--quiet").returncode == 0


def make_journal(database, named):
    """A journal of SQLite that says that it belongs together with the journal of another name."""
    header, text = database.read_bytes()[:32], str(named).encode()
    journal = MAGIC + bytes(4) + bytes(4) + header[28:32] + (512).to_bytes(4, "big") + bytes(2) + header[16:18]
    ends = (2**30 // int.from_bytes(header[16:18], "big") + 1).to_bytes(4, "big") + text
    ends += len(text).to_bytes(4, "big") + sum(text).to_bytes(4, "big") + MAGIC
    database.with_name(f"{database.name}-journal").write_bytes(journal.ljust(512, b"\0") + ends)


@pytest.mark.parametrize("name", ["study.db", "study.lock"])
def test_a_journal_cannot_have_a_file_deleted(program, foreign, precious, name):
    with closing(sqlite3.connect(foreign / name)) as db:
        db.execute("CREATE TABLE IF NOT EXISTS facts (name)")
        db.commit()
    make_journal(foreign / name, precious)
    assert program("status", foreign).returncode == 0
    done = program("rescore", foreign)
    assert precious.exists()
    assert done.returncode == 2
    assert f"{name}-journal refers to a file elsewhere" in done.stderr


def test_a_lock_that_is_no_database_is_told(program, foreign):
    (foreign / "study.lock").write_bytes(b"random" * 999)
    done = program("rescore", foreign)
    assert done.returncode == 2
    assert "study.lock: file is not a database; remove it" in done.stderr


@pytest.mark.parametrize("name", ["log.jsonl", "manifest.json", "study.lock", "summary.json.part"])
def test_a_pipe_is_not_waited_for(program, foreign, name):
    (foreign / name).unlink(missing_ok=True)
    os.mkfifo(foreign / name)
    done = program("rescore", foreign, "--quiet")
    assert done.returncode == (0 if name.endswith(".part") else 2)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink(os.devnull, path)])
@pytest.mark.parametrize("name", ["study.db-wal", "study.db-shm", "study.db-journal"])
def test_nothing_but_regular_files_is_opened_to_read_it(foreign, name, make):
    (foreign / name).unlink(missing_ok=True)
    make(foreign / name)
    command = [sys.executable, "-c", "import sys; from madplug.store import open_study; open_study(sys.argv[1])"]
    done = subprocess.run([*command, foreign], text=True, capture_output=True, timeout=60, check=False)
    assert f"{name} is not a regular file" in done.stderr


# What it names

REMOTE = ('use = "kit.hash"', 'use = "openai.chat"\nmodel = "m"\nbase_url = "https://elsewhere.example/v1"')
DECIDE = ("decide", "--decision", "kit.last_round", "--output", "again")


def change(folder, old, new):
    text = (folder / "study.toml").read_text()
    assert old in text
    (folder / "study.toml").write_text(text.replace(old, new))


@pytest.fixture
def elsewhere(foreign):
    """A study whose model is at another address."""
    lines = (foreign / "study.toml").read_text().splitlines()
    begins = lines.index('use = "kit.hash"')
    ends = next(i for i in range(begins, len(lines) + 1) if i == len(lines) or lines[i].startswith("["))
    (foreign / "study.toml").write_text("\n".join([*lines[:begins], *REMOTE[1].splitlines(), *lines[ends:]]))
    return foreign


@pytest.mark.parametrize("words", [("rescore",), DECIDE])
def test_no_key_is_sent_to_an_address_that_the_study_names_unless_the_user_agrees(program, elsewhere, words):
    done = program(words[0], elsewhere, *words[1:])
    assert done.returncode == 2
    assert ("it has openai.chat send requests to https://elsewhere.example/v1 with the key in OPENAI_API_KEY; if you "
            "trust it, add --yes") in done.stderr
    assert "--yes" not in program(words[0], elsewhere, *words[1:], "--yes").stderr


@pytest.mark.parametrize(("answer", "status"), [(b"n\n", 2), (b"y\n", 0)])
def test_on_a_terminal_the_user_is_asked(elsewhere, answer, status):
    ours, theirs = pty.openpty()
    os.write(ours, answer)
    words = (DECIDE[0], elsewhere, *DECIDE[1:-1], elsewhere.parent / "again")
    done = subprocess.run([sys.executable, "-m", "madplug", *map(str, words)], stdin=theirs, capture_output=True,
                          text=True, timeout=120, check=False)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == status
    assert "Go on? [y/N]" in done.stderr


def test_what_the_user_ran_is_done_without_asking(program, write, tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    assert program("run", write(RUN + '[[metrics]]\nuse = "./mine.py:Half"\n')).returncode == 0
    assert program("rescore", "runs/study").returncode == 0
    assert (tmp_path / "ran").read_text() == "x", "one module, loaded once by this process"


MINE = """
with open("ran", "a") as file:
    file.write("x")
from madplug import Metric
class Half(Metric):
    def score(self, debate, references):
        return 0.5
"""


def test_a_local_file_is_executed_only_if_the_user_agrees(program, foreign, tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    change(foreign, '"kit.right"', f'"{tmp_path}/mine.py:Half"')
    for words in (("rescore", foreign), ("decide", foreign, *DECIDE[1:])):
        done = program(*words)
        assert (done.returncode, (tmp_path / "ran").exists()) == (2, False)
        assert f"it executes {tmp_path}/mine.py; if you trust it, add --yes" in done.stderr
    assert program("rescore", foreign, "--yes").returncode == 0


@pytest.mark.parametrize("name", ["inspect.dataset", "dataset"])
def test_no_code_is_executed_that_an_option_names_unless_the_user_agrees(program, foreign, tmp_path, name):
    dataset = f'dataset = {{use = "{name}", source = "os:mkdir", args = {{path = "{tmp_path}/made"}}}}'
    lines = (foreign / "study.toml").read_text().splitlines()
    begins = lines.index("[cells.dataset]")
    ends = next(i for i in range(begins + 1, len(lines)) if lines[i].startswith("["))
    (foreign / "study.toml").write_text("\n".join([*lines[:begins], *lines[ends:]]).replace(
        "[[cells]]", f"[[cells]]\n{dataset}"))
    done = program("rescore", foreign)
    assert (done.returncode, (tmp_path / "made").exists()) == (2, False)
    assert "it executes what the options of inspect.dataset name; if you trust it, add --yes" in done.stderr


@pytest.mark.parametrize("path", ["/proc/self/cwd", "/dev/fd/3/..", "//proc/self/cwd", "/proc/1/root"])
def test_a_path_that_is_another_file_for_every_process_is_refused(program, foreign, tmp_path, path):
    (tmp_path / "mine.py").write_text(MINE)
    change(foreign, '"kit.right"', f'"{path}/mine.py:Half"')
    done = program("rescore", foreign, "--yes")
    assert (done.returncode, (tmp_path / "ran").exists()) == (2, False)
    assert "a different file for every process" in done.stderr


@pytest.mark.parametrize("text", ['observers = ["kit.cry"]', 'execution = "processes.pool"', 'reuse = ["/home"]'])
def test_what_madplug_does_not_write_is_refused(program, foreign, text):
    (foreign / "study.toml").write_text(f"{text}\n{(foreign / 'study.toml').read_text()}")
    done = program("rescore", foreign, "--yes")
    assert done.returncode == 2
    assert f"has '{text.split()[0]}', which madplug does not write there" in done.stderr


def test_to_merge_shards_of_others_executes_no_local_file_unasked(program, write, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE)
    file = write(RUN + '[[metrics]]\nuse = "./mine.py:Half"\n')
    assert program("run", file, "--shard", "1/1").returncode == 0
    [shard] = (tmp_path / "runs").iterdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    with pytest.raises(UserError, match="add --yes"):
        merge([shard], tmp_path / "merged", yes=False)
    assert (tmp_path / "ran").read_text() == "x"
    assert merge([shard], tmp_path / "merged", yes=True).left == 0


@pytest.mark.parametrize(("options", "sent"), [
    ({}, []), ({"base_url": "http://127.0.0.1:8000/v1"}, []), ({"base_url": "http://[::1]/v1"}, []),
    ({"base_url": "http://localhost:1/v1"}, []),
    ({"base_url": "http://10.0.0.1/v1"}, ["to http://10.0.0.1/v1 with the key in OPENAI_API_KEY"]),
    ({"base_url": "http://127.0.0.1.example/v1"}, ["to http://127.0.0.1.example/v1 with the key in OPENAI_API_KEY"]),
    ({"base_url": "http://0x7f.1/v1"}, ["to http://0x7f.1/v1 with the key in OPENAI_API_KEY"]),
    ({"api_key_env": "OTHER_SECRET"}, ["with the key in OTHER_SECRET"])])
def test_where_a_model_sends_keys_is_told(options, sent):
    from madplug_openai.chat import Chat

    found = destinations([Chat.from_slot(Chat.Options(model="m", **options), full_name="openai.chat")])
    assert found == [f"has openai.chat send requests {text}" for text in sent]


def test_without_a_home_every_study_is_somebody_elses(program, write, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    (tmp_path / "mine.py").write_text(MINE)
    assert program("run", write(RUN + '[[metrics]]\nuse = "./mine.py:Half"\n')).returncode == 0
    assert program("rescore", "runs/study").returncode == 2


FACTS = [("identity", "[]"), ("identity", '"x"'), ("identity", '{"cells": 5}'), ("known_cells", "[1]"), ("scope", "5"),
         ("scope", '{"cells": 5}'), ("identity", '{"cells": {"main": 3}}'), ("scored", '"x"'),
         ("scored", '{"main": 3}'), ("shard", "[1]"), ("shard", '{"number": "x"}')]


@pytest.mark.parametrize(("name", "value"), FACTS)
def test_a_fact_of_another_shape_is_told(program, write, foreign, name, value):
    with closing(sqlite3.connect(foreign / "study.db")) as db:
        db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))
        db.commit()
    done = program("run", write(), "--output", foreign)
    assert done.returncode == 2
    assert f"study.db: the record of the fact '{name}' cannot be read" in done.stderr


@pytest.mark.parametrize("change", ["text = 5", "text = x'ff'", "prompt = 'many'", "prompt = -5", "cost_usd = 'x'",
                                    "retries = 'x'", "raw = '{'", "logprobs = '5'"])
def test_calls_of_a_damaged_study_are_not_reused(program, write, foreign, change):
    with closing(sqlite3.connect(foreign / "study.db")) as db:
        db.execute(f"UPDATE calls SET {change}")
        db.commit()
    done = program("run", write(f'reuse = ["{foreign}"]\n{RUN}'), "--quiet")
    assert done.returncode == (0 if change == "text = 5" else 1)  # the column makes it a text
    assert done.returncode == 0 or "study.db: the record of the call" in done.stderr


def test_a_summary_that_cannot_be_written_is_told(program, foreign):
    (foreign / "summary.json.part").mkdir()
    done = program("rescore", foreign, "--quiet")
    assert done.returncode == 1
    assert "summary.json cannot be written" in done.stderr


def test_a_journal_beside_a_shard_is_told_and_deletes_nothing(program, write, tmp_path, precious):
    assert program("run", write(), "--shard", "1/1").returncode == 0
    [shard] = (tmp_path / "runs").iterdir()
    make_journal(shard / "study.db", precious)
    done = program("merge", shard, "--output", "merged")
    assert (done.returncode, precious.exists()) == (2, True)
    assert "cannot be merged" in done.stderr


@pytest.mark.parametrize("words", [["report"], ["view", "--no-browser"], ["merge", "--output", "merged"], ["status"]])
def test_a_link_to_itself_is_no_study(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    done = CliRunner().invoke(main, [words[0], "loop", *words[1:]])
    assert done.exit_code == 2
    assert "no study here" in done.stderr


NOT_FINITE = ["calls SET cost_usd = 9e999", "calls SET seconds = 9e999", "debates SET seconds = 9e999",
              "debates SET metrics = '{\"kit.right\": NaN}'", "debates SET record = record || '}'",
              "debates SET repeat = 'first'", "debates SET sample = x'00'"]


@pytest.mark.parametrize("change", NOT_FINITE)
def test_what_is_no_number_or_no_json_is_told_and_not_passed_on(foreign, tmp_path, monkeypatch, change):
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect(foreign / "study.db")) as db:
        db.execute(f"UPDATE {change} WHERE number = (SELECT max(number) FROM {change.split()[0]})")
        db.commit()
    told = []
    for words in (["status", foreign, "--json"], ["read", foreign], ["export", foreign, "--output", "all.jsonl"],
                  ["report", foreign, "--output", "report"], ["rescore", foreign, "--quiet"]):
        done = CliRunner().invoke(main, [str(word) for word in words])
        assert isinstance(done.exception, SystemExit | None), done.exc_info
        assert not any(word in done.stdout for word in ("NaN", "Infinity"))
        told.append("study.db: the record of " in done.stderr or "cannot be read" in done.stderr)
    assert any(told)
