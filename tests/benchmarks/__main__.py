"""Measures the figures of docs/figures.md, each as a ratio or a count: `tox run -e bench`."""

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

from madplug_testing.endpoint import running_endpoint
from tests.benchmarks.finished import measure as finished
from tests.benchmarks.makespan import CASES, measure
from tests.benchmarks.observers import ratios
from tests.benchmarks.throughput import apart
from tests.benchmarks.viewing import following
from tests.benchmarks.viewing import measure as viewing

ROUNDS = 5
LONG_REPLY = ("Case {hash}. " + "The premise holds, since a careful check of every option shows that nothing else "
              "follows. " * 11 + "Final Solution: {letter}")
Row = tuple[str, str, str]


def main() -> None:
    """Print a table: what, measured, reach."""
    print(f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores\n")
    rows = chain(schedule(), calls(), observed(), starts(), findings(), finished(100_000), viewing(), followed())
    for what, measured, reach in rows:
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
        yield "CPU per model call, everything included", f"{ours:.3f} ms, {ratio:.2f} x bare aiohttp", "0.25 ms, 1.3 x"
        rows = [apart("shipped", endpoint.url, 1000, 100)["cpu_ms"] for _ in range(3)]
        yield "CPU per model call with shipped components", f"{sorted(rows)[1]:.3f} ms", "0.40 ms"
        long = apart("long", endpoint.url, 30, 100)["cpu_ms"]
        yield "CPU per call, 20 agents x 10 rounds over 3 x 2", f"{long / ours:.2f} x", "2 x"
        small, large = apart("measure", endpoint.url, 1000, 100), apart("measure", endpoint.url, 10_000, 100)
        yield "CPU per call, 10,000 debates over 1,000", f"{large['cpu_ms'] / small['cpu_ms']:.2f} x", "1.1 x"
        further = (large["peak_mb"] - small["peak_mb"]) * 1024 / 9000
        yield "memory per further debate; peak", f"{further:.2f} kB; {large['peak_mb']:.0f} MB", "2 kB; 100 MB"
    with running_endpoint(text=LONG_REPLY) as endpoint:
        stored = apart("shipped_long", endpoint.url, 5, 100)["disk_over_said"]
        yield "20 x 10, replies of 1,000 characters: disk over what was said", f"{stored:.1f} x", "3 x"
    with running_endpoint(latency_ms=50) as endpoint:
        ideal = 1000 * 3 * 2 * 0.05 / 100
        wall = apart("measure", endpoint.url, 1000, 100)["wall"]
        yield "wall time over the ideal at 50 ms latency, 100 in flight", f"{wall / ideal:.2f} x", "1.15 x"
    with running_endpoint(latency_ms=500) as endpoint:
        wide = apart("measure", endpoint.url, 3000, 1000)
        most = endpoint.stats()["max_in_flight"]
        narrow = apart("measure", endpoint.url, 300, 100)
        yield "in flight at 500 ms latency, 1,000 asked for", f"{most}", "1,000"
        yield "CPU per call, 1,000 in flight over 100", f"{wide['cpu_ms'] / narrow['cpu_ms']:.2f} x", "1.3 x"


def observed() -> Iterator[Row]:
    """CPU per call with observers, theirs included, over none: at an endpoint without latency, the worst case."""
    names = {"metrics": ("otel.metrics", "1.7 x"), "traces": ("otel.traces", "2.5 x"),
             "tracker": ("an experiment tracker, without its own time", "1.3 x")}
    with running_endpoint(process=True) as endpoint:
        for case, ratio in ratios(endpoint.url):
            yield f"CPU per call with {names[case][0]}", f"{ratio:.2f} x", names[case][1]


def followed() -> Iterator[Row]:
    """What following costs a run, at an endpoint without latency: the worst case."""
    with running_endpoint(process=True) as endpoint:
        yield from following(endpoint.url)


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
