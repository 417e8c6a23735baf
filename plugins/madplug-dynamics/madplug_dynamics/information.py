"""How undecided a group is, and how likely it is right: entropy and log-likelihood."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import fsum, log2
from statistics import fmean
from typing import TYPE_CHECKING, Any

from pydantic import Field

from madplug import DebateResult, Metric, Options
from madplug_dynamics.table import Keys, columns, own_scores
from madplug_qa.keys import canonical_references, is_right

if TYPE_CHECKING:
    from madplug import Debate


class EntropyOptions(Options):
    """Options of `dynamics.entropy`."""

    none_as_answer: bool = Field(default=False, description="count 'no answer' as one more answer")


class Entropy(Metric):
    """How much the voters' answers differ in each round, in bits: 0 when all are equal.

    Parts: `round_1`, `round_2`, ... and `last`. Shares are of the answers that could be read. A round in which
    none could has no entropy, and a mean over debates for a round is over those that have one.

    Differs from the authors' code (MADC): per round, where the code adds up all rounds; a round without an answer that
    could be read counts as 0 there.
    """

    name = "entropy"
    source = "MADC 2026, appendix A.2"
    Options = EntropyOptions

    def score(self, debate: Debate, references: Sequence[str]) -> Mapping[str, float | None] | None:
        """Bits by round."""
        bits = {k: entropy(keys, self.options.none_as_answer) for k, keys in columns(debate).items()}
        return {**{f"round_{k}": h for k, h in bits.items()}, "last": bits[max(bits)]} if bits else None


class LogLikelihood(Metric):
    """How sure a group is where it is right: the binary logarithm of its share of right answers.

    Part `log2p` is log2 of the share of right ones among the answers of the last round that could be read; it applies
    where the debate's decision is right, and some answer is. `smoothed` is log2((right + 1/2) / (answers + 1)), for
    every debate. The figures of a cell have the paper's log-likelihood, the sum of `log2p` over samples, averaged over
    repeats, and how many debates of all repeats it skips: a sum alone rewards a method that is seldom right.

    Differs from the paper: higher is better, as in its table; its formula has the sign the other way round.
    """

    name = "log_likelihood"
    source = "MADC 2026, appendix A.1"

    def score(self, debate: Debate, references: Sequence[str]) -> Mapping[str, float | None] | None:
        """`log2p`, `smoothed`, and whether the debate is skipped."""
        right = canonical_references(debate, references)
        if not right:
            return None
        last = next(reversed(columns(debate).values()), [])
        answers = [key for key in last if key is not None]
        correct = sum(is_right(debate, key, right) for key in answers)
        counts = correct > 0 and is_right(debate, debate.decision.key if debate.decision else None, right)
        return {"log2p": log2(correct / len(answers)) if counts else None,
                "smoothed": log2((correct + 0.5) / (len(answers) + 1)), "skipped": float(not counts)}

    def summarise(self, results: Iterable[DebateResult]) -> Mapping[str, Any]:
        """The sum over samples, by repeat, and how much it leaves out."""
        scores = [score for score in own_scores(self, results) if score.get("skipped") is not None]
        if not scores:
            return {}
        sums: dict[int, list[float]] = defaultdict(list)
        for score in scores:
            sums[score["repeat"]] += [] if score["skipped"] else [score["log2p"]]
        by_repeat = [fsum(values) for _, values in sorted(sums.items())]
        return {"log_likelihood": fmean(by_repeat), "per_repeat": by_repeat, "debates": len(scores),
                "skipped_debates": sum(score["skipped"] == 1 for score in scores),
                "pooled_smoothed": fmean(score["smoothed"] for score in scores)}


def entropy(keys: Keys, none_as_answer: bool = False) -> float | None:
    """Bits of the shares of equal answers; None without answers."""
    counts = Counter(key for key in keys if key is not None or none_as_answer)
    whole = counts.total()
    return None if not whole else abs(fsum(n / whole * log2(n / whole) for n in counts.values()))
