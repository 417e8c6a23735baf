"""A disk without room leaves whole files or none, and says so."""

import shutil
import subprocess
import sys

import pytest
from tests_support import RUN

import madplug

LIMITED = """
import resource
from madplug.cli.program import main
resource.setrlimit(resource.RLIMIT_FSIZE, (34_000, 34_000))
main()
"""  # SQLite needs 32 KiB to read


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """A study of which no export fits on the disk."""
    folder = tmp_path_factory.mktemp("long")
    (folder / "study.toml").write_text(RUN)
    done = madplug.run(folder / "study.toml", settings={"dataset.size": 400}, output=folder / "study", quiet=True)
    return done.folder


@pytest.mark.parametrize(("words", "option"), [
    (("export", "study", "--output", "new/it.csv"), "--output"),
    (("report", "study", "--figures", "--output", "new"), "--output"),
    (("view", "study", "--export", "new/it.html"), "--export"), (("view", "study", "--export", "new"), "--export")])
def test_a_full_disk_is_a_message_and_leaves_what_was_there(long, tmp_path, words, option):
    shutil.copytree(long, tmp_path / "study")
    (tmp_path / "new").mkdir()
    old = [tmp_path / "new" / name for name in ("it.csv", "it.html", "report.html")]
    for file in old if words[-1] != "new" or words[0] == "report" else []:  # pages go only into an empty directory
        file.write_text("old")
    done = subprocess.run([sys.executable, "-B", "-c", LIMITED, *words], cwd=tmp_path, text=True, capture_output=True,
                          check=False)
    assert done.returncode == 2
    assert f"{option} new" in done.stderr
    assert "cannot be written: File too large" in done.stderr
    assert {file.read_text() for file in old if file.exists()} <= {"old"}
    assert not list(tmp_path.rglob("*.part"))


def test_a_directory_in_which_no_file_can_be_opened_is_a_message(program, write, tmp_path):
    (tmp_path / "study/study.lock").mkdir(parents=True)
    done = program("run", write(RUN), "--output", "study")
    assert done.returncode == 2
    assert "study.lock: unable to open database file" in done.stderr
