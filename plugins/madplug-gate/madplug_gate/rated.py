"""An exchange in which everybody says how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import Field

from madplug import Message, Reply, Turn
from madplug_prompting.asking import ask_for_answer
from madplug_prompting.patterns import regex
from madplug_prompting.prompts import fill
from madplug_prompting.replies import read_percent
from madplug_som import Exchange, ExchangeOptions
from madplug_som.exchange import EXCHANGE, FIRST

if TYPE_CHECKING:
    from madplug import Debate

_STATED = regex(r"(?i)confidence[\s*:=]{1,9}(\d{1,3}(?:\.\d{1,9})?\s{0,3}%?)")
ASK = "Before the last line, say how likely your answer is to be right, as a line `Confidence: N` with N from 0 to 100."


class RatedOptions(ExchangeOptions):
    """The prompts, those of `som.exchange` among them."""

    first: str = Field(default=f"{FIRST}\n{{rate}}", description="the first turn; {question}, {format}, {rate}")
    exchange: str = Field(default=f"{EXCHANGE}\n{{rate}}", description=(
        "a turn with others to listen to; {answers} (their blocks), {question}, {format}, {rate}"))
    rate: str = Field(default=ASK, description=(
        "the request for a confidence; empty where the gate measures token probabilities"))
    sure: str = Field(default="(confidence: {percent} %)", description=(
        "what follows an answer that does not state its confidence; {percent}"))


class Rated(Exchange):
    """The exchange of `som.exchange`, with a confidence from 0 to 100 in every reply and beside every answer shown.

    A reply states it in words; where a gate measures token probabilities instead, the mean probability is shown. One
    that cannot be read is None, and the debate is among those with an unread reply.
    """

    name = "rated"
    source = "DOWN (arXiv 2504.05047)"
    gives = frozenset({"confidence"})
    Options = RatedOptions

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call."""
        text = await ask_for_answer(debate, turn, self.chat(debate, turn, view), self.options.max_characters)
        stated = _STATED.findall(text)
        confidence = read_percent(stated[-1]) if stated else None
        unread = confidence is None and self.options.rate
        return Reply(text, confidence=confidence, data={"gate": {"unparsed": True}} if unread else {})

    def later_prompt(self, debate: Debate, shown: Sequence[Message]) -> str:
        """The others' answers with their confidences."""
        return super().later_prompt(debate, [self.with_confidence(m) for m in shown])

    def with_confidence(self, message: Message) -> Message:
        """The message, with its confidence where its text does not say it."""
        if message.confidence is None or _STATED.search(message.content):
            return message
        sure = fill(self.options.sure, percent=round(100 * message.confidence))
        return replace(message, content=f"{message.content}\n{sure}")

    def fill(self, debate: Debate, template: str, **values: object) -> str:
        """A prompt with the request for a confidence too."""
        return super().fill(debate, template, rate=self.options.rate, **values).strip()
