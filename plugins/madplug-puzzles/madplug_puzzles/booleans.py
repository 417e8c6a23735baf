"""Nested expressions that are true or false."""

from __future__ import annotations

import random

from madplug_puzzles.puzzle import Made, Puzzle


class Booleans(Puzzle):
    """Nested boolean expressions; the question is whether the whole is true.

    Difficulty 1 to 5 is a depth of two to six. On average half of the expressions are true. They are
    also valid Python. The reference is `yes` or `no`.
    """

    name = "booleans"
    format = "answers.yesno"

    def make(self, rng: random.Random, level: int) -> Made:
        """Draw the answer, then expressions until one has it."""
        wanted = rng.random() < 0.5
        while True:
            text, value = expression(rng, level + 1)
            if value == wanted:
                break
        return f"Is the following expression true? {text}", (), "yes" if wanted else "no"


def expression(rng: random.Random, depth: int) -> tuple[str, bool]:
    """An expression of this depth, and its value."""
    if depth == 0:
        return leaf(rng)
    deep, other = expression(rng, depth - 1), expression(rng, rng.randrange((depth + 1) // 2))
    left, right = (deep, other) if rng.random() < 0.5 else (other, deep)
    both = rng.random() < 0.5
    text = f"({left[0]} {'and' if both else 'or'} {right[0]})"
    value = left[1] and right[1] if both else left[1] or right[1]
    return (f"not {text}", not value) if rng.random() < 0.3 else (text, value)


def leaf(rng: random.Random) -> tuple[str, bool]:
    """A truth value, a negated one, or a comparison of two numbers."""
    kind = rng.randrange(4)
    if kind == 0:
        value = rng.random() < 0.5
        return f"not {value}", not value
    if kind == 1:
        a, b = rng.randint(1, 20), rng.randint(1, 20)
        return f"{a} < {b}", a < b
    value = rng.random() < 0.5
    return str(value), value
