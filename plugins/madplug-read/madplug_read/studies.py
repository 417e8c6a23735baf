"""Studies side by side: one row of facts for each, from its records and the files beside them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from madplug import UserError
from madplug.store import Reader, is_running, open_study
from madplug.study import decided_by, decided_from, is_cell, read_text, scores_by_cell

ORACLE = " (oracle)"
"""Marks what components that saw the references have brought about."""
CONVERSATIONS = "serve.conversations"
"""The data set of a study that is served."""
State = Literal["running", "stopped", "finished", "failed", "serving", "served", "unknown"]
SERVED = ("serving", "served")


@dataclass(frozen=True)
class BestCell:
    """The cell with the highest mean of the study's first metric."""

    cell: str
    metric: str
    mean: float
    ci95: tuple[float, float] | None
    tied: int = 0
    """How many other cells have the same mean."""


@dataclass(frozen=True)
class StudyFacts:
    """A study in a list of studies."""

    folder: Path
    date: str = ""
    """When it was run last: `2026-11-23 05:58`, in UTC."""
    state: State = "unknown"
    """`running`: a process is writing to it; `stopped`: none is, and debates are left; `serving` and `served`: the same
    of one that clients ask for debates, which has no end of its own. `unknown`: it cannot be read."""
    models: tuple[str, ...] = ()
    cells: int = 0
    done: int = 0
    failed: int = 0
    left: int | None = None
    calls: int = 0
    """Paid, as are tokens and cost."""
    tokens: int = 0
    cost_usd: float | None = None
    best: BestCell | None = None
    oracle: bool = False
    """Whether components saw the references."""
    problem: str = ""
    """Why it cannot be read."""
    decided_again: str = ""
    """What it decides again, `lim decided again`; empty for one that was run."""


def study_facts(folder: Path) -> StudyFacts:
    """The facts of a study, also while it runs; those of one that cannot be read have the reason."""
    try:
        with open_study(folder) as study:
            return _facts(study)
    except UserError as error:
        return StudyFacts(folder, problem=str(error))


def _facts(study: Reader) -> StudyFacts:
    found, totals, planned = study.overview(), study.totals(), study.fact("planned")
    done, failed = sum(c.done for c in found), sum(c.failed for c in found)
    left = max(0, planned - done - failed) if isinstance(planned, int) else None
    unknown = totals.calls and any(c.cost_usd is None for c in found)
    return StudyFacts(study.folder, _date(study.folder), study_state(study, left, failed), _models(study),
                      len(cell_tables(study)) or len(found), done, failed, left, totals.calls, totals.tokens,
                      None if unknown else totals.cost_usd, _best(study), saw_references(study),
                      decided_again=f"{_source(study)} decided again".lstrip() if _is_decided(study) else "")


def _is_decided(study: Reader) -> bool:
    identity = study.fact("identity")
    return isinstance(identity, Mapping) and isinstance(identity.get("recorded_from"), Mapping)


def _source(study: Reader) -> str:
    return decided_from(beside(study.folder, "manifest.json"))


def saw_references(study: Reader) -> bool:
    """Whether components could read the references, so that every result of the study is marked (`oracle = true`)."""
    identity = study.fact("identity")
    return isinstance(identity, Mapping) and identity.get("oracle") is True


def decided_again(study: Reader) -> str:
    """By what a study decides recorded debates again, and what of them is missing; empty for one that was run."""
    by, left = decided_by(study.fact("identity")), study.fact("unfinished")
    more = f"; {left}" if isinstance(left, str) and left else ""
    source = f" from {name}" if (name := _source(study)) else ""
    return f"recorded debates, decided again by {', then by '.join(by)}{source}{more}; cells have the names that " \
           "they were run with" if by else ""


def study_state(study: Reader, left: int | None, failed: int) -> State:
    """Whether a study runs, or how it ended, of which so many debates are left and have failed."""
    running = is_running(study.folder)
    if any(cell["dataset"].get("use") == CONVERSATIONS for cell in cell_tables(study).values() if cell.get("dataset")):
        return "serving" if running else "served"
    status = beside(study.folder, "summary.json").get("status")
    if running:
        return "running"
    if left or (left is None and status not in ("finished", "failed")):
        return "stopped"
    return "failed" if status == "failed" or failed else "finished"


def _date(folder: Path) -> str:
    runs = beside(folder, "manifest.json").get("runs")
    started = runs[-1].get("started") if isinstance(runs, list) and runs and isinstance(runs[-1], dict) else None
    if isinstance(started, str):
        return started[:16].replace("T", " ")
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime((folder / "study.db").stat().st_mtime))


def beside(folder: Path, name: str) -> dict[str, Any]:
    """A file beside the records, which may be missing or anything."""
    try:
        found = json.loads(read_text(folder / name))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def cell_tables(study: Reader) -> dict[str, Mapping[str, Any]]:
    """The cells of the study's identity that are as madplug wrote them, by name."""
    identity = study.fact("identity")
    cells = identity.get("cells") if isinstance(identity, Mapping) else None
    return {name: cell for name, cell in cells.items() if is_cell(cell)} if isinstance(cells, Mapping) else {}


def _models(study: Reader) -> tuple[str, ...]:
    """What the endpoints call the models, or how the run file names them."""
    tables = [named for cell in cell_tables(study).values() for named in (cell.get("models") or {}).items()]
    return tuple(dict.fromkeys(str(table.get("model", name) if isinstance(table, Mapping) else name)
                               for name, table in tables))


def _first_metric(study: Reader) -> str:
    used = [slot.get("use") for cell in cell_tables(study).values() for slot in cell.get("metrics") or ()]
    return str(used[0]) if used else ""


def first_figures(study: Reader) -> tuple[str, dict[str, Any]] | None:
    """The first score of the first metric of the run file that a debate has, and its figures by cell.

    Scores that are all 0 or 1 count as a proportion, as in `summary.json`.
    """
    names: dict[str, bool] = {}

    def rows() -> Iterator[Mapping[str, Any]]:
        for row in study.figures():
            for name, value in row["metrics"].items():
                names[name] = names.get(name, True) and value in (0, 1, None)
            yield row

    cells = scores_by_cell(rows())
    first = _first_metric(study)
    for name in (name for name in names if not first or name == first or name.startswith(f"{first}.")):
        figures = {cell: found.metrics([name] if names[name] else [], [name]).get(name)
                   for cell, found in cells.items()}
        if scored := {cell: found for cell, found in figures.items() if found}:
            return name, scored
    return None


def _best(study: Reader) -> BestCell | None:
    name, scored = first_figures(study) or ("", {})
    if not scored:
        return None
    best = max(scored, key=lambda cell: scored[cell]["mean"])
    mean, low_high = scored[best]["mean"], scored[best]["ci95"]
    return BestCell(best, name, mean, (low_high[0], low_high[1]) if low_high else None,
                    sum(found["mean"] == mean for found in scored.values()) - 1)
