"""What the pages show of a debate in a list, and of a call, as values that become JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from madplug.store import Reader
from madplug_read import Outline
from madplug_view.texts import cut

MORE = 200_000
"""Characters of a part of a text."""


def texts_of(found: Outline) -> Iterator[str]:
    """The texts of a debate that a search looks through."""
    yield found.sample.id
    yield found.sample.question
    yield from found.sample.choices
    for message in found.messages:
        yield message.content
        yield message.answer or ""
    if found.error is not None:
        yield found.error


def calls_behind(reader: Reader, found: Outline) -> list[dict[str, Any]]:
    """The calls behind no message: personas before round 1, and ballots, judges, phases and metrics since."""
    opening = set(found.opening_calls)
    figures = reader.call_figures(dict.fromkeys([*found.opening_calls, *found.other_calls]))
    return [{"key": call.key.hex(), "purpose": cut(str(call.purpose), 60), "agent": call.agent, "round": call.round,
             "opening": call.key.hex() in opening} for call in figures]


GRADES = {True: "r", False: "w", None: "a"}
CODES = {"answer": "a", "unread": "u", "none": "n", "silent": "s"}


def row_of(found: Outline) -> dict[str, Any]:
    """A debate as a row of a cell's page.

    `marks` has a pair of strings per round, with a character per agent: r right, w wrong, a answered, u unread, n no
    answer asked for, s silent, as a capital letter after a change of mind; and the answer's place, in base 36.
    """
    places = {answer.key: answer.nth for answer in found.answers}
    decision = found.decision
    key = decision.key if decision is not None else None
    marks = []
    for row in found.rounds:
        if not row.marks:
            continue
        codes = [GRADES[m.right] if m.key is not None else CODES[m.state] for m in row.marks]
        marks.append(["".join(c.upper() if m.changed else c for c, m in zip(codes, row.marks, strict=True)),
                      "".join(place(places.get(m.key)) if m.key is not None else "-" for m in row.marks)])
    return {"cell": found.cell, "repeat": found.repeat, "sample": found.sample.id,
            "question": cut(found.sample.question, 300), "state": found.state, "right": found.right,
            "reference": cut(next(iter(found.references), ""), 60),
            "answer": None if key is None else cut(key, 60), "nth": None if key is None else places.get(key),
            "traits": found.traits, "marks": marks, "agents": [cut(a.name, 40) for a in found.agents],
            "changes": len(found.changes), "metrics": dict(found.metrics), "group": found.sample.group,
            "calls": found.calls, "tokens": found.prompt + found.completion,
            "cost_usd": found.cost_usd, "seconds": found.seconds, "error": cut(found.error or "", 300)}


def place(nth: int | None) -> str:
    """The place of an answer as one character; from the 36th on they look alike."""
    return "-" if nth is None else "0123456789abcdefghijklmnopqrstuvwxyz"[min(nth, 35)]


def cut_call(row: Mapping[str, Any]) -> dict[str, Any]:
    """A call for a page: its messages as roles and texts."""
    request = row["request"] if isinstance(row["request"], dict) else {}
    messages = request.get("messages")
    sent = [m for m in messages if isinstance(m, dict)] if isinstance(messages, list) else []
    return {"key": row["key"], "purpose": row["purpose"], "model": row["model"], "agent": row["agent"],
            "round": row["round"],
            "seconds": row["seconds"], "retries": row["retries"], "prompt": row["usage"]["prompt"],
            "completion": row["usage"]["completion"], "cost_usd": row["usage"]["cost_usd"],
            "params": request.get("params") or {}, "reply": cut(str(row["text"]), MORE),
            "messages": [{"role": str(m.get("role")), "text": cut(text_of(m.get("content")), MORE)} for m in sent]}


def text_of(content: Any) -> str:
    """The text of a message as it was sent; images are named."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(p["text"]) if isinstance(p, dict) and "text" in p else "(an image)" for p in parts)
