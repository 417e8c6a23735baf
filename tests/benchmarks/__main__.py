"""Measures the figures that README quotes, each as a ratio or a count: `tox run -e bench`."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from madplug.testing.endpoint import running_endpoint
from tests.benchmarks.makespan import CASES, measure
from tests.benchmarks.throughput import apart

ROUNDS = 5
Row = tuple[str, str, str]


def main() -> None:
    """Print a table: what, measured, reach."""
    print(f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores\n")
    for what, measured, reach in chain(schedule(), calls(), starts(), findings()):
        print(f"{what:<62} {measured:<34} {reach}", flush=True)


def schedule() -> Iterator[Row]:
    """Makespan over its bound, on a virtual clock."""
    for (name, case), reach in zip(CASES.items(), ("1.22", "1.06", "1.05", "1.06"), strict=True):
        found = measure(*case)
        yield f"makespan over bound: {name}", f"{found.ratio:.3f}, {found.most_open} open", f"{reach}, 200 open"


def calls() -> Iterator[Row]:
    """CPU and memory of calls over HTTP, into a store on disk."""
    with running_endpoint() as endpoint:
        pairs = [(apart("measure", endpoint.url, 1000, 100), apart("bare", endpoint.url, 6000, 100))
                 for _ in range(3)]
        ratio, ours, _ = sorted((m["cpu_ms"] / b["cpu_ms"], m["cpu_ms"], b["cpu_ms"]) for m, b in pairs)[1]
        yield "CPU per model call, everything included", f"{ours:.3f} ms, {ratio:.2f} x bare aiohttp", "0.25 ms, 2.5 x"
        small, large = apart("measure", endpoint.url, 1000, 100), apart("measure", endpoint.url, 10_000, 100)
        yield "CPU per call, 10,000 debates over 1,000", f"{large['cpu_ms'] / small['cpu_ms']:.2f} x", "1.1 x"
        further = (large["peak_mb"] - small["peak_mb"]) * 1024 / 9000
        yield "memory per further debate; peak", f"{further:.2f} kB; {large['peak_mb']:.0f} MB", "2 kB; 100 MB"
    with running_endpoint(latency_ms=500) as endpoint:
        wide = apart("measure", endpoint.url, 3000, 1000)
        most = endpoint.stats()["max_in_flight"]
        narrow = apart("measure", endpoint.url, 300, 100)
        yield "in flight at 500 ms latency, 1,000 asked for", f"{most}", "1,000"
        yield "CPU per call, 1,000 in flight over 100", f"{wide['cpu_ms'] / narrow['cpu_ms']:.2f} x", "1.3 x"


def starts() -> Iterator[Row]:
    """CPU of starting, compiled and warm."""
    program = [sys.executable, "-m", "madplug"]
    yield "import madplug", f"{cpu([sys.executable, '-c', 'import madplug']):.2f} s CPU", "0.12 s"
    yield "madplug --help", f"{cpu([*program, '--help']):.2f} s CPU", "0.2 s"
    yield "madplug list, every plugin installed", f"{cpu([*program, 'list']):.2f} s CPU", "0.5 s"
    with running_endpoint() as endpoint, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "one.toml"
        file.write_text(FIRST.format(url=endpoint.url))
        first = cpu([*program, "run", str(file), "--quiet"], folder)
        yield "a whole run of one debate and one call", f"{first:.2f} s CPU", "0.6 s to the first request"


def findings() -> Iterator[Row]:
    """CPU and memory of a report, in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.findings"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    debates, seconds, peak = map(float, done.stdout.split())
    yield f"madplug report, {debates:,.0f} debates", f"{seconds:.1f} s CPU; {peak:.0f} MB", "20 s; 500 MB"


FIRST = """
[dataset]
use = "puzzles.arithmetic"
size = 1
[models.m]
use = "openai.chat"
model = "fake"
base_url = "{url}"
[debate]
paradigm = "baselines.io"
"""


def cpu(command: list[str], folder: str | None = None) -> float:
    """The least CPU seconds of some runs, after one that compiles."""
    times = []
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(ROUNDS + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times[1:])


if __name__ == "__main__":
    main()
