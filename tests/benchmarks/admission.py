"""What a prefix cache serves when the debates of a sample are begun together: `python -m tests.benchmarks.admission`.

Four methods on the same questions, which have a passage of 6,000 characters: as the cells of one study, which takes its
samples one after the other, and as four studies, one after the other. From when requests were sent, a cache is
simulated: a prompt is in it once a tenth of its call's time has passed, and until it was not used for so many times
the mean time of a call. Prints the share of the prompts that it serves.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any

import madplug
from madplug_testing.endpoint import running_endpoint
from tests.benchmarks.savings import DEBATES, Answers, write_questions

METHODS = {debate["paradigm"]: debate for debate in [{"paradigm": "baselines.cot"}, *DEBATES]}
QUESTIONS, LATENCY_MS, IN_FLIGHT = 300, 100, 32
BLOCK = 64
"""Characters that are cached together."""
READY = 0.1
KEPT = (10, 30, 100, 1e6)
"""How long a cache keeps what is not used, in calls."""
Sent = tuple[float, float, list[int], int]
"""When a request was sent, the seconds until its answer, its beginnings as hashes, and its characters."""


def sent(folder: Path) -> Iterator[Sent]:
    """The requests of a study."""
    with madplug.open_study(folder) as study:
        for call in study.calls():
            text = "".join(f"{m['role']}\n{m['content']}\n" for m in call["request"]["messages"])
            beginnings, last = [], 0
            for start in range(0, len(text) - BLOCK + 1, BLOCK):
                last = hash((last, text[start:start + BLOCK]))
                beginnings.append(last)
            yield call["at"] - call["seconds"], call["seconds"], beginnings, len(text)


def served(requests: Sequence[Sent], kept: float) -> float:
    """The share of the prompts that a cache serves. kept: seconds."""
    used: dict[int, float] = {}
    events = sorted(event for number, (at, seconds, _, _) in enumerate(requests)
                    for event in ((at, True, number), (at + READY * seconds, False, number)))
    found = read = 0
    for now, is_sent, number in events:
        _, _, beginnings, size = requests[number]
        if is_sent:
            known = next((n for n, one in enumerate(beginnings) if now - used.get(one, -inf) > kept), len(beginnings))
            found, read, beginnings = found + known * BLOCK, read + size, beginnings[:known]
        used.update(dict.fromkeys(beginnings, now))
    return found / read


def run(folder: Path, url: str, methods: Mapping[str, Any]) -> Iterator[Sent]:
    """The requests of a study of these methods."""
    data = {"use": "files.table", "path": str(folder / "q.jsonl"), "answers": "answers.choice", "limit": QUESTIONS}
    model = {"use": "openai.chat", "model": "m", "base_url": url, "temperature": 1.0, "max_in_flight": IN_FLIGHT}
    output = folder / f"{len(list(folder.iterdir()))}"
    madplug.run({"name": "s", "dataset": data, "metrics": ["qa.accuracy"], "models": {"m": model},
                 "cells": [{"name": name, "debate": debate} for name, debate in methods.items()]},
                output=output, quiet=True)
    return sent(output)


def main() -> None:
    """Print the table, in Markdown."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        answers = Answers(write_questions(folder / "q.jsonl"))
        with running_endpoint(answers, latency_ms=LATENCY_MS, jitter=1.0) as endpoint:
            orders = {"sample by sample": [*run(folder, endpoint.url, METHODS)],
                      "cell by cell": [one for method, debate in METHODS.items()
                                       for one in run(folder, endpoint.url, {method: debate})]}
    for order, requests in orders.items():
        call = fmean(seconds for _, seconds, _, _ in requests)
        print(f"| {order} | " + " | ".join(f"{served(requests, kept * call):.2f}" for kept in KEPT) + " |")


if __name__ == "__main__":
    main()
