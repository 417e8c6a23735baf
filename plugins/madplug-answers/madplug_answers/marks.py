"""Where a reply says that its answer comes: the closing line, the usual phrases, LaTeX boxes.

Every reader takes time in proportion to the text, whatever the text: repetitions are bounded, and nothing is
searched for again from every position.
"""

from __future__ import annotations

import re
import unicodedata

LINE = "Final answer:"
"""How the line that every format asks for begins."""

MARKER = re.compile(
    r"(?i)(?<![a-z])(?:final[ \t]{1,3}(?:answer|solution)(?![a-z])"
    r"|(?:answer|solution|choice|option)[ \t]{1,3}(?:is|would[ ]be)(?![a-z])"
    r"|answer(?=[ \t]?[:=])|\#\#\#\#)")
"""An announcement of the answer."""

_JOINT = re.compile(r"(?i)(?:[ \t]{0,3}is(?![a-z]))?[ \t]{0,3}[:=]?\s{0,4}")
_CLOSING = re.compile(r"(?im)^(?:(?:[^\S\n]|[>#_*])*final[ \t]{1,3}answer[ \t]{0,3}:\**)+")
_BOX = re.compile(r"\\(?:boxed|fbox)\s{0,3}\{")
_BOXES_TRIED = 8
_BRACE = re.compile(r"\\.|[{}]", re.S)
_LONGEST_BOX = 4000


def plain(text: str) -> str:
    """The text without Markdown emphasis, in compatibility characters."""
    text = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return text.replace("*", "").replace("`", "")


def announced(text: str) -> str | None:
    """What follows the last announcement of the answer, or None where there is none."""
    ends = announcements(text)
    return text[ends[-1]:] if ends else None


def announcements(text: str, marker: re.Pattern[str] = MARKER) -> list[int]:
    """Where the text goes on after each announcement of the answer, in order."""
    return [joint.end() for mark in marker.finditer(text) if (joint := _JOINT.match(text, mark.end()))]


def closing(text: str) -> str | None:
    """What follows the last line that begins with `Final answer:`, or None where there is none."""
    marks = list(_CLOSING.finditer(text))
    return text[marks[-1].end():].strip() if marks else None


def boxed(text: str) -> str | None:
    r"""What is in the last `\boxed{...}` that is closed, or None where there is none."""
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

    Superscripts, fractions and other numbers that are no decimal digits stay as they are: 5² is not 52.
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
