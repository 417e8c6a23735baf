"""Arithmetic in several steps with whole numbers."""

from __future__ import annotations

import operator
import random
from typing import Literal

from pydantic import Field, model_validator

from madplug_puzzles.puzzle import Made, Puzzle, PuzzleOptions

APPLY = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv}
WORDS = {"+": "Add {}.", "-": "Subtract {}.", "*": "Multiply the result by {}.",
         "/": "Divide the result by {}."}
MOST_FACTOR = 12
"""The largest factor or divisor, whatever the range, so that results stay readable."""


class Arithmetic(Puzzle):
    """Arithmetic in several steps, in words or as one expression, with numbers from a chosen range.

    Difficulty 1 to 5 asks for two to six steps. Every number in the question lies between `low` and `high`;
    no intermediate result is negative or a fraction. Factors and divisors are at most 12, so a range that
    starts above 12 allows only additions and subtractions. The reference is the number in digits.
    """

    name = "arithmetic"
    format = "answers.number"

    class Options(PuzzleOptions):  # noqa: D106
        low: int = Field(default=2, ge=0, le=10**12, description="smallest number in a question")
        high: int = Field(default=20, ge=1, le=10**12, description="largest number in a question")
        wording: Literal["steps", "expression"] = Field(
            default="steps", description="`steps`: a sentence per step; `expression`: one formula")

        @model_validator(mode="after")
        def _ordered(self) -> Arithmetic.Options:
            if self.low >= self.high:
                raise ValueError(f"low ({self.low}) must be smaller than high ({self.high})")
            return self

    def make(self, rng: random.Random, level: int) -> Made:
        """Draw a start and the steps."""
        start = value = rng.randint(self.options.low, self.options.high)
        steps: list[tuple[str, int]] = []
        for _ in range(level + 1):
            sign, number = self._step(rng, value)
            value = APPLY[sign](value, number)
            steps.append((sign, number))
        told = in_words(start, steps) if self.options.wording == "steps" else as_formula(start, steps)
        return told, (), str(value)

    def _step(self, rng: random.Random, value: int) -> tuple[str, int]:
        """An operation that leaves a whole number of at least zero."""
        low, high = self.options.low, self.options.high
        factors = range(max(low, 2), min(high, MOST_FACTOR) + 1)
        divisors = [f for f in factors if value and value % f == 0]
        signs = ["+", "+"] + ["-", "-"] * (value >= low) + ["*"] * bool(factors) + ["/"] * bool(divisors)
        sign = rng.choice(signs)
        if sign in "*/":
            return sign, rng.choice(factors if sign == "*" else divisors)
        return sign, rng.randint(low, high if sign == "+" else min(high, value))


def in_words(start: int, steps: list[tuple[str, int]]) -> str:
    """One sentence per step."""
    told = " ".join(WORDS[sign].format(number) for sign, number in steps)
    return f"Start with the number {start}. {told} What is the final result?"


def as_formula(start: int, steps: list[tuple[str, int]]) -> str:
    """One expression, fully bracketed."""
    formula = str(start)
    for i, (sign, number) in enumerate(steps):
        formula = f"{formula if i == 0 else f'({formula})'} {sign} {number}"
    return f"What is {formula}?"
