"""What the tests of the host share: a plugin of their own, run files, and the program as a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)  # under nohup: programs that tests start would ignore it, too
KIT = Path(__file__).parent / "kit"

sys.path.insert(0, str(KIT))  # before the tests are collected: they import from it


@pytest.fixture(autouse=True, scope="session")
def state(tmp_path_factory):
    """What the user has begun is remembered in a place of the tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))
        yield


@pytest.fixture(autouse=True)
def kit(monkeypatch):
    """The plugin `kit` is installed, here and in child processes."""
    monkeypatch.syspath_prepend(str(KIT))
    monkeypatch.setenv("PYTHONPATH", str(KIT))
    for name in [n for n in os.environ if n.startswith("MADPLUG_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def write(tmp_path):
    """Write a run file and get its path."""

    from tests_support import RUN

    def write(text: str = "", name: str = "study.toml") -> Path:
        path = tmp_path / name
        path.write_text(text or RUN, encoding="utf-8")
        return path

    return write


@pytest.fixture
def madplug(tmp_path):
    """Run the program in a folder of its own: `madplug("run", file)`."""

    def madplug(*words: object, **more: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "madplug", *map(str, words)], cwd=tmp_path, text=True,
                              capture_output=True, timeout=120, check=False, **more)

    return madplug


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Like `madplug`, but in this process, which is ten times faster."""
    from click.testing import CliRunner

    from madplug.cli.program import main

    monkeypatch.chdir(tmp_path)

    def program(*words: object) -> subprocess.CompletedProcess[str]:
        done = CliRunner().invoke(main, list(map(str, words)))
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)

    return program
