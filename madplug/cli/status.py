"""How far a study is, from its records; several in a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from madplug.store import open_study
from madplug.study.listing import StudyFacts, study_facts
from madplug.text import dollars, safe

HEAD = ("study", "date (UTC)", "state", "cells", "debates", "best score", "95%", "cost", "models")
_SORTS: dict[str, Callable[[StudyFacts], Any]] = {
    "study": lambda facts: str(facts.folder), "date": lambda facts: facts.date, "state": lambda facts: facts.state,
    "score": lambda facts: -facts.best.mean if facts.best else 1.0, "cost": lambda facts: -(facts.cost_usd or 0.0)}
_MODELS = 40
"""Characters of the models' names."""


def listed_studies(folders: Iterable[Path], sort: str) -> list[StudyFacts]:
    """The facts of studies in this order; by date, the newest first."""
    return sorted(map(study_facts, folders), key=_SORTS[sort], reverse=sort == "date")


def study_row(facts: StudyFacts) -> tuple[str, ...]:
    """A study as a line of the list, below `HEAD`."""
    ended, best = facts.done + facts.failed, facts.best
    debates = f"{ended} of {ended + facts.left}" if facts.left else str(ended)
    models = safe(", ".join(facts.models))
    return (safe(str(facts.folder)), facts.date, facts.state, str(facts.cells), debates,
            f"{best.metric} {best.mean:.3f}" if best else "-",
            f"[{best.ci95[0]:.2f}, {best.ci95[1]:.2f}]" if best and best.ci95 else "-",
            _money(facts.cost_usd), models if len(models) <= _MODELS else models[:_MODELS - 1] + "…")


def _money(usd: float | None) -> str:
    return "unknown" if usd is None else f"${dollars(usd)}" if usd else "-"


def status_of(folder: Path) -> dict[str, Any]:
    """Done, failed, left, calls, tokens, cost (USD; None if unknown) and what the executor waits for, also in a run."""
    with open_study(folder) as study:
        found = study.overview()
        cells: list[dict[str, Any]] = [
            {**asdict(f), "tokens": f.prompt + f.completion, "seconds": round(f.seconds, 3)} for f in found]
        totals, planned = study.totals(), study.fact("planned")
        done, failed = sum(c["done"] for c in cells), sum(c["failed"] for c in cells)
        left = planned - done - failed if isinstance(planned, int) else None
        cost = None if totals.calls and any(f.cost_usd is None for f in found) else totals.cost_usd
        return {"done": done, "failed": failed, "left": left, "calls": totals.calls, "retries": study.retries(),
                "tokens": totals.tokens, "cost_usd": cost, "waiting": study.fact("waiting") or "",
                "problems": study.problems(), "cells": cells}
