"""An agent's own words: what a reply says without thoughts, quotations and reports of what others answer.

In a debate, replies quote and discuss other agents' answers all the time. An answer found there would be credited to
the wrong agent, so these parts are blanked before any answer is looked for. Blanking keeps every position: a place
found in the own words is the same place in the whole text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

from madplug_answers.marks import ANNOUNCED_HERE, LINE, MARKER
from madplug_answers.reports import blank, blank_reports
from madplug_prompting.patterns import regex
from madplug_prompting.replies import STANCE, read_json, without_thoughts

_EMPHASIS = regex(r"(?<![0-9)])(?<![0-9)] )\*+|\*+(?! ?[0-9(\\])|`+")
"""A star between factors is not emphasis."""
_TOKEN = regex(r"[\w.,/%-]+")
"""A text in which nothing can be quoted, reported or emphasised."""
_QUOTE = regex("[\"“„«'‘]")
_FENCE = regex(r"`{3,}|^[ ]{0,3}~{3,}", re.M)
_FENCED = regex(r"\s*(`{3,}|~{3,})[ \t]*[\w+-]{0,20}[ \t]*\n(.*)\n[ \t]*\1[`~]*\s*\Z", re.S)
_BLOCK_QUOTE = regex(r"^[ \t]{0,3}>[^\n]*(?:\n[ \t]{0,3}>[^\n]*)*", re.M)
_QUOTED = regex(
    r'(?<![\w)\]])"(?=\S)(?P<straight>(?:[^"\n]|\n(?![ \t]{0,9}\n)){1,2000})"(?!\w)'
    r"|“(?P<curly>[^“”]{1,2000})”|„(?P<low>[^„“”]{1,2000})[“”]|«(?P<angle>[^«»]{1,2000})»"
    r"|(?<!\w)'(?=[A-Za-z(\[])(?P<single>(?:[^'\n]|(?<=\w)'(?=\w)){1,400})'(?!\w)"
    r"|‘(?P<round>(?:[^‘’\n]|’(?=\w)){1,400})’(?!\w)")
_UTTERANCE = regex(r"(?i)\b(?:answer|solution|I|we)\b|\\boxed")
_OPTION = regex(r"(?:\(X\) ?)?\(?[A-Z]\) ")
_OBJECT = regex(r"(?m)(?:^[ \t]{0,9}`{3,}\w{0,9}\s{1,9})?^[ \t]{0,9}\{")
_FIELD = regex(r'(?i)"(?:final[_ ]?)?answer"\s{0,9}:')
_LONGEST_NAME = 40
_INTRODUCED = regex(
    r"(?:\b(?:I|[Mm]y)\b|\b(?:updated|revised|final)\b)(?:(?!\b(?:agent|other|their|his|her)s?\b)[^\n.!?]){0,100}"
    r"\b(?:answer|solution|choice|response)\b(?:(?!\b(?:agent|other)s?\b)[^\n.!?]){0,100}:\s{0,4}\Z")
_BEFORE, _CLOSE = 240, 60


class ReplyText(NamedTuple):
    """A reply as it is read; both texts have the same length."""

    text: str
    """Without thoughts, tags and Markdown emphasis."""
    own: str
    """The same with spaces for every character that is not the author's own claim."""


def parse_reply(text: str) -> ReplyText:
    """The text of a reply, and the author's own words in it."""
    if _TOKEN.fullmatch(text):
        return ReplyText(text, text)
    text = _closed(spoken(text))
    own = unquoted(text)
    if "*" not in text and "`" not in text:
        return ReplyText(text, blank_reports(own))
    emphasis = [mark.span() for mark in _EMPHASIS.finditer(text)]
    return ReplyText(_cut(text, emphasis), blank_reports(_cut(own, emphasis)))


def _closed(text: str) -> str:
    """A reply that ends with a JSON object on lines of its own, with the object's answer as a closing line instead."""
    object_at = _OBJECT.search(text) if text.rstrip("` \n").endswith("}") and _FIELD.search(text) else None
    fields = read_json(text) or {} if object_at else {}
    found = [value for key, value in fields.items() if _FIELD.match(f'"{key}":')]
    if object_at is None or not found or not isinstance(found[-1], str | int | float):
        return text
    return f"{text[:object_at.start()]}{LINE} {found[-1]}"


def plain(text: str) -> str:
    """The text without Markdown emphasis, in compatibility characters."""
    return _EMPHASIS.sub("", compatible(text))


def compatible(text: str) -> str:
    """The text in compatibility characters: fullwidth letters as ordinary ones."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def spoken(text: str) -> str:
    """The text without thoughts and `[AGREE]` tags, and without a code fence around a whole reply."""
    if "<" in text:
        text = without_thoughts(text)
    if "[" in text:
        text = STANCE.sub(" ", text)
    whole = _FENCED.match(text) if text.lstrip()[:3] in ("```", "~~~") else None
    return whole[2] if whole and whole[1] not in whole[2] and MARKER.search(whole[2]) else text


def unquoted(text: str) -> str:
    """The text with its quotations blanked: code fences, block quotes, and quoted speech.

    Not blanked are a quotation that is the whole text, one that follows an announcement of the author's own answer
    (`Final answer: "B"`), and quoted names: a few words that announce no answer.
    """
    own = _without_fences(text) if "```" in text or "~~~" in text else text
    if ">" in own:
        own = _blank_each(own, _BLOCK_QUOTE, lambda quote: _is_announced(own, quote.start()))
    if _QUOTE.search(own):
        spoken_text = own
        own = _blank_each(own, _QUOTED, lambda quote: _is_name(spoken_text, quote))
    return own if re.search(r"[^\s`*]", own) else text


def _without_fences(text: str) -> str:
    """A fence without its end runs to the end of the text."""
    parts, start, opening = [], 0, None
    for fence in _FENCE.finditer(text):
        if opening is None:
            opening = fence
        elif fence[0].strip()[0] == opening[0].strip()[0]:
            parts += [text[start:opening.start()], _fenced(text, opening.start(), fence.end())]
            start, opening = fence.end(), None
    if opening is not None:
        parts += [text[start:opening.start()], _fenced(text, opening.start(), len(text))]
        start = len(text)
    return "".join([*parts, text[start:]])


def _fenced(text: str, start: int, end: int) -> str:
    return text[start:end] if _is_announced(text, start) else blank(text[start:end])


def _blank_each(text: str, pattern: re.Pattern[str], keep: Callable[[re.Match[str]], bool]) -> str:
    return pattern.sub(lambda match: match[0] if keep(match) else blank(match[0]), text)


def _is_announced(text: str, start: int) -> bool:
    """Whether an announcement of the answer ends right before a place."""
    before = text[max(0, start - _BEFORE):start].replace("*", "").replace("`", "")
    return (ANNOUNCED_HERE.search(before, max(0, len(before) - _CLOSE)) or _INTRODUCED.search(before)) is not None


def _is_name(text: str, quote: re.Match[str]) -> bool:
    """Whether something quoted is an option, an answer or a name, rather than a statement about the answer."""
    inside = quote[quote.lastgroup or 0]
    short = len(inside) <= _LONGEST_NAME and len(inside.split()) <= 3 and not _UTTERANCE.search(inside)
    return short or _OPTION.match(inside) is not None or _is_announced(text, quote.start())


def _cut(text: str, spans: list[tuple[int, int]]) -> str:
    """The text without the spans."""
    parts, at = [], 0
    for start, end in spans:
        parts.append(text[at:start])
        at = end
    return "".join([*parts, text[at:]])
