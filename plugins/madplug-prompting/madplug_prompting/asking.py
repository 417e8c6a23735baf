"""Asking an agent for a text that ends with its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from madplug import Options, Turn
from madplug_prompting.prompts import Chat
from madplug_prompting.replies import spoken

if TYPE_CHECKING:
    from madplug import Debate


class LengthOptions(Options):
    """How long a constrained reply may be."""

    max_characters: int | None = Field(default=None, ge=1, le=1_000_000, description=(
        "longest text before the answer, for models whose replies can be constrained to a form; default: any length"))


async def ask_for_answer(debate: Debate, turn: Turn, chat: Sequence[Chat], max_characters: int | None = None,
                         params: Mapping[str, Any] | None = None) -> str:
    """What the agent of the turn says; a model that can be constrained ends with the line of the answer format.

    Thoughts (`<think>`) are not part of it. max_characters: the longest text before that line; None for any length.
    params: sampling parameters that differ from the model's own.
    """
    form = debate.answers.form(debate.sample, body=max_characters)
    replied = await debate.ask(chat, agent=turn.agent, purpose="discuss", form=form, params=params)
    return spoken(replied.text)
