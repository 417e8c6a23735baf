"""Studies written by hand: debates drawn from a seed, kept through the host's own store, no plugin needed."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from madplug import Agent, DebateResult, Decision, Message, Persona, Sample, Usage
from madplug.store import StudyStore


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
        """The cell as a study keeps it."""
        table = {"debate": {"agents": self.agents, "rounds": self.rounds}, "oracle": self.oracle,
                 "dataset": {"use": "none.such"}, "metrics": [{"use": "qa.accuracy"}]}
        return {**table, **self.table, "debate": {**table["debate"], **self.table.get("debate", {})}}


def debate(cell: Drawn, sample: int, repeat: int = 0, seed: int = 0, size: int = 20, question: str = "question") -> DebateResult:
    """One debate: agents answer, then adopt a peer's answer with some chance, and the plurality decides."""
    dice, ease = random.Random(f"{seed} {cell.name} {sample} {repeat}"), random.Random(f"{seed} {sample}").random() - 0.5
    agents = tuple(Agent(i, Persona(f"Agent {i + 1}"), "m") for i in range(cell.agents))
    right, said, keys = "A", [], []
    for number in range(1, cell.rounds + 1):
        before, keys = keys, []
        for a in agents:
            fresh = right if dice.random() < cell.skill + 0.6 * ease else dice.choice("BCD")
            keep = before and dice.random() < 0.7
            key = (dice.choice(before) if dice.random() < cell.conform else before[a.id]) if keep else fresh
            key = None if dice.random() < cell.unread else key
            text = (f"so {key} " * (1 + size // 6))[:size]
            said.append(Message(len(said), number, 0, a.id, "improve", text, answer=key, key=key))
            keys.append(key)
        if cell.stop_when_agreed and len(set(keys)) == 1:
            break
    counts = {k: keys.count(k) for k in keys if k is not None}
    best = max(counts, key=counts.get) if counts else None
    agreed = best is not None and counts[best] > len(keys) / 2
    decision = Decision.undecided("no answer") if best is None or dice.random() < cell.undecided else \
        Decision(best, best, agreed=agreed, fallback=not agreed, scores=counts)
    error = "ModelError: gave up" if dice.random() < cell.failed else None
    score = float(error is None and decision.key == right)
    return DebateResult(
        cell=cell.name, repeat=repeat, sample=Sample(f"q{sample:05}", f"{question} {sample}?", ("w", "x", "y", "z")),
        references=(right,), agents=agents, messages=tuple(said), decision=None if error else decision,
        metrics={"qa.accuracy": score}, calls=len(said), tokens=Usage(len(said) * (80 + len(said) * 20), len(said) * 40),
        seconds=round(dice.lognormvariate(0, 0.5) * cell.rounds, 3), error=error)


def write(folder: Path, debates, cells=(), *, repeats=1, planned=None, summary=True, name=None) -> Path:
    """A study's directory with these debates, as the host would have left it."""
    async def keep():
        store = StudyStore(folder, write=True)
        if cells:
            await store.keep_fact("identity", {"repeats": repeats, "cells": {c.name: c.resolved() for c in cells}})
        if planned is not None:
            await store.keep_fact("planned", planned)
        waiting = []
        for result in debates:
            waiting.append(store.keep_debate(result))
            if len(waiting) == 2000:
                await asyncio.gather(*waiting)
                waiting = []
        await asyncio.gather(*waiting)
        store.close()
    asyncio.run(keep())
    if summary:
        told = {"study": name or folder.name, "status": "finished",
                "cells": [{"cell": c.name, "settings": c.settings, "oracle": c.oracle} for c in cells]}
        (folder / "summary.json").write_text(json.dumps(told), encoding="utf-8")
    return folder


def draw(cells, samples, repeats=1, **more):
    """Every debate of these cells."""
    return (debate(c, s, r, **more) for c in cells for r in range(repeats) for s in range(samples))


@pytest.fixture
def study(tmp_path):
    """Draw a study and get its directory: `study([Drawn("a"), Drawn("b")], samples=50)`."""
    def study(cells, samples=40, repeats=1, name="study", planned=None, summary=True, change=lambda d: d, **more):
        debates = [change(d) for d in draw(cells, samples, repeats, **more)]
        return write(tmp_path / name, debates, cells, repeats=repeats, planned=planned, summary=summary, name=name)
    return study


@pytest.fixture
def kit():
    """The names above: tests are not a package."""
    class Kit:
        pass
    for thing in (Drawn, debate, write, draw, replace):
        setattr(Kit, thing.__name__, staticmethod(thing))
    return Kit
