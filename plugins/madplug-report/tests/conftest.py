"""Studies written by hand: debates drawn from a seed, kept through the host's own store, no plugin needed."""

import asyncio
import json
import random
from dataclasses import dataclass, field, replace
from itertools import islice, product
from pathlib import Path
from types import SimpleNamespace

import pytest

from madplug import Agent, DebateResult, Decision, Message, Persona, Sample, Usage
from madplug.store import open_recorder


@dataclass
class Drawn:
    """A cell to draw debates of."""

    name: str
    skill: float = 0.6
    agents: int = 3
    rounds: int = 2
    conform: float = 0.5
    settings: dict = field(default_factory=dict)
    table: dict = field(default_factory=dict)
    oracle: bool = False
    undecided: float = 0.0
    failed: float = 0.0
    unread: float = 0.0
    stop_when_agreed: bool = False

    def resolved(self):
        """The cell as a study keeps it: of components that are not installed."""
        table = {"debate": {"agents": self.agents, "rounds": self.rounds}, "oracle": self.oracle,
                 "dataset": {"use": "none.such"}, "metrics": [{"use": "qa.accuracy"}]}
        return {**table, **self.table, "debate": {**table["debate"], **self.table.get("debate", {})}}


def sweep(skill=lambda levels: 0.6, **factors):
    """A cell for each combination of these settings of the debate, called as a sweep calls it."""
    for values in product(*factors.values()):
        levels = dict(zip(factors, values, strict=True))
        sizes = {name: levels[name] for name in ("agents", "rounds") if name in levels}
        yield Drawn(",".join(f"{name}={level}" for name, level in levels.items()), skill(levels), **sizes,
                    settings={f"debate.{name}": level for name, level in levels.items()})


def debate(cell, sample, repeat=0, *, seed=0, size=20, question="question"):
    """One debate: agents answer, then adopt a peer's answer with some chance, and the plurality decides."""
    dice = random.Random(f"{seed} {cell.name} {sample} {repeat}")
    ease = random.Random(f"{seed} {sample}").random() - 0.5
    agents = tuple(Agent(i, Persona(f"Agent {i + 1}"), "m") for i in range(cell.agents))
    said, keys = [], []
    for number in range(1, cell.rounds + 1):
        keys = [_answer(cell, dice, ease, a.id, keys) for a in agents]
        for a, key in zip(agents, keys, strict=True):
            text = (f"so {key} " * (1 + size // 6))[:size]
            said.append(Message(len(said), number, 0, a.id, "improve", text, answer=key, key=key))
        if cell.stop_when_agreed and len(set(keys)) == 1:
            break
    decision = _decision(cell, dice, keys)
    error = "ModelError: gave up" if dice.random() < cell.failed else None
    calls = len(said)
    return DebateResult(
        cell=cell.name, repeat=repeat, sample=Sample(f"q{sample:05}", f"{question} {sample}?", ("w", "x", "y", "z")),
        references=("A",), agents=agents, messages=tuple(said), decision=None if error else decision,
        metrics={} if error else {"qa.accuracy": float(decision.key == "A")}, calls=calls,
        tokens=Usage(calls * (80 + calls * 20), calls * 40), error=error,
        seconds=round(dice.lognormvariate(0, 0.5) * cell.rounds, 3))


def _answer(cell, dice, ease, agent, before):
    fresh = "A" if dice.random() < cell.skill + 0.6 * ease else dice.choice("BCD")
    if before and dice.random() < 0.7:
        fresh = dice.choice(before) if dice.random() < cell.conform else before[agent]
    return None if dice.random() < cell.unread else fresh


def _decision(cell, dice, keys):
    counts = {k: keys.count(k) for k in keys if k is not None}
    if not counts or dice.random() < cell.undecided:
        return Decision.undecided("no answer")
    best = max(counts, key=counts.get)
    agreed = counts[best] > len(keys) / 2
    return Decision(best, best, agreed=agreed, fallback=not agreed, scores=counts)


def write(folder: Path, debates, cells=(), *, repeats=1, planned=None, summary=(), source=None) -> Path:
    """A study's directory with these debates, as the host would have left it.

    summary: what its summary says beside what every one does; None for a study without a summary.
    """
    async def keep():
        store = open_recorder(folder)
        await store.keep_fact("identity", {"repeats": repeats, "cells": {c.name: c.resolved() for c in cells},
                                           "recorded_from": source})
        if any(c.settings for c in cells):
            await store.keep_fact("settings", {c.name: c.settings for c in cells})
        if planned is not None:
            await store.keep_fact("planned", planned)
        left = iter(debates)
        while waiting := [store.finish_debate(result) for result in islice(left, 2000)]:
            await asyncio.gather(*waiting)
        store.close()
    asyncio.run(keep())
    if summary is not None:
        told = {"study": folder.name, "status": "finished",
                "cells": [{"cell": c.name, "oracle": c.oracle} for c in cells]}
        (folder / "summary.json").write_text(json.dumps(told | dict(summary)), encoding="utf-8")
    return folder


@pytest.fixture
def study(tmp_path):
    """Draw a study and get its directory: `study([Drawn("a"), Drawn("b")], samples=50)`.

    change: what a debate becomes; None for none. metrics: scores of every debate, beside its own.
    """
    def study(cells, samples=40, repeats=1, name="study", change=lambda d: d, metrics=(), planned=None, summary=(),
              source=None, **more):
        cells = list(cells)
        drawn = (change(debate(c, s, r, **more)) for c in cells for r in range(repeats) for s in range(samples))
        debates = (replace(d, metrics=d.metrics | dict(metrics)) for d in drawn if d is not None)
        return write(tmp_path / name, debates, cells, repeats=repeats, planned=planned, summary=summary, source=source)
    return study


@pytest.fixture(scope="session")
def kit():
    """The functions above, for tests that need more than a drawn study."""
    return SimpleNamespace(Drawn=Drawn, sweep=sweep, debate=debate, write=write, replace=replace)


SKILLS = {"consensus.majority": 0.5, "consensus.unanimity": 0.55, "voting.simple": 0.9, "voting.ranked": 0.95}
DATA = ({"use": "benchmarks.bbh", "path": "data/bbh_ordering.jsonl"}, {"use": "benchmarks.mmlu", "path": "mmlu.jsonl"})


@pytest.fixture(scope="session")
def crossed(tmp_path_factory):
    """Four decisions on two data sets of 30 questions each; every second one of MMLU's has no reference."""
    cells = [Drawn(f"decision={use},dataset={data['use']}", skill=skill, rounds=3, stop_when_agreed=True,
                   settings={"debate.decision": use, "dataset": data}, table={"dataset": data})
             for (use, skill), data in product(SKILLS.items(), DATA)]

    def of_its_data(d):
        mmlu, id = "mmlu" in d.cell, f"{'mmlu' in d.cell}{d.sample.id}"
        return replace(d, sample=replace(d.sample, id=id, question=id),
                       references=() if mmlu and int(d.sample.id[1:]) % 2 else ("A",))
    debates = (of_its_data(debate(*place)) for place in product(cells, range(30), range(3)))
    return write(tmp_path_factory.mktemp("crossed") / "study", debates, cells, repeats=3)


@pytest.fixture
def refused(program):
    """What `madplug report` says of a mistake: `refused(folder, "--metric", "x")`."""
    return lambda *words: program("report", *words, status=2).stderr
