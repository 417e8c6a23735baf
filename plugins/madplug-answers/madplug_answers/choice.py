"""One of several options, identified by its letter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

from pydantic import Field, model_validator

from madplug import Sample
from madplug_answers import papers
from madplug_answers.asking import READ_AS, Reading, ReadingOptions
from madplug_answers.marks import LINE, announced, announcements, boxed, closing, concluding
from madplug_answers.own import compatible, parse_reply, plain
from madplug_prompting.patterns import regex
from madplug_prompting.prompts import fill, letter

ASK_ONE = ("When you have decided, end your reply with one line that gives the letter of your choice, in this form: "
           "{form}")
ASK_SEVERAL = ("When you have decided, end your reply with one line that gives the letters of all options you take to "
               "be right, in this form: {form}")
ALONE_SEVERAL = "Give only the letters of all options you take to be right, separated by commas."

_WRAPPED = regex(r"\\(?:text|textbf|textit|mathrm|mathbf|mathsf)\s?\{")
_AFTER_MARK = regex(
    r"(?i)[\s<>\"'$\\(\[{_–—→-]{0,40}(?:(?:is|be|the|option|choice|letter|answer)(?![a-z])[\s:\"'$(\[{]{1,6}){0,3}"
    r"([a-z]{1,2})(?![a-z])")
_NO_ANSWER = regex(
    r"(?i)[\s(\[\"']{0,4}(?:not[ ](?:given|provided|listed|available|present|included|among|one[ ]of|in[ ]the)"
    r"|none(?![a-z])|n/?a(?![a-z])|unknown|undetermined|cannot[ ]be[ ]determined)")
_OR_ANOTHER = regex(
    r"(?i)[\s)\]}]{0,3}(?:,|/|&|\bor\b|\band\b){1,2}[\s(\[]{0,4}([a-z]{1,2})[\s)\]}\"'$*]{0,6}(?:[.;!?\n]|\Z)")
"""After an option, another one: an answer that names two is none."""
_MENTIONS = regex(
    # (B) or [B], but no f(B); in small letters only at an end, since "(a) first" counts something else
    r"(?<![\w)\]}\\])[(\[][ ]?"
    r"(?P<inside>[A-Z]{1,2}(?=[ ]?[)\]](?!\w))|[a-z]{1,2}(?=[ ]?[)\]][ ]?(?:[.,;!?\n]|\Z)))[ ]?[)\]]"
    # B) outside of brackets
    r"|(?:(?<=[\s\"'])|^)(?P<before>[A-Z]{1,2}(?=\)(?:[\s.,;:!?\"']|\Z))|[a-z]{1,2}(?=\)[ ]?(?:[.,;!?\n]|\Z)))\)"
    r"|(?P<open>[(\[])|(?P<close>[)\]])|(?P<line>\n)", re.M)
_NAMED = regex(r"(?<!\w)(?i:option|choice)[ ]([A-Z]{1,2})(?![\w'’])")
_LAST_LINE = regex(r"(?:\([^()\n]{1,12}\)\s?)?[\s\"'(\[{$\\]{0,6}([A-Za-z]{1,2})[\s\"')\]}$.!\\]{0,6}\Z")
_LABEL = regex(r"\s{0,9}\(?([A-Z]{1,2})[.:)]\s")
_ANY_LABEL = regex(r"(?i)" + _LABEL.pattern)
_SEVERAL = regex(r"(?i)[\s(\[{,;&\"']{0,6}(?:and[ ])?[ (\[]{0,3}([a-z]{1,2})(?![a-z])[)\]\"']{0,2}")
_SHOWN = regex(r"(?m)(?:^|[\s(\[])[A-Za-z][.:)\]]\s")
"""An option in the text of a question."""
_COMMAND = regex(r"\\(?:text|textbf|mathrm|mathbf|boxed)\{([^{}]{0,200})\}")
_RUN = regex(r"[A-Za-z]{1,26}\Z")


def labels(sample: Sample) -> tuple[str, ...]:
    """The letters of a sample's options; A to Z if it has none."""
    return _letters(len(sample.choices) or 26)


@lru_cache(maxsize=64)
def _letters(number: int) -> tuple[str, ...]:
    return tuple(map(letter, range(number)))


