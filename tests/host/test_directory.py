"""The directory of a study: nothing of anybody else's is overwritten, and a killed study can be read."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from tests_support import counts

from madplug import UserError
from madplug.store import open_study


@pytest.mark.parametrize("name", ["notes.txt", "manifest.json", "study.toml", "summary.json"])
def test_a_directory_with_other_files_and_no_study_is_refused(program, write, tmp_path, name):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / name).write_text("precious")
    done = program("run", write(), "--output", folder)
    assert done.returncode == 2
    assert f"is not empty ('{name}') and has no study in it" in done.stderr
    assert [(p.name, p.read_text()) for p in folder.iterdir()] == [(name, "precious")]


def test_an_empty_directory_is_taken(program, write, tmp_path):
    (tmp_path / "empty").mkdir()
    assert program("run", write(), "--output", "empty").returncode == 0


@pytest.mark.parametrize("text", ["{", "[]", "null", '{"runs": []}', '{"components": {"a": 1}, "runs": []}', "\x00",
                                  "[" * 100_000,
                                  '{"components": {"a": {"distribution": "d", "version": 7}}, "runs": []}'])
def test_a_manifest_that_is_none_is_a_message(program, write, tmp_path, text):
    program("run", write())
    path = tmp_path / "runs/study/manifest.json"
    path.write_text(text)
    done = program("run", write())
    assert done.returncode == 2
    assert "manifest.json: is not the manifest of a study" in done.stderr
    assert "Traceback" not in done.stderr
    assert path.read_text() == text


def test_a_study_that_began_beside_its_run_file_is_told_where_it_begins_anew(program, write, tmp_path, monkeypatch):
    file = write()
    told = program("run", file).stderr
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert program("run", file).stderr.removesuffix(told) == (
        f"runs/study is a new study; the one beside the run file goes on with --output {tmp_path}/runs/study\n")


def test_a_killed_study_can_be_read_as_far_as_it_went(write, tmp_path):
    process = subprocess.Popen([sys.executable, "-m", "madplug", "run", write(), "--set", "models.m.latency=0.3",
                                "--set", "dataset.size=3", "--set", "debate.rounds=50"], cwd=tmp_path,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    folder = tmp_path / "runs" / "study"
    end = time.monotonic() + 60
    found = []
    while sum(len(d.messages) for d in found) < 8:
        assert time.monotonic() < end
        time.sleep(0.05)
        if (folder / "study.db").is_file():
            with suppress(UserError), open_study(folder) as study:  # it may have no table yet
                found = list(study.debates())
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with open_study(folder) as study:
        debates = list(study.debates())
        assert all(d.decision is None and d.error is None and len(d.agents) == 2 for d in debates)
        texts = {row["key"]: row["text"] for row in study.calls()}
        assert all(texts[m.calls[0]] == m.content for d in debates for m in d.messages)
        assert sum(len(d.messages) for d in debates) >= 8


def test_an_observer_is_added_to_a_half_finished_study(program, write):
    file = write()
    assert program("run", file, "--set", "limits.calls=13").returncode == 3
    left = 6 - counts()["done"]
    done = program("run", file, "--set", 'observers=["kit.starts"]')
    assert (done.returncode, done.stderr.count("started q")) == (0, left)
    assert program("run", file).returncode == 0
