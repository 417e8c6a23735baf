"""Where a reply announces its answer: the closing line, the usual phrases, LaTeX boxes.

All parsers run in time proportional to the text, whatever it contains: repetitions are bounded, and no search
restarts from every position.
"""

from __future__ import annotations

import re
import unicodedata

from madplug_prompting.patterns import regex

LINE = "Final answer:"
"""How the line that every format asks for begins."""

MARKER = regex(
    r"(?i)(?<![a-z])(?:final[ \t]{1,3}(?:answer|solution)(?![a-z])"
    r"|(?:answer|solution|choice|option)[ \t]{1,3}(?:is|would[ ]be)(?![a-z])"
    r"|answer(?=[ \t]?[:=])|\#\#\#\#)")
"""An announcement of the answer."""

ANNOUNCED_HERE = regex(
    MARKER.pattern + r"(?:[ \t]{0,3}is(?![a-z]))?[ \t]{0,3}[:=]?[\s$(\[{]{0,6}\Z"
    r"|(?i:\bI[ ](?:choose|chose|pick|select|say|answer|vote[ ]for|go[ ]with|propose)(?:[ ]option)?[:\s(\[]{0,4}\Z)")
"""A text that ends with an announcement of the author's answer."""

_JOINT = regex(r"(?i)(?:[ \t]{0,3}(?:is|would[ ]be)(?![a-z]))?[ \t]{0,3}[:=]?\s{0,4}")
_CLOSING = regex(r"(?im)^(?:(?:[^\S\n]|[>#_*])*final[ \t]{1,3}answer[*_]{0,3}[ \t]{0,3}:\**)+")
_BOX = regex(r"\\(?:boxed|fbox)\s{0,3}\{")
_BOXES_TRIED = 8
_BRACE = regex(r"\\.|[{}]", re.S)
_LONGEST_BOX = 4000


def announced(text: str) -> str | None:
    """What follows the last announcement of the answer, or None."""
    ends = announcements(text)
    return text[ends[-1]:] if ends else None


def announcements(text: str, marker: re.Pattern[str] = MARKER) -> list[int]:
    """Where the text goes on after each announcement of the answer, in order."""
    return [joint.end() for mark in marker.finditer(text) if (joint := _JOINT.match(text, mark.end()))]


def closing_at(text: str) -> int | None:
    """Where the text goes on after the last line that begins with `Final answer:`, or None."""
    marks = list(_CLOSING.finditer(text))
    return marks[-1].end() if marks else None


def closing(text: str) -> str | None:
    """What follows the last line that begins with `Final answer:`, or None."""
    start = closing_at(text)
    return None if start is None else text[start:].strip()


def concluding(text: str) -> str:
    """The last line that begins with `Final answer:` and has an answer after it, with all that follows; else the text.

    What a reply discusses before such a line is not its answer, even if none can be read in the line.
    """
    start = closing_at(text)
    return text if start is None or not text[start:].strip() else LINE + text[start:]


def closing_after_boxes(text: str) -> str | None:
    r"""What follows the last line that begins with `Final answer:`, unless a LaTeX box does, or None."""
    after = closing(text)
    return None if after is None or _BOX.search(after) else after


def boxed(text: str) -> str | None:
    r"""What is in the last `\boxed{...}` that is closed, or None."""
    for mark in reversed(list(_BOX.finditer(text))[-_BOXES_TRIED:]):
        inside = _to_closing_brace(text, mark.end())
        if inside is not None and inside.strip():
            return inside.strip()
    return None


def _to_closing_brace(text: str, start: int) -> str | None:
    depth = 1
    for brace in _BRACE.finditer(text, start, start + _LONGEST_BOX):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if not depth:
            return text[start:brace.start()]
    return None


def ascii_digits(text: str) -> str:
    """The text with every decimal digit of any script as 0 to 9, and the usual minus signs as a hyphen.

    Superscripts, fractions and other numbers that are not decimal digits stay as they are: 5² is not 52.
    """
    if text.isascii():
        return text
    digits = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
    return digits.translate(_SIGNS)


_SIGNS = str.maketrans({
    "\N{MINUS SIGN}": "-", "\N{FULLWIDTH HYPHEN-MINUS}": "-", "\N{SMALL HYPHEN-MINUS}": "-",
    "\N{FULLWIDTH FULL STOP}": ".", "\N{FULLWIDTH COMMA}": ",", "\N{ARABIC DECIMAL SEPARATOR}": ".",
    "\N{ARABIC THOUSANDS SEPARATOR}": ",", "\N{NARROW NO-BREAK SPACE}": ",", "\N{THIN SPACE}": ",",
    "\N{FULLWIDTH SOLIDUS}": "/", "\N{FRACTION SLASH}": "/", "\N{DIVISION SLASH}": "/"})
