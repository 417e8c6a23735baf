"""From a debate on record to its outline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from madplug import FAILED, LEAVE, Agent, DebateResult, Message, Spending, earlier_answers
from madplug_read.grading import Grades
from madplug_read.records import (
    AgentColumn,
    AnswerKey,
    Change,
    Mark,
    MarkState,
    MessageCard,
    Outline,
    RoundRow,
    State,
)
from madplug_read.traits import traits

RECEIVED = "received"
"""A plugin that changes what agents are shown records under this name, in its part of the data of the message that
was written in reply, the texts shown: `{"3": "..."}` by the id of the message that was changed."""
Spent = Callable[[Iterable[str]], Spending]
"""What the calls with these keys used."""


def outline(result: DebateResult, grades: Grades, spending: Spent | None = None) -> Outline:
    """The outline of a debate, which may have ended, failed, or be running.

    grades: right or wrong by answer key (`Grader.grade`). spending: what a message's calls used; without it, the
    outline has no such figures for single messages.
    """
    columns = tuple(_columns(result))
    counted = {c.id for c in columns if c.votes} or {c.id for c in columns}
    changes = tuple(c for c in _changes(result.messages, grades) if c.agent in counted)
    rounds = tuple(_rounds(result, grades, columns, counted, {c.message for c in changes}))
    decision, tokens, unread = result.decision, result.tokens, tuple(result.unread_parts())
    right = grades.get(decision.key) if decision is not None and decision.key is not None else None
    return Outline(
        cell=result.cell, repeat=result.repeat, sample=result.sample, references=result.references,
        state=_state(result), error=result.error, agents=columns, answers=tuple(_answers(result, grades)),
        rounds=rounds, changes=changes,
        messages=tuple(_cards(result.messages, result.agents, grades, changes, spending)),
        decision=decision, right=right, traits=traits(result, right, rounds, changes, counted, unread=bool(unread)),
        metrics=result.metrics, calls=result.calls, retries=result.retries, prompt=tokens.prompt,
        completion=tokens.completion, cached=tokens.cached, cost_usd=tokens.cost_usd, seconds=result.seconds,
        missing=tuple(missing_names(result.agents, result.messages)), unread=unread, notes=result.notes,
        opening_calls=result.opening_calls, other_calls=result.other_calls)


def _state(result: DebateResult) -> State:
    if result.error is not None:
        return "failed"
    return "running" if result.decision is None else "done"


def _columns(result: DebateResult) -> Iterator[AgentColumn]:
    """The agents; those that only their messages name get a column too."""
    for a in result.agents:
        yield AgentColumn(a.id, a.persona.name, a.persona.description, a.persona.role, a.persona.votes, a.model)
    known = {a.id for a in result.agents}
    for id in sorted({m.agent for m in result.messages if m.agent is not None} - known):
        yield AgentColumn(id, f"Agent {id + 1}", "", "participant", True, None)


def _answers(result: DebateResult, grades: Grades) -> Iterator[AnswerKey]:
    """The different answers, in the order in which they first appear."""
    texts: dict[str, str] = {}
    for m in result.messages:
        if m.key is not None:
            texts.setdefault(m.key, m.answer or m.key)
    decision = result.decision
    if decision is not None and decision.key is not None:
        texts.setdefault(decision.key, decision.answer or decision.key)
    for key in decision.scores if decision is not None else ():
        texts.setdefault(key, key)
    letters = {key: ord(key) - ord("A") for key in texts if len(key) == 1 and "A" <= key <= "Z"}
    others = count(max(letters.values(), default=-1) + 1)
    for key, text in texts.items():
        yield AnswerKey(key, text, grades.get(key), letters[key] if key in letters else next(others))


def _changes(messages: Sequence[Message], grades: Grades) -> Iterator[Change]:
    by_id = {m.id: m for m in messages}
    for id, before in earlier_answers(messages).items():
        m = by_id[id]
        if m.agent is not None and m.key is not None and m.key != before:
            sources, formerly = sources_of(m, by_id)
            agents = dict.fromkeys(s.agent for s in sources if s.agent is not None)
            yield Change(m.id, m.agent, m.round, before, m.key, grades.get(before), grades.get(m.key),
                         tuple(s.id for s in sources), tuple(agents), formerly)


def sources_of(message: Message, by_id: Mapping[int, Message]) -> tuple[list[Message], tuple[int, ...]]:
    """Where an agent that changed its mind was shown its new answer, and which agents had given it there and left it.

    The first are notes, and other agents' messages with the latest answer of theirs that it was shown. by_id: the
    messages before, in their order.
    """
    seen = frozenset(message.seen)
    shown = [m for id, m in by_id.items() if id in seen and m.key is not None]
    latest = {m.agent: m.id for m in shown if m.agent != message.agent}
    gave = [m for m in shown if m.key == message.key]
    sources = [m for m in gave if m.agent is None or latest.get(m.agent) == m.id]
    holders = {m.agent for m in sources}
    authors = dict.fromkeys(m.agent for m in gave if m.agent is not None)
    return sources, tuple(agent for agent in authors if agent not in holders)


def _rounds(result: DebateResult, grades: Grades, columns: Sequence[AgentColumn], counted: set[int],
            changed: set[int]) -> Iterator[RoundRow]:
    standing: dict[int, str] = {}
    here = counted
    numbers = sorted({m.round for m in result.messages})
    for number in numbers:
        messages = [m for m in result.messages if m.round == number]
        valid = [m for m in messages if not m.retracted and m.agent is not None and number > 0]
        marks = tuple(_mark(column.id, number, [m for m in valid if m.agent == column.id], grades, changed)
                      for column in columns) if number > 0 else ()
        standing.update({mark.agent: mark.key for mark in marks if mark.key is not None})
        here = here.difference(*map(_left, messages))
        standing = {agent: key for agent, key in standing.items() if agent in here}
        yield RoundRow(number, tuple(m.id for m in messages), marks, dict(Counter(standing.values())),
                       len(here) - len(standing),
                       tuple(mark.agent for mark in marks if mark.state == "unread" and mark.agent in standing))


def _mark(agent: int, number: int, said: Sequence[Message], grades: Grades, changed: set[int]) -> Mark:
    """What an agent's messages of a round come to: its last readable answer."""
    key = next((m.key for m in reversed(said) if m.key is not None), None)
    state: MarkState = "answer" if key is not None else "silent"
    if key is None and said:
        state = "none" if not any(m.answers for m in said) else "unread"
    return Mark(agent, number, key, state, grades.get(key) if key is not None else None,
                any(m.id in changed for m in said))


