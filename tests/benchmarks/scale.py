"""What more processes bring, and what a large simulated study costs: `python -m tests.benchmarks.scale`.

    python -m tests.benchmarks.scale calls 1000          one process against two workers, over HTTP without latency
    python -m tests.benchmarks.scale rate 6000           500 calls a second from four workers; the endpoint counts
    python -m tests.benchmarks.scale simulated 1000000   simulated debates on two workers, read and merged from shards
    python -m tests.benchmarks.scale simulated 1000000 FOLDER            the same, and what was written stays
    python -m tests.benchmarks.scale whole|sharded|compare 1000000 FOLDER      its parts, which can be run apart

Wall time means little on a machine with other work; CPU does: two workers keep two cores busy, so that calls per second
are the calls over half the CPU of driver and workers, unless the driver alone needs more than a core.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from madplug.store import open_study
from madplug_testing.endpoint import running_endpoint

TEXT = "the answer follows from each premise since a careful check of every option shows it. " * 4
CALLS = """
name = "calls"
[dataset]
use = "files.table"
path = "questions.jsonl"
answers = "choice"
[models.m]
use = "openai.chat"
model = "fake"
base_url = "{url}"
[debate]
agents = 3
rounds = 2
styles = ["styles.simple"]
turns = "turns.simultaneous"
visibility = "visibility.previous_round"
decision = "voting.plurality"
"""
SIMULATED = """
name = "simulated"
oracle = true
[dataset]
use = "simulator.questions"
size = {size}
[debate]
agents = 3
rounds = 2
styles = ["simulator.debater"]
turns = "turns.simultaneous"
visibility = "visibility.previous_round"
decision = "voting.plurality"
[[metrics]]
use = "qa.accuracy"
"""
SHARDS = 8
POOL = ("--set", 'execution={use="processes.pool", workers=2}')


class Used(NamedTuple):
    """What a command has used, with its workers."""

    wall: float
    """Seconds."""
    cpu: float
    """Seconds."""
    memory: tuple[float, ...]
    """MB of the process itself: after a quarter, a half and three quarters of its time, and the most it had."""
    workers: float
    """MB: the most that one of its processes had."""


def program(folder: Path, *words: object) -> Used:
    """Run the program."""
    started = time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", "madplug", *map(str, words)], cwd=folder,
                               stdout=subprocess.DEVNULL)
    seen: list[float] = []
    while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
        seen.append(resident(process.pid))
        time.sleep(0.2)
    process.returncode = os.waitstatus_to_exitcode(ended[1])
    if process.returncode:
        raise SystemExit(f"madplug {' '.join(map(str, words))} ended with status {process.returncode}")
    quarters = [seen[len(seen) * i // 4] for i in (1, 2, 3)]
    return Used(time.monotonic() - started, ended[2].ru_utime + ended[2].ru_stime, (*quarters, max(seen)),
                ended[2].ru_maxrss / 1024)


def resident(process: int) -> float:
    """MB of memory that a process has now; 0 where /proc does not say."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize() / 1e6
    except (OSError, IndexError):
        return 0.0


