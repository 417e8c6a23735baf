"""What all puzzles share: a random generator per question, and no question twice."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice
from typing import Annotated

from pydantic import Field

from madplug import Dataset, Sample, UserError, Volatile
from madplug_prompting.tasks import TaskOptions, with_instruction

Level = Annotated[int, Field(ge=1, le=5)]
Made = tuple[str, tuple[str, ...], str]
"""A question, its choices, and the answer."""

TRIES = 2000
"""Draws for one new puzzle before the options are considered too narrow for the size."""


class PuzzleOptions(TaskOptions):
    """Options of every kind of puzzle."""

    size: Annotated[int, Volatile] = Field(default=20, ge=1, le=1_000_000, description="number of puzzles")
    seed: int = Field(default=7, ge=0, description="the seed of the generator; another seed gives other puzzles")
    difficulty: Level | tuple[Level, ...] = Field(
        default=1, description="1 to 5, or a list of levels that the puzzles take in turn")


class Puzzle(Dataset):
    """A data set that generates its questions."""

    format: str
    Options = PuzzleOptions

    @abstractmethod
    def make(self, rng: random.Random, level: int) -> Made:
        """Make one puzzle."""

    @property
    def answers(self) -> str:
        """The answer format of these puzzles."""
        return self.format

    def samples(self, split: str | None = None) -> Iterator[tuple[Sample, tuple[str, ...]]]:
        """The puzzles, generated one by one; no puzzle is in two splits."""
        seen: set[bytes] = set()
        for number in range(1, self.options.size + 1):
            level = self._level(number)
            question, choices, answer = self._fresh(seen, split or "", number, level)
            name = f"{self.name}-{self.options.seed}-{f'{split}-' if split else ''}{number:04}"
            sample = Sample(name, question, choices, group=str(level))
            yield with_instruction(sample, self.options.instruction), (answer,)

    def size(self) -> int:
        """The option `size`."""
        size: int = self.options.size
        return size

    def fingerprint(self) -> str:
        """A digest of the first puzzles: it changes when the generator does."""
        first = [(s.id, s.question, s.choices, refs) for s, refs in islice(self.samples(), 5)]
        return blake2b(repr(first).encode(), digest_size=16).hexdigest()

    def _level(self, number: int) -> int:
        levels = self.options.difficulty
        return levels if isinstance(levels, int) else levels[(number - 1) % len(levels)]

    def _fresh(self, seen: set[bytes], split: str, number: int, level: int) -> Made:
        """The first puzzle drawn for this number that is new and belongs to this split."""
        rng = random.Random(f"{self.name}/{self.options.seed}/{split}/{number}/{level}")
        for _ in range(TRIES):
            made = self.make(rng, level)
            mark = blake2b(made[0].encode(), digest_size=8).digest()
            # Half of all questions, by their digest, are for training only: the splits cannot share one.
            if mark not in seen and mark[0] % 2 == bool(split):
                seen.add(mark)
                return made
        raise UserError(f"dataset: puzzles.{self.name} found only {number - 1} distinct puzzles for these "
                        "options; set a smaller 'size' or a higher 'difficulty'")
