"""Yes or no."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from madplug import Sample
from madplug_answers import papers
from madplug_answers.asking import READ_AS, Reading, ReadingOptions
from madplug_answers.marks import LINE, announcements, boxed, closing_after_boxes, concluding
from madplug_answers.own import compatible, parse_reply
from madplug_prompting.patterns import regex
from madplug_prompting.prompts import fill

ASK_YESNO = "When you have decided, end your reply with one line that says yes or no, in this form: {form}"

_BOTH = regex(r"(?i)(?<![\w'’])(?:yes(?:[ ]or[ ]|/)no|true(?:[ ]or[ ]|/)false)(?![\w'’])")
_WORD = regex(
    r"(?i)(?P<not>(?:(?<!\w)(?:not|never|cannot)|n['’]t)[ \t]{1,3}"
    r"(?:(?:be|been|a|the|simply|entirely|quite|really|necessarily|strictly|completely|always|actually)[ \t]{1,3}){0,2}"
    r")?(?<!\w)(?<!\w['’])(?P<word>yes|no|true|false)(?!\w|['’-]\w)")
_ALONE = regex(r"(?i)[\s*_\"'“‘(]{0,6}(yes|no|true|false)[*_\"'”’)]{0,3}[,;.!:\n]")
"""A word of its own right after an announcement; what comes after it are reasons."""
_POSITIVE = ("yes", "true")
_NUMBERED = regex(r"\.[ \t]?[0-9]")
_NEXT_WORD = regex(r"[ \t]{1,9}([A-Za-z]{1,20})")
_AFTER_NO = frozenset((
    "because", "since", "as", "for", "it", "he", "she", "they", "this", "that", "these", "those", "there", "the", "we",
    "i", "you", "but", "and", "or", "not", "due", "given", "based", "if", "when", "while", "though", "although",
    "unless", "so", "thus", "hence", "however", "is", "was", "would", "in", "according"))
"""Words that may follow the answer "no"; before any other word, "no" belongs to that word ("no doubt")."""
_SENTENCE = regex(r"[.!?](?=\s)|\n")
_TRIED = 8


class YesNo(Reading):
    """Yes or no.

    The yes, no, true or false that follows the last announcement of the answer by itself, as in `Final answer: No;`,
    else the last in the sentence after it, else the last after it, else the last of the text; where a line begins with
    `Final answer:`, only from there on. True is yes and false is no.
    """

    name = "yesno"
    source = "Yin et al. 2023 (evaluation)"
    rules = papers.YESNO
    closing = f"{LINE} yes"
    alone = "Give only yes or no."

    class Options(ReadingOptions):
        """Options of `answers.yesno`."""

        read_as: Literal["madplug", "eot"] = Field(default="madplug", description=READ_AS)
        instruction: str = Field(default=ASK_YESNO, description="prompt: the request for the closing line. {form}")

    def instruction(self, sample: Sample) -> str:
        """Asks for `Final answer: <yes or no>`."""
        return fill(self.options.instruction, form=f"`{LINE} <yes or no>`")

    def pattern(self, sample: Sample) -> str:
        """The closing line."""
        return f"{LINE} (yes|no)"

    def canonical(self, text: str, sample: Sample) -> str | None:
        """`yes` or `no`."""
        return self.stated(text, sample)

    def stated(self, text: str, sample: Sample) -> str | None:
        """What a text says."""
        own = _BOTH.sub(lambda match: " " * len(match[0]), parse_reply(compatible(text)).own)
        inside = None if closing_after_boxes(own) else boxed(own)
        if inside is not None and (found := _last_word(inside)):
            return found
        own = concluding(own)
        for start in reversed(announcements(own)[-_TRIED:]):
            after = own[start:]
            if alone := _ALONE.match(after):
                return "yes" if alone[1].lower() in _POSITIVE else "no"
            if found := _last_word(_SENTENCE.split(after.lstrip(), maxsplit=1)[0]) or _last_word(after):
                return found
        return _last_word(own)


def _last_word(text: str) -> str | None:
    """The last yes or no of a text; a negated word counts as its opposite."""
    for match in reversed(list(_WORD.finditer(text))):
        if match["word"].lower() == "no" and _belongs_to_next_word(text, match.end()):
            continue
        positive = match["word"].lower() in _POSITIVE
        return "yes" if positive == (match["not"] is None) else "no"
    return None


def _belongs_to_next_word(text: str, end: int) -> bool:
    """Whether a "no" is a determiner, as in "no doubt", or an abbreviation, as in "No. 5"."""
    following = _NEXT_WORD.match(text, end)
    if following is None:
        return _NUMBERED.match(text, end) is not None
    return following[1].lower() not in _AFTER_NO
