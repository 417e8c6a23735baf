"""Studies and debates as a notebook shows them. Everything is escaped: model output is text, never markup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from madplug.cli.tables import conclusion, summary_rows
from madplug.records import DebateResult, Message, is_another_sample
from madplug.text import count, safe

MOST_CHARACTERS = 2_000
"""Characters of a message that are shown."""


def text(value: object) -> str:
    """Text for HTML: escaped, with invisible and direction characters made visible."""
    return escape(safe(str(value)))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """An HTML table."""
    cells = "".join(f"<th>{text(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{text(value)}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def study_page(summary: Mapping[str, Any], folder: Path | None = None) -> str:
    """The same table as on the terminal, what can be concluded, and problems."""
    rows, more = summary_rows(summary)
    below = [*more, conclusion(summary) or "", *(f"problem: {problem}" for problem in summary["problems"])]
    where = f" &middot; {text(folder)}" if folder is not None else ""
    return (f"<div><p><b>{text(summary['study'])}</b>: {text(summary['status'])}{where}</p>"
            f"{table(list(rows[0]), [list(row.values()) for row in rows]) if rows else ''}"
            f"{''.join(f'<p>{text(line)}</p>' for line in below if line)}</div>")


def reader_page(name: str, cells: Sequence[Mapping[str, Any]], left: int | None) -> str:
    """A study that may still be running, from its figures by cell."""
    head = ["cell", "debates", "undecided", "failed", "calls", "tokens"]
    rows = [[c["cell"], c["done"], c["undecided"], c["failed"], c["calls"], c["tokens"]] for c in cells]
    more = "" if not left else f": {count(left, 'debate')} left"
    return f"<div><p><b>{text(name)}</b>{text(more)}</p>{table(head, rows)}</div>"


def debate_page(result: DebateResult) -> str:
    """A debate: the question, what was said round by round, and the decision."""
    sample = result.sample
    # Letters, since the numbering of an ordered list is a matter of the notebook's style.
    choices = "<br>".join(f"{chr(ord('A') + i)}) {text(choice)}" for i, choice in enumerate(sample.choices))
    rounds = "".join(f"<p><b>Round {number}</b></p>" + "".join(_message(m, result) for m in messages)
                     for number, messages in groupby(result.messages, key=lambda m: m.round))
    head = f"{text(sample.id)} &middot; {text(result.cell)}, repeat {result.repeat + 1}"
    return (f"<div><p>{head}</p><p><b>{text(sample.question)}</b></p>"
            f"{f'<p>{choices}</p>' if choices else ''}{rounds}<p>{_end(result)}</p></div>")


def _message(message: Message, result: DebateResult) -> str:
    agent = next((a for a in result.agents if a.id == message.agent), None)
    who = agent.persona.name if agent else "(note)"
    content = message.content[:MOST_CHARACTERS] + ("..." if len(message.content) > MOST_CHARACTERS else "")
    before = next((m for m in reversed(result.messages) if m.id < message.id and m.agent == message.agent
                   and m.key is not None and not m.retracted), None)
    keeps = not agent or before is None or before.key == message.key or is_another_sample(message, before)
    changed = "" if keeps or before is None else f"changed from {text(before.key)} to "
    answer = f" &rarr; {changed}<b>{text(message.key)}</b>" if message.key is not None else ""
    marked = " (retracted)" if message.retracted else ""
    return (f"<details><summary>{text(who)}{marked}{answer}</summary>"
            f"<pre style='white-space: pre-wrap'>{text(content)}</pre></details>")


def _end(result: DebateResult) -> str:
    if result.error is not None:
        return f"failed: {text(result.error)}"
    decision = result.decision
    if decision is None:
        return "not decided yet"
    answer = "no answer" if decision.key is None else text(decision.answer or decision.key)
    reference = f"; reference: {text(', '.join(result.references))}" if result.references else ""
    return f"Decision: <b>{answer}</b>{' (agreed)' if decision.agreed else ''}{reference}; " \
           f"{text(count(result.calls, 'call'))}"


def progress_line(study: str, done: int, planned: int | None, figures: str) -> str:
    """How far a study is."""
    of = f" of {planned:,}" if planned is not None else ""
    return f"<span>{text(study)}: {done:,}{of} debates; {text(figures)}</span>"
