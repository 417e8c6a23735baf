"""Stops a debate when the answers no longer come closer together."""

from collections import Counter
from math import log2

from pydantic import Field

from madplug import Extension, Options, Review, hookimpl


class Stalled(Extension):
    """Stops the debate when the entropy of the answers has not fallen for some rounds."""

    name = "stalled"

    class Options(Options):
        """Options of `stall.stalled`."""

        rounds: int = Field(default=2, ge=1, description="rounds without a fall after which the debate is stopped")

    @hookimpl
    def madplug_round_ended(self, debate):
        """Stop, or leave the round as it is; the decision protocol decides either way."""
        course = [entropy(keys) for keys in zip(*debate.transcript.answers(debate.voters), strict=True)]
        recent = course[-self.options.rounds - 1:]
        if len(recent) <= self.options.rounds or any(recent[i + 1] < recent[i] for i in range(self.options.rounds)):
            return None
        debate.notes["stall"] = {"stopped_after": debate.round, "entropy": course}
        return Review(stop=True)


def entropy(keys):
    """In bits; answers that could not be read do not count."""
    counts = Counter(key for key in keys if key is not None)
    total = sum(counts.values())
    return -sum(n / total * log2(n / total) for n in counts.values()) + 0.0


@hookimpl
def madplug_register_extensions():
    """Offer the stop."""
    return [Stalled]
