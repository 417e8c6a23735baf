"""Stops a debate when the answers no longer come closer together."""

from collections import Counter
from dataclasses import replace
from math import log2

from pydantic import Field

from madplug import Extension, Options, Review, hookimpl, maybe_await


class StalledOptions(Options):
    """Options of `stall.stalled`."""

    rounds: int = Field(default=2, ge=1, description="rounds without a decrease after which the debate is stopped")


class Stalled(Extension):
    """Stops the debate when the entropy of the answers has not decreased for some rounds."""

    name = "stalled"

    Options = StalledOptions

    @hookimpl(wrapper=True)
    def madplug_round_ended(self, debate):
        """Stop the debate if it stalls, unless an inner extension retracts the round."""
        review = yield
        return self.reviewed(review, debate)

    async def reviewed(self, review, debate):
        """The review of the inner extensions, with a stop if the debate has stalled."""
        review = await maybe_await(review) or Review()
        if review.redo or not self.has_stalled(debate):
            return review
        return replace(review, stop=True)

    def has_stalled(self, debate):
        """Whether the entropy has not decreased for `rounds` rounds; if so, it is noted with the debate."""
        course = [entropy(keys) for keys in zip(*debate.transcript.answers(debate.voters), strict=True)]
        recent = course[-self.options.rounds - 1:]
        if len(recent) <= self.options.rounds or any(recent[i + 1] < recent[i] for i in range(self.options.rounds)):
            return False
        debate.notes["stall"] = {"stopped_after": debate.round, "entropy": course}
        return True


def entropy(keys):
    """Entropy in bits; answers that could not be read do not count."""
    counts = Counter(key for key in keys if key is not None)
    total = sum(counts.values())
    return -sum(n / total * log2(n / total) for n in counts.values()) + 0.0


@hookimpl
def madplug_register_extensions():
    """Register extensions."""
    return [Stalled]
