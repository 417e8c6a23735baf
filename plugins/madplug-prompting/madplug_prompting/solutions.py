"""Which solution is on the table, as far as an agent knows: a function of the transcript."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from madplug import Message, Turn

if TYPE_CHECKING:
    from madplug import Debate

_DISCUSSING = frozenset({"draft", "improve", "feedback"})


def proposes(message: Message) -> bool:
    """Whether a message proposes a solution.

    A draft, or an improvement that does not agree, if its solution could be read. Feedback has no solution, unless
    there was none to comment on and it had to give the first.
    """
    return message.move in _DISCUSSING and not agrees(message) and bool(message.answer)


def agrees(message: Message) -> bool:
    """Whether a message agrees with what its author saw; a draft never does."""
    return message.agreement is True and message.move != "draft"


def is_silent(message: Message) -> bool:
    """Whether its author's model said nothing: the turn changes nothing."""
    mark = message.data.get("madplug")
    return isinstance(mark, Mapping) and mark.get("silent") is True


def agreed_with(message: Message) -> int | None:
    """The id of the message whose solution an agreement is about, if a style recorded it."""
    about = (part.get("about") for part in message.data.values() if isinstance(part, Mapping))
    return next((id for id in about if isinstance(id, int)), None)


def is_opening(debate: Debate, turn: Turn, view: Sequence[Message]) -> bool:
    """Whether the agent of a turn has nothing to go by: nobody has spoken yet, or the turn is blind.

    A turn is blind if an extension hides from it everything that the visibility would show. A window that hides what
    the agent saw in earlier rounds does not make it blind.
    """
    if any(m.agent is not None for m in view):
        return False
    shown = debate.cell.visibility.view(debate, turn)
    blind = any(m.agent is not None for m in shown)
    return blind or not debate.transcript.by(turn.agent)


def current_solution(debate: Debate, turn: Turn, view: Sequence[Message]) -> Message | None:
    """The latest message with a solution that the agent of a turn knows of; its `answer` and `key` are that solution.

    An agent knows what it is shown now, what it was shown in earlier turns, and what it said itself, whatever the
    window of the visibility. An agreement has the solution that it is about. None if the agent knows of no solution,
    and in a blind turn.
    """
    if is_opening(debate, turn, view):
        return None
    record = debate.transcript.record
    found = _latest(view)
    for own in reversed(debate.transcript.by(turn.agent)):
        if found is not None and own.id < found.id:  # what it was shown then is older still
            break
        before = (record[i] for i in own.seen if i not in own.altered and not record[i].retracted)
        found = _latest([*([found] if found else []), own, *before])
    return found and _adopted(found, record)


def _latest(messages: Iterable[Message]) -> Message | None:
    solving = (m for m in messages if proposes(m) or (agrees(m) and m.move in _DISCUSSING and m.answer))
    return max(solving, key=lambda m: m.id, default=None)


def _adopted(message: Message, record: Sequence[Message]) -> Message:
    """The message whose solution an agreement adopts, or the message itself."""
    about = agreed_with(message) if agrees(message) else None
    if about is None or not 0 <= about < len(record):
        return message
    return record[about] if record[about].answer and not record[about].retracted else message
