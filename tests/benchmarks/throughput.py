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
from madplug.testing import LastRound, PlainStyle, SeeAll, SpeakAll, StrippedText

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
    """A study of `debates` debates in a directory: CPU per call, memory, and what was reached."""
    from madplug.cell import BoundStyle, Cell
    from madplug.launch import collect_rarely
    from madplug.store import open_recorder
    from madplug.study import StudyPlan, StudyRun
    from madplug_openai import Chat

    with tempfile.TemporaryDirectory() as folder:
        store = open_recorder(Path(folder) / "study")
        model = Chat(model="fake", base_url=url, max_in_flight=in_flight)
        cell = Cell(slug="c", answers=StrippedText(), turns=SpeakAll(), visibility=SeeAll(), decision=LastRound(),
                    styles=[BoundStyle(PlainStyle())], rounds=ROUNDS, agents=AGENTS, models=("m",), channels={"m": "m"},
                    dataset=Questions(debates))
        run = StudyRun(StudyPlan("bench", [cell], {"m": model}), store)
        collect_rarely()
        begin, wall = time.process_time(), time.monotonic()
        summary = asyncio.run(run.run())
        calls = summary["paid"]["calls"]
        assert calls == debates * AGENTS * ROUNDS
        assert summary["cells"][0]["failed"] == 0
        store.close()
        return {"calls": calls, "cpu_ms": 1000 * (time.process_time() - begin) / calls,
                "wall": time.monotonic() - wall, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


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
    print(json.dumps((measure if case == "measure" else bare)(address, int(first), int(second))))
