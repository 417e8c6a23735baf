"""What the ways to pay less save, each and together: `python -m tests.benchmarks.savings`.

Studies of three paradigms over HTTP, with the requests that they really send. Questions are puzzles with a passage of
6,000 characters before them. Replies have about 800 and are right with a probability of 0.6; where there is a solution
to agree with, every second one does. A token is four characters. Prints, of tokens and of dollars, what is left; and
what 1,000 right answers cost.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import madplug
from madplug_prices.table import price_of, table
from madplug_puzzles import Ordering
from madplug_report.prefixes import Prefixes
from madplug_testing.endpoint import running_endpoint

DEBATES = [
    {"paradigm": "baselines.self_consistency", "agents": 5},
    {"paradigm": "som.debate", "agents": 3, "rounds": 2},
    {"paradigm": "mallm.memory", "agents": 3, "rounds": 3},
]
INNER = {"baselines.self_consistency": ("baselines.samples", "voting.plurality"),
         "som.debate": ("turns.simultaneous", "voting.plurality"),
         "mallm.memory": ("turns.round_robin", "consensus.hybrid")}
"""The turns and the decision of each, which stand behind its gate."""
PRICE = price_of("https://api.openai.com/v1", "gpt-4o-mini")
"""USD per million tokens."""
SAMPLES, BATCH = {"model": {"samples_per_request": 8}}, {"execution": {"use": "batch.rounds", "poll": 0.05}}
WAYS = {
    "as they are": {},
    "a gate": {"gate": True},
    "several samples in a request": SAMPLES,
    "a prefix cache": {"cache": True},
    "batches": BATCH,
    "a gate, several samples": {"gate": True, **SAMPLES},
    "a gate, several samples, a prefix cache": {"gate": True, "cache": True, **SAMPLES},
    "a gate, batches": {"gate": True, **BATCH},
    "a gate, batches, a prefix cache": {"gate": True, "cache": True, **BATCH},
}
MEASURED, PLANNED = 200, 1000
PASSAGE, REPLY, RIGHT = 6000, 800, 0.6


def words(seed: str, size: int) -> str:
    """A text that is another one for every seed."""
    dice = random.Random(seed)
    return " ".join(f"{dice.getrandbits(24):x}" for _ in range(size // 4))[:size]


def write_questions(path: Path) -> list[str]:
    """Write the questions, and return the letters of their answers."""
    rows = [{"question": f"Case {i}. {sample.question}", "choices": list(sample.choices), "reference": references[0],
             "context": [words(f"passage {i}", PASSAGE)]}
            for i, (sample, references) in enumerate(Ordering(size=PLANNED, difficulty=4).samples())]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return [str(row["reference"]) for row in rows]


class Answers:
    """Replies with their usage, as many as were asked for; a cache serves beginnings of prompts, if there is one."""

    def __init__(self, right: list[str]) -> None:
        self.right = right
        self.cache: Prefixes | None = None

    def __call__(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        text = "\n".join(message["content"] for message in asked["messages"])
        texts = [self.reply(text, random.Random(f"{asked['seed']} {i} {text}")) for i in range(asked.get("n", 1))]
        cached = self.cache.share(asked["model"], asked["messages"]) if self.cache is not None else 0
        usage = {"prompt_tokens": len(text) // 4, "completion_tokens": sum(map(len, texts)) // 4,
                 "prompt_tokens_details": {"cached_tokens": int(cached * len(text)) // 4}}
        return {"model": "m", "usage": usage, "choices": [
            {"index": i, "finish_reason": "stop", "message": {"role": "assistant", "content": reply}}
            for i, reply in enumerate(texts)]}

    def reply(self, text: str, dice: random.Random) -> str:
        """A reply, which may agree where that is asked for."""
        answer = self.right[int(re.findall(r"Case (\d+)\.", text)[-1])]
        answer = answer if dice.random() < RIGHT else dice.choice([c for c in "ABCD" if c != answer])
        solution = re.search(r"Current solution: (\w)", text)
        agrees = solution is not None and dice.random() < 0.5
        if solution is not None:
            answer = solution[1] if agrees else answer
        begins = "" if solution is None else "[AGREE] " if agrees else "[DISAGREE] "
        return f"{begins}{words(str(dice.random()), REPLY)}\nFinal answer: ({answer})"


class Studies:
    """Runs studies, in a folder with the questions."""

    def __init__(self, folder: Path, url: str, answers: Answers) -> None:
        self.folder, self.answers, self.runs = folder, answers, 0
        self.model = {"use": "openai.chat", "model": "m", "base_url": url, "temperature": 1.0, "price": PRICE}

    def run(self, *debates: Mapping[str, Any], size: int = MEASURED, gate: bool = False, cache: bool = False,
            model: Mapping[str, Any] | None = None, **tables: Any) -> Mapping[str, Any]:
        """The summary of a study. gate: in front of the last debate. model: further options of the model. tables: of
        the run file."""
        self.answers.cache = Prefixes() if cache else None
        self.runs += 1
        data = {"use": "files.table", "path": str(self.folder / "q.jsonl"), "answers": "answers.choice", "limit": size}
        *others, last = debates
        cells = [{"name": debate["paradigm"], "debate": debate} for debate in (*others, gated(last) if gate else last)]
        return madplug.run({"name": "s", "dataset": data, "metrics": ["qa.accuracy"], "cells": cells,
                            "models": {"m": {**self.model, **(model or {})}}, **tables},
                           output=self.folder / str(self.runs), quiet=True).summary


def gated(debate: Mapping[str, Any]) -> dict[str, Any]:
    """A debate that ends with the first answers of three agents if two of them are the same."""
    turns, decision = INNER[debate["paradigm"]]
    return {**debate, "turns": {"use": "gate.first", "inner": turns, "answers": 3},
            "decision": {"use": "gate.behind", "by": "agreement", "threshold": 0.6, "inner": decision}}


def spent(cell: Mapping[str, Any]) -> tuple[float, float, float]:
    """Tokens and dollars of a debate of a cell, and dollars of 1,000 right answers."""
    tokens, usd = cell["tokens"]["prompt"] + cell["tokens"]["completion"], cell["cost_usd"]
    return tokens / cell["done"], usd / cell["done"], usd / cell["done"] / cell["metrics"]["qa.accuracy"]["mean"] * 1000


def column(studies: Studies, debate: Mapping[str, Any]) -> list[str]:
    """A paradigm's column: by each way tokens and dollars left of a debate, dollars of 1,000 right answers."""
    found = [spent(studies.run(debate, **way)["cells"][0]) for way in WAYS.values()]
    tokens, usd, _ = found[0]
    return [f"{one[0] / tokens:.2f}; {one[1] / usd:.2f}; {one[2]:.2f}" for one in found]


