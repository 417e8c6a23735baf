"""Studies and debates as a notebook shows them. Everything is escaped: model output is text, never markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from madplug import DebateResult, Reader, StudyResult, count, safe
from madplug.study import Registry
from madplug_read.grading import by_spelling
from madplug_read.outlines import outline
from madplug_read.records import MessageCard, Outline
from madplug_read.results import conclusion, figure, summary_rows
from madplug_read.studies import ORACLE, first_figures, saw_references

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


def study_page(study: StudyResult) -> str:
    """A study that was run: the same table as on the terminal, what can be concluded, and problems."""
    summary = study.summary
    rows, more = summary_rows(summary)
    below = [*more, conclusion(summary) or "", *(f"problem: {problem}" for problem in summary["problems"]),
             *Registry().hints(study.folder)]
    return (f"<div><p><b>{text(summary['study'])}</b>: {text(summary['status'])} &middot; {text(study.folder)}</p>"
            f"{table(list(rows[0]), [list(row.values()) for row in rows]) if rows else ''}"
            f"{''.join(f'<p>{text(line)}</p>' for line in below if line)}</div>")


def reader_page(study: Reader) -> str:
    """A study that may still be running, from its figures by cell; calls and tokens are sums over a cell's debates."""
    cells, planned, folder = study.overview(), study.fact("planned"), getattr(study, "folder", None)
    left = planned - sum(c.done + c.failed for c in cells) if isinstance(planned, int) else 0
    more = f": {count(left, 'debate')} left" if left else ""
    oracle = ORACLE * saw_references(study)
    names = [c.cell + oracle + (f" ({c.partial} partial)" if c.partial else "") for c in cells]
    metric, scores = first_figures(study) or ("", {})
    samples = {c.cell: (c.done + c.failed) // max(1, c.repeats) for c in cells}
    rows = [[name, *([figure(scores.get(c.cell), samples[c.cell])] if metric else []), c.done, c.undecided, c.failed,
             c.calls, c.prompt + c.completion] for name, c in zip(names, cells, strict=True)]
    head = ["cell", *[metric] * bool(metric), "debates", "undecided", "failed", "all calls", "all tokens"]
    return (f"<div><p><b>{text(folder.name if folder is not None else 'study')}</b>{text(more)}</p>{table(head, rows)}"
            f"{''.join(f'<p>{text(line)}</p>' for line in (Registry().hints(folder) if folder else ()))}</div>")


def debate_page(result: DebateResult) -> str:
    """A debate: the question, what was said round by round, and the decision."""
    given = (*(m.key for m in result.messages), result.decision.key if result.decision else None)
    debate = outline(result, by_spelling(result, [key for key in given if key is not None]))
    sample, by_id = debate.sample, {m.id: m for m in debate.messages}
    # Letters, since the numbering of an ordered list is a matter of the notebook's style.
    choices = "<br>".join(f"{chr(ord('A') + i)}) {text(choice)}" for i, choice in enumerate(sample.choices))
    rounds = "".join(f"<p><b>Round {row.number}</b></p>" + "".join(_message(by_id[id], debate) for id in row.messages)
                     for row in debate.rounds)
    head = f"{text(sample.id)} &middot; {text(debate.cell)}, repeat {debate.repeat}"
    return (f"<div><p>{head}</p><p><b>{text(sample.question)}</b></p>"
            f"{f'<p>{choices}</p>' if choices else ''}{rounds}<p>{_end(debate)}</p></div>")


def _message(message: MessageCard, debate: Outline) -> str:
    who = next((f"{a.name} ({a.model})" for a in debate.agents if a.id == message.agent), "(note)")
    content = message.content[:MOST_CHARACTERS] + ("..." if len(message.content) > MOST_CHARACTERS else "")
    before = next((f"changed from {text(c.before)} to " for c in debate.changes if c.message == message.id), "")
    answer = f" &rarr; {before}<b>{text(message.key)}</b>{_grade(message.right)}" if message.key is not None else ""
    marked = " (retracted)" if message.retracted else ""
    return (f"<details><summary>{text(who)}{marked}{answer}</summary>"
            f"<pre style='white-space: pre-wrap'>{text(content)}</pre></details>")


def _grade(right: bool | None) -> str:
    return {True: " (right)", False: " (wrong)", None: ""}[right]


def _end(debate: Outline) -> str:
    if debate.error is not None:
        return f"failed: {text(debate.error)}"
    decision = debate.decision
    if decision is None:
        return "not decided yet"
    answer = "no answer" if decision.key is None else text(decision.answer or decision.key)
    reference = f"; reference: {text(', '.join(debate.references))}" if debate.references else ""
    partial = "".join(f"partial: {text(missing)}<br>" for missing in debate.missing)
    agreed = " (agreed)" if decision.agreed else " (chosen by a fallback)" if decision.fallback else ""
    return (f"{partial}Decision: <b>{answer}</b>{_grade(debate.right)}{agreed}{reference}; "
            f"{text(count(debate.calls, 'call'))}")


def progress_line(study: str, done: int, planned: int | None, figures: str) -> str:
    """How far a study is."""
    of = f" of {planned:,}" if planned is not None else ""
    return f"<span>{text(study)}: {done:,}{of} debates; {text(figures)}</span>"
