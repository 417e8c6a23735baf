"""A number, exactly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Literal

from pydantic import Field

from madplug import AnswerFormat, Sample
from madplug_answers import papers
from madplug_answers.asking import READ_AS, Reading, ReadingOptions
from madplug_answers.marks import LINE, announced, ascii_digits, boxed
from madplug_styles.prompts import fill

ASK = ("When you have decided, end your reply with one line that gives your answer as a plain number, without a "
       "unit, in this form: {form}")
LONGEST = 400
"""A number of more digits is no answer."""

_PLAIN = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+"
_POWER = (r"(?:[eE](?P<e>[+-]?[0-9]{1,3})(?![0-9A-Za-z.])"
          r"|[ ]?(?:\\times|\\cdot|×|x)[ ]?10\^\{?(?P<ten>-?[0-9]{1,3})\}?)?")
_RATIO = r"(?:(?P<date>(?:/[0-9]{1,4}){2})|[ ]?/[ ]?(?P<below>[0-9]+)(?![0-9/]|[.,][0-9]))?"
_NUMBER = re.compile(rf"(?<![\w.^])(?P<top>{_PLAIN}){_POWER}{_RATIO}")
_FRAC = re.compile(r"([\w)]?)\\[dtc]?frac\s?\{\s?(-?)\s?([0-9]{1,400})\s?\}\s?\{\s?([0-9]{1,400})\s?\}")
_OPERAND = re.compile(r"[\w)\]}%.]")
_WORKED_OUT = re.compile(r"\A(?:(?:[^A-Za-z=.\n]|\.(?=[0-9])){1,80}=){1,3}")
_BEFORE_SIGN = "=(:,[{<>~≈≤≥+*/"


class Number(Reading, AnswerFormat):
    """A number, exactly.

    In a reply it is the last number in the last LaTeX box that has one, else the first after the last announcement
    ("final answer", "answer is", `####`; of "5 + 3 = 8" the 8), else the last of the text. Signs survive; thousands
    separators, currency and percent signs are dropped; digits of every script count, superscripts do not. The
    canonical answer is the shortest exact form, `18` for "18.00" and `1/3` where no decimal is exact. Numbers that
    differ by no more than `tolerance` are the same answer. A number of more than 400 digits is none.
    """

    name = "number"
    source = "Du et al. 2023 (evaluation); Yin et al. 2023 (evaluation)"
    rules = papers.NUMBER
    closing = f"{LINE} 42"

    class Options(ReadingOptions):
        """Options of `answers.number`."""

        read_as: Literal["madplug", "som", "eot"] = Field(default="madplug", description=READ_AS)
        tolerance: float = Field(default=1e-6, ge=0, description="numbers this close are the same answer")
        instruction: str = Field(
            default=ASK, description="asks for the closing line, {form}")

    def instruction(self, sample: Sample) -> str:
        """Asks for `Final answer: 42`."""
        return fill(self.options.instruction, form=f"`{LINE} 42`")

    def pattern(self, sample: Sample) -> str:
        """The closing line."""
        return rf"{LINE} -?[0-9]{{1,15}}(\.[0-9]{{1,10}})?"

    def canonical(self, text: str, sample: Sample) -> str | None:
        """The shortest exact form."""
        return self.stated(text, sample)

    def stated(self, text: str, sample: Sample) -> str | None:
        """The number that a text gives."""
        text = tidy(text)
        inside = boxed(text)
        if inside is not None and (found := last(inside)):
            return found
        after = announced(text)
        if after is not None and (found := first(_WORKED_OUT.sub("", after, count=1))):
            return found
        return last(text)

    def same(self, a: str, b: str, sample: Sample) -> bool:
        """Equal, or no further apart than `tolerance`."""
        return a == b or abs(Fraction(a) - Fraction(b)) <= Fraction(str(self.options.tolerance))


def tidy(text: str) -> str:
    """The text with plain digits and signs, and without the spaces that LaTeX puts into numbers."""
    text = ascii_digits(text)
    for spelling, sign in (("\\$", ""), ("{,}", ","), ("\\,", ""), ("\\!", "")):
        text = text.replace(spelling, sign)
    return _FRAC.sub(lambda m: f"{m[1] and m[1] + ' '}{m[2]}{m[3]}/{m[4]} ", text)


def first(text: str) -> str | None:
    """The first number of a tidy text."""
    return next(_read(text, _NUMBER.finditer(text)), None)


def last(text: str) -> str | None:
    """The last number of a tidy text."""
    return next(_read(text, reversed(list(_NUMBER.finditer(text)))), None)


def _read(text: str, matches: Iterable[re.Match[str]]) -> Iterator[str]:
    for match in matches:
        value = _value(match)
        if value is not None:
            yield shortest(-value if _negative(text, match.start()) else value)


def _value(match: re.Match[str]) -> Fraction | None:
    top, below = match["top"].replace(",", ""), match["below"]
    power = int(match["e"] or match["ten"] or 0)
    too_long = max(len(top) + abs(power), len(below or "")) > LONGEST
    if too_long or match["date"] or (below and not int(below)):
        return None
    return Fraction(top) * Fraction(10) ** power / int(below or 1)


def _negative(text: str, start: int) -> bool:
    """Whether a minus before a number is its sign, and neither an operator, a dash nor a bullet."""
    before = text[max(0, start - 6):start]
    signed = before.rstrip("$€£¥")
    if signed.endswith("-"):
        between_formulas = len(signed) < len(before) and signed[-2:-1] == "$"
        return not _OPERAND.match(signed[-2:-1]) and not between_formulas
    spaced = signed.rstrip(" ")
    return spaced.endswith("-") and spaced[:-1].rstrip(" ")[-1:] in tuple(_BEFORE_SIGN)


def shortest(value: Fraction) -> str:
    """The shortest exact decimal, or `p/q` where there is none of reasonable length."""
    places, rest = 0, value.denominator
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest, power = rest // prime, power + 1
        places = max(places, power)
    if rest != 1 or places > LONGEST:
        return f"{value.numerator}/{value.denominator}"
    digits = str(abs(value.numerator) * 10 ** places // value.denominator).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else sign + digits
