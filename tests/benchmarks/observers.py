"""What observers add to a study: CPU per call, theirs included, over the same study without them.

Each case runs in a process of its own: `python -m tests.benchmarks.observers CASE URL RECEIVER`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from madplug import Observer
from madplug_tracking import TrackedCell, Tracker
from tests.benchmarks.throughput import AGENTS, ROUNDS, measure_plan, plain_plan

DEBATES, IN_FLIGHT = 1000, 100


class Counting(Tracker):
    """A tracker that takes no time itself."""

    name = "counting"

    def connect(self, study: str) -> None:
        """Nothing to connect to."""

    def begin(self, study: str, id: str, cells: Sequence[TrackedCell]) -> None:
        """Nothing to begin."""

    def log(self, cell: str, figures: Mapping[str, float], step: int) -> None:
        """Nothing to log to."""

    def finish(self, status: str, files: Path | None) -> None:
        """Nothing to finish."""


def observers_of(case: str, receiver: str) -> list[Observer]:
    """The observers of a case."""
    from madplug_otel import Metrics, Traces

    return {"none": [], "metrics": [Metrics(endpoint=receiver)], "traces": [Traces(endpoint=receiver, timeout=60)],
            "tracker": [Counting(report=False)]}[case]


def measure(case: str, url: str, receiver: str) -> dict[str, Any]:
    """A study with the observers of a case."""
    plan = plain_plan(url, DEBATES, IN_FLIGHT, AGENTS, ROUNDS)
    return measure_plan(replace(plan, observers=observers_of(case, receiver)), DEBATES * AGENTS * ROUNDS)


def ratios(url: str, rounds: int = 3) -> Iterator[tuple[str, float]]:
    """CPU per call with each kind of observer over none, the median of some rounds."""
    with receiving() as receiver:
        found: dict[str, list[float]] = {"metrics": [], "traces": [], "tracker": []}
        for _ in range(rounds):
            bare = apart("none", url, receiver)["cpu_ms"]
            for case, values in found.items():
                values.append(apart(case, url, receiver)["cpu_ms"] / bare)
    for case, values in found.items():
        yield case, sorted(values)[len(values) // 2]


@contextmanager
def receiving() -> Iterator[str]:
    """The URL of a receiver that accepts everything."""

    class Handler(BaseHTTPRequestHandler):
        """Answers 200."""

        def do_POST(self) -> None:
            """Read the body."""
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def apart(*arguments: str) -> dict[str, Any]:
    """A case in a fresh process."""
    done = subprocess.run([sys.executable, "-m", "tests.benchmarks.observers", *arguments], capture_output=True,
                          text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:])))