def _cards(messages: Sequence[Message], agents: Sequence[Agent], grades: Grades, changes: Sequence[Change],
           spending: Spent | None) -> Iterator[MessageCard]:
    changed = {c.message for c in changes}
    altered_for: dict[int, list[int]] = {}
    for m in messages:
        for i in m.altered:
            altered_for.setdefault(i, []).append(m.id)
    for m in messages:
        yield MessageCard(
            id=m.id, round=m.round, wave=m.wave, agent=m.agent, move=m.move, stage=m.stage,
            content=m.content or _who_left(m, agents),
            answer=m.answer, key=m.key, right=grades.get(m.key) if m.key is not None else None,
            agreement=_agreement(m), confidence=m.confidence, seen=m.seen, altered=m.altered, received=_received(m),
            altered_for=tuple(altered_for.get(m.id, ())), retracted=m.retracted, changed=m.id in changed,
            model=m.model, calls=m.calls, spent=spending(m.calls) if spending else None, data=m.data)


def _who_left(message: Message, agents: Sequence[Agent]) -> str:
    """What a message without words says if agents leave the debate with it."""
    if message.stage == FAILED:
        return "; ".join(missing_names(agents, (message,)))
    names = [agent.persona.name for agent in agents if agent.id in _left(message)]
    return f"left the debate: {', '.join(names)}" if names else ""


def _left(message: Message) -> Collection[Any]:
    """The ids of agents that leave with a message."""
    mark = message.data.get("madplug")
    ids = mark.get("left") if isinstance(mark, Mapping) and message.move == LEAVE and not message.retracted else None
    return [id for id in ids if isinstance(id, int)] if isinstance(ids, list | tuple) else ()


def missing_names(agents: Sequence[Agent], messages: Iterable[Message]) -> Iterator[str]:
    """The agents that failed, each with its model, or which took that one's place, and with what its model said."""
    by_id = {agent.id: agent for agent in agents}
    for m in messages:
        mark: Any = m.data.get("madplug")
        if m.stage != FAILED or m.retracted or not isinstance(mark, Mapping):
            continue
        for id, why in dict(mark.get("failed") or {}).items():
            agent = by_id.get(int(id))
            model = f" (model '{mark['model']}' took its place)" if "model" in mark else \
                f" (model '{agent.model}')" if agent and agent.model else ""
            yield f"{agent.persona.name if agent else id} failed{model}: {why}"


def _agreement(m: Message) -> bool | None:
    unread = any(isinstance(d, Mapping) and d.get("unparsed_agreement") for d in m.data.values())
    return None if unread or not (m.agreement or m.seen) else m.agreement  # with nothing shown, nothing is refused


def _received(message: Message) -> Mapping[str, str]:
    parts: list[Any] = [part.get(RECEIVED) for part in message.data.values() if isinstance(part, Mapping)]
    texts = {str(i): text for part in parts if isinstance(part, Mapping) for i, text in part.items()}
    ids = {str(i) for i in message.altered}
    return {i: text for i, text in texts.items() if i in ids and isinstance(text, str)}
