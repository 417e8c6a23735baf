"""A mathematical expression."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any, Literal

from pydantic import Field

from madplug import Sample
from madplug_answers import papers
from madplug_answers.asking import READ_AS, Reading, ReadingOptions
from madplug_answers.latex import normalise
from madplug_answers.marks import LINE, announcements, ascii_digits, boxed, closing_after_boxes, concluding
from madplug_answers.number import last, tidy
from madplug_answers.own import parse_reply
from madplug_prompting.patterns import regex
from madplug_prompting.prompts import fill

ASK = "When you have decided, end your reply with one line that gives your answer in LaTeX, in this form: {form}"
LONGEST = 2000
"""Longer expressions are not answers."""

_FORMULA = regex(r"\$\$?([^$]{1,2000})\$|\\\(([^\n]{1,2000}?)\\\)|\\\[([^\n]{1,2000}?)\\\]")
_END = regex(r"[.;](?=\s|\Z)|\n\s*\n")
_MARKER = regex(
    r"(?i)(?<![a-z])(?:final[ \t]{1,3}(?:answer|solution)(?![a-z])|answer[ \t]{1,3}is(?![a-z])"
    r"|answer(?=[ \t]?[:=])|\#\#\#\#)")
_REMARK = regex(r"(?i)(?<!\\)\b(?:correct|incorrect|right|wrong|valid|the|this|that|not|as|above|given)\b")
_DENIED = regex(r"(?i)not(?!\w)(?:[^\n]{1,200}?[ ]but(?:[ ]rather)?[ ](.{1,200}))?")
_TRIED = 8
_COMMAND = regex(r"\\(?:text|mbox|textrm|textbf|mathrm)\s?\{[^{}]{0,400}\}|\\[A-Za-z]+")
_WORDS = regex(r"(?<!\S)[A-Za-z]{2,}(?=[\s.,;:!?]|\Z)")


class Math(Reading):
    """A mathematical expression in LaTeX.

    In a reply it is the last LaTeX box, else what follows the last announcement of the answer, up to the end of the
    sentence and only the formula where there is one, else the last number of a reply in prose. The canonical answer is
    one spelling of the expression: `\\dfrac12`, `1/2` and `0.50` are `0.5`. With `equality = "symbolic"` two
    expressions are also the same answer when a computer algebra system finds them equal.

    Symbolic equality needs the extra `math`. It runs in a separate process, because math-verify works only in a main
    thread and an expression can take forever. Pairs are compared one at a time; a comparison that takes longer than
    `seconds` counts as not equal.
    """

    name = "math"
    source = "Hendrycks et al. 2021 (MATH, string normalisation)"
    rules = papers.MATH
    closing = f"{LINE} \\boxed{{42}}"
    alone = "Give only the answer, in LaTeX."

    class Options(ReadingOptions):
        """Options of `answers.math`."""

        read_as: Literal["madplug", "dylan", "madc"] = Field(default="madplug", description=READ_AS)
        equality: Literal["string", "symbolic"] = Field(
            default="string", description="compare spellings, or expressions with math-verify as well")
        seconds: float = Field(default=5.0, gt=0, le=600, description="the longest a symbolic comparison may take")
        max_length: int = Field(
            default=300, ge=1, le=LONGEST, description="the most characters of the closing line's answer")
        instruction: str = Field(default=ASK, description="prompt: the request for the closing line. {form}")

    _checker: Any = None

    def check(self, cell: Any) -> Iterable[str]:
        """Symbolic equality needs math-verify."""
        yield from super().check(cell)
        if self.options.equality == "symbolic" and find_spec("math_verify") is None:
            yield "equality = 'symbolic' needs math-verify: pip install 'madplug-answers[math]'"

    def instruction(self, sample: Sample) -> str:
        r"""Asks for `Final answer: \boxed{...}`."""
        return fill(self.options.instruction, form=f"`{LINE} \\boxed{{<answer>}}`")

    def pattern(self, sample: Sample) -> str:
        """The closing line."""
        return rf"{LINE} \\boxed\{{[^\n]{{1,{self.options.max_length}}}\}}"

    def canonical(self, text: str, sample: Sample) -> str | None:
        """One spelling of the expression."""
        for _ in range(8):  # a spelling can bring a number or an announcement to light; a canonical answer is its own
            stated = self.stated(text, sample)
            again = normalise(ascii_digits(stated)) if stated else ""
            if again == text:
                break
            text = again
        return text or None

    def stated(self, text: str, sample: Sample) -> str | None:
        """The expression that a text gives, as it is written there."""
        found = _stated(text)
        for _ in range(_TRIED):  # a formula can contain an announcement in its turn
            again = _stated(found) if found else None
            if again == found:
                break
            found = again
        return found

    def same(self, a: str, b: str, sample: Sample) -> bool:
        """The same spelling, or with `symbolic` the same value."""
        if a == b or self.options.equality == "string":
            return a == b
        if self._checker is None:
            from madplug_answers.equivalence import Checker

            self._checker = Checker(self.options.seconds)
        return self._checker.equal(a, b)  # type: ignore[no-any-return]


def _stated(text: str) -> str | None:
    text = parse_reply(text).own
    inside = None if closing_after_boxes(text) else boxed(text)
    if inside is not None:
        return _short(inside)
    text = ascii_digits(text).replace("\\$", "").replace("**", "").strip()
    for start in reversed(announcements(text, _MARKER)[-_TRIED:]):
        if found := _expression(text[start:start + LONGEST].lstrip()):
            return found
    return last(tidy(concluding(text))) if _is_prose(text) else _short(_formula(text) or text)


def _expression(after: str) -> str | None:
    """The expression in the first sentence of a text: its formula, a number among words, or a word or two."""
    end = _END.search(after)
    sentence = (after[:end.start()] if end else after).strip()
    if denied := _DENIED.match(sentence):
        sentence = denied[1] or ""
    if formula := _formula(sentence):
        return formula
    if not _is_prose(sentence):
        return None if _REMARK.search(sentence) else _short(sentence)
    return last(tidy(sentence))


def _formula(text: str) -> str | None:
    """The first formula between dollars or in brackets."""
    match = _FORMULA.search(text)
    return next((part.strip() for part in match.groups() if part), None) if match else None


def _short(text: str) -> str | None:
    return text if 0 < len(text) <= LONGEST else None


def _is_prose(text: str) -> bool:
    """Whether a text is sentences, not an expression."""
    return len(text) > LONGEST or "\n" in text or len(_WORDS.findall(_COMMAND.sub(" ", text))) > 3
