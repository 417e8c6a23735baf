"""The referees' verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from madplug import Decision, DecisionProtocol, Message
from madplug_chateval.pairs import LabelOptions, pair_of
from madplug_prompting.finals import last_messages
from madplug_prompting.ties import Tie, break_tie, has_clear_lead, leaders

if TYPE_CHECKING:
    from madplug import Debate

Pair = tuple[Fraction, Fraction]
TIE = "chateval.scores:tie"
"""The scope of what is drawn."""


def verdict(totals: Sequence[Fraction]) -> int:
    """The side with the larger total: 0, 1, or 2 for neither."""
    return 2 if totals[0] == totals[1] else int(totals[1] > totals[0])


def majority(labels: Sequence[int]) -> int | None:
    """The most frequent of the sides 0, 1 and 2 (neither); in this order among equals, and 2 if all three are equal."""
    counts = [list(labels).count(side) for side in range(3)]
    if not labels:
        return None
    return 2 if len(set(counts)) == 1 else counts.index(max(counts))


class ScoresOptions(LabelOptions):
    """Options of `chateval.scores`."""

    combine: Literal["average", "labels"] = Field(default="average", description=(
        "on a pair: add the referees' scores, or count which reply each prefers"))
    even: Literal["tie", "first"] = Field(default="tie", description=(
        "equal sums are a tie, or go to the first reply: the authors' code does both"))
    tie: Tie = Field(default="first", description=(
        "which of several equally frequent answers or labels wins"))


class Scores(DecisionProtocol):
    """Adds up the referees' scores of two replies; on a question with one answer the most frequent answer wins.

    Only the last round counts. On a pair the reply with the larger sum wins and equal sums are a tie
    (`combine = "average"`), or each referee's preference is counted (`"labels"`): the most frequent of first, second,
    tie, in this order among equals, and a tie when all three are equally frequent. A referee whose scores cannot be
    read does not count; a verdict is agreed only if more referees are behind it than could not be read. The sums are
    in the decision's scores and, for `chateval.calibrated`, in the debate's notes.

    Differs from the paper's code: with equal sums one of its routines names the first reply, another a tie.
    """

    name = "scores"
    source = "Chan et al. 2024, ChatEval, sections 2 and 3; the authors' code"
    Options = ScoresOptions

    def at_end(self, debate: Debate) -> Decision:
        """Judge the pair, or count the answers."""
        said = last_messages(debate, since=debate.round, until=debate.round).values()
        if pair_of(debate.sample, self.options) is None:
            return self._plurality(debate, Counter(m.key for m in said if m.key is not None))
        scored = [scores for m in said if (scores := scores_of(m)) is not None]
        debate.notes["chateval"] = {"referees": len(scored)}
        if not scored:
            return Decision.undecided("no referee gave two scores that could be read in the last round")
        totals = (sum((a for a, _ in scored), Fraction(0)), sum((b for _, b in scored), Fraction(0)))
        debate.notes["chateval"]["totals"] = [float(t) for t in totals]
        if self.options.combine == "labels":
            return self._labels(debate, scored)
        return self._average(debate, totals, most_read=2 * len(scored) > len(debate.voters))

    def _average(self, debate: Debate, totals: Pair, *, most_read: bool) -> Decision:
        side = verdict(totals)
        even = side == 2
        side = 0 if even and self.options.even == "first" else side
        return Decision(self._key(debate, side), self.options.labels[side], agreed=most_read and not even, tie=even,
                        scores={self._key(debate, i): float(totals[i]) for i in range(2)})

    def _labels(self, debate: Debate, scored: Sequence[Pair]) -> Decision:
        sides = [verdict(s) for s in scored]
        counts = {self._key(debate, side): sides.count(side) for side in range(3)}
        best = leaders({side: sides.count(side) for side in range(3)})
        side = majority(sides)
        if len(best) == 2:
            found = break_tie(debate, [(self.options.labels[s], s) for s in best], self.options.tie, TIE)
            side = None if found is None else found[1]
        if side is None:
            return Decision(None, scores=counts, tie=True, reason="two verdicts are equally frequent")
        return Decision(self._key(debate, side), self.options.labels[side], scores=counts, tie=len(best) > 1,
                        agreed=has_clear_lead(counts, len(debate.voters) - len(sides)))

    def _plurality(self, debate: Debate, counts: Counter[str]) -> Decision:
        if not counts:
            return Decision.undecided("no referee gave an answer that could be read in the last round")
        best = leaders(counts)
        key = break_tie(debate, best, self.options.tie, TIE)
        return Decision(key, scores=dict(counts), tie=len(best) > 1,
                        agreed=has_clear_lead(counts, len(debate.voters) - counts.total()),
                        reason="" if key is not None else "several answers are equally frequent")

    def _key(self, debate: Debate, side: int) -> str:
        """The canonical answer of a side."""
        label = self.options.labels[side]
        return debate.answers.canonical(label, debate.sample) or label


def scores_of(message: Message) -> Pair | None:
    """The scores a referee's message gives, exactly."""
    scores = message.data.get("chateval", {}).get("scores")
    return (Fraction(str(scores[0])), Fraction(str(scores[1]))) if scores else None