def calls(debates: int) -> None:
    """One process and two workers, each with the time of an almost empty study taken off."""
    with tempfile.TemporaryDirectory() as name, running_endpoint(process=True) as endpoint:
        folder = Path(name)
        (folder / "study.toml").write_text(CALLS.format(url=endpoint.url))
        per_call = {}
        for what, more in (("one process", ()), ("two workers", POOL)):
            used = []
            for count in (10, debates):
                rows = [{"id": f"q{i}", "question": f"Question {i}? {TEXT}", "choices": ["a", "b", "c", "d"],
                         "reference": "B"} for i in range(count)]
                (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
                used.append(program(folder, "run", "study.toml", *more, "--quiet", "--output", f"{what} {count}"))
            number = (debates - 10) * 6
            wall, cpu = (used[1][i] - used[0][i] for i in (0, 1))
            per_call[what] = cpu / number
            print(f"{what}: {1000 * cpu / number:.3f} ms CPU a call; {number / wall:.0f} calls/s here", flush=True)
        print(f"on two cores of their own: {2 * per_call['one process'] / per_call['two workers']:.2f} x")


def rate(debates: int) -> None:
    """A study at 500 calls a second on four workers, at an endpoint that turns away what is more in any minute."""
    with tempfile.TemporaryDirectory() as name, running_endpoint(
            process=True, latency_ms=50, per_minute=30_000) as endpoint:
        folder = Path(name)
        (folder / "study.toml").write_text(CALLS.format(url=endpoint.url).replace(
            "[debate]", "requests_per_minute = 30_000\nmax_in_flight = 500\n[debate]"))
        rows = ({"id": f"q{i}", "question": f"Question {i}? {TEXT}", "choices": ["a", "b", "c", "d"], "reference": "B"}
                for i in range(debates))
        (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        program(folder, "run", "study.toml", "--set", 'execution={use="processes.pool", workers=4}', "--quiet",
                "--output", "study")
        stats = endpoint.stats()
        with open_study(folder / "study") as study:
            times = [call["at"] for call in study.calls()]
    reached = (len(times) - 1) / (max(times) - min(times))
    print(f"{stats['faults'].get('429', 0)} of {stats['requests']:,} requests turned away; {reached:.1f} calls/s, "
          f"{100 * (1 - reached / 500):.1f} % below 500; load {os.getloadavg()[0]:.1f}")


def simulated(debates: int, folder: Path) -> None:
    """A large study on two workers, then read, and the same in eight shards, merged."""
    for part in (whole, sharded, compare):
        part(debates, folder)


def whole(debates: int, folder: Path) -> None:
    """The study on two workers, and what is done with its results."""
    (folder / "study.toml").write_text(SIMULATED.format(size=debates))
    show("run, two workers", program(folder, "run", "study.toml", *POOL, "--quiet", "--output", "whole"), debates)
    size = sum(path.stat().st_size for path in (folder / "whole").iterdir())
    print(f"disk: {size / debates:.0f} bytes a debate, {size / 1e6:.0f} MB", flush=True)
    for words in (("status",), ("read",), ("read", f"simulated-{debates:05}"), ("report", "--output", "../report"),
                  ("export", "--output", "../whole.jsonl")):
        show(" ".join(words[:2]), program(folder / "whole", words[0], ".", *words[1:]), debates)
    show("run once more", program(folder, "run", "study.toml", *POOL, "--quiet", "--output", "whole"), debates)


def sharded(debates: int, folder: Path) -> None:
    """The study in eight shards, two at a time, and merged."""
    (folder / "study.toml").write_text(SIMULATED.format(size=debates))
    with ThreadPoolExecutor(2) as pool:
        numbers = range(1, SHARDS + 1)
        for i, used in zip(numbers, pool.map(lambda i: program(
                folder, "run", "study.toml", "--shard", f"{i}/{SHARDS}", "--quiet", "--output", f"shard{i}"),
                numbers), strict=True):
            show(f"shard {i}/{SHARDS}", used, debates // SHARDS)
    show("merge", program(folder, "merge", *(f"shard{i}" for i in numbers), "--quiet", "--output", "merged"), debates)


def compare(debates: int, folder: Path) -> None:
    """What the two ways came to, line by line."""
    for name in ("whole", "merged"):
        if not (folder / f"{name}.jsonl").exists():
            show(f"export {name}", program(folder, "export", name, "--output", f"{name}.jsonl"), debates)
    with (folder / "whole.jsonl").open() as one, (folder / "merged.jsonl").open() as other:
        same = sum(without_times(a) == without_times(b) for a, b in zip(one, other, strict=True))
    print(f"{same:,} of {debates:,} debates are equal in both")


def without_times(line: str) -> object:
    """A debate without its duration."""
    return {**json.loads(line), "seconds": None}


def show(what: str, used: Used, debates: int) -> None:
    """Print what a command used."""
    memory = " ".join(f"{mb:.0f}" for mb in used.memory)
    print(f"{what}: {used.wall:.1f} s, {used.cpu:.1f} s CPU, {1000 * used.cpu / debates:.3f} ms a debate; memory "
          f"{memory} MB; largest process {used.workers:.0f} MB", flush=True)


if __name__ == "__main__":
    print(f"{os.cpu_count()} cores")
    command, number, *places = sys.argv[1:]
    if command in ("calls", "rate"):
        {"calls": calls, "rate": rate}[command](int(number))
    else:
        with tempfile.TemporaryDirectory() as name:
            place = Path(*(places or [name])).resolve()
            place.mkdir(parents=True, exist_ok=True)
            {"simulated": simulated, "whole": whole, "sharded": sharded, "compare": compare}[command](
                int(number), place)
