"""What a large study that has ended costs to resume, to look at and to export: `python -m tests.benchmarks.finished`.

Its debates are written through the recorder, each with six calls, and differ in nothing but their ids.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

from madplug.config import load
from madplug.records import Caller, Completion, Usage
from madplug.rows import to_json
from madplug.store import Call, CallRow, open_recorder
from madplug.study.setup import sampled
from madplug_testing.endpoint import running_endpoint
from tests.benchmarks.scale import CALLS

TEXT = "the answer follows from each premise since a careful check of every option shows it. "
AGENTS, ROUNDS = 3, 2
AT_ONCE = 500
FILE = CALLS.replace('"calls"', '"finished"') + '[[metrics]]\nuse = "qa.accuracy"\n'


def program(folder: Path, *words: str) -> tuple[float, float]:
    """CPU seconds of a command of madplug, and how many it took until its first line of output (wall)."""
    started, before = time.monotonic(), os.times()
    with subprocess.Popen([sys.executable, "-m", "madplug", *words], cwd=folder, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        first = time.monotonic() - started
        for _ in process.stdout:
            pass
    after = os.times()
    assert process.returncode == 0
    return after.children_user + after.children_system - before.children_user - before.children_system, first


def make(folder: Path, debates: int) -> None:
    """A study of so many debates, of which all but one have ended."""
    rows = (json.dumps({"id": f"q{i:06}", "question": f"Question {i}? {TEXT}", "choices": ["a", "b", "c", "d"],
                        "reference": "B"}) + "\n" for i in range(debates))
    (folder / "questions.jsonl").write_text("".join(islice(rows, 1)))
    program(folder, "run", "study.toml", "--quiet")
    with (folder / "questions.jsonl").open("a") as file:
        file.writelines(rows)
    asyncio.run(_fill(folder, debates - 1))


async def _fill(folder: Path, until: int) -> None:
    recorder = open_recorder(folder / "runs" / "finished")
    try:
        model = next(iter(recorder.results()))
        calls = list(recorder.calls())
        dataset = load(folder / "study.toml").plan.cells[0].dataset
        assert dataset is not None
        samples = islice(dataset.samples(), 1, until)
        while batch := list(islice(samples, AT_ONCE)):
            writes = []
            for row in batch:
                sample, references = sampled(row, "the data set gave")
                result = replace(model, sample=sample, references=references)
                writes += [recorder.keep_call(*_renamed(call, sample.id)) for call in calls]
                writes.append(recorder.finish_debate(replace(result, messages=tuple(
                    replace(m, calls=tuple(_key(key, sample.id).hex() for key in m.calls)) for m in result.messages))))
            await asyncio.gather(*writes)
    finally:
        recorder.close()


def _renamed(call: Mapping[str, Any], sample: str) -> tuple[CallRow, Call]:
    """A call of the one debate that was run, as if another had made it."""
    caller = Caller(call["cell"], 0, sample, call["agent"], call["purpose"], round=call["round"])
    row = CallRow(_key(call["key"], sample), caller, call["model"], to_json(call["request"]))
    return row, Call(Completion(call["text"], Usage(**call["usage"])), 0, call["seconds"])


def _key(key: str, sample: str) -> bytes:
    return blake2b(f"{key} {sample}".encode(), digest_size=16).digest()


def measure(debates: int) -> Iterator[tuple[str, str, str]]:
    """What it takes to resume, and to look at the study."""
    with tempfile.TemporaryDirectory() as name, running_endpoint() as endpoint:
        folder = Path(name)
        (folder / "study.toml").write_text(FILE.format(url=endpoint.url))
        make(folder, debates)
        what, run = f"{debates:,} debates finished: ", "runs/finished"
        yield what + "status", f"{program(folder, 'status', run)[0]:.2f} s CPU", "1 s"
        first = program(folder, "export", run, "--output", "-")[1]
        yield what + "first row of an export", f"{first:.2f} s", "0.5 s"
        first = program(folder, "export", run, "--calls", "--output", "-")[1]
        yield what + "first row of exported calls", f"{first:.2f} s", "0.5 s"
        resumed = program(folder, "run", "study.toml", "--quiet")[0]
        yield what + "resume with one left, the whole command", f"{resumed:.1f} s CPU", "2 s"
        again = program(folder, "run", "study.toml", "--quiet")[0]
        yield what + "resume with none left", f"{again:.1f} s CPU", "2 s"


if __name__ == "__main__":
    for row in measure(int(sys.argv[1])):
        print(*row, sep="; ", flush=True)
