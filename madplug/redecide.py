"""Recorded debates decided again: no agent is asked, and calls that were answered before are not repeated."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path
from typing import Any

from madplug.config import ResolvedStudy, Resolver
from madplug.config.read import overlay, read
from madplug.context import Debate, state_of
from madplug.debate.loop import REOPENED, conclude, decide
from madplug.debate.state import DebateState, without_paths
from madplug.errors import ModelError, UserError, nearest_or_all
from madplug.records import DebateId, DebateResult, Decision, Message, Usage
from madplug.registry.installed import Registry
from madplug.registry.local import file_of
from madplug.store import Reader
from madplug.study.compatibility import strings
from madplug.study.setup import Sampled, Setup
from madplug.study.trust import Ask, destinations, is_own

_WRITTEN = frozenset({"name", "seed", "repeats", "share_completions", "oracle", "cells"})
"""The keys of an expanded run file; observers, execution and limits belong to a run."""


def _do_not_ask(what: list[str]) -> None:
    """For callers that have asked already, or know who made the study."""


def resolve_again(folder: Path, decision: str, options: Mapping[str, Any], name: str = "",
                  pattern: str = "*", ask: Ask = _do_not_ask) -> ResolvedStudy:
    """The study in a directory, with another decision protocol in every cell.

    name: of the new study; by default that of the old one. pattern: only the cells whose names match it, and those
    that they are matched to. ask: see `recorded_table`.
    """
    table = recorded_table(folder, ask=ask)
    table["cells"] = chosen(table["cells"], pattern)
    table["name"] = name or table["name"]
    for cell in table["cells"]:
        cell.pop("dataset", None)
        cell["debate"] = overlay(cell["debate"], {"decision": {"use": decision, **options}})
    resolved = Resolver(table, folder, Registry(), recorded=True).resolve()
    ask(sent_by(resolved))
    return resolved


def sent_by(resolved: ResolvedStudy) -> list[str]:
    """What the models and services of a study may send, in words."""
    services = (service for cell in resolved.plan.cells for service in cell.services.values())
    return destinations([*resolved.plan.models.values(), *services])


def recorded_table(folder: Path, others: Sequence[Path] = (), ask: Ask = _do_not_ask) -> dict[str, Any]:
    """The expanded run file of a study. Raises `UserError` if there is none.

    It may be someone else's, so it may not name a local file in its own directory or in those of the other studies.
    madplug writes absolute paths, so a relative one, which could lead to a file beside the study, is refused too, and
    so is what madplug does not write there. ask: is given the other local files, which will be executed.
    """
    path = folder / "study.toml"
    if not path.is_file():
        raise UserError(f"{folder}: no study here (there is no study.toml)")
    table = read(path, (), {})
    if odd := sorted(table.keys() - _WRITTEN):
        raise UserError(f"{path}: has '{odd[0]}', which madplug does not write there; it may be somebody's run file")
    files = []
    for use in strings(table):
        file = file_of(use, folder)
        if file is None:
            continue
        if "/".join(file.parts).lstrip("/").startswith(("proc/", "dev/")):
            raise UserError(f"{path}: names {use}, which is a different file for every process; nothing is executed")
        if any(file.resolve().is_relative_to(place.resolve()) for place in (folder, *others)):
            raise UserError(f"{path}: names {use}, which is in the study's own directory, where nothing is executed")
        if not use.startswith(str(file)):
            raise UserError(f"{path}: names {use}, whose path is not absolute, so madplug did not write it; nothing "
                            "is executed")
        files.append(f"executes {file}")
    if not is_own(folder):
        ask([*dict.fromkeys(files), *_executing(table)])
    return table


def _executing(table: Mapping[str, Any]) -> list[str]:
    """The components of an expanded run file whose options name code, in words."""
    used = set(strings(table))
    return [f"executes what the options of {offer.name} name" for offer in Registry().offers()
            if offer.component.executes and used & {offer.name, offer.name.rpartition(".")[2]}]


def chosen(cells: Sequence[dict[str, Any]], pattern: str) -> list[dict[str, Any]]:
    """The cells whose names match a pattern (`*`, `?`, `[...]`, or the name itself), and those they are matched to.

    Raises `UserError` if there is none.
    """
    names = {cell["name"] for cell in cells if pattern == cell["name"] or fnmatchcase(cell["name"], pattern)}
    if not names:
        every = [cell["name"] for cell in cells]
        raise UserError(f"--cell {pattern}: no cell has such a name{nearest_or_all(pattern, every)}")
    partners = {cell["match"]["cell"] for cell in cells if cell["name"] in names and cell.get("match")}
    return [cell for cell in cells if cell["name"] in names | partners]


def most_calls(resolved: ResolvedStudy, recorded: Reader, *, deciding: bool = True) -> int:
    """The most model calls that deciding again can make: those of decisions, phases and metrics.

    deciding: False for scoring, which makes only those of metrics.
    """
    debates: dict[str, int] = {}
    for row in recorded.figures():
        debates[row["cell"]] = debates.get(row["cell"], 0) + (row["error"] is None)
    return sum(debates.get(cell.slug, 0) * sum(
        component.calls(cell.plan)
        for component in (*((cell.decision, *cell.phases) if deciding else ()), *cell.metrics.values()))
        for cell in resolved.plan.cells)


class Redecider:
    """Takes samples and debates from a record and lets another decision protocol decide them."""

    def __init__(self, recorded: Reader) -> None:
        self.recorded = recorded

    def options(self) -> dict[str, Any]:
        """The arguments of `StudyRun`."""
        return {"runner": self.run, "samples": self.samples, "reuse": [self.recorded]}

    async def samples(self, setup: Setup, repeat: int) -> AsyncIterator[Sampled]:
        """The samples of a cell's recorded debates."""
        for result in self.recorded.debates(setup.cell.slug):
            if result.repeat == repeat and (result.decision or result.error):
                yield result.sample, result.references

    async def run(self, debate: Debate) -> Decision:
        """Decide one recorded debate. Raises `ModelError` if the recorded debate failed."""
        state = state_of(debate)
        result = self.recorded.debate(DebateId(state.cell.slug, state.repeat, state.sample.id))
        if result is None:
            raise ModelError("the debate is no longer on record")
        if result.error:
            raise ModelError(f"the recorded debate failed: {result.error}")
        return await follow(debate, result, self.recorded)


