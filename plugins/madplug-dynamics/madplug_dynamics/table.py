"""What voters answered, round by round: the table that every metric here reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from madplug import Debate, DebateResult, Metric

Keys = Sequence[str | None]


def columns(debate: Debate) -> dict[int, list[str | None]]:
    """By round, the key, or None, of each voter that was to give an answer; without rounds in which none was, such as
    reviews.
    """
    asked = {(m.agent, m.round) for m in debate.transcript.messages if m.answers}
    rows = debate.transcript.answers(debate.voters)
    found = {k: [key for agent, key in zip(debate.voters, column, strict=True) if (agent.id, k) in asked]
             for k, column in enumerate(zip(*rows, strict=True), 1)}
    return {k: keys for k, keys in found.items() if keys}


def histories(debate: Debate) -> list[list[str | None]]:
    """One list per voter: its key in each round in which it was to give an answer."""
    spoke = {(m.agent, m.round) for m in debate.transcript.messages if m.answers}
    rows = zip(debate.voters, debate.transcript.answers(debate.voters), strict=True)
    return [[key for k, key in enumerate(row, 1) if (agent.id, k) in spoke] for agent, row in rows]


def plurality(keys: Keys) -> str | None:
    """The most frequent key, the first of several; None where no voter has one."""
    counts = Counter(key for key in keys if key is not None)
    return max(counts, key=lambda key: counts[key]) if counts else None


def mode(keys: Keys) -> str | None:
    """The most frequent key, if no other is as frequent."""
    ranked = Counter(key for key in keys if key is not None).most_common(2)
    return None if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]) else ranked[0][0]


def ratio(part: float, whole: float) -> float | None:
    """A share; None of nothing."""
    return part / whole if whole else None


def own_scores(metric: Metric, results: Iterable[DebateResult]) -> list[dict[str, Any]]:
    """Per debate, the parts of this metric's score, without its name, and the repeat."""
    prefix = f"{metric.score_name or metric.name}."
    return [{"repeat": result.repeat, **{name.removeprefix(prefix): value for name, value in result.metrics.items()
                                         if name.startswith(prefix)}} for result in results]


def total(scores: Iterable[dict[str, Any]], part: str) -> float:
    """The sum of a part over debates; one without it adds nothing."""
    return sum(score.get(part) or 0.0 for score in scores)
