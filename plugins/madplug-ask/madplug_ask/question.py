"""A data set of one question, which is written in its options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, field_validator
from typing_extensions import override

from madplug import Dataset, Options, Sample, Volatile


class QuestionOptions(Options):
    """The question."""

    question: str = Field(min_length=1, description="what is asked")
    choices: tuple[str, ...] = Field(default=(), max_length=26, description="the options to choose from, if any")
    context: tuple[str, ...] = Field(default=(), description="passages the question is about, such as files")
    images: tuple[str, ...] = Field(default=(), description="images, as `data:` URLs")
    max_usd: Annotated[float | None, Volatile] = Field(default=None, ge=0, description=(
        "the budget it was asked with, for who goes on with it; `limits.cost_usd` is what holds it"))

    @field_validator("choices")
    @classmethod
    def _differ(cls, choices: tuple[str, ...]) -> tuple[str, ...]:
        if len(choices) == 1 or len(set(choices)) < len(choices):
            raise ValueError("name two choices or more, each once")
        return choices


class Question(Dataset):
    """One question without a reference, as `madplug ask` asks it."""

    name = "question"
    Options = QuestionOptions

    @property
    def answers(self) -> str:
        """A letter if there are choices, else a few words."""
        return "answers.choice" if self.options.choices else "answers.text"

    def samples(self, split: str | None = None) -> Iterator[tuple[Sample, tuple[str, ...]]]:
        """The question; other splits are empty."""
        if split is None:
            yield Sample("question", self.options.question, self.options.choices, self.options.context,
                         self.options.images), ()

    @override
    def size(self) -> int:
        return 1
