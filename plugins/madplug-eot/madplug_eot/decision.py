"""When an exchange ends, and with which answer."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pydantic import Field

from madplug import Decision, DecisionProtocol, Options
from madplug_eot.confidence import common_key
from madplug_prompting.finals import last_messages
from madplug_prompting.ties import Tie, break_tie, leaders

if TYPE_CHECKING:
    from madplug import Debate


class ConsistentOptions(Options):
    """Options of `eot.consistent`."""

    tie: Tie = Field(
        default="first", description="which of several most frequent answers wins after the last round")


class Consistent(DecisionProtocol):
    """Ends when all voters give the same answer; after the last round the most frequent one wins.

    Checked after every round, the first included, so that agents who agree at once never exchange anything.
    An answer that could not be read prevents an early end and is not counted after the last
    round. The plurality is a fallback (`agreed` is false); a tie goes to the answer of the earliest agent
    unless `tie` says otherwise.
    """

    name = "consistent"
    source = "Yin et al. 2023, Exchange-of-Thought, section 3"
    Options = ConsistentOptions

    def after_round(self, debate: Debate) -> Decision | None:
        """The answer that all voters share."""
        key = common_key(debate)
        if key is None:
            return None
        return Decision(key, agreed=True, scores={key: len(debate.voters)}, reason="every voter's answer")

    def at_end(self, debate: Debate) -> Decision:
        """The plurality of the last round."""
        said = last_messages(debate, since=max(1, debate.round), until=debate.round, readable=True)
        counts = Counter(m.key for m in said.values() if m.key is not None)
        if not counts:
            return Decision.undecided("no voter gave an answer that could be read in the last round")
        agreed = self.after_round(debate)
        if agreed is not None:
            return agreed
        best = leaders(counts)
        key = break_tie(debate, best, self.options.tie, "eot.consistent:tie")
        if key is None:
            return Decision(None, scores=dict(counts), tie=True, reason="several answers are as frequent")
        return Decision(key, scores=dict(counts), tie=len(best) > 1, fallback=True,
                        reason="the most frequent answer of the last round")
