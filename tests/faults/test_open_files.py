"""A study in a process that may open few files."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")


def run_with(limit, file, folder):
    """Run a study under a limit of open files."""
    words = ["run", str(file), "--quiet", "--output", str(folder)]
    return subprocess.run(["sh", "-c", f'ulimit {limit} && exec "$@"', "sh", sys.executable, "-m", "madplug", *words],
                          capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("limit", [10, 15, 26])
def test_a_limit_that_is_too_low_for_a_study_is_an_error_that_says_so(write, tmp_path, limit):
    done = run_with(f"-n {limit}", write(), tmp_path / "results")
    assert done.returncode == 2
    assert done.stderr == (f"madplug: too few files can be opened for a study: this process may have {limit} open, and "
                           "30 are needed; raise the limit, as with `ulimit -n 1024`\n")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("limit", ["-n 64", "-S -n 15"])
def test_a_study_runs_within_a_low_limit_or_raises_it_where_it_may(write, tmp_path, limit):
    done = run_with(limit, write(), tmp_path / "results")
    assert (done.returncode, done.stderr) == (0, "")
