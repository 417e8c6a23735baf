"""The parts that prompts of all kinds are made of.

Nothing here formats text that a model or a data set wrote: braces, brackets and instructions in it stay text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from madplug import Message, Sample, Turn

if TYPE_CHECKING:
    from madplug import Debate

Chat = dict[str, Any]
"""One chat message: `{"role": ..., "content": ...}`."""

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def fill(template: str, **values: object) -> str:
    """Replace each known `{name}` of a template; other braces stay, and inserted text is not searched again."""
    return _PLACEHOLDER.sub(lambda m: str(values.get(m[1], m[0])), template)


def letter(index: int) -> str:
    """The letter of a choice: A for 0, Z for 25, AA for 26."""
    before, last = divmod(index, 26)
    return (letter(before - 1) if before else "") + chr(65 + last)


def question_parts(sample: Sample) -> str:
    """The passages, the question, and the choices as `(A) text`, in one text."""
    parts = ["Context:\n" + "\n\n".join(sample.context)] if sample.context else []
    parts.append(sample.question)
    if sample.choices:
        parts.append("\n".join(f"({letter(i)}) {choice}" for i, choice in enumerate(sample.choices)))
    return "\n\n".join(parts)


def user(sample: Sample, text: str) -> Chat:
    """A user message with the sample's images."""
    if not sample.images:
        return {"role": "user", "content": text}
    images = [{"type": "image_url", "image_url": {"url": url}} for url in sample.images]
    return {"role": "user", "content": [{"type": "text", "text": text}, *images]}


def speaker(debate: Debate, message: Message) -> str:
    """The name of the persona that wrote a message; `Note` for a message that no agent wrote."""
    return "Note" if message.agent is None else debate.agents[message.agent].persona.name


def discussion(debate: Debate, turn: Turn, view: Sequence[Message]) -> list[Chat]:
    """The view as chat: the agent's own messages as assistant, the others' as user, prefixed by the speaker's name."""
    return [{"role": "assistant", "content": m.content} if m.agent == turn.agent.id else
            {"role": "user", "content": f"{speaker(debate, m)}: {m.content}"} for m in view]


def transcribe(debate: Debate, messages: Iterable[Message]) -> str:
    """One text of all messages, each below its speaker's name."""
    return "\n\n".join(f"{speaker(debate, m)}:\n{m.content}" for m in messages)


def merged(chat: Iterable[Mapping[str, Any]]) -> list[Chat]:
    """The chat without empty messages and with neighbours of one role joined.

    Many chat templates insist that roles alternate.
    """
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


def as_text(value: object) -> str:
    """A JSON value as the text a person would have written; empty for null, an empty list and an empty object."""
    if value is None or (isinstance(value, (dict, list)) and not value):
        return ""
    if isinstance(value, str):
        return value.strip()
    return json.dumps(value, ensure_ascii=False)


def _join(first: str | list[Chat], second: str | list[Chat]) -> str | list[Chat]:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [part for text in (first, second)
            for part in ([{"type": "text", "text": text}] if isinstance(text, str) else text)]
