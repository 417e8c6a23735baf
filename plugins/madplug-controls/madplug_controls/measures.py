"""What a debate leaves unused, and what it loses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from madplug import Metric
from madplug_dynamics.table import columns, plurality
from madplug_qa.keys import canonical_references, is_right

if TYPE_CHECKING:
    from madplug import Debate


class OracleGap(Metric):
    """Whether some voter ends on a right answer while most do not: the mean is what choosing better could gain.

    1 where an answer of the last round is right and the most frequent one, the first of equals, is wrong; else 0. The
    mean is therefore the share of questions with a right final answer minus the accuracy of the plurality.

    Differs from the paper: its formula was not at hand; this one is after notes about it.
    """

    name = "oracle_gap"
    proportion = True
    source = "arXiv 2605.00914, metrics"

    def score(self, debate: Debate, references: Sequence[str]) -> float | None:
        """1 or 0; None without references or answers."""
        right, table = canonical_references(debate, references), [*columns(debate).values()]
        if not right or not table:
            return None
        reached = any(is_right(debate, key, right) for key in table[-1])
        return float(reached and not is_right(debate, plurality(table[-1]), right))


class Collapse(Metric):
    """Whether a debate that began with different answers, a right one among them, is decided wrongly.

    It applies only to such debates, so that its mean is the disagreement collapse rate; with repeats each question
    counts once, with the mean over those of its debates to which it applies. More is worse. An answer that could not be
    read is none of the answers that differ; a debate left undecided is wrong.

    Differs from the paper: its formula was not at hand; this one is after notes about it.
    """

    name = "collapse"
    proportion = True
    source = "arXiv 2509.23055, disagreement collapse rate"

    def score(self, debate: Debate, references: Sequence[str]) -> float | None:
        """1 or 0; None where the first answers are all alike or all wrong."""
        right, table = canonical_references(debate, references), [*columns(debate).values()]
        first = {key for key in table[0] if key is not None} if table else set()
        if len(first) < 2 or not any(is_right(debate, key, right) for key in first):
            return None
        return float(not is_right(debate, debate.decision.key if debate.decision else None, right))
