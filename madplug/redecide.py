"""Deciding recorded debates again, another way: no debate is held, and only the new decision may ask a model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from madplug.config import ResolvedStudy, Resolver
from madplug.debate import Debate, Spent, decide_again
from madplug.errors import ModelError, UserError
from madplug.records import DebateResult, Sample
from madplug.registry import Registry
from madplug.runfile import overlay, read
from madplug.setup import Setup
from madplug.store import StudyStore
from madplug.study import StudyRun


def resolve_again(folder: Path, decision: str, options: Mapping[str, Any]) -> ResolvedStudy:
    """The study of a directory with another decision in every cell."""
    path = folder / "study.toml"
    if not path.is_file():
        raise UserError(f"{folder}: no study here (there is no study.toml)")
    table = read(path, (), {})
    for cell in table["cells"]:
        cell.pop("dataset", None)
        cell["debate"] = overlay(cell["debate"], {"decision": {"use": decision, **options}})
    return Resolver(table, folder, Registry(), recorded=True).resolve()


class DecideAgain(StudyRun):
    """A run whose debates are those of another study's directory.

    A debate's calls and tokens are those it had when it was held, the old decision's included, and what the new
    decision asks for.
    """

    recorded: StudyStore

    async def _samples(self, setup: Setup, repeat: int) -> AsyncIterator[tuple[Sample, tuple[str, ...]]]:
        for result in self.recorded.results(setup.cell.slug):
            if result.repeat == repeat:
                yield result.sample, result.references

    async def _run_debate(self, debate: Debate) -> None:
        result = self.recorded.result(debate.cell.slug, debate.repeat, debate.sample.id)
        assert result is not None  # it was read a moment ago
        if result.error:
            raise ModelError(f"the recorded debate failed: {result.error}")
        debate.spent = spent_by(result)
        await decide_again(debate, result)
        debate.notes["decided_again"] = {"calls": debate.spent.calls - result.calls, "was": _outcome(result)}


def spent_by(result: DebateResult) -> Spent:
    """What a recorded debate has used."""
    used = result.tokens
    return Spent(result.calls, result.retries, used.prompt, used.completion, used.cached, used.cost_usd)


def price(resolved: ResolvedStudy, recorded: StudyStore) -> int:
    """The most model calls the new decisions can make."""
    held: dict[str, int] = {}
    for row in recorded.figures():
        held[row["cell"]] = held.get(row["cell"], 0) + (row["error"] is None)
    return sum(cell.decision.calls(cell.plan) * held.get(cell.slug, 0) for cell in resolved.plan.cells)


def _outcome(result: DebateResult) -> Sequence[Any]:
    decision = result.decision
    return (decision.key, decision.agreed) if decision else (None, False)
