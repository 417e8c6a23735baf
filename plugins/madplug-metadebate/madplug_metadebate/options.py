"""The options of `metadebate.cast`, and its prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from madplug import ModelName, Options
from madplug_prompting.ties import Tie

PROPOSAL = """{question}

{setting}

{context}Your role: {role}. {description}

Write your first statement in this role. {format}"""
CONTEXT = """What has been said so far:

{proposals}

"""
REVIEW = """{question}

{setting}

{context}Below is what each agent ({count} in all) has written, independently of the others, as its first statement \
in this role: {role}. {description}

{proposals}

Score each of them on each of these criteria, with a whole number from 1 to 5:

{criteria}

5: excellent, nothing is missing or wrong. 4: good, with small flaws. 3: fair, with flaws that matter. 2: poor, with \
serious flaws. 1: fails. Judge what is said and whether it is right; do not favour a style, a length or a place in the \
list. Reply with one JSON object that has a field for each agent ("Agent 1" and so on), which has a field for each \
criterion, by its name, with the score, and a field "explanation" with one sentence."""
CRITERIA = """{setting}

Domain of the questions: {domain}. Modality: {modality}.

One of the roles is: {role}. {description}

The other roles:
{others}

Some of the questions:

{examples}

By which 2 or 3 criteria can one judge how well an agent plays this role on such questions? They should cover whether \
the role is fulfilled and whether what is said is right, not how it is worded. Reply with one JSON object that has the \
field "criteria": a list of objects with the fields "name" (a few words) and "explanation" (one sentence)."""


class CastOptions(Options):
    """Options of `metadebate.cast`."""

    assignment: Literal["reviewed", "random", "uniform"] = Field(
        default="reviewed", description="by peer review; or a baseline: drawn once for each repeat, one model for all")
    proposals: Literal["prompt", "style"] = Field(default="prompt", description=(
        "how a model applies for a role: prompt: by the prompt `proposal`, the same for all roles; style: by the first "
        "turn of the role in the debate, all its calls and programs included (needs proposal_context = \"none\")"))
    proposal_context: Literal["sequential_winner", "independent", "none"] = Field(
        default="sequential_winner", description="what a proposal sees of earlier roles")
    reviews: Literal["batched", "single"] = Field(
        default="batched", description="all proposals for a role in one call, or a call for each")
    self_scores: bool = Field(default=True, description="count what a model gives its own proposal")
    reuse_proposals: bool = Field(default=False, description=(
        "the winning proposal is its agent's first message, which saves the call; for agents that vote"))
    default: ModelName | None = Field(default=None, description=(
        "the model where no review can be read, and for `uniform`; unset: the first"))
    tie: Tie = Field(
        default="first",
        description="among equal means; first: higher median, then first named; undecided: default")
    retries: int = Field(default=1, ge=0, le=10, description="times to ask again for scores or criteria to be read")
    setting: str = Field(default="", description="the debate in a sentence or two, shown as {setting}")
    domain: str = Field(default="", description=(
        "what the questions are about, shown to the model that makes the criteria; default: the examples' groups, such "
        "as their subjects"))
    roles: Mapping[str, str] = Field(default={},
                                     description="roles to make criteria for, and what they are there for")
    criteria: tuple[tuple[str, str], ...] | Mapping[str, tuple[tuple[str, str], ...]] = Field(default=(), description=(
        "fixed criteria instead of generated ones, each a name and what it means: [[\"Accuracy\", \"...\"], ...], for "
        "all roles, or a table of such lists by role"))
    criteria_model: ModelName | None = Field(default=None, description="makes the criteria; unset: the first")
    examples: int = Field(default=3, ge=0, le=20,
                          description="questions shown to the model that makes the criteria")
    split: str = Field(default="train", min_length=1, description=(
        "the part of the data set with these questions; where it has none, the study's own questions are shown"))
    proposal: str = Field(default=PROPOSAL, description=(
        "asks for a proposal; {question}, {setting}, {context}, {role}, {description}, {format}"))
    system: str = Field(default="", description=(
        "prompt: a system message before `proposal`; {setting}, {role}, {description}; empty: none"))
    context: str = Field(default=CONTEXT, description=(
        "{context} of proposals and reviews, where there are earlier {proposals}"))
    review_system: str = Field(default="", description=(
        "prompt: a system message before `review`; {setting}, {role}, {description}; empty: none"))
    review: str = Field(default=REVIEW, description=(
        "asks for scores; {question}, {setting}, {context} (what the proposals answer), {count}, {role}, "
        "{description}, {proposals}, {criteria}"))
    criteria_system: str = Field(default="", description=(
        "prompt: a system message before `criteria_prompt`; {setting}, {role}, {description}; empty: none"))
    criteria_prompt: str = Field(default=CRITERIA, description=(
        "asks for criteria; {setting}, {domain}, {modality}, {role}, {description}, {others} (the other roles), "
        "{examples}"))
