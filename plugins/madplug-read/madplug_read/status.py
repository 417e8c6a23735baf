"""What `madplug status` prints: how far a study is, from its records, or a list of several."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from madplug import columns, dollars, plain, safe
from madplug.store import find_studies, open_study
from madplug_read.studies import (
    ORACLE,
    SERVED,
    StudyFacts,
    cell_tables,
    decided_again,
    saw_references,
    study_facts,
    study_state,
)

HEAD = ("study", "date (UTC)", "state", "cells", "debates", "best score", "95%", "cost", "models")
SORTS: dict[str, Callable[[StudyFacts], Any]] = {
    "study": lambda facts: str(facts.folder), "date": lambda facts: facts.date, "state": lambda facts: facts.state,
    "score": lambda facts: -facts.best.mean if facts.best else 1.0, "cost": lambda facts: -(facts.cost_usd or 0.0)}
_MODELS = 40
"""Characters of the models' names."""


def print_status(folders: Sequence[Path], sort: str = "date", *, as_json: bool = False) -> None:
    """Print how far a study is; of several, or of a folder of studies, a line for each."""
    found = find_studies(folders)
    if found == [folders[0]]:
        facts = status_of(found[0])
        _print(facts, _study_lines(facts), as_json)
    else:
        studies = sorted(map(study_facts, found), key=SORTS[sort], reverse=sort == "date")
        _print(studies, _list_lines(studies), as_json)


def _print(facts: object, lines: Iterable[str], as_json: bool) -> None:
    for line in [json.dumps(plain(facts), indent=2, ensure_ascii=False)] if as_json else lines:
        click.echo(line)


def _list_lines(studies: Sequence[StudyFacts]) -> Iterable[str]:
    yield columns([_row(facts) for facts in studies], HEAD)
    yield from (f"problem: {safe(facts.problem)}" for facts in studies if facts.problem)


def _row(facts: StudyFacts) -> tuple[str, ...]:
    """A study as a line of the list, below `HEAD`."""
    ended, best = facts.done + facts.failed, facts.best
    debates = f"{ended} of {ended + facts.left}" if facts.left else str(ended)
    models = safe(", ".join(facts.models))
    again = f" ({safe(facts.decided_again)})" if facts.decided_again else ""
    return (safe(str(facts.folder)) + ORACLE * facts.oracle + again, facts.date, facts.state, str(facts.cells), debates,
            f"{best.metric} {best.mean:.3f}" if best else "-",
            f"[{best.ci95[0]:.2f}, {best.ci95[1]:.2f}]" if best and best.ci95 else "-",
            _money(facts.cost_usd), models if len(models) <= _MODELS else models[:_MODELS - 1] + "…")


def _money(usd: float | None) -> str:
    return "unknown" if usd is None else f"${dollars(usd)}" if usd else "-"


def _study_lines(facts: dict[str, Any]) -> Iterable[str]:
    head = [name for name in ("cell", "partial", "done", "failed", "undecided", "fallback", "unread", "calls", "tokens")
            if name not in ("partial", "fallback", "unread") or any(cell[name] for cell in facts["cells"])]
    yield columns([[safe(str(c[name])) + ORACLE * (name == "cell" and facts["oracle"]) for name in head]
                   for c in facts["cells"]], head)
    if facts["decided_again"]:
        yield safe(facts["decided_again"])
    left = "" if facts["left"] is None else f", {facts['left']} left"
    known = f", ${dollars(facts['known_usd'])}" if facts["known_usd"] else ""
    cost = f"{known} and what has no known price" if known and facts["cost_usd"] is None else known
    yield (f"{facts['done']} done, {facts['failed']} failed{left}; {facts['calls']} calls paid, "
           f"{facts['tokens']} tokens{cost}")
    served = facts["state"] if facts["state"] in SERVED else ""
    rest = ", ".join(facts["not_begun"])
    models = ", ".join(facts["estimated"])
    guessed = models and f"the tokens of {models} are estimated from the texts"
    more = "; ".join(filter(None, (served, rest and f"{'not asked yet' if served else 'not begun'}: {rest}")))
    problems = [f"problem: {text}" for text in facts["problems"]]
    yield from map(safe, filter(None, [guessed, more, facts["waiting"], *facts["edited"], *problems]))


def status_of(folder: Path) -> dict[str, Any]:
    """Done, failed, left, calls, tokens, cost (USD; None if unknown; and what is known of it) and what the executor
    waits for, also in a run.
    """
    with open_study(folder) as study:
        found = study.overview()
        cells: list[dict[str, Any]] = [
            {**asdict(f), "tokens": f.prompt + f.completion, "seconds": round(f.seconds, 3)} for f in found]
        totals, planned = study.totals(), study.fact("planned")
        done, failed = sum(c["done"] for c in cells), sum(c["failed"] for c in cells)
        left = planned - done - failed if isinstance(planned, int) else None
        begun, settings = {f.cell for f in found}, study.fact("settings")
        state = study_state(study, left, failed)
        matched = {cell for cell, table in cell_tables(study).items() if table.get("match") and state in SERVED}
        not_begun = [c for c in settings if c not in begun | matched] if isinstance(settings, dict) else []
        cost = None if totals.calls and any(f.cost_usd is None for f in found) else totals.cost_usd
        return {"state": state, "done": done, "failed": failed, "left": left,
                "calls": totals.calls, "retries": totals.retries, "tokens": totals.tokens, "cost_usd": cost,
                "known_usd": totals.cost_usd, "waiting": study.fact("waiting") or "", "problems": study.problems(),
                "cells": cells, "not_begun": not_begun, "oracle": saw_references(study),
                "estimated": study.estimated(), "edited": study.edited(), "decided_again": decided_again(study)}
