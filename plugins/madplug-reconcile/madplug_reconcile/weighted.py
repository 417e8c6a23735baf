"""How the table decides."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING

from pydantic import Field

from madplug import Decision, DecisionProtocol, Message, Options, Vote
from madplug_prompting.finals import last_messages
from madplug_prompting.ties import Tie, break_tie, leaders

if TYPE_CHECKING:
    from madplug import Debate


def recalibrated(confidence: float | None) -> Fraction:
    """The weight of a confidence, exactly; none at all counts as 0, more than 1 as 1."""
    p = 0.0 if confidence is None else confidence
    if p >= 1:
        return Fraction(1)
    if p >= 0.9:
        return Fraction(8, 10)
    if p >= 0.8:
        return Fraction(5, 10)
    return Fraction(3, 10) if p > 0.6 else Fraction(1, 10)


class WeightedOptions(Options):
    """Options of `reconcile.weighted`."""

    recalibrate: bool = Field(default=True,
                              description="false: the confidences themselves are the weights")
    early: bool = Field(default=True, description="end as soon as all voters give the same answer")
    tie: Tie = Field(
        default="first", description="which of several answers of one weight wins; first: in agent order")


class Weighted(DecisionProtocol):
    """A vote weighted by stated confidences, recalibrated since models are too sure of themselves.

    Weights: 1 counts 1.0; from 0.9 on 0.8; from 0.8 on 0.5; above 0.6 0.3; anything else 0.1, also an answer
    without a confidence. An answer that could not be read has no weight. The answer with the largest sum of
    weights in the last round wins; sums are exact, so that three times 0.1 ties with 0.3. When all voters
    give the same answer after any round, the first included, the debate ends there. The plain majority is
    left in the debate's notes under `reconcile`.

    Differs from the paper's code: that replaces an unreadable answer by a random one of confidence 0, fails
    on a confidence above 1, and adds a constant to every sum that changes no ranking.
    """

    name = "weighted"
    source = "Chen et al. 2024, ReConcile, section 3; weights of the authors' code"
    needs = frozenset({"confidence"})
    Options = WeightedOptions

    def after_round(self, debate: Debate) -> Decision | None:
        """End when all voters agree."""
        said = self._last(debate)
        if not self.options.early or len(said) < len(debate.voters):
            return None
        keys = {m.key for m in said.values()}
        return self.at_end(debate) if len(keys) == 1 and None not in keys else None

    def at_end(self, debate: Debate) -> Decision:
        """Add the weights of the last round."""
        said = self._last(debate)
        votes = [self._vote(agent, message) for agent, message in said.items()]  # others were not asked
        sums: dict[str, Fraction] = {}
        for _, key, weight in votes:
            if key is not None:
                sums[key] = sums.get(key, Fraction(0)) + weight
        ballots = tuple(Vote(a, {k: float(w)} if k is not None else {}, k is not None) for a, k, w in votes)
        if not sums:
            return Decision(None, votes=ballots, reason="no voter's answer could be read in the last round")
        counts = Counter(k for _, k, _ in votes if k is not None)
        debate.notes["reconcile"] = {"majority": counts.most_common(1)[0][0]}
        best = leaders(sums)
        key = break_tie(debate, best, self.options.tie, "reconcile.weighted:tie")
        return Decision(key, agreed=len(best) == 1, scores={k: float(w) for k, w in sums.items()},
                        votes=ballots, tie=len(best) > 1,
                        reason="" if key is not None else "several answers have the same weight")

    def _last(self, debate: Debate) -> dict[int, Message]:
        """Each voter's last message of this round, in agent order."""
        return last_messages(debate, since=debate.round, until=debate.round)

    def _vote(self, agent: int, message: Message) -> tuple[int, str | None, Fraction]:
        if message.key is None:
            return agent, None, Fraction(0)
        if self.options.recalibrate:
            return agent, message.key, recalibrated(message.confidence)
        return agent, message.key, Fraction(str(min(1.0, max(0.0, message.confidence or 0.0))))
