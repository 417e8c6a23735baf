"""A number, exactly."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Literal

from pydantic import Field

from madplug import Sample
from madplug_answers import papers
from madplug_answers.asking import READ_AS, Reading, ReadingOptions
from madplug_answers.marks import LINE, announcements, ascii_digits, boxed, closing_after_boxes, concluding
from madplug_answers.normal import ungrouped
from madplug_answers.own import parse_reply
from madplug_prompting.patterns import regex
from madplug_prompting.prompts import fill

ASK = ("When you have decided, end your reply with one line that gives your answer as a plain number, without a "
       "unit, in this form: {form}")
LONGEST = 400
"""Numbers with more digits are not answers."""

_TRIED = 8
_LARGEST_POWER = 2000

_PLAIN = (r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]{1,3}(?:_[0-9]{3})+(?![0-9_])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+")
_TIMES_POWER = (r"(?:[eE](?P<e>[+-]?[0-9]+)(?![0-9A-Za-z.])"
                r"|[ ]?(?:\\times|\\cdot|×|x)[ ]?10\^\{?(?P<ten>-?[0-9]+)\}?)?")
_RAISED = r"(?P<raised>(?:\^[{(]{0,2}-?[0-9]+)+[)}]*)?"
_RATIO = r"(?:(?P<date>(?:/[0-9]{1,4}){2})|[ ]?/[ ]?(?P<below>[0-9]+)(?![0-9/]|[.,][0-9]))?"
_NUMBER = regex(
    rf"(?<![\w.^])(?<!\^[{{(])(?:0[xX](?P<hex>[0-9a-fA-F]+)(?!\w)|(?P<top>{_PLAIN}){_TIMES_POWER}{_RAISED}{_RATIO})")
_EXPONENT = regex(r"-?[0-9]+")
_FRAC = regex(r"([\w)]?)\\[dtc]?frac\s?\{\s?(-?)\s?([0-9]{1,400})\s?\}\s?\{\s?([0-9]{1,400})\s?\}")
_VULGAR = regex("[\u00bc-\u00be\u2150-\u215e]")
_NARROW = regex(r"(?<=[0-9])[\u00a0\u2009\u202f](?=[0-9]{1,2}[/\u2044][0-9]|[ ])")
"""A space before a fraction, which is no thousands separator."""
_COMMA = regex("(?<![\\w.,/^'])(?<![_^\\\\]\\{)([0-9]{1,3}(?:[.'’ \u00a0\u2009\u202f][0-9]{3})+|[0-9]+),([0-9]+)"
               "(?![0-9]|[.,/'’][0-9])")
"""A comma between digits that is the only one, and in no index, power or set."""
_MIXED = regex(r"(?<![\w.,/^])([0-9]{1,3}(?:,[0-9]{3}){1,4}|[0-9]{1,15})[ ]{1,2}([0-9]{1,6})/([0-9]{1,6})"
               r"(?![\w/^]|[.,][0-9])")
"""A whole number and a fraction below one: `1 1/2`."""
_OPERAND = regex(r"[\w)\]}%.]")
_AMOUNT = r"[$€£]?[0-9][0-9.,]{0,20}(?:[ ][A-Za-z]{1,20}){0,2}\s{0,2}"
_WORKED_OUT = regex(rf"\A\s{{0,3}}(?:{_AMOUNT}[-+*/×÷]\s{{0,2}}){{1,9}}{_AMOUNT}="
                    r"|\A(?:(?:[^A-Za-z=.\n\\]|\.(?=[0-9])|\\(?:times|cdot|div|left|right|[^A-Za-z\n])(?![A-Za-z])"
                    r"|(?<=[0-9 )])[xX](?=[0-9 (])){1,80}=){1,3}")
_BEFORE_SIGN = "=(:,[{<>~≈≤≥+*/"


class Number(Reading):
    """A number, exactly.

    A reply is searched in this order: the first number of a `Final answer:` line that no LaTeX box follows, the last
    number in the last LaTeX box, the first number after the last announcement ("final answer", "answer is", `####`; of
    "5 + 3 = 8" the 8), the last number of the text; where a line begins with `Final answer:`, only from there on.
    Decimals have a point, or a comma that cannot separate thousands: `12,50`, `0,125` and `1.250,50` have decimals,
    `1,250` is a thousand, `(3,4)` a pair. Signs survive; separators of thousands (`1,500`, `1 500`, `1'500`,
    `1.000.000`), currency and percent signs are dropped; digits of every script and mixed numbers (`1 1/2`, `1½`)
    count, superscripts do not. The canonical answer is the shortest exact form, `18` for "18.00" and `1/3` where no
    decimal is exact. Numbers that differ by no more than `tolerance` are the same answer. A power (`2^10`) and a
    hexadecimal number (`0x10`) count with their value; a number of more than 400 digits is not an answer.
    """

    name = "number"
    source = "Du et al. 2023 (evaluation); Yin et al. 2023 (evaluation)"
    rules = papers.NUMBER
    closing = f"{LINE} 42.5"
    alone = "Give only a plain number, without a unit."

    class Options(ReadingOptions):
        """Options of `answers.number`."""

        read_as: Literal["madplug", "som", "eot"] = Field(default="madplug", description=READ_AS)
        tolerance: float = Field(default=1e-6, ge=0, description="numbers this close are the same answer")
        instruction: str = Field(
            default=ASK, description="prompt: the request for the closing line. {form}")

    def instruction(self, sample: Sample) -> str:
        """Asks for `Final answer: <number>`."""
        return fill(self.options.instruction, form=f"`{LINE} <number>`")

    def pattern(self, sample: Sample) -> str:
        """The closing line. A full stop may end it: a model that writes one must not be made to go on with decimals."""
        return rf"{LINE} -?[0-9]{{1,15}}(\.[0-9]{{1,10}})?\.?"

    def canonical(self, text: str, sample: Sample) -> str | None:
        """The shortest exact form."""
        return self.stated(text, sample)

    def stated(self, text: str, sample: Sample) -> str | None:
        """The number that a text gives."""
        text = tidy(parse_reply(text).own)
        inside = None if closing_after_boxes(text) else boxed(text)
        if inside is not None and (found := last(inside)):
            return found
        text = concluding(text)
        return _announced_number(text) or last(text)

    def same(self, a: str, b: str, sample: Sample) -> bool:
        """Equal, or differing by no more than `tolerance`."""
        return a == b or abs(Fraction(a) - Fraction(b)) <= Fraction(str(self.options.tolerance))


def tidy(text: str) -> str:
    """The text with plain digits, signs and fractions, and without the spaces that LaTeX puts into numbers."""
    text = _VULGAR.sub(lambda m: f" {unicodedata.normalize('NFKC', m[0])} ", text)
    text = ascii_digits(text if text.isascii() else _NARROW.sub(" ", text))
    for spelling, sign in (("\\$", ""), ("{,}", ","), ("\\,", ""), ("\\!", "")):
        text = text.replace(spelling, sign)
    text = ungrouped(_COMMA.sub(_with_point, text))
    return without_mixed(_FRAC.sub(lambda m: f"{m[1] and m[1] + ' '}{m[2]}{m[3]}/{m[4]} ", text))


def _with_point(found: re.Match[str]) -> str:
    """A number with a decimal comma; as it is where the comma separates thousands, or the numbers of a pair."""
    whole, part = found.groups()
    thousands = len(part) == 3 and len(whole) <= 3 and whole[0] != "0"
    before = found.string[max(0, found.start() - 2):found.start()].rstrip("+-")[-1:]
    pair = before in tuple("([") and found.string[found.end():found.end() + 1] in tuple(")]")
    return found[0] if thousands or pair else f"{re.sub('[^0-9]', '', whole)}.{part}"


def without_mixed(text: str) -> str:
    """The text with `3/2` for `1 1/2`."""
    return _MIXED.sub(_improper, text)


def _improper(mixed: re.Match[str]) -> str:
    whole, top, below = (int(digits.replace(",", "")) for digits in mixed.groups())
    return f"{whole * below + top}/{below}" if top < below else mixed[0]


def _announced_number(text: str) -> str | None:
    """The first number after the last announcement that one follows."""
    starts = announcements(text)[-_TRIED:]
    for start, end in zip(reversed(starts), (len(text), *reversed(starts)), strict=False):
        if found := first(_WORKED_OUT.sub("", text[start:end], count=1)):
            return found
    return None


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
    if match["hex"]:
        return None if len(match["hex"]) > LONGEST * 5 // 6 else Fraction(int(match["hex"], 16))
    top, below = match["top"].replace(",", "").replace("_", ""), match["below"] or ""
    power = _bounded(match["e"] or match["ten"] or "0")
    if power is None or max(len(top) + abs(power), len(below)) > LONGEST:
        return None
    if match["date"] or (below and not int(below)):
        return None
    value = _raised(Fraction(top) * Fraction(10) ** power, match["raised"])
    return None if value is None else value / int(below or 1)


def _raised(base: Fraction, exponents: str | None) -> Fraction | None:
    """A power, as in `10^10` or `2^3^2`, or None if it has too many digits to be an answer."""
    power = 1
    for digits in reversed(_EXPONENT.findall(exponents or "")):
        exponent = _bounded(digits)
        if exponent is None or not 0 <= power <= _LARGEST_POWER:
            return None
        power = exponent ** power
    longest = max(len(str(base.numerator)), len(str(base.denominator)))
    if abs(power) > _LARGEST_POWER or (longest - 1) * abs(power) > LONGEST or (power < 0 and not base):
        return None
    value = base ** power
    return value if max(abs(value.numerator), value.denominator) < 10 ** LONGEST else None


def _bounded(digits: str) -> int | None:
    """A small whole number, or None."""
    return int(digits) if len(digits) <= 5 else None


def _negative(text: str, start: int) -> bool:
    """Whether a minus before a number is its sign, and not an operator, a dash or a bullet."""
    before = text[max(0, start - 6):start]
    signed = before.rstrip("$€£¥")
    if signed.endswith("-"):
        between_formulas = len(signed) < len(before) and signed[-2:-1] == "$"
        return not _OPERAND.match(signed[-2:-1]) and not between_formulas
    spaced = signed.rstrip(" ")
    return spaced.endswith("-") and spaced[:-1].rstrip(" ")[-1:] in tuple(_BEFORE_SIGN)


def shortest(value: Fraction) -> str:
    """The shortest exact decimal, or `p/q` if none of reasonable length exists."""
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
