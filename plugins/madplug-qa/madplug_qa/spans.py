"""Answers compared as text: normalised words, overlap, inclusion."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from pydantic import Field

from madplug import DebateResult, Metric, Options

if TYPE_CHECKING:
    from madplug import Debate

UNKNOWN = "unknown"
_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation))
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


class SpanOptions(Options):
    """Options of the metrics for questions that may have no answer."""

    unknown: bool = Field(
        default=True, description="an answer or a reference with the word 'unknown' says that there is no answer")


class SpanMetric(Metric):
    """A score of the answer's words, whose figures tell questions with an answer from those without."""

    Options = SpanOptions

    def summarise(self, results: Iterable[DebateResult]) -> Mapping[str, Any]:
        """The mean over all questions, and over those with and those without an answer; empty if all have one."""
        name = self.score_name or self.name
        scores: dict[bool, list[float]] = {True: [], False: []}
        for result in results:
            if (score := result.metrics.get(name)) is not None:
                scores[is_answerable(result.references, self.options.unknown)].append(score)
        with_answer, without = scores[True], scores[False]
        return {"all": fmean(with_answer + without), "answerable": fmean(with_answer) if with_answer else None,
                "unanswerable": fmean(without), "answerable_debates": len(with_answer),
                "unanswerable_debates": len(without)} if without else {}


class ExactMatch(SpanMetric):
    """Whether the answer has the words of a reference: the best over all references.

    Compared without case, punctuation, articles and extra space. A question without references has no answer, and is
    answered right by none. An undecided debate is wrong. Where some questions have no answer, the figures of a cell
    have the means of both kinds, `answerable` and `unanswerable`, and of all.
    """

    name = "exact_match"
    proportion = True
    source = "Rajpurkar et al. 2018 (SQuAD 2.0); Becker et al. 2025 (MALLM)"

    def score(self, debate: Debate, references: Sequence[str]) -> float:
        """1 or 0."""
        said = answer_of(debate)
        if said is None:
            return 0.0
        return float(span(said, self.options.unknown) in wanted(references, self.options.unknown))


class F1(SpanMetric):
    """How many words the answer shares with a reference: the best over all references.

    The harmonic mean of precision and recall over normalised words, each counted as often as it occurs. Where the
    answer or the reference is empty (there is no answer), 1 if both are and else 0. An undecided debate has 0. Where
    some questions have no answer, the figures of a cell have the means of both kinds, `answerable` and
    `unanswerable`, and of all.
    """

    name = "f1"
    source = "Rajpurkar et al. 2018 (SQuAD 2.0); Becker et al. 2025 (MALLM)"

    def score(self, debate: Debate, references: Sequence[str]) -> float:
        """Between 0 and 1."""
        said = answer_of(debate)
        if said is None:
            return 0.0
        predicted = span(said, self.options.unknown)
        return max(overlap(predicted, reference) for reference in wanted(references, self.options.unknown))


class Includes(Metric):
    """Whether the answer contains a reference, letter by letter but for case. Used for MuSR."""

    name = "includes"
    proportion = True
    source = "Becker et al. 2025 (MALLM)"

    def score(self, debate: Debate, references: Sequence[str]) -> float | None:
        """1 or 0; an undecided debate has 0. Without references the metric does not apply."""
        if not references:
            return None
        said = (answer_of(debate) or "").lower()
        return float(any(r.lower() in said for r in references if r))


class Answerability(Metric):
    """Whether the debate says `unknown` exactly where a question has no answer. An undecided debate is wrong."""

    name = "answerability"
    proportion = True
    source = "Becker et al. 2025 (MALLM)"

    def score(self, debate: Debate, references: Sequence[str]) -> float:
        """1 or 0."""
        said = answer_of(debate)
        if said is None:
            return 0.0
        return float((UNKNOWN in said.lower()) != is_answerable(references, True))


def answer_of(debate: Debate) -> str | None:
    """The debate's answer as text, or None where it has none."""
    decision = debate.decision
    return None if decision is None or decision.key is None else decision.answer or decision.key


def span(text: str, unknown: bool) -> str:
    """The words to compare; none for an answer that says there is none. The letter of a choice is no article."""
    text = text.lower()
    return "" if unknown and UNKNOWN in text else normalised(text) or " ".join(text.translate(_PUNCTUATION).split())


def wanted(references: Sequence[str], unknown: bool) -> list[str]:
    """The words of each reference that has any; without such references an empty text, for no answer."""
    return [words for r in references if (words := span(r, unknown))] or [""]


def is_answerable(references: Sequence[str], unknown: bool) -> bool:
    """Whether a question has an answer."""
    return wanted(references, unknown) != [""]


def normalised(text: str) -> str:
    """Exactly as SQuAD's own evaluation does it, so that scores can be compared with published ones."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def overlap(predicted: str, reference: str) -> float:
    """F1 of two normalised texts."""
    a, b = predicted.split(), reference.split()
    if not a or not b:
        return float(a == b)
    common = sum((Counter(a) & Counter(b)).values())
    return 2 * common / (len(a) + len(b))
