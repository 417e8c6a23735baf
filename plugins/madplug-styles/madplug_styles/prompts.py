"""What prompts and parsers of all styles have in common. Public: other distributions build on it.

Nothing here formats text that a model or a data set wrote: braces, brackets and instructions in it stay text.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from madplug import Message, Sample, Turn

if TYPE_CHECKING:
    from madplug import Debate

Chat = dict[str, Any]
"""One chat message: `{"role": ..., "content": ...}`."""
AgreementRule = Literal["tag", "legacy"]

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_TAG = re.compile(r"\[\s*(agree|disagree)\s*\]")
_NEGATED = r"(?:\bnot|n't|n’t|\bnever|\bcannot)\s{1,9}(?:\w{1,20}\s{1,9}){0,2}agree\b"
_DISAGREES = re.compile(rf"\bdisagree|{_NEGATED}")
_AGREES = re.compile(r"\bagree\b")
_OPENING = re.compile(r"[{\[]")
_READ_AT_MOST = 100_000
_REPAIR_AT_MOST = 20_000
_DEEPEST = 300


# Writing

def fill(template: str, **values: object) -> str:
    """The template with each known `{name}` replaced; other braces stay, and inserted text is left alone."""
    return _PLACEHOLDER.sub(lambda m: str(values.get(m[1], m[0])), template)


def letter(index: int) -> str:
    """The letter of a choice: A for 0, Z for 25, AA for 26."""
    before, last = divmod(index, 26)
    return (letter(before - 1) if before else "") + chr(65 + last)


def question_parts(sample: Sample) -> str:
    """The passages, the question, and the choices as `(A) text`, as one text."""
    parts = ["Context:\n" + "\n\n".join(sample.context)] if sample.context else []
    parts.append(sample.question)
    if sample.choices:
        parts.append("\n".join(f"({letter(i)}) {choice}" for i, choice in enumerate(sample.choices)))
    return "\n\n".join(parts)


def user(sample: Sample, text: str) -> Chat:
    """A user message; the sample's images come with it."""
    if not sample.images:
        return {"role": "user", "content": text}
    images = [{"type": "image_url", "image_url": {"url": url}} for url in sample.images]
    return {"role": "user", "content": [{"type": "text", "text": text}, *images]}


def speaker(debate: Debate, message: Message) -> str:
    """The name of the persona that wrote a message; `Note` for a message that no agent wrote."""
    return "Note" if message.agent is None else debate.agents[message.agent].persona.name


def discussion(debate: Debate, turn: Turn, view: Sequence[Message]) -> list[Chat]:
    """The view as chat: own messages as assistant, others as user, prefixed by the persona's name."""
    return [{"role": "assistant", "content": m.content} if m.agent == turn.agent.id else
            {"role": "user", "content": f"{speaker(debate, m)}: {m.content}"} for m in view]


def merged(chat: Iterable[Mapping[str, Any]]) -> list[Chat]:
    """The same chat with neighbours of one role joined: many chat templates insist that roles alternate."""
    joined: list[Chat] = []
    for message in chat:
        if not message["content"]:
            continue
        if joined and joined[-1]["role"] == message["role"]:
            both = _join(joined[-1]["content"], message["content"])
            joined[-1] = {"role": message["role"], "content": both}
        else:
            joined.append(dict(message))
    return joined


def _join(first: str | list[Chat], second: str | list[Chat]) -> str | list[Chat]:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [part for text in (first, second)
            for part in ([{"type": "text", "text": text}] if isinstance(text, str) else text)]


# What stands in a discussion

_PROPOSING = frozenset({"draft", "improve", "feedback"})


def proposes(message: Message) -> bool:
    """Whether a message puts a solution of its own forward.

    A draft, or an improvement that does not agree, and its solution could be read. Feedback has no solution,
    unless there was none to comment on and it had to give the first.
    """
    agrees = message.agreement is True and message.move != "draft"
    return message.move in _PROPOSING and not agrees and bool(message.answer)


def current_draft(view: Sequence[Message]) -> Message | None:
    """The latest message that puts a solution forward, or None; its `answer` and `key` are that solution.

    view: what one agent saw; or the messages of the transcript, for the debate as a whole.
    """
    return next((m for m in reversed(view) if proposes(m)), None)


# Reading

def read_agreement(text: str, how: AgreementRule = "tag") -> tuple[bool, bool]:
    """Whether a reply agrees, and whether that could not be read (it then counts as no agreement).

    `tag`: the last `[AGREE]` or `[DISAGREE]` wins; without a tag, the words `agree` and `disagree` do, and a
    negated `agree` is a disagreement. `legacy`: agrees if "agree" occurs anywhere and "disagree" nowhere.
    """
    text = unicodedata.normalize("NFKC", text).lower()
    if how == "legacy":
        disagrees = "disagree" in text
        return "agree" in text and not disagrees, "agree" not in text
    tags = _TAG.findall(text)
    if tags:
        return tags[-1] == "agree", False
    disagrees = _DISAGREES.search(text) is not None
    agrees = _AGREES.search(text) is not None
    return agrees and not disagrees, not (agrees or disagrees)


def read_json(text: str) -> dict[str, Any] | None:
    """The JSON object in a reply: the last whole one, else the first broken one repaired, else None.

    Of a list of objects it is the first.
    """
    text = text[-_READ_AT_MOST:] if "{" in text[-_READ_AT_MOST:] else text[:_READ_AT_MOST]
    found = _whole_objects(text)
    return found[-1] if found else _repaired(text)


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
    broken = text[start:start + _REPAIR_AT_MOST] if start >= 0 else ""
    if not 0 < broken.count("{") + broken.count("[") <= _DEEPEST:  # bracket upon bracket takes seconds
        return None
    from json_repair import loads

    try:
        value = loads(broken, skip_json_loads=True)
    except (ValueError, RecursionError, IndexError):
        return None
    return _one(value)


def as_text(value: object) -> str:
    """A JSON value as the text a person would have written; empty for nothing."""
    if value is None or (isinstance(value, (dict, list)) and not value):
        return ""
    if isinstance(value, str):
        return value.strip()
    return json.dumps(value, ensure_ascii=False)


def as_share(value: object) -> float | None:
    """A confidence between 0 and 1: from 0.8, "0.8", "80 %" or 80, which are the same; else None."""
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{0,9})?)\s*(%?)\s*", value)
        number = float(match[1]) / (100 if match[2] else 1) if match else None
    else:
        number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    if number is None or not math.isfinite(number):
        return None
    number = number / 100 if 1 < number <= 100 else number
    return number if 0 <= number <= 1 else None
