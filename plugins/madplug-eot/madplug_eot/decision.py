"""When an exchange ends."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from madplug import Decision, DecisionProtocol, Options
from madplug_eot.confidence import common_key

if TYPE_CHECKING:
    from madplug import Debate


class Consistent(DecisionProtocol):
    """Ends when all voters give the same answer; after the last round the most frequent one stands.

    Checked after every round, the first included, so that agents who agree at once never exchange anything.
    An answer that could not be read is no answer: it prevents an early end and is not counted at the last
    round. The plurality is a fallback (`agreed` is false); a tie goes to the answer of the earliest agent
    unless `tie` says otherwise.
    """

    name = "consistent"
    source = "Yin et al. 2023, Exchange-of-Thought, section 3"

    class Options(Options):
        """Options of `eot.consistent`."""

        tie: Literal["first", "random", "undecided", "lexical"] = Field(
            default="first", description="which of several most frequent answers stands after the last round")

    def after_round(self, debate: Debate) -> Decision | None:
        """All of one mind?"""
        key = common_key(debate)
        if key is None:
            return None
        return Decision(key, agreed=True, scores={key: len(debate.voters)}, reason="every voter's answer")

    def at_end(self, debate: Debate) -> Decision:
        """The plurality of the last round."""
        rows = debate.transcript.answers(debate.voters)
        last = (row[debate.round - 1] for row in rows if 0 < debate.round <= len(row))
        counts = Counter(key for key in last if key is not None)
        if not counts:
            return Decision.undecided("no voter gave an answer that could be read in the last round")
        agreed = self.after_round(debate)
        if agreed is not None:
            return agreed
        best = [key for key, n in counts.items() if n == max(counts.values())]
        if len(best) > 1 and self.options.tie == "undecided":
            return Decision(None, scores=dict(counts), tie=True, reason="several answers are as frequent")
        key = best[0] if len(best) == 1 else self._choose(debate, best)
        return Decision(key, scores=dict(counts), tie=len(best) > 1, fallback=True,
                        reason="the most frequent answer of the last round")

    def _choose(self, debate: Debate, best: list[str]) -> str:
        """Break a tie; `best` is in the order of the agents."""
        if self.options.tie == "random":
            return debate.rng("eot.consistent:tie").choice(sorted(best))
        return min(best) if self.options.tie == "lexical" else best[0]
