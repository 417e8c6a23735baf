"""The layout of a prompt that an agent is asked with: who it is, the task, a discussion, a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from pydantic import Field

from madplug import Agent, Options
from madplug_prompting import prompts

if TYPE_CHECKING:
    from madplug import Debate

PERSONA = "Your role: {name}. {description}"
"""Who an agent is, unless the run file words it."""
IN_PERSONA = "{name}, {description}"
IN_TASK = ("{question}: instruction, passages, question and choices; {instruction}, {context}: the data set's "
           "instruction and the passages, which {question} then leaves out")
"""What the descriptions of options say about placeholders."""


class LayoutOptions(Options):
    """In which message of a prompt persona and task are."""

    persona_place: Literal["system", "last"] = Field(default="system", description=(
        "where the persona is: the system message; or the last message, after everything that the agents' prompts have "
        "in common, so that providers can serve it from a cache"))
    frame_place: Literal["user", "system"] = Field(default="user", description=(
        "where the task is: the first user message, or the system message, after the persona"))
    said: str = Field(default="{name}: {content}", description=(
        "prompt: another agent's message. {name}, {content}; {content:quoted} puts `> ` before each of its lines"))


class Layout(Protocol):
    """What has the options of `LayoutOptions`."""

    @property
    def persona_place(self) -> str:
        """`system` or `last`."""

    @property
    def frame_place(self) -> str:
        """`user` or `system`."""


def compose(debate: Debate, agent: Agent, layout: Layout, persona: str, frame: str, body: Sequence[prompts.Chat],
            requests: Sequence[str], *, placed: str = "", **values: object) -> list[prompts.Chat]:
    """The chat: persona and task where the layout has them, the body, and the requests in a last user message.

    persona, frame: templates. requests: texts; empty ones are left out. placed: the templates that the requests were
    made of, for placeholders of the task in them. values: for further placeholders of persona and frame.
    """
    who = {"name": agent.persona.name, "description": agent.persona.description, **values}
    persona_text = prompts.fill_task(persona, debate.sample, beside=frame + placed, **who).strip()
    task = prompts.fill_task(frame, debate.sample, beside=persona + placed, **who)
    in_system = [persona_text if layout.persona_place == "system" else "",
                 task if layout.frame_place == "system" else ""]
    last = [persona_text if layout.persona_place == "last" else "", *requests]
    return prompts.merged([
        {"role": "system", "content": "\n\n".join(filter(None, in_system))},
        prompts.user(debate.sample, "" if layout.frame_place == "system" else task),
        *body, {"role": "user", "content": "\n".join(filter(None, last))}])
