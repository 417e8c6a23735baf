"""What there is to see in a debate: what lists are filtered by."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from madplug import DebateResult
from madplug_read.records import Change, Mark, RoundRow

TRAITS: Mapping[str, str] = {
    "right": "the decision is right",
    "wrong": "the decision is wrong",
    "undecided": "there is no decision",
    "failed": "the debate failed",
    "partial": "an agent failed, and left or got another model",
    "running": "the debate has not ended",
    "changed": "an agent changed its mind",
    "right_to_wrong": "an agent went from a right to a wrong answer",
    "wrong_to_right": "an agent went from a wrong to a right answer",
    "minority_right": "at first most agents were wrong or not read, and at least one was right",
    "majority_lost": "at first more than half of the agents were right, and the decision is wrong",
    "fallback": "the decision was chosen by a fallback",
    "tie": "in the decision several answers were equally far ahead",
    "unread": "an answer could not be read",
    "ballot_unread": "a final answer, a vote, a persona, or the mark or form of another reply could not be read",
    "retracted": "messages were retracted",
    "altered": "an agent was shown a message in a changed form",
}
"""The traits a debate can have, each with its meaning. Agents without a vote are left out if others have one."""


def traits(result: DebateResult, right: bool | None, rounds: Sequence[RoundRow], changes: Sequence[Change],
           voters: Collection[int], *, unread: bool) -> tuple[str, ...]:
    """The traits of a debate, in the order of `TRAITS`.

    right: whether its decision is right. unread: whether a part of it could not be read.
    """
    found = {*_of_the_end(result, right), *_of_changes(changes)}
    if result.decision is not None:
        found |= {name for name in ("fallback", "tie") if getattr(result.decision, name)}
    if unread:
        found.add("ballot_unread")
    marks = [[mark for mark in row.marks if mark.agent in voters] for row in rounds]
    found |= {*_at_first(next((row for row in marks if any(m.key is not None for m in row)), ()), right)}
    if any(m.answers and m.key is None and m.agent in voters and not m.retracted for m in result.messages):
        found.add("unread")
    if any(m.retracted for m in result.messages):
        found.add("retracted")
    if any(m.altered for m in result.messages):
        found.add("altered")
    return tuple(name for name in TRAITS if name in found)


def _of_the_end(result: DebateResult, right: bool | None) -> Iterator[str]:
    if result.failures and result.decision is not None and result.decision.key is not None:
        yield "partial"
    if result.error is not None:
        yield "failed"
    elif result.decision is None:
        yield "running"
    elif result.decision.key is None:
        yield "undecided"
    elif right is not None:
        yield "right" if right else "wrong"


def _of_changes(changes: Sequence[Change]) -> Iterator[str]:
    for change in changes:
        yield "changed"
        if change.from_right and change.to_right is False:
            yield "right_to_wrong"
        if change.from_right is False and change.to_right:
            yield "wrong_to_right"


def _at_first(marks: Sequence[Mark], right: bool | None) -> Iterator[str]:
    """Which side was right in the first answers. One that could not be read is known not to be right."""
    grades = [m.right if m.key is not None else False for m in marks if m.state in ("answer", "unread")]
    if grades.count(False) * 2 > len(grades) and True in grades:
        yield "minority_right"
    if grades.count(True) * 2 > len(grades) and right is False:
        yield "majority_lost"
