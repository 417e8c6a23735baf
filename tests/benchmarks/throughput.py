"""What a model call costs here, everything included: prompts, scheduling, HTTP, store. CPU, counts and ratios.

Each case runs in a process of its own, against an endpoint in another: `python -m tests.benchmarks`.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from madplug import Dataset, Sample
from madplug_testing import LastRound, PlainStyle, SeeAll, SpeakAll, StrippedText

AGENTS, ROUNDS = 3, 2
TEXT = "the answer follows from each premise since a careful check of every option shows it. " * 4


class Questions(Dataset):
    """As many questions as asked for, made as they are read."""

    name = "questions"

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def samples(self, split: str | None = None) -> Iterator[tuple[Sample, tuple[str, ...]]]:
        for i in range(self.count):
            yield Sample(f"q{i}", f"Question {i}. {TEXT}"), ("A",)


def measure(url: str, debates: int, in_flight: int) -> dict[str, Any]:
    """A study with the test kit's plain components, 3 agents and 2 rounds."""
    return measure_plan(plain_plan(url, debates, in_flight, AGENTS, ROUNDS), debates * AGENTS * ROUNDS)


def measure_long(url: str, debates: int, in_flight: int) -> dict[str, Any]:
    """Likewise, with 20 agents and 10 rounds."""
    return measure_plan(plain_plan(url, debates, in_flight, 20, 10), debates * 20 * 10)


def measure_shipped(url: str, debates: int, in_flight: int) -> dict[str, Any]:
    """A study with shipped components: questions with four choices from a file, 3 agents and 2 rounds."""
    return measure_file(url, debates, in_flight, AGENTS, ROUNDS, "previous_round")


def measure_shipped_long(url: str, debates: int, in_flight: int) -> dict[str, Any]:
    """Likewise, with 20 agents and 10 rounds, in which everybody sees everything."""
    return measure_file(url, debates, in_flight, 20, 10, "everything")


def measure_file(url: str, debates: int, in_flight: int, agents: int, rounds: int, visibility: str) -> dict[str, Any]:
    """A study of a run file."""
    from madplug.config import load

    with tempfile.TemporaryDirectory() as folder:
        choices = "the first,the second,the third,the fourth"
        rows = "".join(f"q{i},Question {i}. {TEXT},{choices},A\n" for i in range(debates))
        (Path(folder) / "questions.csv").write_text("id,question,c1,c2,c3,c4,reference\n" + rows)
        file = Path(folder) / "study.toml"
        file.write_text(SHIPPED.format(url=url, in_flight=in_flight, agents=agents, rounds=rounds,
                                       visibility=visibility))
        return measure_plan(load(file).plan, debates * agents * rounds)


def plain_plan(url: str, debates: int, in_flight: int, agents: int, rounds: int) -> Any:
    """One cell of the test kit's plain components."""
    from madplug.config.plan import StudyPlan
    from madplug.debate.cell import BoundStyle, Cell
    from madplug_openai import Chat

    model = Chat(model="fake", base_url=url, max_in_flight=in_flight)
    cell = Cell(slug="c", answers=StrippedText(), turns=SpeakAll(), visibility=SeeAll(), decision=LastRound(),
                styles=[BoundStyle(PlainStyle())], rounds=rounds, agents=agents, models=("m",), channels={"m": "m"},
                dataset=Questions(debates))
    return StudyPlan("bench", [cell], {"m": model})


def measure_plan(plan: Any, expected: int) -> dict[str, Any]:
    """A study in a directory: CPU per call, memory, and what was reached. expected: how many calls it makes."""
    from madplug.store import open_recorder, open_study
    from madplug.study import collect_rarely
    from madplug.study.run import StudyRun

    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "study"
        store = open_recorder(study)
        run = StudyRun(plan, store)
        collect_rarely()
        begin, wall = time.process_time(), time.monotonic()
        summary = asyncio.run(run.run())
        calls = summary["paid"]["calls"]
        assert calls == expected
        assert summary["cells"][0]["failed"] == 0
        store.close()
        cpu, wall = time.process_time() - begin, time.monotonic() - wall
        with open_study(study) as reader:
            said = sum(len(m.content.encode()) for debate in reader.debates() for m in debate.messages)
        disk = sum(path.stat().st_size for path in study.iterdir())
        return {"calls": calls, "cpu_ms": 1000 * cpu / calls, "wall": wall, "disk_over_said": disk / said,
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


SHIPPED = """
[dataset]
use = "files.table"
path = "questions.csv"
answers = "choice"
columns = {{choices = ["c1", "c2", "c3", "c4"]}}
[models.m]
use = "openai.chat"
model = "fake"
base_url = "{url}"
max_in_flight = {in_flight}
[debate]
agents = {agents}
rounds = {rounds}
turns = "turns.simultaneous"
visibility = "visibility.{visibility}"
decision = "voting.plurality"
[[debate.styles]]
use = "styles.simple"
"""


def bare(url: str, calls: int, in_flight: int) -> dict[str, Any]:
    """The same number of calls by aiohttp alone."""
    import aiohttp

    body = json.dumps({"model": "fake", "messages": [{"role": "user", "content": TEXT * 4}]}).encode()

    async def main() -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            left = iter(range(calls))

            async def worker() -> None:
                for _ in left:
                    async with session.post(url + "/chat/completions", data=body,
                                            headers={"Content-Type": "application/json"}) as response:
                        json.loads(await response.read())["choices"][0]["message"]["content"]

            await asyncio.gather(*(worker() for _ in range(in_flight)))

    begin = time.process_time()
    asyncio.run(main())
    return {"calls": calls, "cpu_ms": 1000 * (time.process_time() - begin) / calls}


def apart(what: str, *arguments: object) -> dict[str, Any]:
    """A case in a fresh process: memory and imports of one must not count for another."""
    done = subprocess.run([sys.executable, "-m", "tests.benchmarks.throughput", what, *map(str, arguments)],
                          capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    case, address, first, second = sys.argv[1:]
    cases = {"measure": measure, "shipped": measure_shipped, "long": measure_long, "shipped_long": measure_shipped_long,
             "bare": bare}
    print(json.dumps(cases[case](address, int(first), int(second))))
