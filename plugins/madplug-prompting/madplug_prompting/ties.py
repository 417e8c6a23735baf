"""Who leads a count, and what a tie leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from madplug import Debate

Tie = Literal["first", "random", "undecided", "lexical"]
"""The type of an option that says what a tie leads to; what each value means: `break_tie`."""

K = TypeVar("K")


def leaders(scores: Mapping[K, Any]) -> list[K]:
    """The keys with the highest score, in the order of the mapping; none where it is empty."""
    highest = max(scores.values(), default=None)
    return [key for key, score in scores.items() if score == highest]


def highest(scores: Iterable[tuple[str | None, float]]) -> dict[str, float]:
    """The highest score of each key, in the order in which they first come; without those of no key."""
    found: dict[str, float] = {}
    for key, score in scores:
        if key:
            found[key] = max(score, found.get(key, score))
    return found


def has_clear_lead(counts: Mapping[K, float], unread: int) -> bool:
    """Whether one answer leads among all voters, and not only among those that could be read.

    counts: votes by answer. unread: voters without a readable answer; the leader needs more votes than that, too.
    """
    best = leaders(counts)
    return len(best) == 1 and counts[best[0]] > unread


def break_tie(debate: Debate, candidates: Sequence[K], tie: Tie, scope: str,
              name: Callable[[K], Any] | None = None) -> K | None:
    """The one of several equal candidates that the policy picks, or None. A single candidate needs no policy.

    candidates: in the order in which they were first given on record, comparable with each other. scope: of
    `debate.rng`, one for each decision. name: what `lexical` compares instead of the candidates themselves.

    `first`: the candidate given first. `lexical`: the smallest. `undecided`: None. `random`: drawn from
    `debate.rng(scope)` after sorting, so that the draw depends on the seed and the candidates, not on their order.
    """
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    ordered: list[Any] = list(candidates)
    if tie == "random":
        drawn: K = debate.rng(scope).choice(sorted(ordered))
        return drawn
    if tie == "lexical":
        smallest: K = min(ordered, key=name)
        return smallest
    return candidates[0] if tie == "first" else None