class Choice(Reading):
    """One of the options, by its letter.

    The canonical answer is a capital letter; a sample without options allows A to Z. A reply is searched in this order:
    the whole text as the letter or the wording of one option, the letter after the last announcement ("final answer",
    "answer is", a LaTeX box), the letter that is the whole last line, the last letter in brackets (`(B)`, `[B]`, `B)`),
    the last one that the last line names (`option B`). Lower-case letters count as capitals, an article does not count
    as an option, and an announcement that there is no answer ("the answer is not given") discards everything before it;
    so does a line that begins with `Final answer:`. An announcement of two options ("B or C") gives no answer. With
    `several` the answer is a set of letters, as in `AC`.
    """

    name = "choice"
    source = "Becker et al. 2025 (MALLM), section 3.4; Du et al. 2023 (evaluation)"
    rules = papers.CHOICE
    closing = f"{LINE} (B)"
    alone = "Give only the letter of your choice."

    class Options(ReadingOptions):
        """Options of `answers.choice`."""

        read_as: Literal["madplug", "mallm", "som", "madc", "eot", "dylan", "slm", "mmlu_pro"] = Field(
            default="madplug", description=READ_AS)
        several: bool = Field(
            default=False, description="more than one option may be right; the answer is the set of letters")
        instruction: str = Field(default=ASK_ONE, description="prompt: the request for the closing line. {form}")
        instruction_several: str = Field(
            default=ASK_SEVERAL, description="prompt: the same request with several = true. {form}")

        @model_validator(mode="after")
        def _one_letter(self) -> Any:
            if self.several and self.read_as != "madplug":
                raise ValueError(f"several = true excludes read_as = '{self.read_as}', which reads one letter")
            return self

    def instruction(self, sample: Sample) -> str:
        """Asks for `Final answer: (<letter>)`: a placeholder, since an example would favour an option."""
        if self.options.several:
            return fill(self.options.instruction_several, form=f"`{LINE} (<letter>), (<letter>), ...`")
        return fill(self.options.instruction, form=f"`{LINE} (<letter>)`")

    def instruction_alone(self, sample: Sample) -> str:
        """One letter, or with `several` all of them."""
        if not self.options.several:
            return super().instruction_alone(sample)
        asked = self.options.instruction_several
        return ALONE_SEVERAL if asked == ASK_SEVERAL else self.instruction(sample)

    def misfit(self, sample: Sample, references: Sequence[str]) -> str | None:
        """There is nothing to choose from, or no reference is an option."""
        if not (sample.choices or sample.images or _SHOWN.search("\n".join((*sample.context, sample.question)))):
            return ("it has no choices, and its text shows no options such as (A) this and (B) that; write them there, "
                    "name the column that has them, or use another format")
        return super().misfit(sample, references)

    def pattern(self, sample: Sample) -> str:
        """The closing line."""
        one = rf"\(({'|'.join(labels(sample))})\)"
        more = rf"(, {one}){{0,{len(labels(sample)) - 1}}}" if self.options.several else ""
        return f"{LINE} {one}{more}"

    def canonical(self, text: str, sample: Sample) -> str | None:
        """The letter, or with `several` the letters in order."""
        return self.stated(text, sample)

    def stated(self, text: str, sample: Sample) -> str | None:
        """The letter or letters that a text gives."""
        text, own = parse_reply(compatible(text))
        if self.options.several:
            return several(own, labels(sample))
        return whole(text, sample) or in_reply(own, sample) or _labelled(own, sample)


def whole(text: str, sample: Sample) -> str | None:
    """The letter, if the whole text is a letter or the wording of one option, with or without its letter."""
    bare = text.strip().strip(".:()[]\"'").strip()
    if len(bare) <= 2 and bare.upper() in labels(sample):
        return bare.upper()
    if len(bare) > 2 * max(map(len, sample.choices), default=0) + 20:
        return None
    label = _ANY_LABEL.match(text)
    name, rest = (label[1].upper(), text[label.end():]) if label else ("", "")
    for bared in (_words, _unwrapped):
        shown = [(letter(i), bared(plain(choice))) for i, choice in enumerate(sample.choices)]
        same = [x for x, words in shown if words and (words == bared(text) or (x == name and words == bared(rest)))]
        if len(same) == 1:
            return same[0]
    return None


