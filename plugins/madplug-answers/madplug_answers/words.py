"""Answers in words: a short text, any text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from madplug import ComponentError, Debate, Embedder, Offers, Sample, ServiceName, Setup, Turn
from madplug_answers.asking import Reading, ReadingOptions
from madplug_answers.choice import labels
from madplug_answers.latex import TEXT
from madplug_answers.marks import LINE, announcements, boxed, closing_at
from madplug_answers.normal import normalised
from madplug_answers.own import parse_reply, spoken, unquoted
from madplug_answers.vectors import AnswerVectors
from madplug_prompting.patterns import regex
from madplug_prompting.prompts import fill
from madplug_prompting.vectors import cosine

ASK_TEXT = ("When you have decided, end your reply with one line that gives the answer in as few words as possible, "
            "in this form: {form}")
ASK_UNKNOWN = " If the question cannot be answered from what is given, the answer is: unknown."
ASK_FREE = ("When you have decided, end your reply with a line that says `{form}` and, below it, the complete answer "
            "and nothing else.")

_TRIED = 8
_READINGS = 8
"""How often an answer is read again until it reads as itself."""
_NOT_BUT = regex(r"(?i)not[ ](?P<not>[^\n]{1,120}?)(?:,?[ ]but(?:[ ]rather)?[ ](?P<but>[^\n]{1,300}))?[.!]?\Z")
_EMPTY_REMARK = regex(r"[(\[]\s{1,400}[)\]][\s.]{0,9}\Z")
_UNKNOWN = regex(
    r"(?:(?:it|that|this|they|(?:final )?answer|(?:answer to )?(?:this|that|question)(?: question)?) "
    r"(?:is|are|was|remains|must remain|must be) )?(?:(?:still|currently|simply|completely|entirely) )?unknown"
    r"(?: (?:to|from|in|by|for|given|based|according|because|since|as|at|here|with|without|so|due|and)"
    r"(?: .{0,300})?)?\Z")
_CONTRAST = regex(r" (?:but|however|though|although|yet) ")
_LISTED = regex(r"(?m)^[ \t]{0,9}\(?([A-Z])[.):][ \t]{1,9}([^\n]{1,300})$")
_LABELLED = regex(r"\(?([A-Z])(?:[.):]|\)[.:])[ \t]{1,9}([^\n]{1,300})\Z")


class Text(Reading):
    """A few words: a name, a date, a span of a passage.

    In a reply it is what stands in the line after the last announcement of the answer, else in the last LaTeX box, else
    the whole of a reply of one line; a longer reply without an announcement gives no answer. An option that the
    question itself lists, as in "B. Right", is its letter. The canonical answer is in lower case, without punctuation,
    articles and extra space; numbers keep their point, sign, currency and percent. With `unknown`, an answer that says
    no more than that it is unknown is `unknown`.
    """

    name = "text"
    reads_any_text = True
    alone = "Give only the answer, in as few words as possible."
    source = "Rajpurkar et al. 2018 (SQuAD 2.0, evaluation)"

    class Options(ReadingOptions):
        """Options of `answers.text`."""

        unknown: bool = Field(
            default=False, description="questions may be unanswerable; 'unknown' is then the right answer")
        max_length: int = Field(
            default=300, ge=1, le=10_000, description="the most characters of the closing line's answer")
        instruction: str = Field(default=ASK_TEXT, description="prompt: the request for the closing line. {form}")

    def instruction(self, sample: Sample) -> str:
        """Asks for `Final answer: <answer>`."""
        return fill(self.options.instruction, form=f"`{LINE} <answer>`") + (ASK_UNKNOWN if self.options.unknown else "")

    def instruction_alone(self, sample: Sample) -> str:
        """A few words; with `unknown`, also what to say where there is no answer."""
        asked = super().instruction_alone(sample)
        return asked + ASK_UNKNOWN if self.options.unknown and asked == self.alone else asked

    def misfit(self, sample: Sample, references: Sequence[str]) -> str | None:
        """References that are letters of choices are no words: an agent that writes the choice would be wrong."""
        if sample.choices and set(references) & {*labels(sample)} - {*sample.choices}:
            return "its reference is the letter of a choice, and replies are read as words; use answers.choice"
        return super().misfit(sample, references)

    def pattern(self, sample: Sample) -> str:
        """The closing line."""
        return rf"{LINE} [^\n]{{1,{self.options.max_length}}}"

    def canonical(self, text: str, sample: Sample) -> str | None:
        """The normalised words, or None if none remain."""
        for _ in range(_READINGS):  # dropping punctuation can bring an announcement to light
            stated = self.stated(text, sample)
            again = normalised(spoken(text) if stated is None else stated)
            if again == text:
                break
            text = again
        return "unknown" if self.options.unknown and is_unknown(text) else text or None

    def stated(self, text: str, sample: Sample) -> str | None:
        """The rest of the line of the last own announcement, or the next line with words in it; or the last box."""
        text, own = parse_reply(text)
        for start in reversed(announcements(own)[-_TRIED:]):
            if line := _answer_line(text, own, start):
                return without_label(_out_of_latex(line), sample)
        if inside := boxed(own):
            return without_label(_out_of_latex(inside), sample)
        return without_label(text.strip(), sample) if _LABELLED.match(text.strip()) else None

    def unmarked(self, text: str, sample: Sample) -> str | None:
        """The whole of a reply of one line, unless it only reports another agent's answer."""
        reported = announcements(text) and not announcements(parse_reply(text).own)
        text = "" if reported else spoken(text).strip()
        return text if text and "\n" not in text and len(text) <= self.options.max_length else None


