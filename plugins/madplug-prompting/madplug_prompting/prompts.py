"""The parts that prompts of all kinds are made of.

Nothing here formats text that a model or a data set wrote: braces, brackets and instructions in it stay text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from madplug import Message, Sample, Turn

if TYPE_CHECKING:
    from madplug import Answers, Debate

Chat = dict[str, Any]
"""One chat message: `{"role": ..., "content": ...}`."""

_PLACEHOLDER = re.compile(r"\{(?P<name>\w+)(?P<quoted>:quoted)?\}")


def fill(template: str, **values: object) -> str:
    """Replace each known `{name}` of a template; other braces stay, and inserted text is not searched again.

    `{name:quoted}` sets the text apart, as `quoted` does.
    """
    def text_of(found: re.Match[str]) -> str:
        if found["name"] not in values:
            return found[0]
        text = str(values[found["name"]])
        return quoted(text) if found["quoted"] else text

    return _PLACEHOLDER.sub(text_of, template)


def placeholders(template: str) -> set[str]:
    """The names of a template's placeholders."""
    return {found["name"] for found in _PLACEHOLDER.finditer(template)}


def quoted(text: str) -> str:
    """The text with `> ` before every line, so that none of them can pass for a line of the prompt itself."""
    return "\n".join(f"> {line}" for line in text.splitlines())


def letter(index: int) -> str:
    """The letter of a choice: A for 0, Z for 25, AA for 26."""
    before, last = divmod(index, 26)
    return (letter(before - 1) if before else "") + chr(65 + last)


def instruction(sample: Sample) -> str:
    """The task in words, as the data set states it (`[dataset] instruction`); empty if it does not."""
    return as_text(sample.metadata.get("instruction"))


def question_parts(sample: Sample, leave_out: Collection[str] = ()) -> str:
    """The whole task in one text: the data set's instruction, the passages, the question, the choices as `(A) text`.

    leave_out: `instruction` or `context`, for prompts that place these themselves.
    """
    parts = {"instruction": instruction(sample), "context": _passages(sample), "question": sample.question,
             "choices": "\n".join(f"({letter(i)}) {choice}" for i, choice in enumerate(sample.choices))}
    return "\n\n".join(text for name, text in parts.items() if text and name not in leave_out)


def instruction_alone(answers: Answers, sample: Sample) -> str:
    """How to give an answer in a field of a structured reply, or as the output of a program.

    A format that asks for a closing line says it differently here, by a method `instruction_alone`.
    """
    asked = getattr(answers, "instruction_alone", answers.instruction)
    return str(asked(sample))


def fill_task(template: str, sample: Sample, *, beside: str = "", **values: object) -> str:
    """As `fill`, with the task: `{question}` is all of it, except for what has a placeholder of its own.

    These are `{instruction}` (the data set's) and `{context}` (the passages). beside: the other templates of the same
    prompt, whose placeholders count too.
    """
    placed = {"instruction", "context"} & placeholders(template + beside)
    return fill(template, **{"question": question_parts(sample, placed), "instruction": instruction(sample),
                             "context": _passages(sample), **values})


def _passages(sample: Sample) -> str:
    return "Context:\n" + "\n\n".join(sample.context) if sample.context else ""


def user(sample: Sample, text: str) -> Chat:
    """A user message with the sample's images."""
    if not sample.images:
        return {"role": "user", "content": text}
    images = [{"type": "image_url", "image_url": {"url": url}} for url in sample.images]
    return {"role": "user", "content": [*([{"type": "text", "text": text}] if text else []), *images]}


def speaker(debate: Debate, message: Message) -> str:
    """The name of the persona that wrote a message; `Note` for a message that no agent wrote."""
    return "Note" if message.agent is None else debate.agents[message.agent].persona.name


def discussion(debate: Debate, turn: Turn, view: Sequence[Message], said: str = "{name}: {content}") -> list[Chat]:
    """The view as chat: the agent's own messages as assistant, the others' as user, after the speaker's name.

    said: the template of another agent's message. Messages of agents that were silent are left out.
    """
    return [{"role": "assistant", "content": m.content} if m.agent == turn.agent.id else
            {"role": "user", "content": fill(said, name=speaker(debate, m), content=m.content)}
            for m in view if m.content.strip()]


def transcribe(debate: Debate, messages: Iterable[Message]) -> str:
    """One text of all messages, each below its speaker's name; without notes that say nothing, as of who left."""
    return "\n\n".join(f"{speaker(debate, m)}:\n{m.content}" for m in messages if m.content or m.agent is not None)


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
