"""A small study over HTTP, and what is compared of two runs of it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from madplug.cli.launch import launch
from madplug.config import load
from madplug.store import open_study

RUN = """
name = "study"
[dataset]
use = "kit.numbered"
size = 8
[models.m]
use = "openai.chat"
model = "fake"
[debate]
paradigm = "kit.pair"
[[metrics]]
use = "kit.right"
"""
_OF_ONE_RUN = {"seconds", "retries", "tokens", "calls", "cost_usd", "usage", "started", "pid", "at", "runs", "paid",
               "estimated"}
"""What two runs of a study need not agree on: how long they took, and what an endpoint says it counted."""


def run(folder: Path, url: str, *settings: str, text: str = RUN, **options: Any) -> int:
    """Run the study in a directory, or resume it; the exit status."""
    file = folder.with_suffix(".toml")
    file.write_text(text, encoding="utf-8")
    given = [f"models.m.{name}={json.dumps(value)}" for name, value in {"base_url": url, **options}.items()]
    return launch(load(file, (*given, *settings)), folder, quiet=True)


def start(folder: Path, url: str, *settings: str) -> subprocess.Popen[str]:
    """`madplug run` of the study, as a process."""
    folder.with_suffix(".toml").write_text(RUN, encoding="utf-8")
    words = [word for setting in (f'models.m.base_url="{url}"', *settings) for word in ("--set", setting)]
    return subprocess.Popen([sys.executable, "-m", "madplug", "run", folder.with_suffix(".toml"), *words, "--output",
                             folder], cwd=folder.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def debates(folder: Path) -> dict[str, dict[str, Any]]:
    """The debates that ended, by sample and repeat, without what differs from run to run."""
    with open_study(folder) as study:
        found = [json.loads(line) for line in study.records()]
    return {f"{d['sample']['id']} {d['repeat']}": _lasting(d) for d in found}


def summary(folder: Path) -> Any:
    """`summary.json`, without what differs from run to run."""
    return _lasting(json.loads((folder / "summary.json").read_text(encoding="utf-8")))


def calls(folder: Path) -> list[Mapping[str, Any]]:
    """The model calls on record."""
    with open_study(folder) as study:
        return list(study.calls())


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _lasting(inner) for name, inner in value.items() if name not in _OF_ONE_RUN}
    return [_lasting(inner) for inner in value] if isinstance(value, list) else value


class EndpointProcess:
    """An endpoint in a process of its own, which can be killed and started again on the same port."""

    def __init__(self, folder: Path, *options: object) -> None:
        self.ledger = folder / "ledger.txt"
        self._port_file = folder / "port.txt"
        self._options = ["--ledger", self.ledger, *options]
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """The address before `/chat/completions`."""
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        """Start it; returns when it listens."""
        self._port_file.unlink(missing_ok=True)
        command = [sys.executable, "-m", "madplug_testing.endpoint", "--port", self.port, "--port-file",
                   self._port_file, *self._options]
        self._process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL)
        wait_until(self._port_file.exists)
        self.port = int(self._port_file.read_text())

    def __enter__(self) -> EndpointProcess:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """Kill it without a warning."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def answered(self) -> list[str]:
        """The hash of every request that it answered, over all its lives."""
        return self.ledger.read_text().split() if self.ledger.exists() else []


def wait_until(true: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait for something to become true. Raises `TimeoutError`."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(f"{true} did not become true within {seconds:g} s")
        time.sleep(0.01)