class Free(Reading):
    """Any text: a summary, a paraphrase, an essay.

    In a reply it is what follows the last line that begins with `Final answer:`, else the whole reply. There is no
    canonical form: the text is kept as it is. Two texts are the same answer when they have the same words, in
    order, whatever their case and punctuation; with an `embedder`, also when the cosine of their embeddings reaches
    `threshold`.

    Answers are compared when a message is recorded and again by metrics, so equality is a function of the two texts
    and nothing else. An answer is embedded when it is read; other texts, such as references, when they are first
    compared, on an event loop of their own. Which of several texts is better, or whether they say the same in a
    model's eyes, is for a decision protocol to ask.
    """

    name = "free"
    scored_by = "text.rouge"
    reads_any_text = True
    alone = "Give only the complete answer."
    source = "Becker et al. 2025 (MALLM), appendix G.5"

    class Options(ReadingOptions):
        """Options of `answers.free`."""

        extract: Literal["regex", "llm", "regex_then_llm"] = Field(
            default="regex_then_llm",
            description="how a reply is read: by rule (the closing line, else everything), by the agent's model, or by "
                        "its model where there is no closing line")
        embedder: Annotated[ServiceName, Offers(Embedder)] | None = Field(
            default=None, description="the [services.NAME] that embeds answers, for equality of meaning")
        threshold: float = Field(
            default=0.9, gt=0, le=1, description="with an embedder: the least cosine of equal texts")
        max_length: int = Field(default=4000, ge=1, le=100_000, description="the most characters of a final answer")
        instruction: str = Field(default=ASK_FREE, description="prompt: the request for the closing line. {form}")

    _vectors: AnswerVectors | None = None

    def prepare(self, setup: Setup) -> None:
        """Finds the embedder."""
        if self.options.embedder is not None:
            self._vectors = AnswerVectors(setup.service(self.options.embedder, Embedder))

    async def extract(self, debate: Debate, turn: Turn, text: str) -> str | None:
        """The answer of a reply; embedded, so that it can be compared with others."""
        answer = await super().extract(debate, turn, text)
        key = self.canonical(answer, debate.sample) if answer else None
        if key is not None and self._vectors is not None:
            await self._vectors.embed(key)
        return answer

    def instruction(self, sample: Sample) -> str:
        """Asks for a line `Final answer:` with the text below it."""
        return fill(self.options.instruction, form=LINE)

    def pattern(self, sample: Sample) -> str:
        """The closing line and what follows it."""
        return rf"{LINE}[ \n][\s\S]{{1,{self.options.max_length}}}"

    def canonical(self, text: str, sample: Sample) -> str | None:
        """The text after the closing line, or the whole; not changed except for the space around it."""
        for _ in range(_READINGS):  # what follows the line can contain another one
            again = self.stated(text, sample) or spoken(text).strip()
            if again == text:
                break
            text = again
        return text or None

    def stated(self, text: str, sample: Sample) -> str | None:
        """The text after the last closing line that is the author's own."""
        text = spoken(text)
        start = closing_at(unquoted(text))
        return None if start is None else text[start:].strip() or None

    def unmarked(self, text: str, sample: Sample) -> str | None:
        """The whole reply."""
        return spoken(text).strip() or None

    def same(self, a: str, b: str, sample: Sample) -> bool:
        """The same words in the same order, or embeddings that are close."""
        words = normalised(a)
        if a == b or (words != "" and words == normalised(b)):
            return True
        if self.options.embedder is None:
            return False
        if self._vectors is None:
            raise ComponentError("answers.free: two answers were compared before the embedder was prepared")
        return cosine(self._vectors.of(a), self._vectors.of(b)) >= self.options.threshold


def is_unknown(words: str) -> bool:
    """Whether normalised words say that the answer is unknown, and propose nothing instead."""
    return _CONTRAST.search(words) is None and _UNKNOWN.match(words) is not None


def without_label(answer: str, sample: Sample) -> str:
    """The letter alone where an answer repeats an option that the question lists: `B. Right` is B."""
    label = _LABELLED.match(answer)
    if label is None or sample.choices:
        return answer
    listed = {letter: normalised(words) for letter, words in _LISTED.findall(sample.question)}
    return label[1] if "A" in listed and listed.get(label[1]) == normalised(label[2]) else answer


def _answer_line(text: str, own: str, start: int) -> str | None:
    """The first line with words from a place on, without a closing remark on another agent's answer."""
    for line in re.finditer(r"[^\n]+", text[start:]):
        if not normalised(line[0]):
            continue
        remark = _EMPTY_REMARK.search(own[start + line.start():start + line.end()])
        answer = (line[0][:remark.start()] if remark else line[0]).strip()
        negated = _NOT_BUT.match(answer)
        if negated is None or _is_closing_line(text, start):
            return answer or None
        return negated["but"]
    return None


def _out_of_latex(answer: str) -> str:
    r"""The words of an answer in a box or in a command for text: `Paris` for `$\boxed{\text{Paris}}$`."""
    return TEXT.sub(r"\1", boxed(answer) or answer)


def _is_closing_line(text: str, start: int) -> bool:
    return "final answer" in text[max(0, start - 20):start].lower()
