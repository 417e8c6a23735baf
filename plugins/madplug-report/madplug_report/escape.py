"""Untrusted names and texts in terminals, HTML, Markdown and LaTeX."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from itertools import accumulate

from madplug import safe

_LATEX = {"\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%",
          "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}",
          ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}", "–": "--",
          "−": "$-$", "×": r"$\times$", "±": r"$\pm$", "[": "{[}", "]": "{]}", "…": r"\ldots{}", "\0": "{}",
          "\N{REPLACEMENT CHARACTER}": "?"}
_LATEX_TABLE = str.maketrans(_LATEX)
_BROAD = {**dict.fromkeys("WMmw@%…", 1.55), **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZ&+<=>~#", 1.25)}
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~&#$])")
_SETTING = re.compile(r"(^|,)[\w.]+=(?![^(]*\))")


def line(text: str) -> str:
    """The text on one line, without characters that steer a terminal or turn the direction of writing."""
    return " ".join(safe(text).split())


def in_html(text: str) -> str:
    """For an element's text or an attribute in quotes."""
    return html.escape(line(text))


def in_markdown(text: str) -> str:
    """For a cell of a table or a line of text: nothing in it is markup, a link or a column's end."""
    return _MARKDOWN.sub(r"\\\1", line(text)).replace("://", ":\\//").replace("www.", "www\\.")


def in_latex(text: str) -> str:
    """For text mode: no command, no comment, no column's end, no ligature, no length after the end of a row."""
    return re.sub("-(?=-)", "-\0", line(text)).translate(_LATEX_TABLE)


def shortened(text: str, most: int) -> str:
    """At most this many characters wide: the middle is cut first, where names of a sweep differ least."""
    text = line(text)
    if width(text) <= most:
        return text
    half = (most - width("…")) / 2
    widths = [width(c) for c in text]
    head = sum(w <= half for w in accumulate(widths))
    tail = sum(w <= half for w in accumulate(reversed(widths)))
    return f"{text[:head]}…{text[len(text) - tail:]}"


def distinct(texts: Sequence[str], most: int) -> list[str]:
    """All of them shortened, and numbered where that made two alike.

    Where names of a sweep are too wide, the names of settings are cut first and only their values shown.
    """
    bare = [_SETTING.sub(lambda m: m[1] and ", ", text) for text in texts]
    if any(width(line(text)) > most for text in texts) and len(set(bare)) == len(set(texts)):
        texts = bare
    short = [shortened(text, most) for text in texts]
    return [text if short.count(text) == 1 else f"{shortened(texts[i], most - 5)} #{i + 1}"
            for i, text in enumerate(short)]


def width(text: str) -> float:
    """How many characters of usual width the text takes, rather too many than too few."""
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else _BROAD.get(c, 1) for c in text)
