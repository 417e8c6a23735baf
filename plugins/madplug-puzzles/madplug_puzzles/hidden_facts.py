"""Questions about a made-up passage, which a judge may be kept from reading."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from pydantic import Field

from madplug import Sample
from madplug_puzzles.puzzle import Made, Puzzle, PuzzleOptions

PEOPLE = ("Ada", "Bruno", "Clara", "Dmitri", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas")
THINGS = ("lantern", "violin", "ledger", "compass", "kettle", "telescope", "map", "clock", "chest", "painting")
PLACES = ("attic", "barn", "cellar", "library", "workshop", "kitchen", "stable", "tower", "garden", "chapel")
REASONS = ("because it was in the way", "to keep it dry", "before the guests came", "as the letter had asked",
           "when nobody was looking", "after a long argument", "without telling anybody", "just before noon")


class HiddenFactsOptions(PuzzleOptions):
    """Options of `puzzles.hidden_facts`."""

    hidden_from: tuple[str, ...] = Field(default=("judge",), description=(
        "the roles that may not read the passage, such as a judge who has to rely on a debate about it"))


class HiddenFacts(Puzzle):
    """A made-up story about things that are moved, and the question where one of them ends up, with two choices.

    The wrong choice is a place where it was before, so that true sentences speak for both. Difficulty 1 to 5 is one to
    five further things that are moved meanwhile. The passage is the sample's context and is hidden from the role
    `judge`; the reference is the letter of the right place.
    """

    name = "hidden_facts"
    format = "answers.choice"
    Options = HiddenFactsOptions

    def make(self, rng: random.Random, level: int) -> Made:
        """Draw who moves what where; the question and the passage are one text until they are divided."""
        things = rng.sample(THINGS, level + 1)
        routes = {thing: rng.sample(PLACES, 3) for thing in things}
        steps = [(thing, i) for thing in things for i in range(3)]
        rng.shuffle(steps)
        steps.sort(key=lambda step: step[1])  # each thing's own steps stay in order
        story = " ".join(_step(rng, thing, routes[thing], i) for thing, i in steps)
        asked = things[0]
        wrong, right = routes[asked][1:]
        choices = [f"In the {right}", f"In the {wrong}"]
        rng.shuffle(choices)
        question = f"{story}\n\nWhere is the {asked} at the end of the story?"
        return question, tuple(choices), "AB"[choices.index(f"In the {right}")]

    def samples(self, split: str | None = None) -> Iterator[tuple[Sample, tuple[str, ...]]]:
        """The questions, each with its passage as context."""
        for sample, references in super().samples(split):
            passage, _, question = sample.question.partition("\n\n")
            hidden = {"context": self.options.hidden_from} if self.options.hidden_from else {}
            yield replace(sample, question=question, context=(passage,), hidden_from=hidden), references


def _step(rng: random.Random, thing: str, route: list[str], i: int) -> str:
    """A sentence about where a thing is put."""
    if i == 0:
        return f"The {thing} had always been in the {route[0]}."
    return f"{rng.choice(PEOPLE)} carried the {thing} to the {route[i]} {rng.choice(REASONS)}."
