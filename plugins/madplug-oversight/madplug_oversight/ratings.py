"""How strong debaters are, from who won against whom."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import log
from statistics import fmean
from typing import NamedTuple

from madplug import DebateResult
from madplug_oversight.measures import is_judgement, picks, right_answer
from madplug_oversight.seats import SPEAKER

DRAWS = 500
"""Draws of samples, with replacement, for an interval."""
MIDDLE, SCALE = 1500.0, 400.0
"""The mean rating, and the difference at which the stronger debater wins ten times of eleven."""
Fit = Callable[[Sequence[Sequence[float]]], "list[float] | None"]


class Game(NamedTuple):
    """A debate of two debaters that was judged."""

    sample: str
    debaters: tuple[str, str]
    """Their models: of Debater A, and of Debater B."""
    won: float
    """By Debater A: the share of the orders in which it was judged."""
    right: float | None
    """Whether Debater A argued for the right answer; None without a reference."""

    @property
    def accuracy(self) -> float | None:
        """The share of the orders in which the judge was right."""
        return None if self.right is None else self.won if self.right else 1 - self.won


def games(results: Iterable[DebateResult]) -> Iterator[Game]:
    """The debates of two debaters with a judgement that can be read in every order."""
    for result in results:
        judged = [m for m in result.messages if is_judgement(m) and not m.retracted]
        debaters = [agent.model or "" for agent in result.agents if agent.persona.role == SPEAKER]
        if len(debaters) != 2 or not judged or None in judged[-1].data["oversight"]["picked"]:
            continue
        first, right = judged[-1].data["oversight"]["a"], right_answer(result)
        won = fmean(picks(judged[-1], first))
        yield Game(result.sample.id, (debaters[0], debaters[1]), won, None if right is None else float(first == right))


def wins(played: Iterable[Game], names: Sequence[str]) -> list[list[float]]:
    """How often the debater of a row won against that of a column. Self-play is left out."""
    table = [[0.0] * len(names) for _ in names]
    for game in played:
        a, b = map(names.index, game.debaters)
        if a != b:
            table[a][b] += game.won
            table[b][a] += 1 - game.won
    return table


def bradley_terry(table: Sequence[Sequence[float]]) -> list[float] | None:
    """Ratings by maximum likelihood; or None: a debater or a group won always, or never.

    A difference of 400 means that the stronger wins ten times as often as it loses; the mean is 1500.
    """
    import choix
    import numpy as np

    if not _connected(table):
        return None
    return [float(MIDDLE + SCALE * p / log(10)) for p in choix.ilsr_pairwise_dense(np.array(table))]


def least_squares(table: Sequence[Sequence[float]]) -> list[float] | None:
    """Ratings whose expected win rates are closest to those found, from 1500 on (the authors' code); None as above."""
    from scipy.optimize import minimize

    if not _connected(table):
        return None
    pairs = [(i, j, table[i][j] / (table[i][j] + table[j][i])) for i in range(len(table)) for j in range(i)
             if table[i][j] + table[j][i]]

    def misses(ratings: Sequence[float]) -> float:
        return sum((rate - expected(ratings[i] - ratings[j])) ** 2 for i, j, rate in pairs)

    found = minimize(misses, [MIDDLE] * len(table), method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-12,
                                                                                   "maxiter": 20_000}).x
    return [float(rating - fmean(found) + MIDDLE) for rating in found]  # only differences are determined


def expected(lead: float) -> float:
    """How often a debater wins whose rating is so much higher."""
    return float(1 / (1 + 10 ** (-lead / SCALE)))


def intervals(played: Sequence[Game], names: Sequence[str], fit: Fit) -> tuple[list[tuple[float, float]], int]:
    """The 95 % intervals of ratings, by a bootstrap over samples, and how many draws had none."""
    by_sample: dict[str, list[Game]] = defaultdict(list)
    for game in played:
        by_sample[game.sample].append(game)
    samples, rng = list(by_sample.values()), random.Random(0)
    drawn = [fit(wins((game for sample in rng.choices(samples, k=len(samples)) for game in sample), names))
             for _ in range(DRAWS)]
    columns = [sorted(column) for column in zip(*filter(None, drawn), strict=True)]
    ranges = [(column[int(0.025 * len(column))], column[int(0.975 * len(column))]) for column in columns]
    return ranges, drawn.count(None)


def _connected(table: Sequence[Sequence[float]]) -> bool:
    """Whether from each debater to each there is a chain of which everybody has once won against the next."""
    def reached(won: Callable[[int, int], float]) -> int:
        found, todo = {0}, [0]
        while todo:
            i = todo.pop()
            new = {j for j in range(len(table)) if won(i, j) > 0} - found
            found |= new
            todo += new
        return len(found)

    return reached(lambda i, j: table[i][j]) == reached(lambda i, j: table[j][i]) == len(table) > 1
