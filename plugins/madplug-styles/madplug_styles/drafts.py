"""Which solution the agents of a discussion are talking about."""

from __future__ import annotations

from collections.abc import Sequence

from madplug import Message

_PROPOSING = frozenset({"draft", "improve", "feedback"})


def proposes(message: Message) -> bool:
    """Whether a message proposes a solution.

    A draft, or an improvement that does not agree, if its solution could be read. Feedback has no solution, unless
    there was none to comment on and it had to give the first.
    """
    agrees = message.agreement is True and message.move != "draft"
    return message.move in _PROPOSING and not agrees and bool(message.answer)


def current_draft(view: Sequence[Message]) -> Message | None:
    """The latest message that proposes a solution, or None; its `answer` and `key` are that solution.

    view: what one agent saw, or the messages of the transcript for the debate as a whole.
    """
    return next((m for m in reversed(view) if proposes(m)), None)
