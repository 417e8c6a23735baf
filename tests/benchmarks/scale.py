"""What more processes bring, and what a large simulated study costs: `python -m tests.benchmarks.scale`.

    python -m tests.benchmarks.scale calls 1000          one process against two workers, over HTTP without latency
    python -m tests.benchmarks.scale simulated 1000000   simulated debates on two workers, read and merged from shards

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
from pathlib import Path

from madplug.testing.endpoint import running_endpoint

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
POOL = ("--set", 'execution={use="processes.pool", workers=2}')


def program(folder: Path, *words: object) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds with those of workers, and the peak memory (MB) of the largest process so far."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([sys.executable, "-m", "madplug", *map(str, words)], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - started, cpu, after.ru_maxrss / 1024


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


def simulated(debates: int) -> None:
    """A large study on two workers, then read, and the same in eight shards, merged."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "study.toml").write_text(SIMULATED.format(size=debates))
        show("run, two workers", program(folder, "run", "study.toml", *POOL, "--quiet", "--output", "whole"), debates)
        size = sum(path.stat().st_size for path in (folder / "whole").iterdir())
        print(f"disk: {size / debates:.0f} bytes a debate, {size / 1e6:.0f} MB", flush=True)
        show("status", program(folder, "status", "whole"), debates)
        show("export", program(folder, "export", "whole", "--output", "whole.jsonl"), debates)
        for i in range(1, 9):
            show(f"shard {i}/8", program(folder, "run", "study.toml", "--shard", f"{i}/8", "--quiet", "--output",
                                         f"shard{i}"), debates // 8)
        shards = [f"shard{i}" for i in range(1, 9)]
        show("merge", program(folder, "merge", *shards, "--quiet", "--output", "merged"), debates)
        program(folder, "export", "merged", "--output", "merged.jsonl")
        same = all(without_times(a) == without_times(b) for a, b in zip(
            (folder / "whole.jsonl").open(), (folder / "merged.jsonl").open(), strict=True))
        print("merged and run in one piece are", "equal" if same else "NOT equal")


def without_times(line: str) -> object:
    """A debate without its duration."""
    return {**json.loads(line), "seconds": None}


def show(what: str, used: tuple[float, float, float], debates: int) -> None:
    """Print what a command used."""
    wall, cpu, peak = used
    print(f"{what}: {wall:.1f} s, {cpu:.1f} s CPU, {1000 * cpu / debates:.2f} ms a debate; peak {peak:.0f} MB",
          flush=True)


if __name__ == "__main__":
    print(f"{os.cpu_count()} cores")
    {"calls": calls, "simulated": simulated}[sys.argv[1]](int(sys.argv[2]))
