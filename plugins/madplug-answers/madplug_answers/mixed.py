"""An answer format for data in which only some samples list options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from madplug import AnswerFormat, Form, Nested, Options, Sample, Turn
from madplug_answers.choice import Choice
from madplug_answers.words import Text

if TYPE_CHECKING:
    from madplug import Debate


class MixedOptions(Options):
    """Options of `answers.mixed`."""

    choice: Nested[AnswerFormat] = Field(default_factory=Choice, description="the format of samples that list options")
    other: Nested[AnswerFormat] = Field(default_factory=Text, description="the format of the others")


class Mixed(AnswerFormat):
    """A choice where a sample lists options, and another format where it lists none.

    With `answers.text` or `answers.math` alone, "(A) Left", "Left" and "Option A" would be three answers, all of them
    different from the reference A.
    """

    name = "mixed"
    Options = MixedOptions

    def of(self, sample: Sample) -> AnswerFormat:
        """The format of a sample."""
        return self.options.choice if sample.choices else self.options.other

    def instruction(self, sample: Sample) -> str:
        """As the sample's format asks."""
        return self.of(sample).instruction(sample)

    def instruction_alone(self, sample: Sample) -> str:
        """How to give an answer without a closing line."""
        found = self.of(sample)
        return str(getattr(found, "instruction_alone", found.instruction)(sample))

    def canonical(self, text: str, sample: Sample) -> str | None:
        """As the sample's format reads it."""
        return self.of(sample).canonical(text, sample)

    async def extract(self, debate: Debate, turn: Turn, text: str) -> str | None:
        """As the sample's format finds it."""
        found = self.of(debate.sample).extract(debate, turn, text)
        return found if isinstance(found, str | None) else await found

    def same(self, a: str, b: str, sample: Sample) -> bool:
        """As the sample's format compares."""
        return self.of(sample).same(a, b, sample)

    def misfit(self, sample: Sample, references: Sequence[str]) -> str | None:
        """As the sample's format finds."""
        return self.of(sample).misfit(sample, references)

    def pattern(self, sample: Sample) -> str | None:
        """The line that the sample's format asks for."""
        return self.of(sample).pattern(sample)

    def form(self, sample: Sample, body: int | None = None) -> Form | None:
        """The form of a reply in the sample's format."""
        return self.of(sample).form(sample, body)
