"""How consistent an agent's answers are, and whether all agents agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Generator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import Field

from madplug import Extension, Message, Options, Reply, Review, Turn, hookimpl, maybe_await

if TYPE_CHECKING:
    from madplug import Debate

Reviewed = Review | Awaitable[Review | None] | None
"""What extensions further in make of a round."""


def steadiness(keys: Sequence[str | None]) -> float:
    """The share of the most frequent answer among all so far, including those that could not be read."""
    counts = Counter(key for key in keys if key is not None)
    return max(counts.values()) / len(keys) if counts else 0.0


async def with_confidence(debate: Debate, turn: Turn, reply: Reply, answers: int = 2) -> Reply:
    """The reply with the agent's confidence, once it has given `answers` answers including this one.

    The answer is read here and passed on, so that it is read only once.
    """
    if reply.answer == "" or not reply.answers:
        return reply
    answer, key = await debate.read(turn, reply)
    keys = debate.transcript.answers([turn.agent])[0][:debate.round - 1]
    keys += [None] * (debate.round - 1 - len(keys))
    if key is not None:
        same = (k for k in keys if k is not None and debate.answers.same(k, key, debate.sample))
        key = next(same, key)
    keys = [*keys, key]
    confidence = steadiness(keys) if len(keys) >= answers else reply.confidence
    return replace(reply, answer=answer or "", confidence=confidence)


def common_key(debate: Debate) -> str | None:
    """The answer that every voter gave in this round, or None."""
    keys = {row[debate.round - 1] if len(row) >= debate.round else None
            for row in debate.transcript.answers(debate.voters)}
    return keys.pop() if len(keys) == 1 else None


class UnanimousOptions(Options):
    """Options of `eot.unanimous`."""

    after_round: int = Field(default=1, ge=1, description="the first round that may be the last")


class Unanimous(Extension):
    """Ends the debate after a round in which every voter gave the same answer.

    For any paradigm: the decision protocol then decides as it does at the end. The debate continues while an agent
    did not speak in the round or its answer could not be read.
    """

    name = "unanimous"
    source = "Yin et al. 2023, Exchange-of-Thought, section 3 (termination by consistent output)"
    Options = UnanimousOptions

    @hookimpl(wrapper=True)
    def madplug_round_ended(self, debate: Debate) -> Generator[None, Reviewed, Reviewed]:
        """Stop when all agree, unless an extension further in has the round run again."""
        reviewed = yield
        if debate.round < self.options.after_round or common_key(debate) is None:
            return reviewed
        return self._stopped(reviewed)

    async def _stopped(self, reviewed: Reviewed) -> Review:
        review: Review = await maybe_await(reviewed) or Review()
        return review if review.redo else replace(review, stop=True)


class ConfidenceOptions(Options):
    """Options of `eot.confidence`."""

    answers: int = Field(default=2, ge=1, description="answers an agent gives before it has a confidence")
    overwrite: bool = Field(default=False, description="replace a confidence that the style gave")


class Confidence(Extension):
    """Gives every reply a confidence: how consistent its author's answers are.

    The confidence of an agent is how often it gave its most frequent answer, by the number of its rounds so
    far, this one included: 8, 8 is 1; 9, 8, 8 is 2/3. A round without a readable answer counts in the
    denominator. For any paradigm; `eot.exchange` needs no extension for it. A turn that gives no answer gets no
    confidence.
    """

    name = "confidence"
    source = "Yin et al. 2023, Exchange-of-Thought, section 3; the authors' code (first answers count)"
    gives = frozenset({"confidence"})
    Options = ConfidenceOptions

    @hookimpl(wrapper=True)
    def madplug_reply(self, debate: Debate, turn: Turn, view: Sequence[Message],
                      ) -> Generator[None, Awaitable[Reply], Awaitable[Reply]]:
        """Add the confidence to the style's reply."""
        replied = yield

        async def annotated() -> Reply:
            reply = await replied
            if reply.confidence is not None and not self.options.overwrite:
                return reply
            return await with_confidence(debate, turn, reply, self.options.answers)

        return annotated()
