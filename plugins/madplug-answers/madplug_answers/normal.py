"""One form of short texts: words without case and punctuation, numbers with all that makes their value."""

from __future__ import annotations

import re
import string
import unicodedata

from madplug_prompting.patterns import regex

_SPACED_GROUPS = regex(r"(?<![\w.,])([0-9]{1,3}(?:[ \u00a0\u2009\u202f][0-9]{3})+)(?![0-9])")
_GROUPS = regex(r"(?<![\w.,])(?:[0-9]{1,3}(?:(?:,[0-9]{3})+|(?:['’][0-9]{3})+|(?:_[0-9]{3})+|(?:\.[0-9]{3}){2,})"
                r"|[0-9]{1,2}(?:,[0-9]{2}){1,9},[0-9]{3})(?![0-9]|,[0-9])")
_VULGAR = regex(r"(?<=[0-9])(?=[¼-¾⅐-⅞])")
_SUPERSCRIPT = regex(r"(?<=[0-9])(?=[⁰¹²³⁴-⁹⁻])")
_SIGNS = str.maketrans({
    "−": "-", "‐": "-", "‑": "-", "‒": "-", "–": "-", "⁄": "/", "∕": "/", "’": "'", "٫": ".", "٬": ","})
_POINT = regex(r"(?<![\w.])\.(?=[0-9])")
_PERCENT = regex(r"(?<=[0-9])\s{0,3}(?:%|per\s?cent(?![a-z]))")
_CURRENCY = regex(r"(?<![\w.,])(-?[0-9][0-9.,]{0,40}(?<![.,]))\s?([$€£¥])")
_SIGNED_CURRENCY = regex(r"([$€£¥])\s?-(?=[0-9])")
_SPACE_AFTER_CURRENCY = regex(r"(?<=[$€£¥])\s(?=[0-9])")
_UNIT = regex(
    r"(?<![\w.])([$€£¥]?-?[0-9](?:[0-9.,/]{0,40}[0-9])?)\s{0,3}"
    r"(?=(?:[kcmµ]?m|k?g|mg|lbs?|oz|ft|mi|mph|kph|km/h|m/s|m?l|ms|min|[kmg]?hz|[km]?w|kwh|[kmgt]b|°\s?[cf]?|°)(?![\w]))")
_DEGREES = regex(r"°\s(?=[cf](?!\w))")
_MARK = regex("[" + re.escape(string.punctuation) + "“”‘’«»„…–—]")
_BETWEEN_DIGITS = frozenset(".,:/-^*")
_ARTICLES = regex(r"(?<![\w.$€£¥])(?:a|an|the)(?![\w%+#])")


def normalised(text: str) -> str:
    """The words of a text: compatibility characters, lower case, no punctuation, no articles, single spaces.

    Numbers keep what determines their value: the decimal point, the sign, currency, percent, and what joins them in
    dates, times, ranges, fractions and powers. Thousands are written without separators (1,500 and 1 500 are 1500),
    and a space stands between a number and its unit. A text of articles alone keeps them: "A" is a vitamin.
    """
    words = " ".join(_without_punctuation(_with_plain_numbers(text)).split())
    return " ".join(_ARTICLES.sub(" ", words).split()) or words


def _with_plain_numbers(text: str) -> str:
    text = _SUPERSCRIPT.sub("^", _VULGAR.sub(" ", text))
    text = unicodedata.normalize("NFKC", _ascii_digits(text)).lower().translate(_SIGNS)
    text = ungrouped(text)
    text = _POINT.sub("0.", text)
    text = _SPACE_AFTER_CURRENCY.sub("", _SIGNED_CURRENCY.sub(r"-\1", _CURRENCY.sub(r"\2\1", text)))
    text = _SIGNED_CURRENCY.sub(r"-\1", text)
    text = _UNIT.sub(r"\1 ", _PERCENT.sub("%", text))
    return _DEGREES.sub("°", text)


def _ascii_digits(text: str) -> str:
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)


def ungrouped(text: str) -> str:
    """The text with its thousands written without separators: 1500 for 1,500 and 1 500 and 1'500."""
    return _SPACED_GROUPS.sub(_digits, _GROUPS.sub(_digits, text))


def _digits(match: re.Match[str]) -> str:
    return re.sub("[^0-9]", "", match[0])


def _without_punctuation(text: str) -> str:
    return _MARK.sub(lambda mark: mark[0] if _has_meaning(text, mark.start()) else "", text)


def _has_meaning(text: str, at: int) -> bool:
    """Whether a punctuation mark is part of a number, or of a name such as C++ or C#."""
    mark, before, after = text[at], text[at - 1:at], text[at + 1:at + 2]
    if mark in _BETWEEN_DIGITS and _is_digit(before) and _is_digit(after):
        return True
    if mark == "-":
        amount = text[at + 2:at + 3] if after in tuple("$€£¥") else after
        return not before.strip("([{") and _is_digit(amount)
    if mark == "$":
        return _is_digit(after)
    if mark == "%":
        return _is_digit(before)
    if mark in "+#":
        return (before.isalnum() or before in ("+", "#")) and not after.isalnum()
    return False


def _is_digit(character: str) -> bool:
    return character != "" and character in "0123456789"
