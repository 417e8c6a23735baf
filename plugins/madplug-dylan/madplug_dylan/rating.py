"""A turn: revise the answer, and rate all answers of the round before."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from madplug import Message, Reply, Style, Turn
from madplug_prompting.asking import LengthOptions, ask_for_answer
from madplug_prompting.prompts import fill, merged, question_parts, user

if TYPE_CHECKING:
    from madplug import Debate

SYSTEM = """{persona}
You take part in a debate. Give the reasons for your answer."""
LATER = """{question}

The agents in this debate have answered:

{answers}

Any of these answers may be wrong, and so may all of them. Think the question through again with them in mind, and \
give an updated answer. Also rate all {count} answers for how well they are reasoned, from 1 (worst) to 5 (best), in \
the order above, on a line before your last one: one list in double brackets with {count} numbers, like [[2, 5]] for \
two answers. {format}"""
_LIST = re.compile(r"\[\[([^\[\]\n]{0,2000})\]\]")


class RatingOptions(LengthOptions):
    """The prompts."""

    system: str = Field(default=SYSTEM, description=(
        "the system message; {persona} (the persona's description), {name}"))
    first: str = Field(default="{question}\n\n{format}", description="the first turn; {question}, {format}")
    later: str = Field(default=LATER, description=(
        "a turn with answers to rate; {question}, {format}, {answers} (an item each), {count}"))
    item: str = Field(default="Answer {number}:\n{content}", description="one item; {number} (from 1), {content}")


class Rating(Style):
    """Answers alone, then revises in view of the replies shown and rates each of them from 1 to 5.

    Every request is fresh: who the agent is, and one message with the question and the replies, the agent's own among
    them and not marked, numbered in the order of the view. The last list in double brackets counts: what is no whole
    number is 0, and a list of the wrong length is all zeros. The ratings become weights of those rated, as shares of
    their sum, in the message's data under `dylan`.
    """

    name = "rating"
    source = "Liu et al. 2023 (DyLAN), section 3.3; the authors' code for MMLU"
    moves = frozenset({"draft", "improve"})
    shows_images = True
    Options = RatingOptions

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call."""
        options, persona, form = self.options, turn.agent.persona, debate.answers.instruction(debate.sample)
        answers = "\n\n".join(fill(options.item, number=i, content=m.content) for i, m in enumerate(view, 1))
        text = fill(options.later if view else options.first, question=question_parts(debate.sample), format=form,
                    answers=answers, count=len(view))
        system = fill(options.system, persona=persona.description, name=persona.name).strip()
        chat = merged([{"role": "system", "content": system}, user(debate.sample, text)])
        said = await ask_for_answer(debate, turn, chat, options.max_characters)
        if not view:
            return Reply(said)
        ratings = read_ratings(said, len(view))
        weights = weights_of(ratings or [0] * len(view))
        rated = {str(m.agent): weight for m, weight in zip(view, weights, strict=True)}
        asked = turn.data.get("dylan", {})
        unread = ratings is None
        return Reply(said, data={"dylan": {**asked, "weights": rated, "unread": unread,
                                           "unparsed": unread or asked.get("ranker_unread", False)}})


def read_ratings(text: str, count: int) -> list[int] | None:
    """The last list in double brackets, 0 for what is no whole number; None if it has not `count` items."""
    found = _LIST.findall(text)
    items = [_number(item) for item in found[-1].split(",")] if found else []
    return items if len(items) == count else None


def _number(item: str) -> int:
    try:
        return int(item.replace(" ", ""))
    except ValueError:
        return 0


def weights_of(ratings: Sequence[int]) -> list[float]:
    """Ratings as shares of their sum, after they were limited to 0 to 5; equal shares if the sum is 0."""
    limited = [min(max(rating, 0), 5) / 5 for rating in ratings]
    total = sum(limited)
    return [value / total if total else 1 / len(limited) for value in limited]
