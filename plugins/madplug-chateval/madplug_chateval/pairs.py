"""Two replies to one question, and how they are named."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from madplug import Options, Sample

Form = Literal["auto", "pair", "question"]


class PairOptions(Options):
    """What is judged, and what the sides are called."""

    form: Form = Field(default="auto", description=(
        "what a sample is: a pair of replies to judge, or a question with one answer; auto: a pair when its metadata "
        "has `responses`"))
    responses: str = Field(default="responses", description="the metadata field with the two replies, as a list")


class LabelOptions(PairOptions):
    """The same, with the verdicts."""

    labels: tuple[str, str, str] = Field(default=("1", "2", "tie"), description=(
        "the verdicts, worded as in the references: the first reply, the second, neither"))


def pair_of(sample: Sample, options: PairOptions) -> tuple[str, str] | None:
    """The two replies of a sample, or None for a question with one answer.

    They are in its metadata, or with `form = "pair"` they may be its two choices.
    """
    if options.form == "question":
        return None
    found = sample.metadata.get(options.responses)
    if isinstance(found, (list, tuple)) and len(found) == 2:
        return str(found[0]), str(found[1])
    if options.form == "pair" and len(sample.choices) == 2:
        return sample.choices[0], sample.choices[1]
    return None
