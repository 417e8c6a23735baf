"""Reading what a model said: a JSON object, whether it agrees, a confidence. All in time proportional to the text."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import TYPE_CHECKING, Any, Literal

from madplug_prompting.patterns import regex

if TYPE_CHECKING:
    from madplug import Debate

AgreementRule = Literal["tag", "legacy"]

_NOT = r"(?:\bnot|n't|n’t|\bnever|\bcannot)\s{1,9}"
_TAG = regex(rf"(?P<not>{_NOT})?"
             r"\[\s{0,9}(?P<tag>agree|disagree)(?:d|s|ment)?\s{0,9}\]")
STANCE = regex(r"(?i)[*_]{0,2}\[\s{0,9}(?:dis)?agree(?:d|s|ment)?\s{0,9}\]"
               r"[*_]{0,2}(?:[ \t]{0,9}(?:[:.,;]|[-–—](?=\s)))?[*_]{0,2}[ \t]{0,9}")
"""The tag of an agreement or a disagreement, with the emphasis around it and the mark that sets it apart."""
_AGREEING = r"(?:agree\b|in (?:full |complete |total |general )?agreement\b)"
_NEGATED = (r"(?:\bnot|n't|n’t|\bnever|\bcannot|\bno longer|\b(?:hardly|barely|scarcely|nobody|none|neither)"
            r"|\b(?:refus(?:e[sd]?|ing)|unable|unwilling|reluctant|fail(?:s|ed)?|impossible|hard|difficult) to)"
            rf"\s{{1,9}}(?:\w{{1,20}}\s{{1,9}}){{0,2}}{_AGREEING}")
_DISAGREES = regex(rf"\bdisagree|{_NEGATED}")
_NOT_DISAGREES = regex(rf"{_NOT}disagree\b")
_NOT_SAID = regex(r"(?:\b(?:do|does|can|could|should|would|will|might|may)|['’]d)\s{1,9}(?:\w{1,20}\s{1,9}){0,2}agree\b"
                  r"[^.!?\n]{0,200}(?:\?|\bif\b|\bonly\b|\bbut\b)|\bwhether\b[^.!?\n]{0,100}\bagree\b|\bpart(?:ial)?ly\s{1,9}agree\b")
"""An agreement that is asked about, in part, or depends on something."""
_QUOTED_LINE = regex(r"(?m)^[ \t]{0,9}>.*$")
_QUOTATION = regex(r"[\"“„«][^\"“”„«»\n]{0,2000}[\"”“»]|(?<!\w)['‘][^'‘’\n]{0,2000}['’](?!\w)")
# "agreed" alone may be about others: it counts where a sentence begins with it, or after its subject.
_AGREES = regex(
    rf"\b{_AGREEING}|(?:(?:\A|[.!?:\n])[\s*_\"']{{0,9}}|\b(?:i|we|i'm|i am|we are|i have|i've)\s)agreed\b")
_THOUGHT = regex(r"(?i)<(/?)think(?:ing)?>")
_IS_SAID = regex(r"[ ,]{0,3}(?:is|was|were|said|says|wrote|writes|claim|as)\b")
_WORD = regex(r"\w")
# Neither "Agent 2's answer is" nor "their answer is" announces the author's own.
_ANNOUNCED = regex(r"(?i)(?<!\w['’]s )(?<!their )(?<!your )\banswer[\s*_]{0,4}(?:[:=]|is\b)[\s*_:]{0,6}([^\n]{1,200})")
_OPENING = regex(r"[{\[]")
# A string is matched as a whole, so that a comma in it is left alone; one that is never closed reaches to the end.
_STRING_OR_STRAY_COMMA = regex(r'("(?:[^"\\]|\\.)*"?)|,(?=\s{0,99}[}\]])', re.DOTALL)
_READ_AT_MOST = 100_000
_REPAIR_AT_MOST = 20_000
_DEEPEST = 300


def read_agreement(text: str, how: AgreementRule = "tag") -> tuple[bool, bool]:
    """Whether a reply agrees, and whether that could not be read (it then counts as no agreement).

    `tag`: the `[AGREE]` or `[DISAGREE]` with which the reply begins wins, as later ones may be those of others; else
    the last one; without a tag, the words do (`agree`, `agreed`, `in agreement`, `disagree`). A negated agreement is a
    disagreement. Thoughts and quotations do not count, nor does an agreement that is asked about, in part, or depends
    on something. `legacy`: agrees if "agree" occurs anywhere and "disagree" nowhere.
    """
    text = (text if text.isascii() else unicodedata.normalize("NFKC", text)).lower()
    if how == "legacy":
        disagrees = "disagree" in text
        return "agree" in text and not disagrees, "agree" not in text
    text = without_quotations(without_thoughts(text), _TAG)
    if tags := [*_TAG.finditer(text)]:
        begins = _WORD.search(text, 0, tags[0].start()) is None
        tag = tags[0] if begins else tags[-1]
        return (tag["tag"] == "agree") == (tag["not"] is None), False
    text = _NOT_DISAGREES.sub(" ", _NOT_SAID.sub(" ", text))
    disagrees = _DISAGREES.search(text) is not None
    agrees = _AGREES.search(text) is not None
    return agrees and not disagrees, not (agrees or disagrees)


def without_thoughts(text: str) -> str:
    """The text outside of `<think>...</think>`, or `<thinking>`.

    Without its end, a thought runs to the end of the text; without its beginning, from the beginning or from the
    thought before: some models' templates write the opening tag themselves.
    """
    kept, start, thinking = [], 0, False
    for tag in _THOUGHT.finditer(text):
        if tag[1]:
            start, thinking = tag.end(), False
        elif not thinking:
            kept.append(text[start:tag.start()])
            thinking = True
    return "\n".join(kept if thinking else [*kept, text[start:]])


def spoken(text: str) -> str:
    """What an agent says to the others: the text without its thoughts, and otherwise as it is.

    A transcript has what was said, so no later prompt repeats thoughts; the record of the call has the whole reply.
    """
    return without_thoughts(text).strip() if _THOUGHT.search(text) else text


def without_quotations(text: str, of: re.Pattern[str]) -> str:
    """The text without what it quotes: lines that begin with `>`, and text in quotation marks that has more in it.

    of: what is looked for. A quotation that is nothing but that stays, because models put their own answer in quotation
    marks, too; and so does all, where nothing but quotations would be left.
    """
    def shortened(quotation: re.Match[str]) -> str:
        inner = quotation[0][1:-1].strip()
        return quotation[0] if of.fullmatch(inner) and not _IS_SAID.match(text, quotation.end()) else " "

    rest = _QUOTATION.sub(shortened, _QUOTED_LINE.sub("", text))
    return rest if of.search(rest) or _WORD.search(rest) else text


def without_stances(text: str) -> str:
    """The text without `[AGREE]` and `[DISAGREE]`."""
    return STANCE.sub("", text).strip()


def states_answer(debate: Debate, text: str) -> bool:
    """Whether a text has the very line that the answer format asks for, outside of thoughts."""
    pattern = debate.answers.pattern(debate.sample)
    return pattern is not None and re.search(pattern, without_thoughts(text)) is not None


def announces_answer(debate: Debate, text: str) -> bool:
    """Whether a text announces an answer in whatever spelling: `**Final Answer:** B`, `the answer is 12`.

    In a format that takes any words for an answer (`reads_any_text`), only its closing line does, since "the answer is
    well founded" announces none.
    """
    if states_answer(debate, text):
        return True
    if getattr(debate.answers, "reads_any_text", False):
        return False
    announced = _ANNOUNCED.findall(without_quotations(without_thoughts(text), _ANNOUNCED))
    return any(debate.answers.canonical(said, debate.sample) is not None for said in announced)


def read_json(text: str) -> dict[str, Any] | None:
    """The JSON object in a reply: the last whole one, else the first broken one repaired, else None.

    A comma before a closing bracket does no harm. Of a list of objects it is the first. Thoughts are not read.
    """
    text = without_thoughts(text)
    text = text[-_READ_AT_MOST:] if "{" in text[-_READ_AT_MOST:] else text[:_READ_AT_MOST]
    if "{" not in text:
        return None
    # Without this, a comma at the end of an object would leave only the last whole object inside it.
    text = _STRING_OR_STRAY_COMMA.sub(lambda m: m[1] or "", text)
    found = _whole_objects(text)
    return found[-1] if found else _repaired(text)


def read_share(value: object) -> float | None:
    """A confidence between 0 and 1: from 0.8, "0.8", "80 %" or 80, which are the same; else None."""
    match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{0,9})?)\s*(%?)\s*", value) if isinstance(value, str) else None
    number = float(match[1]) if match else value
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 <= number <= 100:  # also: not a number
        return None
    return float(number / 100 if number > 1 or (match and match[2]) else number)


def read_percent(text: str) -> float | None:
    """The same where a number from 0 to 100 was asked for: a whole one is a percentage, 1 too."""
    return read_share(text if "." in text or "%" in text else f"{text}%")


def _whole_objects(text: str) -> list[dict[str, Any]]:
    decoder, found, end = json.JSONDecoder(strict=False), [], 0
    for _ in range(100):  # enough for any honest reply, and a bound on a hostile one
        start = _OPENING.search(text, end)
        if start is None:
            break
        try:
            value, end = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            end = start.end()
        else:
            found += [value] if (value := _one(value)) else []
    return found


def _one(value: object) -> dict[str, Any] | None:
    if isinstance(value, list):
        value = next((v for v in value if isinstance(v, dict)), None)
    return value if isinstance(value, dict) and value else None


def _repaired(text: str) -> dict[str, Any] | None:
    start = text.find("{")
    broken = text[start:start + _REPAIR_AT_MOST]
    if not 0 < broken.count("{") + broken.count("[") <= _DEEPEST:  # deeper nesting takes seconds to repair
        return None
    from json_repair import loads

    try:
        value = loads(broken, skip_json_loads=True)
    except (ValueError, RecursionError, IndexError):
        return None
    return _one(value)
