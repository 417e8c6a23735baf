"""The score over a whole trajectory: every answer that an agent gave, in every round, counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from madplug import Decision, DecisionProtocol, Options
from madplug_prompting.ties import Tie, break_tie, leaders

if TYPE_CHECKING:
    from madplug import Debate

Weight = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]
Weights = tuple[Weight, Weight, Weight, Weight]
Decay = Literal["inverse", "halving", "none"]
OnNone = Literal["carry", "skip", "as_answer"]

UNREAD = ""
"""The key of an answer that could not be read, where that counts as an answer; no other key is empty."""


class ScoreOptions(Options):
    """Weights, decay, and what to do with ties and missing answers."""

    weights: Weights = Field(default=(20, 25, 30, 20), description=(
        "points for a first answer, against an abandoned one, for the one adopted instead, for an unchanged one"))
    decay: Decay = Field(default="inverse", description=(
        "what the points of round r are worth: inverse 1/r, halving 1/2^(r-1), none 1"))
    normalize: bool = Field(default=False, description=(
        "divide an answer's score by the number of agents that ever gave it"))
    tie: Tie = Field(default="random", description=(
        "which of several answers with the highest score wins; first: the one given first"))
    on_none: OnNone = Field(default="carry", description=(
        "a turn without a readable answer; carry: the agent's last one counts; skip: the turn counts for nothing; "
        "as_answer: having no answer is one, and leaves the debate undecided where it wins"))


class Score(DecisionProtocol):
    """The answer with the highest score over the whole trajectory.

    In every round an agent's first answer gets 20 points; when it changes its mind, the answer it abandons
    loses 25 and the one it adopts gets 30; an unchanged answer gets 20. The points of round r are worth 1/r.
    Answers are compared by key, not by what an agent says it did. Of several answers with the highest score
    one is drawn at random, which does not count as agreed; neither does an answer that no more voters gave than
    there are voters who never gave any. There is no consensus test and no early end. Scores are exact fractions until
    the decision is recorded.

    Differs from the paper: it says nothing about answers that could not be read; here the agent's
    last one counts again, and an agent without one starts with the first that can be read. Differs from a
    public reimplementation, which divides by the number of contributors (`normalize = true`) and breaks
    ties alphabetically (`tie = "lexical"`).
    """

    name = "score"
    source = "Free-MAD 2025, section 3.3 and Algorithm 1 (weights and decay as in two reimplementations)"
    Options = ScoreOptions

    def at_end(self, debate: Debate) -> Decision:
        """Add up, and take the highest."""
        o = self.options
        rows = debate.transcript.answers(debate.voters)
        if any(m.answers and m.key is None for agent in debate.voters for m in debate.transcript.by(agent)):
            debate.notes["freemad"] = {"unparsed": True}
        scores = trajectory_scores(rows, o.weights, decay=o.decay, normalize=o.normalize, on_none=o.on_none)
        if not set(scores) - {UNREAD}:
            return Decision.undecided("no voter ever gave an answer that could be read")
        best = leaders(scores)
        shown = {a: float(score) for a, score in scores.items()}
        key = break_tie(debate, best, o.tie, "freemad.score:tie")
        if key is None:
            return Decision(None, scores=shown, tie=True, reason="several answers have the highest score")
        if key == UNREAD:
            return Decision(None, scores=shown, tie=len(best) > 1, reason="having no answer has the highest score")
        supporters, unread = sum(key in row for row in rows), sum(not any(row) for row in rows)
        return Decision(key, agreed=len(best) == 1 and supporters > unread, scores=shown, tie=len(best) > 1)


def trajectory_scores(rows: Sequence[Sequence[str | None]], weights: Sequence[float] = (20, 25, 30, 20), *,
                      decay: Decay = "inverse", normalize: bool = False,
                      on_none: OnNone = "carry") -> dict[str, Fraction]:
    """Points by answer; answers in the order in which they were first given, round by round.

    rows: keys by agent and round, or None.
    """
    first, abandoned, adopted, unchanged = (Fraction(str(w)) for w in weights)
    scores: dict[str, Fraction] = defaultdict(Fraction)
    holders: dict[str, set[int]] = defaultdict(set)
    current: dict[int, str] = {}
    for k in range(max(map(len, rows), default=0)):
        worth = _worth(decay, k)
        for agent, row in enumerate(rows):
            said, before = row[k] if k < len(row) else None, current.get(agent)
            if said is None and on_none != "skip":
                said = UNREAD if on_none == "as_answer" else before
            if said is None:
                continue
            current[agent] = said
            holders[said].add(agent)
            scores[said] += worth * (first if before is None else unchanged if said == before else adopted)
            if before not in (None, said):
                scores[before] -= worth * abandoned
    return {a: score / len(holders[a]) if normalize else score for a, score in scores.items()}


def _worth(decay: Decay, k: int) -> Fraction:
    if decay == "none":
        return Fraction(1)
    return Fraction(1, k + 1) if decay == "inverse" else Fraction(1, 2**k)
