"""Which proposal is on the table, and who supports it: a function of the messages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from madplug import Message
from madplug_prompting.solutions import agreed_with, agrees, is_silent


@dataclass(frozen=True)
class Standing:
    """Which proposal is on the table after some message, and who supports it."""

    proposal: Message | None = None
    supporters: tuple[int, ...] = ()
    """Ids of the voters that support the proposal, its author first."""
    round: int = 0

    @property
    def support(self) -> int:
        """How many voters support the proposal."""
        return len(self.supporters)


def standing(messages: Sequence[Message], voters: Collection[int]) -> Standing:
    """Which proposal is on the table after these messages, and who supports it.

    A draft, or an improvement that does not agree, puts its solution on the table with its author's support. An
    agent that has seen it and agrees supports it, once. A message that neither agrees nor states a solution resets
    the support to the author's. Of the agreeing messages only the voters' last few count, as many as there are
    voters. Agents without a vote can propose, and change nothing else. A silent turn changes nothing.
    """
    proposal: Message | None = None
    row: list[Message] = []
    by_id = {m.id: m for m in messages}
    for m in messages:
        if m.agent is None or is_silent(m):
            continue
        if proposal is not None and (agrees(m) or echoes(m, proposal, row, by_id)):
            row += [m] if is_later(m, proposal) and is_about(m, proposal, row) else []
        elif proposes(m, voters) and (m.answer or proposal is None or not proposal.answer):
            proposal, row = m, []
        elif m.agent in voters and (m.agreement is False or m.move in ("draft", "improve", "feedback")):
            row = []
    recent = {m.id for m in [m for m in messages if m.agent in voters][-len(voters):]} if voters else set()
    supporting = [m.agent for m in row if m.id in recent]
    agreeing = dict.fromkeys([proposal.agent, *supporting] if proposal else [])
    supporters = tuple(agent for agent in agreeing if agent is not None and agent in voters)
    return Standing(proposal, supporters, messages[-1].round if messages else 0)


def history(messages: Sequence[Message], voters: Collection[int]) -> Iterator[Standing]:
    """The standing after each wave."""
    for i, m in enumerate(messages, 1):
        if i == len(messages) or is_later(messages[i], m):
            yield standing(messages[:i], voters)


def is_later(m: Message, than: Message) -> bool:
    """Whether a message was written in a later wave: those of one wave do not see each other."""
    return (m.round, m.wave) > (than.round, than.wave)


def proposes(m: Message, voters: Collection[int]) -> bool:
    """Whether a message proposes a solution. Moves other than feedback do, if their author has a vote."""
    if m.move == "draft":
        return True
    return m.agreement is not True and m.move != "feedback" and (m.move == "improve" or m.agent in voters)


def is_about(m: Message, proposal: Message, row: Sequence[Message]) -> bool:
    """Whether an agreement is about the proposal on the table: its author was shown it, or an agreement with it.

    Where agents do not see everything, an agent may agree with an older proposal. What it was shown is on record, and
    so may be the solution it was asked about. A message that was shown nothing, as in imported records, is taken to be
    about the latest.
    """
    if not m.seen or proposal.id in (*m.seen, agreed_with(m)):
        return True
    return m.key in (None, proposal.key) and any(r.id in m.seen for r in row)


def echoes(m: Message, proposal: Message, row: Sequence[Message], by_id: Mapping[int, Message]) -> bool:
    """Whether an agent that was shown no proposal, only agreement with it, gives its answer.

    In a relay the third agent sees only that the second one agrees. If it was asked for a solution and not for its
    agreement, as in styles that ask for none, giving the same answer supports the proposal. A stance that was asked
    for is taken at its word.
    """
    if m.agreement is not None or m.key is None or m.key != proposal.key or m.move == "draft":
        return False
    shown = [by_id[i] for i in m.seen if i in by_id and by_id[i].agent is not None]
    asked = any(s.move == "draft" or (s.agreement is not True and s.move != "feedback") for s in shown)
    return not asked and any(r.id in m.seen and r.agent != m.agent for r in row)


def unreadable(messages: Iterable[Message]) -> list[int]:
    """Ids of the messages whose agreement a style could not read and counted as none."""
    return [m.id for m in messages if any(isinstance(d, Mapping) and d.get("unparsed_agreement")
                                          for d in m.data.values())]


def contradicting(messages: Iterable[Message], proposal: Message) -> list[int]:
    """Ids of the messages that agree with a proposal and state another answer."""
    return [m.id for m in messages if agrees(m) and is_later(m, proposal) and m.key is not None
            and proposal.key is not None and m.key != proposal.key]