def ended(studies: Studies, debate: Mapping[str, Any]) -> list[str]:
    """A comparison with a single answer: dollars for all questions, and when it is decided; and after how many."""
    single = {"paradigm": "baselines.cot"}
    observer = {"use": "stopping.decided", "baseline": single["paradigm"]}
    found = []
    for way in ({}, WAYS["a gate, several samples, a prefix cache"]):
        summary = studies.run(single, debate, size=PLANNED, observers=[observer], **way)
        whole = PLANNED * sum(spent(cell)[1] for cell in summary["cells"])
        after = re.search(r"after ([\d,]+)", summary["reason"] or "")
        found.append(f"{whole:.2f}; {summary['paid']['cost_usd']:.2f}; {after[1] if after else 'never'}")
    return found


def main() -> None:
    """Print the tables, in Markdown."""
    with tempfile.TemporaryDirectory() as folder:
        answers = Answers(write_questions(Path(folder) / "q.jsonl"))
        with running_endpoint(answers) as endpoint:
            studies = Studies(Path(folder), endpoint.url, answers)
            columns = [column(studies, debate) + ended(studies, debate) for debate in DEBATES]
    rows = zip([*WAYS, "ended when decided", "that, a gate, several samples, a prefix cache"], *columns, strict=True)
    print(PRICE, table()["date"])
    print("\n".join("| " + " | ".join(row) + " |" for row in rows))


if __name__ == "__main__":
    main()
