"""Votes that were also held with the candidates presented in other ways: what each would have decided."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec


class _Solution(msgspec.Struct, gc=False):
    number: int = 0
    key: str | None = None


class _Poll(msgspec.Struct, gc=False):
    leading: list[int] = []
    """The numbers of the solutions that lead: with the most points, or where ranks are summed with the fewest."""


class _Vote(msgspec.Struct, gc=False):
    presentation: str = ""
    solutions: list[_Solution] = []
    leading: list[int] = []
    alterations: dict[str, _Poll] = {}


class _Notes(msgspec.Struct, gc=False):
    voting: list[_Vote] = []


class Alterations:
    """The last vote of each debate of a cell, by presentation."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {}

    def add(self, notes: msgspec.Raw, right: Collection[str] | None) -> None:
        """The notes of one debate; right: the answers that are, or None if that is not known."""
        try:
            votes = [vote for vote in _DECODE(notes).voting if vote.alterations]
        except msgspec.ValidationError:
            return  # notes of another shape are another plugin's
        if not votes or right is None:
            return
        last = votes[-1]
        keys = {solution.number: solution.key for solution in last.solutions}
        for how, leading in ((last.presentation, last.leading), *((h, p.leading) for h, p in last.alterations.items())):
            counts = self._counts.setdefault(how, [0, 0, 0])
            decided = len(leading) == 1 and leading[0] in keys
            counts[0] += 1
            counts[1] += not decided
            counts[2] += decided and keys[leading[0]] in right

    def figures(self) -> list[dict[str, Any]]:
        """By presentation, the official one first: of how many votes, how many were undecided, how many right."""
        return [{"presentation": how, "votes": n, "undecided": undecided / n, "right": right / n}
                for how, (n, undecided, right) in self._counts.items()]


_DECODE = msgspec.json.Decoder(_Notes).decode
