"""Answers in words: yes or no, a short text, any text."""

from __future__ import annotations

import inspect
import math
import re
import string
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal

from pydantic import Field

from madplug import AnswerFormat, ComponentError, Sample, ServiceName
from madplug_answers import papers
from madplug_answers.asking import READ_AS, Reading, ReadingOptions
from madplug_answers.marks import LINE, announced, boxed, closing, plain
from madplug_styles.prompts import fill

ASK_YESNO = "When you have decided, end your reply with one line that says yes or no, in this form: {form}"
ASK_TEXT = ("When you have decided, end your reply with one line that gives the answer in as few words as possible, "
            "in this form: {form}")
ASK_UNKNOWN = " If the question cannot be answered from what is given, the answer is: unknown."
ASK_FREE = ("When you have decided, end your reply with a line that says `{form}` and, below it, the complete answer "
            "and nothing else.")

_YES_NO = re.compile(r"(?i)(?<![\w'’])(yes|no|true|false)(?![\w'’])")
_SENTENCE = re.compile(r"[.!?](?=\s)|\n")
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation + "“”‘’«»„…–—"))


class YesNo(Reading, AnswerFormat):
    """Yes or no.

    The last yes, no, true or false in the sentence after the last announcement of the answer, else the last after it,
    else the last of the text. True is yes and false is no.
    """

    name = "yesno"
    source = "Yin et al. 2023 (evaluation)"
    rules = papers.YESNO
    closing = f"{LINE} yes"

    class Options(ReadingOptions):
        """Options of `answers.yesno`."""

        read_as: Literal["madplug", "eot"] = Field(default="madplug", description=READ_AS)
        instruction: str = Field(default=ASK_YESNO, description="asks for the closing line, {form}")

    def instruction(self, sample: Sample) -> str:
        """Asks for `Final answer: yes`."""
        return fill(self.options.instruction, form=f"`{LINE} yes` or `{LINE} no`")

    def pattern(self, sample: Sample) -> str:
        """The closing line."""
        return f"{LINE} (yes|no)"

    def canonical(self, text: str, sample: Sample) -> str | None:
        """`yes` or `no`."""
        return self.stated(text, sample)

    def stated(self, text: str, sample: Sample) -> str | None:
        """What a text says."""
        text = plain(text)
        after = boxed(text) or announced(text) or ""
        for part in (_SENTENCE.split(after.lstrip(), maxsplit=1)[0], after, text):
            if words := _YES_NO.findall(part):
                return "yes" if words[-1].lower() in ("yes", "true") else "no"
        return None


class Text(Reading, AnswerFormat):
    """A few words: a name, a date, a span of a passage.

    In a reply it is what stands in the line after the last announcement of the answer, else the whole of a reply of
    one line; a longer reply without an announcement gives no answer. The canonical answer is in small letters,
    without punctuation, articles and extra space. With `unknown`, every answer that has the word is `unknown`.
    """

    name = "text"
    source = "Rajpurkar et al. 2018 (SQuAD 2.0, evaluation)"

    class Options(ReadingOptions):
        """Options of `answers.text`."""

        unknown: bool = Field(default=False, description="questions may have no answer: 'unknown' is then right")
        max_length: int = Field(
            default=300, ge=1, le=10_000, description="the most characters of the closing line's answer")
        instruction: str = Field(default=ASK_TEXT, description="asks for the closing line, {form}")

    def instruction(self, sample: Sample) -> str:
        """Asks for `Final answer: ...`."""
        return fill(self.options.instruction, form=f"`{LINE} ...`") + (ASK_UNKNOWN if self.options.unknown else "")

    def pattern(self, sample: Sample) -> str:
        """The closing line."""
        return rf"{LINE} [^\n]{{1,{self.options.max_length}}}"

    def canonical(self, text: str, sample: Sample) -> str | None:
        """The answer's words as SQuAD compares them; None when none is left."""
        stated = self.stated(text, sample)
        words = normalised(text if stated is None else stated)
        # Dropping punctuation can bring an announcement to light, and a canonical answer must be its own.
        while (after := announced(words)) is not None and after != words:
            words = normalised(after)
        return "unknown" if self.options.unknown and "unknown" in words else words or None

    def stated(self, text: str, sample: Sample) -> str | None:
        """The rest of the announcing line, or the next line with words in it."""
        after = announced(plain(text))
        lines = (line.strip() for line in (after or "").splitlines())
        return next((line for line in lines if normalised(line)), None)

    def unmarked(self, text: str, sample: Sample) -> str | None:
        """The whole of a reply of one line."""
        text = text.strip()
        return text if text and "\n" not in text and len(text) <= self.options.max_length else None


