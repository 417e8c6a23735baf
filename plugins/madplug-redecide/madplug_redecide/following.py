"""Deciding a recorded debate again: the messages on record take the place of turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import groupby
from typing import Any

from madplug import FAILED, DebateResult, Decision, Message, Usage
from madplug.study import DebateState, change, conclude, decide, record, seat

Spent = Callable[[str], tuple[Usage, int]]
"""The usage of a recorded call, by its key, and its retries."""


def _unknown(key: str) -> tuple[Usage, int]:
    return Usage(cost_usd=None), 0


async def follow(state: DebateState, result: DebateResult, spent: Spent = _unknown) -> Decision:
    """Let the decision protocol follow a recorded debate, wave by wave, as if it were being run.

    What comes after the point at which it decides is left out. A debate that was reopened keeps its record: the
    protocol is asked once more about each of its parts, and the last decision counts. Phases run once, at the end, with
    what they noted when the debate was run; nothing is added to the record, so they cannot reopen it.
    """
    change(state, recorded=True)
    state.transcript.locked = True
    state.spent.seconds = result.seconds
    state.notes.update(without_paths(result.notes, (*result.decision_notes, *result.phase_notes)))
    state.opening_calls.extend(result.opening_calls)
    seat(state, result.agents)
    again = _Record(state, result, spent)
    decision = await again.decide()
    if any(m.id not in again.renumbered for m in result.messages if not m.retracted):
        own = only_paths(state.notes, state.decision_notes)  # the others may be about rounds that were left out
        state.notes.clear()
        state.notes.update(own)
    elif state.cell.phases:
        _merge(state.notes, only_paths(result.notes, set(result.phase_notes)))
        state.phase_notes.update(result.phase_notes)
    return await conclude(state, decision)


class _Record:
    """The messages of a recorded debate, recorded again one by one."""

    def __init__(self, state: DebateState, result: DebateResult, spent: Spent) -> None:
        self._state = state
        self._spent = spent
        self.renumbered: dict[int, int] = {}
        """New ids of the messages, by their old ones."""
        self._by_round = {n: list(messages) for n, messages in groupby(
            sorted(result.messages, key=lambda m: m.round), key=lambda m: m.round)}
        self._reopened = {m.round for m in result.messages if m.agent is None and m.stage == "reopened"}
        self._reopened |= set((result.notes.get("madplug") or {}).get("reopened", ()))
        for key in result.opening_calls:
            self._count(key)
        self._put(self._by_round.pop(0, ()))

    async def decide(self) -> Decision:
        """Decide each part of the debate; the last decision."""
        state, parts = self._state, list(self._parts())
        for part in parts:
            last, decision = part is parts[-1], None
            if part is not parts[0]:
                change(state, rounds=part[-1])
            for number in part if len(parts) > 1 else [n for n in part if n <= state.rounds]:
                change(state, round=number)
                decision = await self._run_round(self._by_round[number], decision, last=last)
                if decision is not None and last:
                    return decision
            decision = decision or await decide(state, "at_end")
        return decision or Decision.undecided("the decision protocol gave no decision")

    def _parts(self) -> Iterator[list[int]]:
        """The numbers of the rounds up to each reopening, and of those after the last one."""
        part: list[int] = []
        for number in sorted(self._by_round):
            part.append(number)
            if number in self._reopened:
                yield part
                part = []
        if part or not self._by_round:
            yield part

    async def _run_round(self, messages: Sequence[Message], decision: Decision | None, *,
                         last: bool) -> Decision | None:
        """The waves of a round, with its messages without an author. last: nothing follows a decision."""
        state, spoken = self._state, [m for m in messages if m.agent is not None]
        others = [m for m in messages if m.agent is None]
        for _, said in groupby([m for m in spoken if not m.retracted], key=lambda m: m.wave):
            wave = list(said)
            while others and others[0].id < wave[0].id:  # said when an earlier attempt at the round was retracted
                self._put([others.pop(0)])
            self._put(wave)
            decision = decision or await decide(state, "after_wave")
            if decision is not None and last:
                return decision
        while others and others[0].stage == FAILED:
            self._put([others.pop(0)])
        for key in (key for m in spoken if m.retracted for key in m.calls):
            self._count(key)
        if any(not m.retracted for m in spoken):  # not where an extension retracted the last round for good
            decision = decision or await decide(state, "after_round")
        if decision is None or not last:
            self._put(others)
        return decision

    def _put(self, messages: Sequence[Message]) -> None:
        ids = self.renumbered
        for message in messages:
            seen, altered = (tuple(ids[i] for i in old if i in ids) for old in (message.seen, message.altered))
            ids[message.id] = len(self._state.transcript)
            record(self._state, replace(message, seen=seen, altered=altered))
            for key in message.calls:
                self._count(key)

    def _count(self, key: str) -> None:
        self._state.spent.add(*self._spent(key))


def only_paths(table: Mapping[str, Any], paths: Set[tuple[str, ...]]) -> dict[str, Any]:
    """A copy of a nested mapping with nothing but these paths, as far as it has them."""
    return {key: value if (key,) in paths else only_paths(value, below) for key, value in table.items()
            if (key,) in paths or ((below := {path[1:] for path in paths if path[0] == key and len(path) > 1})
                                   and isinstance(value, Mapping))}


def _merge(table: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Add what a nested mapping has to another one, which keeps its own values."""
    for key, value in more.items():
        if isinstance(value, Mapping) and isinstance(table.get(key), dict):
            _merge(table[key], value)
        else:
            table.setdefault(key, value)


def without_paths(table: Mapping[str, Any], paths: Sequence[Sequence[str]]) -> dict[str, Any]:
    """A copy of a nested mapping without these paths, and without mappings that become empty."""
    kept: dict[str, Any] = {}
    for key, value in table.items():
        below = [path[1:] for path in paths if path and path[0] == key]
        if () in map(tuple, below):
            continue
        if below and isinstance(value, Mapping):
            value = without_paths(value, below)
            if not value:
                continue
        kept[key] = value
    return kept
