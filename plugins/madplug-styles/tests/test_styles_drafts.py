"""Which solution is the current one."""

from __future__ import annotations

from madplug import Message
from madplug_styles.drafts import current_draft


def message(answer: str | None, move: str = "improve", agreement: bool | None = None) -> Message:
    return Message(0, 1, 0, 0, move, "text", answer=answer, key=answer, agreement=agreement)


def test_the_current_draft_is_the_latest_draft_or_disagreeing_improvement() -> None:
    draft, other = message("1", "draft"), message("2", agreement=False)
    assert current_draft([draft]) is draft
    assert current_draft([draft, other]) is other
    assert current_draft([draft, other, message("3", agreement=True)]) is other


def test_feedback_and_what_could_not_be_read_are_no_drafts() -> None:
    draft = message("1", "draft")
    unread = [message(None, "feedback", False), message(None, agreement=False)]
    assert current_draft([draft, *unread]) is draft
    assert current_draft([message("4", "moderate")]) is None
    assert current_draft([]) is None