def _labelled(text: str, sample: Sample) -> str | None:
    """The letter that begins a reply of one line: `B. London, since ...`."""
    label = _LABEL.match(text)
    return label[1] if label and "\n" not in text.strip() and label[1] in labels(sample) else None


def in_reply(text: str, sample: Sample) -> str | None:
    """The letter that a reply gives."""
    allowed = labels(sample)
    text = _WRAPPED.sub(" ", concluding(text).replace("\\boxed{", f"\n{LINE} "))
    starts = announcements(text)
    if starts and _NO_ANSWER.match(text, starts[-1]):
        text, starts = text[starts[-1]:], []
    for start in reversed(starts):
        if (found := _after_mark(text, start, allowed)) is not None:
            return found or None
    if starts and (found := whole(text[starts[-1]:].split("\n", 1)[0], sample)):
        return found
    last_line = text.rstrip().rpartition("\n")[2]
    return _alone(last_line, sample) or _last_mention(text, allowed) or _last_named(last_line, allowed)


def _alone(line: str, sample: Sample) -> str | None:
    """The letter, if the last line contains nothing else or repeats an option as it was shown."""
    alone = _LAST_LINE.match(line[-60:])
    if alone and alone[1].upper() in labels(sample):
        return alone[1].upper()
    return whole(line, sample)


def several(text: str, allowed: tuple[str, ...]) -> str | None:
    """The set of letters after the last announcement, or in the whole of a short text."""
    after = closing(text) or boxed(text) or announced(text) or (text if len(text) <= 4 * len(allowed) + 40 else "")
    line = after.strip().split("\n", 1)[0]
    run = line.strip(" .(){}[]")
    if _RUN.match(run) and (run.isupper() or len(allowed) < 26) and set(run.upper()) <= set(allowed):
        return "".join(sorted(set(run.upper())))
    found: set[str] = set()
    at = 0
    while (match := _SEVERAL.match(line, at)) and match[1].upper() in allowed:
        found.add(match[1].upper())
        at = match.end()
    return "".join(sorted(found)) or None


def _words(text: str) -> str:
    return " ".join(text.split()).strip(" .\"'").casefold()


def _unwrapped(text: str) -> str:
    """The words without brackets and LaTeX around them: `(37)`, `$37$`, and `37}` for the rest of a box."""
    text = _COMMAND.sub(r"\1", text).replace("\\", "").strip(" .$")
    text = text if text.count("}") == text.count("{") else text.rstrip("} .$")
    pair = text[:1] + text[-1:]
    return _words(text[1:-1] if pair in ("()", "[]", "{}") else text)


def _after_mark(text: str, start: int, allowed: tuple[str, ...]) -> str | None:
    """The letter right after an announcement, unless it is a word: an article, a pronoun, part of `N/A`.

    Of two options, none: the text is then empty.
    """
    match = _AFTER_MARK.match(text, start)
    if match is None or match[1].upper() not in allowed:
        return None
    another = _OR_ANOTHER.match(text, match.end(1))
    if another and another[1].upper() in allowed and another[1].upper() != match[1].upper():
        return ""
    found, rest = match[1], text[match.end(1):match.end(1) + 3]
    bracketed = text[match.start(1) - 1] in "([{"
    if not rest or rest[0] in ")]}>_.,;:!\"$\n" or (bracketed and rest[0] == " "):
        return found.upper()
    if not found[0].isupper() or rest[0] not in " \t":
        return None
    return None if found in ("A", "I") and rest.strip()[:1].islower() else found


def _last_mention(text: str, allowed: tuple[str, ...]) -> str | None:
    """The last option in brackets."""
    found, depth = None, 0
    for match in _MENTIONS.finditer(text):
        kind: Any = match.lastgroup
        if kind == "before" and depth:
            depth -= 1
        elif kind in ("inside", "before"):
            found = match[kind].upper() if match[kind].upper() in allowed else found
        else:
            depth = 0 if kind == "line" else max(0, depth + (1 if kind == "open" else -1))
    return found


def _last_named(line: str, allowed: tuple[str, ...]) -> str | None:
    """The last option that a line names as in `option B`."""
    return next((name for name in reversed(_NAMED.findall(line)) if name in allowed), None)
