"""Counting: from ballots to scores, and who leads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

Weights = Mapping[int, Fraction]
"""What one ballot gives, by the position of a solution on the list."""


@dataclass(frozen=True)
class Tally:
    """The count of one vote."""

    scores: tuple[Fraction, ...]
    leading: tuple[int, ...]
    """The solutions with the best score; more than one is a tie, none means that no ballot was valid."""

    @property
    def tie(self) -> bool:
        """Whether several lead."""
        return len(self.leading) > 1


def count(ballots: Iterable[Weights], solutions: int, *, lowest: bool = False) -> Tally:
    """The sum of all ballots. lowest: the smallest sum leads, among the solutions that any ballot mentions."""
    scores, mentioned = [Fraction(0)] * solutions, set[int]()
    for ballot in ballots:
        for solution, weight in ballot.items():
            scores[solution] += weight
            mentioned.add(solution)
    if not mentioned:
        return Tally(tuple(scores), ())
    best = min(scores[i] for i in mentioned) if lowest else max(scores)
    return Tally(tuple(scores), tuple(i for i in range(solutions) if scores[i] == best and i in mentioned))


def equal(chosen: Iterable[int]) -> Weights:
    """One each: a vote, or an approval ballot."""
    return dict.fromkeys(chosen, Fraction(1))


def by_place(ranked: Sequence[int], voters: int) -> Weights:
    """Points by place: for the first as many as there are voters, but at most five, and one less for each after."""
    return {solution: Fraction(min(5, voters) - place) for place, solution in enumerate(ranked)}


def by_rank(ranked: Sequence[int]) -> Weights:
    """The place itself, from 0; the lowest sum is best."""
    return {solution: Fraction(place) for place, solution in enumerate(ranked)}


def within(points: Mapping[int, int], budget: int, *, exact: bool, rescale: bool) -> Weights | None:
    """Points within a budget, or None. Too many are rejected, or rescaled to the budget."""
    total = sum(points.values())
    if total > budget and rescale:
        return {solution: Fraction(given * budget, total) for solution, given in points.items()}
    if total == 0 or total > budget or (exact and total < budget):
        return None
    return {solution: Fraction(given) for solution, given in points.items()}
