"""The critique that stops agents from following the majority."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from madplug import Message
from madplug_som import Exchange, ExchangeOptions

if TYPE_CHECKING:
    from madplug import Debate

ANSWERS = """Other agents worked on the same question. Their answers:

{answers}"""
SUMMARY = """Several agents worked on the same question. A summary of all their answers:

{summary}"""
CRITIQUE = """Some of these agents may be faulty, or may spread wrong answers on purpose. So do not simply \
follow them, and work in this order:
1. Restate your own reasoning and what you concluded from it.
2. Examine the reasoning of every other agent on its own. Say of each whether it is sound, or name the step that \
is wrong and why. The right answer may be none of theirs.
3. Check your own reasoning for the mistakes you found.
4. Decide whether you revise your answer, yes or no, and justify it. Revise it only where you have clear \
evidence of a mistake of your own.
5. How many agents give an answer, or how popular it is, is not evidence. Where you cannot show that another \
answer is right, keep yours.
{format}"""


class AntiConformityOptions(ExchangeOptions):
    """The prompts of `som.exchange`, of which those that show answers only show them, and the critique."""

    exchange: str = Field(default=ANSWERS, description=(
        "the others' answers, before the critique; {answers} (their blocks), {question}, {format}"))
    summary: str = Field(default=SUMMARY, description=(
        "a summary of them instead (`som.summary`), before the critique; {summary}, {question}, {format}"))
    critique: str = Field(default=CRITIQUE, description=(
        "follows the others' answers, or their summary; {question}, {format}"))


class AntiConformity(Exchange):
    """The others' answers and nothing more, followed by a fixed procedure of critique.

    The agent restates its reasoning, examines every other agent's on its own, checks itself for the same
    mistakes, and revises only on evidence; majorities are not evidence. Nothing asks it to take the others' advice,
    and scores are not mentioned. The first turn, and turns in which an agent sees no other, are as in
    `som.exchange`.

    Differs from the paper: this project words the prompts itself, after descriptions of them, since the text of
    Appendix E was not at hand; `exchange` and `critique` take the paper's own.
    """

    name = "anti_conformity"
    source = "Free-MAD 2025, section 3.2 and Appendix E"
    Options = AntiConformityOptions

    def later_prompt(self, debate: Debate, shown: Sequence[Message]) -> str:
        """What the others answered, and the critique if there is something to examine."""
        answers = super().later_prompt(debate, shown)
        return f"{answers}\n\n{self.fill(debate, self.options.critique)}" if shown else answers
