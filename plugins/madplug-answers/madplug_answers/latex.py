r"""A canonical spelling for equivalent LaTeX.

After the string normalisation that the MATH data set's authors introduced, in our own words: sizes, spaces, units
and degrees go, fractions and roots get their braces, and a plain number takes its shortest exact form.
"""

from __future__ import annotations

import re
from fractions import Fraction

from madplug_answers.number import LONGEST, shortest, without_mixed
from madplug_prompting.patterns import regex

_SPACES = regex(r"\\[,!;: ]|\\(?:quad|qquad|left|right|displaystyle|limits)(?![A-Za-z])|[\s~$]")
_FRACTIONS = regex(r"\\[dtc]frac(?![A-Za-z])")
_DEGREES = regex(r"\^\{?\\circ\}?|\\degree(?![A-Za-z])|°")
_UNIT = regex(r"(?<=[0-9}\s])\s{0,2}\\(?:text|mbox|textrm|mathrm|textbf)\s?\{\s?[A-Za-z][^{}]{0,40}\}"
              r"(?:\^\{?[23]\}?)?[\s.$]{0,4}\Z")
_NAMED_UNIT = regex(r"(-?\$?[0-9][0-9,]{0,40}(?:\.[0-9]{1,40})?)\s{1,3}[A-Za-z][A-Za-z ]{1,40}\Z")
TEXT = regex(r"\\(?:text|mbox|textrm|textbf|textit|mathrm|mathbf|operatorname)\s?\{([^{}]{0,400})\}")
_NAME = regex(r"[A-Za-z](?:_\{?[A-Za-z0-9]\}?)?(?:\([a-z]\))?\Z")
_COMMAND = regex(r"\\[A-Za-z]+")
_BARE_ROOT = regex(r"\\sqrt(?=[0-9A-Za-z])([0-9A-Za-z])")
_GROUP = r"(\{(?:[^{}]|\{[^{}]{0,200}\}){0,200}\})"
_BARE_FRACTION = regex(rf"\\frac(?:([0-9])([0-9])|([0-9]){_GROUP}|{_GROUP}([0-9]))")
_SLASH = regex(r"(?<![\w/.)])([0-9]{1,40})/([0-9]{1,40})(?![\w/.])")
_MIXED = regex(r"(-?)([0-9]{1,15})\\frac\{([0-9]{1,6})\}\{([0-9]{1,6})\}\Z")
_ROWS = (regex(r"\\+(?=\\[A-Za-z])"), regex(r"\\{2,}"))
_THOUSANDS = regex(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?\Z")
_DECIMAL = regex(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)\Z")
_RATIO = regex(r"(-?)\\frac\{(-?[0-9]+)\}\{(-?[0-9]+)\}\Z")
_WORD = regex(r"[A-Za-z]{3,}\Z")
_ONES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
         "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_NUMBERS = {word: str(n) for n, word in enumerate(_ONES)} | {
    tens + joint + (_ONES[n % 10] if n % 10 else ""): str(n)
    for n in range(20, 100) for tens in (_TENS[n // 10 - 2],) for joint in (("-", "") if n % 10 else ("",))}
"""The numbers to 99 in words."""
_LONGEST_WRAPPED = 2000
_SAME_SIGN = (("\\leq", "\\le"), ("\\geq", "\\ge"), ("\\neq", "\\ne"), ("\\lbrace", "\\{"), ("\\rbrace", "\\}"),
              ("{,}", ","), ("\\%", ""), ("%", ""), ("\\$", ""), ("−", "-"))


def normalise(latex: str) -> str:
    """The canonical spelling; a canonical spelling stays as it is."""
    for _ in range(8):  # one step can prepare another: a unit that goes leaves a plain number
        again = _once(latex)
        if again == latex:
            break
        latex = again
    return latex


def _once(text: str) -> str:
    text = text.strip(" \t\n\"'").rstrip(".,;:").strip(" \t\n\"'")
    for spelling, sign in _SAME_SIGN:
        text = text.replace(spelling, sign)
    text = _unwrapped(text)  # a unit inside brackets is at the end of the expression
    text = _NAMED_UNIT.sub(r"\1", _UNIT.sub("", text))
    text = _SPACES.sub("", without_mixed(_DEGREES.sub("", _FRACTIONS.sub(r"\\frac", text))))
    text = TEXT.sub(r"\1", text)
    text = _ROWS[1].sub(r"\\", _ROWS[0].sub("", text))
    text = _unwrapped(_value(text))
    text = _BARE_ROOT.sub(r"\\sqrt{\1}", text)
    text = _BARE_FRACTION.sub(_braced, text)
    text = _SLASH.sub(r"\\frac{\1}{\2}", text)
    return _plain(text)


def _value(text: str) -> str:
    """What an expression is said to be: the right side of `x = 5` and of `3 + 4 = 7`; other equations stay."""
    left, equals, right = text.rpartition("=")
    if not equals or not right or left.endswith(("\\", "<", ">", "!", ":")):
        return text
    computed = not re.search("[A-Za-z]", _COMMAND.sub("", left))
    return right if computed or _NAME.match(left) else text


def _unwrapped(text: str) -> str:
    """An expression without brackets or braces around the whole of it; pairs and intervals keep theirs."""
    if text[:1] + text[-1:] not in ("()", "{}") or re.search("[,;]", text) or len(text) > _LONGEST_WRAPPED:
        return text
    depth = 0
    for place, character in enumerate(text):
        depth += (character == text[0]) - (character == text[-1])
        if not depth:
            inside = text[1:-1]
            return inside if inside and place == len(text) - 1 else text
    return text


def _braced(match: re.Match[str]) -> str:
    above, below = (part if part.startswith("{") else f"{{{part}}}" for part in match.groups() if part is not None)
    return f"\\frac{above}{below}"


def _in_digits(text: str) -> str | None:
    """A number below a million that is written in words without spaces, in digits."""
    thousands, has_thousands, rest = text.rpartition("thousand")
    hundreds, has_hundreds, below = rest.rpartition("hundred")
    parts = [(thousands, has_thousands, 1000), (hundreds, has_hundreds, 100), (below.removeprefix("and"), "", 1)]
    total = 0
    for words, unit, worth in parts:
        if not words and not unit:
            continue
        number = _NUMBERS.get(words) if worth < 1000 or not unit else _in_digits(words)
        if number is None or (worth == 100 and not 0 < int(number) < 10):
            return None
        total += int(number) * worth
    return str(total) if text else None


def _plain(text: str) -> str:
    """A plain number in its shortest exact form, a single word in lower case, anything else as it is."""
    if (named := _in_digits(text.lower())) is not None:
        return named
    if _WORD.match(text):
        return text.lower()
    if len(text) > LONGEST:
        return text
    if _THOUSANDS.match(text):
        text = text.replace(",", "")
    if _DECIMAL.match(text):
        return shortest(Fraction(text))
    if (mixed := _MIXED.match(text)) and int(mixed[3]) < int(mixed[4]):
        text = f"{mixed[1]}\\frac{{{int(mixed[2]) * int(mixed[4]) + int(mixed[3])}}}{{{mixed[4]}}}"
    ratio = _RATIO.match(text)
    if ratio is None or not int(ratio[3]):
        return text
    value = Fraction(int(ratio[2]), int(ratio[3])) * (-1 if ratio[1] else 1)
    exact = shortest(value)
    sign = "-" if value < 0 else ""
    return exact if "/" not in exact else f"{sign}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"
