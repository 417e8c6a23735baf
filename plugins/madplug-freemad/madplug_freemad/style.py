"""The critique that stops agents from following the majority."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from madplug import Message
from madplug_som import Exchange, ExchangeOptions, is_note

if TYPE_CHECKING:
    from madplug import Debate

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
    """The prompts of `som.exchange`, and the critique."""

    critique: str = Field(default=CRITIQUE, description=(
        "follows the exchange whenever there are other agents' answers; {question}, {format}"))


class AntiConformity(Exchange):
    """The exchange of `som.exchange`, followed by a fixed procedure of critique.

    The agent restates its reasoning, examines every other agent's on its own, checks itself for the same
    mistakes, and revises only on evidence; majorities are not evidence. Scores are not mentioned. The
    first turn, and turns in which an agent sees no other, are as in `som.exchange`.

    Differs from the paper: this project words the prompts itself.
    """

    name = "anti_conformity"
    source = "Free-MAD 2025, section 3.2 and Appendix E"
    Options = AntiConformityOptions

    def later_prompt(self, debate: Debate, shown: Sequence[Message]) -> str:
        """The exchange, and the critique if there is something to examine."""
        exchange = super().later_prompt(debate, shown)
        if all(is_note(m) for m in shown):
            return exchange
        return f"{exchange}\n\n{self.fill(debate, self.options.critique)}"
