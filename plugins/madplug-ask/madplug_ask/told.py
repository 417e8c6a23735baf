"""What has come of a question to a council, read from its record: as data, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from madplug import DebateResult, Message, UserError, count, dollars
from madplug.store import open_study
from madplug.study import read

MOST_ANSWER = 1500
"""Characters of a seat's answer in the short form."""
DONE: Mapping[str, str] = {"draft": "answered", "review": "reviewed", "improve": "revised their answers"}
"""What seats have done, by the move they were asked for."""


def recorded(folder: Path) -> DebateResult | None:
    """The debate in a directory, also while it runs; None before it has begun."""
    try:
        with open_study(folder) as study:
            return next(study.debates(), None)
    except UserError:
        return None


def told(debate: DebateResult, most: int = MOST_ANSWER) -> dict[str, Any]:
    """A debate in short: its status, the answer and how it came about, and each seat with what became of it.

    most: characters of a seat's answer.
    """
    decision, notes = debate.decision, debate.notes.get("council") or {}
    decided = decision is not None and decision.key is not None
    status = "failed" if debate.error else "running" if decision is None else "undecided" if not decided else \
        "partial" if missing(debate) else "decided"
    return {"status": status, "missing": missing(debate), "answer": decision.answer if decision and decided else None,
            "decided_by": decision.reason if decision else debate.error or "", "agreement": notes.get("agreement"),
            "dissent": dissent(debate), "tie": bool(decision and decision.tie),
            "scores": dict(decision.scores) if decision else {},
            "seats": [_seat(debate, agent.id, notes, most) for agent in debate.agents],
            "votes": list(notes.get("votes", ())), "analysis": notes.get("analysis"), "rounds": debate.rounds,
            "calls": debate.calls,
            "tokens": debate.tokens.prompt + debate.tokens.completion, "cost_usd": debate.tokens.cost_usd,
            "seconds": round(debate.seconds, 1)}


def _seat(debate: DebateResult, id: int, notes: Mapping[str, Any], most: int) -> dict[str, Any]:
    agent, own = debate.agents[id], [m for m in debate.messages if m.agent == id and m.move != "review"]
    failed = debate.failures.get(id)
    text = own[-1].content if own else ""
    return {"name": agent.persona.name, "model": agent.model,
            "status": "failed" if failed else "ok" if own else "waiting" if debate.decision is None else "silent",
            "error": failed, "answer": text[:most] + "..." * (len(text) > most),
            "place": (notes.get("places") or {}).get(str(id))}


def missing(debate: DebateResult) -> list[str]:
    """The seats that failed and the chairs that did, each with what its model said."""
    return [*(f"{debate.agents[id].persona.name}: {why}" for id, why in debate.failures.items()),
            *(f"{name}, as the chair: {why}" for name, why in failed_chairs(debate).items())]


def failed_chairs(debate: DebateResult) -> Mapping[str, str]:
    """The models that failed as the chair, each with what it said."""
    found: Mapping[str, str] = (debate.notes.get("council") or {}).get("chairs") or {}
    return found


def dissent(debate: DebateResult) -> dict[str, str]:
    """The seats that end on another choice than the decision, each with its own."""
    key = debate.decision.key if debate.decision and debate.sample.choices else None
    ends = {m.agent: m for m in debate.messages if m.agent is not None and m.key is not None and not m.retracted}
    return {debate.agents[id].persona.name: m.answer or "" for id, m in ends.items() if key not in (None, m.key)}


class QuestionProgress(NamedTuple):
    """How far a running debate is."""

    calls: int
    """Calls that were answered."""
    cost_usd: float | None
    """What they cost; None if the price of one is unknown."""
    heard: frozenset[int]
    """The ids of the seats that have answered in the round that is under way."""
    text: str
    """In a line."""


def progress(folder: Path) -> QuestionProgress:
    """How far the debate in a directory is: messages are recorded when all seats have answered, calls at once."""
    try:
        with open_study(folder) as study:
            debate, calls = next(study.debates(), None), list(study.call_figures())
    except UserError:
        debate, calls = None, []
    if debate is None:
        return QuestionProgress(0, 0.0, frozenset(), "waiting for its turn")
    now = 1 + max((m.round for m in debate.messages if m.agent is not None), default=0)
    heard = frozenset(call.agent for call in calls if call.round == now and call.agent is not None)
    costs = [call.cost_usd for call in calls]
    return QuestionProgress(len(calls), None if None in costs else sum(filter(None, costs)), heard,
                            _stage(debate, now, heard, read(folder / "study.toml", environ={})["cells"][0]["debate"]))


def _stage(debate: DebateResult, now: int, heard: frozenset[int], table: Mapping[str, Any]) -> str:
    """What is under way in a round. table: the debate's, in the run file."""
    if now > table["rounds"]:
        return "the answer is being written"
    seats = [agent for agent in debate.agents if agent.id not in debate.failures]
    waiting = ", ".join(agent.persona.name for agent in seats if agent.id not in heard)
    moves = table["turns"].get("moves") or ["draft"]
    done = DONE.get(moves[min(now, len(moves)) - 1], "spoken")
    return f"{len(heard)} of {len(seats)} have {done}{waiting and f'; waiting for {waiting}'}"


def letters_of(review: Message, names: Mapping[int, str]) -> str:
    """Whose answers the letters in a review are; empty for any other message."""
    labels = (review.data.get("council") or {}).get("labels") or {}
    return ", ".join(f"{letter} is {names[id]}" for letter, id in labels.items())


def markdown(debate: DebateResult) -> str:
    """The whole debate: what is missing first, then the answer, then each seat's answer and review."""
    return "\n\n".join(_markdown(debate)) + "\n"


def prompts(folder: Path) -> str:
    """What the models were sent, and what they replied, call by call, as Markdown."""
    with open_study(folder) as study:
        debate, calls = next(study.debates(), None), list(study.calls())
    names = {agent.id: agent.persona.name for agent in debate.agents} if debate else {}
    return "\n\n".join("\n\n".join([
        f"## {call['purpose']}: {names.get(call['agent'], call['model'])}",
        *(f"**{said['role']}**\n\n{_text(said['content'])}" for said in call["request"]["messages"]),
        f"**reply**\n\n{call['text']}"]) for call in calls)


def _text(content: Any) -> str:
    """A message's text; an image by its kind."""
    return content if isinstance(content, str) else "\n".join(
        part.get("text") or f"({part['type']})" for part in content)


def _markdown(debate: DebateResult) -> Iterator[str]:
    facts = told(debate)
    yield f"# {' '.join(debate.sample.question.split())[:200]}"
    if facts["missing"]:
        yield "**Partial.** Not heard:\n\n" + "\n".join(f"* {line}" for line in facts["missing"])
    yield facts["answer"] or f"({facts['status']}: {facts['decided_by']})"
    if facts["answer"]:
        yield f"*{facts['decided_by']}*"
    for m in debate.messages:
        if m.agent is not None:
            yield f"## {debate.agents[m.agent].persona.name}, {'review' if m.move == 'review' else 'answer'}"
            key = letters_of(m, {agent.id: agent.persona.name for agent in debate.agents})
            yield f"{m.content.strip()}{f'{chr(10) * 2}({key})' if key else ''}"
    cost = f", ${dollars(debate.tokens.cost_usd)}" if debate.tokens.cost_usd else ""
    yield f"{count(debate.calls, 'call')}, {facts['tokens']:,} tokens{cost}"