async def follow(debate: Debate, result: DebateResult, recorded: Reader | None = None) -> Decision:
    """Let the decision protocol follow a recorded debate, wave by wave, as if it were being run.

    Notes of the recorded decision and phases are left out, and so are calls made after the point at which this
    decision is reached. recorded: where the calls behind the messages are looked up, to count their usage.
    """
    state = state_of(debate)
    state.transcript.locked = True
    state.notes.update(without_paths(result.notes, result.decision_notes))
    state.opening_calls += result.opening_calls
    state.seat(result.agents)
    recording = _Recording(state, result, recorded)
    recording.open()
    state.round = 1
    decision = await recording.run_rounds(debate)
    if decision is None:
        decision = await decide(debate, "at_end") or Decision.undecided("the decision protocol gave no decision")
    return await conclude(debate, decision, recording.run_rounds)


class _Recording:
    """The rounds of a recorded debate, recorded again one by one."""

    def __init__(self, state: DebateState, result: DebateResult, recorded: Reader | None) -> None:
        self._state = state
        self._recorded = recorded
        self._opening_calls = result.opening_calls
        self._by_round = {n: list(messages) for n, messages in groupby(
            sorted(result.messages, key=lambda m: m.round), key=lambda m: m.round)}

    def open(self) -> None:
        """What was on record before round 1."""
        for key in self._opening_calls:
            self._count(key)
        self._put(self._by_round.get(0, ()))

    async def run_rounds(self, debate: Debate) -> Decision | None:
        """Go through the rounds to a decision, or None if no further round was recorded."""
        state = self._state
        if state.round not in self._by_round:
            state.round -= 1
            return None
        self._recognise_reopening()
        while state.round in self._by_round and state.round <= state.rounds:
            decision = await self._run_round(debate)
            if decision is not None:
                return decision
            state.round += 1
        state.round -= 1
        return await decide(debate, "at_end")

    def _recognise_reopening(self) -> None:
        """What a phase has said now stands for what it said then, for those who saw it."""
        said = self._state.transcript.messages[-1:]
        if said and said[0].stage == REOPENED:
            then = (m for m in self._by_round[self._state.round - 1] if m.stage == REOPENED)
            self._state.renumbered.update((m.id, said[0].id) for m in then)

    async def _run_round(self, debate: Debate) -> Decision | None:
        """The waves of a round, and then its messages without an author."""
        spoken = [m for m in self._by_round[self._state.round] if m.agent is not None]
        for _, wave in groupby([m for m in spoken if not m.retracted], key=lambda m: m.wave):
            self._put(list(wave))
            decision = await decide(debate, "after_wave")
            if decision is not None:
                return decision
        for key in (key for m in spoken if m.retracted for key in m.calls):
            self._count(key)
        held = any(not m.retracted for m in spoken)  # not where an extension retracted the last round for good
        decision = await decide(debate, "after_round") if held else None
        if decision is None:
            said = (m for m in self._by_round[self._state.round] if m.agent is None)
            self._put([m for m in said if m.stage != REOPENED])  # the phase itself says it again
        return decision

    def _put(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self._state.record_again(message)
            for key in message.calls:
                self._count(key)

    def _count(self, key: str) -> None:
        call = self._recorded.call(key) if self._recorded is not None else None
        if call is None:
            self._state.spent.add(Usage(cost_usd=None))
        else:
            self._state.spent.add(call.completion.usage, call.retries)