class Free(Reading, AnswerFormat):
    """Any text: a summary, a paraphrase, an essay.

    In a reply it is what follows the last line that begins with `Final answer:`, else the whole reply. There is no
    canonical form: the text is kept. Two texts are the same answer when they have the same words, in order, whatever
    their case and punctuation; with an `embedder`, also when the cosine of their embeddings reaches `threshold`.

    Equality is asked for while a message is put on record and again by metrics, so it must be a function of the two
    texts and nothing else: the embedder's `embed(texts)` must answer at once, not as an awaitable. Which of several
    texts is better, or whether they say the same in a model's eyes, is for a decision protocol to ask.
    """

    name = "free"
    source = "Becker et al. 2025 (MALLM), appendix G.5"

    class Options(ReadingOptions):
        """Options of `answers.free`."""

        extract: Literal["regex", "llm", "regex_then_llm"] = Field(
            default="regex_then_llm",
            description="how a reply is read: by rule (the closing line, else everything), by the agent's model, or by "
                        "its model where there is no closing line")
        embedder: ServiceName | None = Field(
            default=None, description="a service with embed(texts) -> list of vectors, for equality of meaning")
        threshold: float = Field(
            default=0.9, gt=0, le=1, description="with an embedder: the least cosine of equal texts")
        max_length: int = Field(default=4000, ge=1, le=100_000, description="the most characters of a final answer")
        instruction: str = Field(default=ASK_FREE, description="asks for the closing line, {form}")

    _vectors: Callable[[str], tuple[float, ...]] | None = None

    def prepare(self, setup: Any) -> None:
        """Finds the embedder, and keeps its vectors: functions of the text, so nothing of a debate."""
        if self.options.embedder is not None:
            embed = setup.cell.services[self.options.embedder].embed
            self._vectors = lru_cache(maxsize=4096)(lambda text: self._embedded(embed, text))

    def instruction(self, sample: Sample) -> str:
        """Asks for a line `Final answer:` with the text below it."""
        return fill(self.options.instruction, form=LINE)

    def pattern(self, sample: Sample) -> str:
        """The closing line and what follows it."""
        return rf"{LINE}[ \n][\s\S]{{1,{self.options.max_length}}}"

    def canonical(self, text: str, sample: Sample) -> str | None:
        """The text after the closing line, or the whole; not changed but for the space around it."""
        return closing(text) or text.strip() or None

    def stated(self, text: str, sample: Sample) -> str | None:
        """The text after the closing line."""
        return closing(text) or None

    def unmarked(self, text: str, sample: Sample) -> str | None:
        """The whole reply."""
        return text.strip() or None

    def same(self, a: str, b: str, sample: Sample) -> bool:
        """The same words in the same order, or embeddings that are close."""
        words = normalised(a)
        if a == b or (words != "" and words == normalised(b)):
            return True
        if self.options.embedder is None:
            return False
        if self._vectors is None:
            raise ComponentError("answers.free: equality was asked for before the embedder was there")
        return bool(cosine(self._vectors(a), self._vectors(b)) >= self.options.threshold)

    def _embedded(self, embed: Callable[[list[str]], Any], text: str) -> tuple[float, ...]:
        vectors = embed([text])
        if inspect.isawaitable(vectors):
            getattr(vectors, "close", lambda: None)()
            raise ComponentError(f"answers.free: service '{self.options.embedder}' embeds asynchronously; equality of "
                                 "answers needs one whose embed() answers at once")
        return tuple(vectors[0])


def normalised(text: str) -> str:
    """The words of a text: compatibility characters, small letters, no punctuation, no articles, single spaces.

    A text of articles alone keeps them: "A" is a vitamin.
    """
    words = " ".join(unicodedata.normalize("NFKC", text).lower().translate(_PUNCTUATION).split())
    return " ".join(_ARTICLES.sub(" ", words).split()) or words


def cosine(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    """The cosine of two vectors; 0 where one is zero."""
    norm = math.hypot(*a) * math.hypot(*b)
    return sum(x * y for x, y in zip(a, b, strict=True)) / norm if norm else 0.0
