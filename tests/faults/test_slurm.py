"""The example of a job array: with a scheduler that does what SLURM does with its arguments, and without one."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from madplug_testing.endpoint import running_endpoint
from tests.faults import studies

FOLDER = Path(__file__).parents[2] / "examples" / "cluster"
SBATCH = """#!/bin/bash
# Runs an array at once, one task after the other, and what depends on it after that.
echo "$*" >> "$(dirname "$0")/submitted.txt"
while [[ ${1:-} == --* ]]; do
    case $1 in
        --array=*) tasks=${1#--array=};;
        --wrap=*) exec sh -c "${1#--wrap=}";;
    esac
    shift
done
script=$1; shift
for task in $(seq "${tasks%-*}" "${tasks#*-}"); do
    SLURM_ARRAY_TASK_ID=$task bash "$script" "$@" >&2
done
echo 4711
"""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A folder with `madplug`, before others on the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    write(folder / "madplug", f'#!/bin/sh\nexec "{sys.executable}" -m madplug "$@"\n')
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def write(path, text):
    path.write_text(text)
    path.chmod(0o755)


def test_an_array_of_tasks_makes_the_study_in_one_piece(programs, tmp_path):
    write(programs / "sbatch", SBATCH)
    with running_endpoint(text="{letter}") as endpoint:
        assert studies.run(tmp_path / "study", endpoint.url) == 0
        text = studies.RUN.replace('model = "fake"', f'model = "fake"\nbase_url = "{endpoint.url}"')
        (tmp_path / "array.toml").write_text(text)
        subprocess.run(["bash", FOLDER / "submit.sh", tmp_path / "array.toml", tmp_path / "out", "2"], check=True)
    assert studies.debates(tmp_path / "out" / "merged") == studies.debates(tmp_path / "study")
    array, merge = (programs / "submitted.txt").read_text().splitlines()
    assert array.startswith("--parsable --array=1-2 ")
    assert merge.startswith("--dependency=afterany:4711 --wrap=madplug merge ")


def test_what_is_asked_of_the_scheduler_stands_before_the_first_command():
    lines = (FOLDER / "study.sbatch").read_text().splitlines()
    assert lines[0] == "#!/bin/bash"
    first = next(i for i, line in enumerate(lines) if line and not line.startswith("#"))
    asked = [i for i, line in enumerate(lines) if line.startswith("#SBATCH")]
    assert max(asked) < first
    assert all(re.fullmatch(r"#SBATCH --[a-z-]+(=[\w:@-]+)?( +# .*)?", lines[i]) for i in asked)


def test_a_task_whose_time_is_up_ends_by_itself_and_resumes(programs, tmp_path):
    with running_endpoint(text="{letter}", latency_ms=200) as endpoint:
        text = studies.RUN.replace('model = "fake"', f'model = "fake"\nmax_in_flight = 2\nbase_url = "{endpoint.url}"')
        (tmp_path / "study.toml").write_text(text)
        subprocess.run(["madplug", "run", "study.toml", "--prepare", "--output", "out/prepared", "--quiet"],
                       cwd=tmp_path, check=True)
        command = ["bash", FOLDER / "study.sbatch", "study.toml", "out", "1"]
        task = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "SLURM_ARRAY_TASK_ID": "1"})
        studies.wait_until(lambda: endpoint.stats()["ok"] > 2)
        task.send_signal(signal.SIGTERM)  # to the batch shell, which has become the program
        assert task.wait() == 130
        assert len(studies.calls(tmp_path / "out" / "shard-1")) == endpoint.stats()["ok"]
        endpoint.configure(latency_ms=0)
        subprocess.run(command, cwd=tmp_path, env={**os.environ, "SLURM_ARRAY_TASK_ID": "1"}, check=True)
    summary = json.loads((tmp_path / "out" / "shard-1" / "summary.json").read_text())
    assert (summary["status"], summary["cells"][0]["done"]) == ("finished", 8)
