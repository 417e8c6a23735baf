"""Solved questions of a training split, and those nearest to a question."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from madplug import Embedder, Offers, Options, Sample, ServiceName
from madplug_prompting.prompts import fill, question_parts, user
from madplug_prompting.replies import spoken
from madplug_prompting.vectors import Vector, cosine

if TYPE_CHECKING:
    from madplug import Debate, Setup

Solved = tuple[str, str]
"""A question, and the solution that was written for it."""


class NeighbourOptions(Options):
    """Which solved questions stand before the task."""

    neighbours: int = Field(default=0, ge=0, le=50, description=(
        "solved training questions before the task, the nearest to it; the paper takes 5; 0: none, as in DebateLLM"))
    embedder: Annotated[ServiceName, Offers(Embedder)] | None = Field(default=None, description=(
        "with `neighbours`: the [services.NAME] by whose embeddings questions are near"))
    split: str = Field(default="train", min_length=1, description="with `neighbours`: the split that is solved")
    solve: int = Field(default=200, ge=1, le=100_000, description=(
        "with `neighbours`: questions that are solved, from the first, one call each for the whole study"))
    example: str = Field(default="Example:\n{question}\n\n{solution}", description=(
        "prompt: one solved question before the task. {question}, {solution}"))


async def solutions(setup: Setup, options: NeighbourOptions, task: str) -> list[Solved]:
    """The training questions that the first agent's model answers rightly, with its solutions; made once for a study.

    task: the prompt, with {question} and {format}.
    """
    answers = setup.cell.answers

    async def solved(sample: Sample, references: Sequence[str]) -> Solved | None:
        question = question_parts(sample)
        prompt = fill(task, question=question, format=answers.instruction(sample))
        text = spoken((await setup.ask([user(sample, prompt)], purpose="example", params={"temperature": 0})).text)
        right, said = [answers.canonical(r, sample) for r in references], answers.canonical(text, sample)
        reached = said is not None and any(r is not None and answers.same(said, r, sample) for r in right)
        return (question, text) if reached else None

    async def make() -> list[Solved]:
        rows = islice(setup.samples(options.split), options.solve)
        found = await setup.ask_all([solved(*row) for row in rows])
        return [one for one in found if one is not None]

    facts = [setup.model_identity(), setup.cell.dataset_key, task, options.split, options.solve]
    digest = blake2b(json.dumps(facts).encode(), digest_size=6).hexdigest()
    kept: list[Solved] = await setup.keep(f"baselines.shuffled:{digest}", make)
    return [(question, text) for question, text in kept]  # a stored pair is a list


async def examples(debate: Debate, options: NeighbourOptions, solved: Sequence[Solved],
                   vectors: Sequence[Vector]) -> list[str]:
    """The nearest solved questions, the nearest last; one that is the question itself is left out."""
    if not solved or options.embedder is None:
        return []
    question = question_parts(debate.sample)
    [here] = await debate.service(options.embedder, Embedder).embed([question])
    others = [i for i, (asked, _) in enumerate(solved) if asked != question]
    nearest = sorted(others, key=lambda i: -cosine(here, vectors[i]))[:options.neighbours]
    return [fill(options.example, question=solved[i][0], solution=solved[i][1]) for i in reversed(nearest)]
