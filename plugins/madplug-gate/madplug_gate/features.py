"""What a first answer looks like in numbers, and the classifier that reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from math import exp, fsum, log1p
from pathlib import Path
from typing import NamedTuple

from madplug import Message, Sample
from madplug_prompting.patterns import regex
from madplug_prompting.tokens import token_probability

_CUES = {
    "hedges": regex(r"(?i)\b(?:maybe|perhaps|possibl[ey]|probably|likely|might|could be|seems?|appears?|i think"
                    r"|i believe|not sure|unsure|unclear|guess|assum(?:e|ing))\b"),
    "turns": regex(r"(?i)\b(?:however|but|although|wait|actually|on the other hand|alternatively|let me re)"),
    "certainties": regex(r"(?i)\b(?:clearly|certainly|definitely|obviously|must be|therefore|thus|hence)\b"),
    "numbers": regex(r"\d"),
    "questions": regex(r"\?"),
}
"""Marks of hesitation, of a change of mind, of certainty, and what else a text is made of."""
NAMES = ("words", *_CUES, "stated", "no_confidence", "probability", "agreement", "question_words", "choices")


def features(sample: Sample, first: Sequence[Message], key: str) -> list[float]:
    """The numbers of `NAMES` for the first answers to a question. key: the answer at the gate.

    Words and cues of the first message with that answer, cues per hundred words.
    """
    said = next(m for m in first if m.key == key)
    words = len(said.content.split())
    cues = [100 * len(cue.findall(said.content)) / max(words, 1) for cue in _CUES.values()]
    sure, p = said.confidence, token_probability(said)
    return [log1p(words), *cues, 0.5 if sure is None else sure, float(sure is None), 0.5 if p is None else p,
            sum(m.key == key for m in first) / len(first), log1p(len(sample.question.split())),
            float(len(sample.choices))]


def question_digest(sample: Sample) -> str:
    """Identifies a question by its text, whatever its id."""
    return blake2b("\0".join([sample.question, *sample.choices]).encode(), digest_size=8).hexdigest()


class Classifier(NamedTuple):
    """A logistic regression on standardised features."""

    names: Sequence[str]
    means: Sequence[float]
    scales: Sequence[float]
    weights: Sequence[float]
    intercept: float
    study: str
    """The identity of the study that it was trained on."""
    questions: Sequence[str]
    """Digests of the questions that it was trained on."""
    report: Mapping[str, float]
    """What it reached on questions that were held out."""

    def probability(self, values: Sequence[float]) -> float:
        """Of a debate turning the answer from wrong to right."""
        parts = zip(values, self.means, self.scales, self.weights, strict=True)
        logit = self.intercept + fsum(w * (x - mean) / scale for x, mean, scale, w in parts)
        return 1 / (1 + exp(-max(-500.0, min(500.0, logit))))

    @classmethod
    def read(cls, path: Path) -> Classifier:
        """Read a file. Raises `ValueError` if it is none of `madplug gate train`."""
        try:
            made = cls(**json.loads(path.read_text(encoding="utf-8")))
            made.probability([0.0] * len(NAMES))
        except (OSError, ValueError, TypeError, ZeroDivisionError) as error:
            raise ValueError(f"{path} is no classifier of `madplug gate train`: {error}") from None
        if tuple(made.names) != NAMES:
            raise ValueError(f"{path} was made by another version, for other features; train it again")
        return made
