"""Runs of equal words: BLEU and ROUGE."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from madplug import DebateResult, Metric, Options
from madplug_qa.spans import answer_of

if TYPE_CHECKING:
    from madplug import Debate

_WORD = re.compile(r"\w+")


class BleuOptions(Options):
    """Options of `text.bleu`."""

    tokenize: Literal["13a", "intl", "char", "none", "zh"] = Field(
        default="13a", description="how sacrebleu splits a text; zh for Chinese")
    lowercase: bool = Field(default=False, description="compare without case")
    max_order: int = Field(default=4, ge=1, le=8, description="the longest run of words")
    smooth: Literal["exp", "floor", "add-k", "none"] = Field(
        default="exp", description="what is counted for an order without a match")


class Bleu(Metric):
    """How many runs of up to four words the answer shares with the references, from 0 to 1.

    sacrebleu's sentence score divided by 100, with the effective order, so that a text of two words can be perfect.
    All references count together. The figures of a cell have `corpus`, the BLEU of all its answers as one corpus, which
    is what papers report, and sacrebleu's signature. An undecided debate scores 0 and counts in the corpus as an empty
    text; without references the metric does not apply.
    """

    name = "bleu"
    source = "Papineni et al. 2002; Post 2018 (sacrebleu)"
    Options = BleuOptions

    def prepare(self, study: Any) -> None:
        """Imports sacrebleu."""
        bleu(self.options, True)

    def score(self, debate: Debate, references: Sequence[str]) -> float | None:
        """Between 0 and 1."""
        if not references:
            return None
        # Rounding can put a perfect text above 100 by its last digit.
        found = bleu(self.options, True).sentence_score(answer_of(debate) or "", list(references))
        return min(1.0, float(found.score) / 100)

    def summarise(self, results: Iterable[DebateResult]) -> Mapping[str, Any]:
        """The BLEU of all answers as one corpus."""
        said, right = [], []
        for result in results:
            if result.references and result.error is None:
                said.append(text_of(result))
                right.append(result.references)
        if not said:
            return {}
        corpus = bleu(self.options, False)
        width = max(map(len, right))
        streams = [[r[i] if i < len(r) else None for r in right] for i in range(width)]
        found = corpus.corpus_score(said, streams)
        return {"corpus": found.score / 100, "texts": len(said), "signature": str(corpus.get_signature())}


class RougeOptions(Options):
    """Options of `text.rouge`."""

    types: tuple[str, ...] = Field(
        default=("rouge1", "rouge2", "rouge3", "rougeL"), min_length=1,
        description="which: rouge1 to rouge9, rougeL, rougeLsum (sentences on lines)")
    measure: Literal["fmeasure", "precision", "recall"] = Field(
        default="fmeasure", description="what is reported; the best reference is the one with the best fmeasure")
    stem: bool = Field(default=False, description="compare English words by their stems")
    words: Literal["ascii", "unicode"] = Field(default="ascii", description="what counts as a word")


class Rouge(Metric):
    """How many words, pairs and triples of words, and words in order the answer shares with a reference, from 0 to 1.

    Parts: `rouge1`, `rouge2`, `rouge3`, `rougeL`, each the best over the references, by rouge-score. With
    `words = "ascii"` a text is what that library makes of it: small letters and digits of the Latin alphabet, all else
    is a gap, so a text in another script has no words and scores 0; `unicode` keeps every letter. An undecided debate
    scores 0; without references the metric does not apply.
    """

    name = "rouge"
    source = "Lin 2004"
    Options = RougeOptions

    def check(self, cell: Any) -> Iterable[str]:
        """The types must be known."""
        for name in self.options.types:
            if not re.fullmatch(r"rouge(?:[1-9]|L|Lsum)", name):
                yield f"there is no '{name}'; expected rouge1 to rouge9, rougeL or rougeLsum"
        if self.options.stem and self.options.words == "unicode":
            yield "stems are of English words; use words = \"ascii\" with stem = true"

    def prepare(self, study: Any) -> None:
        """Imports rouge-score."""
        rouge(self.options.types, self.options.stem, self.options.words)

    def score(self, debate: Debate, references: Sequence[str]) -> Mapping[str, float] | None:
        """Between 0 and 1, by type."""
        if not references:
            return None
        scorer = rouge(self.options.types, self.options.stem, self.options.words)
        found = scorer.score_multi(list(references), answer_of(debate) or "")
        return {name: float(getattr(found[name], self.options.measure)) for name in self.options.types}


class Words:
    """Words of any script, for rouge-score."""

    def tokenize(self, text: str) -> list[str]:
        """Letters, digits and underscores, in small letters."""
        return _WORD.findall(text.lower())


@lru_cache(maxsize=8)
def bleu(options: Any, sentence: bool) -> Any:
    """sacrebleu's metric for one text, or for a corpus."""
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(lowercase=options.lowercase, tokenize=options.tokenize, smooth_method=options.smooth,
                max_ngram_order=options.max_order, effective_order=sentence)


@lru_cache(maxsize=8)
def rouge(types: tuple[str, ...], stem: bool, words: str) -> Any:
    """rouge-score's scorer."""
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(list(types), use_stemmer=stem, tokenizer=Words() if words == "unicode" else None)


def text_of(result: DebateResult) -> str:
    """A stored debate's answer; empty where it has none."""
    decision = result.decision
    return "" if decision is None or decision.key is None else decision.answer or decision.key
