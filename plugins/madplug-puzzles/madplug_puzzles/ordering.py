"""Which thing stands where: orders that follow from clues."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import permutations
from operator import and_

from madplug_puzzles.puzzle import Made, Puzzle

Places = Sequence[int]
"""Where each thing stands: `places[2]` is the place, from 0, of thing 2."""
COUNTS = ("", "", "", "three", "four", "five", "six", "seven")
PLACES = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh")


@dataclass(frozen=True)
class Scene:
    """A row of things, and how one says where they are."""

    opening: str
    things: tuple[str, ...]
    place: str
    """How a place is named: `{}` is the ordinal."""
    before: str
    just_before: str


SCENES = (
    Scene("On a shelf stand {} books, from left to right",
          ("red book", "green book", "blue book", "yellow book", "white book", "brown book", "grey book",
           "orange book", "purple book"),
          "{} from the left", "stands to the left of", "stands directly to the left of"),
    Scene("In a queue wait {} people",
          ("baker", "doctor", "farmer", "judge", "nurse", "pilot", "sailor", "singer", "teacher"),
          "{} in the queue", "waits ahead of", "waits directly ahead of"),
    Scene("In a race run {} animals",
          ("cat", "dog", "fox", "goat", "hare", "horse", "mule", "pig", "sheep"),
          "{} in the race", "finishes before", "finishes right before"),
    Scene("On a street are {} shops, from west to east",
          ("bakery", "bank", "bookshop", "chemist", "florist", "grocery", "hotel", "laundry", "post office"),
          "{} from the west", "is west of", "is directly west of"),
)


@dataclass(frozen=True, eq=False)
class Clue:
    """A sentence, and what it says about an order."""

    text: str
    fits: Callable[[Places], bool]


class Ordering(Puzzle):
    """Things in a row, clues about their places, and the question which one stands where.

    Difficulty 1 to 5 orders three to seven things. The clues leave exactly one order, checked against every
    permutation, and none of them can be left out. Each option is a sentence; the reference is its letter.
    """

    name = "ordering"
    format = "answers.choice"

    def make(self, rng: random.Random, level: int) -> Made:
        """Draw a row, collect clues until one order is left, drop those that are not needed."""
        scene, n = rng.choice(SCENES), level + 2
        things = rng.sample(scene.things, n)
        row = list(range(n))
        rng.shuffle(row)
        clues = needed(drawn(rng, scene, things, row))
        rng.shuffle(clues)
        asked = rng.randrange(n)
        place = scene.place.format(PLACES[asked])
        told = " ".join(clue.text for clue in clues)
        question = (f"{scene.opening.format(COUNTS[n])}: {listed(sorted(things))}. {told} "
                    f"Which one is {place}?")
        shown = rng.sample(range(n), n)
        choices = tuple(f"The {things[i]} is {place}." for i in shown)
        return question, choices, "ABCDEFG"[shown.index(row[asked])]


@lru_cache(maxsize=8)
def every_row(n: int) -> tuple[Places, ...]:
    """All orders of n things."""
    return tuple(permutations(range(n)))


def fitting(clue: Clue, n: int) -> int:
    """The orders in which a clue is true, as a set of bits over `every_row`."""
    return int("".join("1" if clue.fits(places) else "0" for places in every_row(n)), 2)


def drawn(rng: random.Random, scene: Scene, things: Sequence[str], row: Sequence[int]) -> dict[Clue, int]:
    """True clues about a row, until it is the only order left; with the orders that fit each."""
    left = (1 << len(every_row(len(row)))) - 1
    clues: dict[Clue, int] = {}
    while left & (left - 1):  # more than one bit
        clue = random_clue(rng, scene, things, row)
        fits = fitting(clue, len(row))
        if left & fits != left:
            left, clues[clue] = left & fits, fits
    return clues


def needed(clues: dict[Clue, int]) -> list[Clue]:
    """The clues without those that follow from the rest."""
    kept = dict(clues)
    for clue in clues:
        others = [fits for c, fits in kept.items() if c is not clue]
        left = reduce(and_, others) if others else 0
        if left and not left & (left - 1):
            del kept[clue]
    return list(kept)


def random_clue(rng: random.Random, scene: Scene, things: Sequence[str], row: Sequence[int]) -> Clue:
    """Something true about a row: relative places mostly, a named place seldom."""
    kind = rng.choices(("before", "just", "not", "at"), (6, 2, 2, 1))[0]
    first, second = sorted(rng.sample(range(len(row)), 2))
    a, b = row[first], row[second]
    if kind == "before":
        return Clue(f"The {things[a]} {scene.before} the {things[b]}.", lambda at: at[a] < at[b])
    if kind == "just":
        b = row[first + 1]
        return Clue(f"The {things[a]} {scene.just_before} the {things[b]}.", lambda at: at[a] + 1 == at[b])
    if kind == "not":
        place = scene.place.format(PLACES[second])
        return Clue(f"The {things[a]} is not {place}.", lambda at: at[a] != second)
    return Clue(f"The {things[a]} is {scene.place.format(PLACES[first])}.", lambda at: at[a] == first)


def listed(things: Sequence[str]) -> str:
    """`a cat, a dog and a fox`."""
    named = [f"{'an' if thing[0] in 'aeiou' else 'a'} {thing}" for thing in things]
    return f"{', '.join(named[:-1])} and {named[-1]}"
