"""Studies written by hand: debates drawn from a seed, kept through the host's own store, no plugin needed."""

import asyncio
import json
import random
from dataclasses import dataclass, field, replace
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


def draw(cells, samples, repeats=1, **more):
    """Every debate of these cells."""
    return (debate(c, s, r, **more) for c in cells for r in range(repeats) for s in range(samples))


def write(folder: Path, debates, cells=(), *, repeats=1, planned=None, summary=True, name=None, source=None) -> Path:
    """A study's directory with these debates, as the host would have left it."""
    async def keep():
        store = open_recorder(folder)
        if cells:
            await store.keep_fact("identity", {"repeats": repeats, "cells": {c.name: c.resolved() for c in cells},
                                               "recorded_from": source})
        if planned is not None:
            await store.keep_fact("planned", planned)
        waiting = []
        for result in debates:
            waiting.append(store.finish_debate(result))
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


@pytest.fixture
def study(tmp_path):
    """Draw a study and get its directory: `study([Drawn("a"), Drawn("b")], samples=50)`."""
    def study(cells, samples=40, repeats=1, name="study", planned=None, summary=True, change=lambda d: d, source=None,
              **more):
        debates = [change(d) for d in draw(cells, samples, repeats, **more)]
        return write(tmp_path / name, filter(None, debates), cells, repeats=repeats, planned=planned, summary=summary,
                     name=name, source=source)
    return study


@pytest.fixture(scope="session")
def kit():
    """The functions above, for tests that need more than a drawn study."""
    return SimpleNamespace(Drawn=Drawn, debate=debate, draw=draw, write=write, replace=replace)


@pytest.fixture
def madplug():
    """Run the program: `madplug("report", folder)`."""
    from click.testing import CliRunner

    from madplug.cli.program import main

    return lambda *words: CliRunner().invoke(main, [str(w) for w in words], prog_name="madplug")


@pytest.fixture
def refused(madplug):
    """What `madplug report` says of a mistake: `refused(folder, "--metric", "x")`."""
    def refused(*words):
        done = madplug("report", *words)
        assert (done.exit_code, "Traceback" in done.output) == (2, False), done.output
        return done.stderr
    return refused
