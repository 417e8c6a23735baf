"""How the table decides."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from madplug import Decision, DecisionProtocol, Message, Options, Vote

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

    class Options(Options):
        """Options of `reconcile.weighted`."""

        recalibrate: bool = Field(default=True,
                                  description="false: the confidences themselves are the weights")
        early: bool = Field(default=True, description="end as soon as all voters give the same answer")
        tie: Literal["first", "random", "undecided", "lexical"] = Field(
            default="first", description="which of several answers of one weight wins; first: in agent order")

    def after_round(self, debate: Debate) -> Decision | None:
        """End at one mind."""
        said = self._last(debate)
        if not self.options.early or len(said) < len(debate.voters) or None in said.values():
            return None
        keys = {m.key for m in said.values() if m is not None}
        return self.at_end(debate) if len(keys) == 1 and None not in keys else None

    def at_end(self, debate: Debate) -> Decision:
        """Add the weights of the last round."""
        votes = [self._vote(agent, m) for agent, m in self._last(debate).items()]
        sums: dict[str, Fraction] = {}
        for _, key, weight in votes:
            if key is not None:
                sums[key] = sums.get(key, Fraction(0)) + weight
        ballots = tuple(Vote(a, {k: float(w)} if k is not None else {}, k is not None) for a, k, w in votes)
        if not sums:
            return Decision(None, votes=ballots, reason="no voter's answer could be read in the last round")
        counts = Counter(k for _, k, _ in votes if k is not None)
        debate.notes["reconcile"] = {"majority": counts.most_common(1)[0][0]}
        best = [key for key, weight in sums.items() if weight == max(sums.values())]
        key = best[0] if len(best) == 1 else self._choose(debate, best)
        return Decision(key, agreed=len(best) == 1, scores={k: float(w) for k, w in sums.items()},
                        votes=ballots, tie=len(best) > 1,
                        reason="" if key is not None else "several answers have the same weight")

    def _last(self, debate: Debate) -> dict[int, Message | None]:
        """Each voter's last message of this round, in agent order."""
        said = debate.transcript.of_round(debate.round)
        return {a.id: next((m for m in reversed(said) if m.agent == a.id), None) for a in debate.voters}

    def _vote(self, agent: int, message: Message | None) -> tuple[int, str | None, Fraction]:
        if message is None or message.key is None:
            return agent, None, Fraction(0)
        if self.options.recalibrate:
            return agent, message.key, recalibrated(message.confidence)
        return agent, message.key, Fraction(str(min(1.0, max(0.0, message.confidence or 0.0))))

    def _choose(self, debate: Debate, best: list[str]) -> str | None:
        """Break a tie; `best` is in agent order."""
        if self.options.tie == "random":
            return debate.rng("reconcile.weighted:tie").choice(sorted(best))
        return {"first": best[0], "lexical": min(best), "undecided": None}[self.options.tie]
