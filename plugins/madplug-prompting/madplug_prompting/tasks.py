"""The task in words: an option of every data set, carried by its samples."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from madplug import Options, Sample


class TaskOptions(Options):
    """What every data set lets a run file say about its task."""

    instruction: str = Field(default="", description=(
        "the task in words, which every prompt shows before the question: those for personas, discussion, final "
        "answers, votes, judges, challenges and castings"))


def with_instruction(sample: Sample, instruction: str) -> Sample:
    """The sample with the task in words in its metadata, if there are any; prompts are made with `prompts`."""
    return replace(sample, metadata={**sample.metadata, "instruction": instruction}) if instruction else sample
