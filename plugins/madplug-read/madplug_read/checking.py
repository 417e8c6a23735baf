"""Debates come from files that need not be trusted: what an outline relies on is checked first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from madplug import DebateResult, UserError
from madplug.store import DebateId

_NUMBER = (int, float)


def check_result(result: DebateResult) -> None:
    """Raise `UserError`, which names the debate and the place, if something in it does not have its type."""
    for place, values, kinds in _parts(result):
        for value in values:
            if not isinstance(value, kinds):
                id = DebateId(result.cell, result.repeat, result.sample.id)
                raise UserError(f"{id}: cannot be shown: unexpected {type(value).__name__} in {place}")


def _parts(result: DebateResult) -> Iterator[tuple[str, Iterable[Any], type | tuple[type, ...]]]:
    sample, decision, optional = result.sample, result.decision, (*_NUMBER, type(None))
    yield "references", result.references, str
    yield "sample", (*sample.choices, *sample.context, *sample.images), str
    yield "opening_calls", result.opening_calls, str
    yield "other_calls", result.other_calls, str
    yield "metrics", result.metrics.values(), optional
    for m in result.messages:
        yield f"message {m.id}: seen", (*m.seen, *m.altered), int
        yield f"message {m.id}: calls", m.calls, str
    if decision is not None:
        yield "decision: scores", decision.scores.values(), _NUMBER
        for vote in decision.votes:
            yield "decision: votes", vote.weights.values(), _NUMBER
    yield "tokens", (result.tokens.prompt, result.tokens.completion, result.tokens.cached), _NUMBER
    yield "data", (m.data for m in result.messages), Mapping
