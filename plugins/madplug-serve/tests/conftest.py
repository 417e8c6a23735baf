"""A server in a process of its own, with agents on a small endpoint."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from madplug_testing.endpoint import running_endpoint

KEY = "serve-key-0123456789"
STUDY = """
name = "served"
seed = 3
answers = "answers.choice"

[models.m]
use = "openai.chat"
model = "fake"
base_url = "{url}"
attempts = 2

[debate]
paradigm = "som.debate"
agents = 3
rounds = 2
{more}
"""


@dataclass
class Served:
    """A running server. It prints into the standard input of another process, as into `tee`."""

    process: subprocess.Popen
    folder: Path
    printed: subprocess.Popen
    printing: Path
    url: str = ""

    @property
    def text(self):
        """What it has printed."""
        return self.printing.read_text()

    def wait_for(self, pattern):
        """Wait until a line matches."""
        for _ in range(600):
            if found := re.search(pattern, self.text, re.MULTILINE):
                return found
            time.sleep(0.05)
        raise AssertionError(f"{pattern} was not printed in:\n{self.text}")

    def stop(self, number=signal.SIGTERM):
        """Stop the server; its exit status."""
        self.process.send_signal(number)
        status = self.process.wait(60)
        self.printed.wait(10)
        return status


@contextmanager
def start(folder, endpoint, *options, more="", environ=None):
    """Serve a study."""
    path, printing = folder / "served.toml", folder / "printed.txt"
    path.write_text(STUDY.format(url=endpoint.url, more=more))
    command = [sys.executable, "-m", "madplug", "serve", str(path), "--port", "0", "--output", str(folder / "out"),
               *options]
    with printing.open("wb") as file:
        printed = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=file)
    process = subprocess.Popen(command, stderr=printed.stdin, stdout=subprocess.DEVNULL, cwd=folder,
                               env={**os.environ, "MADPLUG_SERVE_KEY": KEY, **(environ or {})})
    printed.stdin.close()
    served = Served(process, folder / "out", printed, printing)
    try:
        served.url = served.wait_for(r"^serving .*at (http://\S+/v1)")[1]
        yield served
    finally:
        process.kill()
        process.wait()
        printed.wait(10)


CELLS = """
[[cells]]
name = "main"
[[cells]]
name = "short"
debate.rounds = 1
"""


@pytest.fixture
def two_cells():
    """The cells of the shared server, as text of a run file."""
    return CELLS


@pytest.fixture(scope="session")
def agents_endpoint():
    """The endpoint that the agents ask, in this process."""
    for plugin in ("openai", "answers", "som", "turns", "visibility", "voting"):
        pytest.importorskip(f"madplug_{plugin}")
    with running_endpoint(keep=50) as endpoint:
        yield endpoint


@pytest.fixture
def agents(agents_endpoint):
    """The endpoint that the agents ask, as new."""
    agents_endpoint.endpoint.replies = None
    agents_endpoint.configure(faults=[], rates={}, latency_ms=0)
    return agents_endpoint


@pytest.fixture(scope="session")
def shared(agents_endpoint, tmp_path_factory):
    """A server for all tests that need nothing special: the cells `main` and `short`."""
    with start(tmp_path_factory.mktemp("shared"), agents_endpoint, more=CELLS) as served:
        yield served


@pytest.fixture
def serve(tmp_path, agents):
    """Starts a server: `with serve("--timeout", "1") as served`."""
    return lambda *options, **more: start(tmp_path, agents, *options, **more)


@pytest.fixture
def client(shared):
    """Makes OpenAI's client for a server, by default the shared one."""
    openai = pytest.importorskip("openai")
    opened = []

    def make(served=shared, key=KEY, **more):
        opened.append(openai.OpenAI(base_url=served.url, api_key=key, **{"max_retries": 0, "timeout": 60, **more}))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


@pytest.fixture
def question(request):
    """A conversation that no other test has."""
    return [{"role": "user", "content": f"Which is it, (A) this or (B) that, in {request.node.name}?"}]
