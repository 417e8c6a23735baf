"""Questions for simulated debaters: nothing but options, a right one, and a difficulty."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from madplug import Dataset, Options, Sample, Volatile
from madplug_prompting.prompts import letter


class QuestionOptions(Options):
    """How many, with how many options, and how hard."""

    size: Annotated[int, Volatile] = Field(default=1000, ge=1, le=10_000_000, description="number of questions")
    choices: int = Field(default=4, ge=2, le=26, description="options of a question")
    spread: Literal["even", "middle", "two"] = Field(default="even", description=(
        "difficulties from `easiest` to `hardest`; even: all as likely; middle: those between more likely; two: "
        "half of the questions each of the two"))
    easiest: float = Field(default=0.0, ge=0, le=1, description="the smallest difficulty")
    hardest: float = Field(default=1.0, ge=0, le=1, description="the largest difficulty")
    seed: int = Field(default=7, ge=0, description="of the generator; another seed gives other questions")


class Questions(Dataset):
    """Questions without content: a number of options, one of them right, and a difficulty from 0 to 1.

    For `simulator.debater`, which looks up what is right and how hard it is. The difficulty is in the
    sample's metadata; its group is `easy` (below 1/3), `middle` or `hard`.
    """

    name = "questions"
    Options = QuestionOptions

    @property
    def answers(self) -> str:
        """A letter."""
        return "answers.choice"

    def samples(self, split: str | None = None) -> Iterator[tuple[Sample, tuple[str, ...]]]:
        """The questions, made one by one. Every split has different questions."""
        rng = random.Random(f"simulator.questions/{self.options.seed}/{split or ''}")
        choices = tuple(f"option {i + 1}" for i in range(self.options.choices))
        for number in range(1, self.options.size + 1):
            hard, right = self._difficulty(rng), letter(rng.randrange(len(choices)))
            name = f"simulated-{f'{split}-' if split else ''}{number:05}"
            group = "easy" if hard < 1 / 3 else "middle" if hard < 2 / 3 else "hard"
            yield Sample(name, f"Simulated question {number}", choices, group=group,
                         metadata={"difficulty": round(hard, 6)}), (right,)

    def size(self) -> int:
        """As the options say."""
        size: int = self.options.size
        return size

    def _difficulty(self, rng: random.Random) -> float:
        o = self.options
        draw = rng.random()
        if o.spread == "middle":
            draw = (draw + rng.random()) / 2
        if o.spread == "two":
            draw = float(draw < 0.5)
        return float(o.easiest + draw * (o.hardest - o.easiest))
