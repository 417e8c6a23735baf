"""How the debates of a study ended that a user should know of before believing its scores."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from madplug import DebateResult, count
from madplug.store import DebateId, open_study
from madplug_read.outlines import missing_names
from madplug_read.studies import beside

MOST_CELLS = 6
"""Cells of which is told how debates ended."""
LOOKED_AT = 100
"""Debates of each whose reasons are compared."""
_TOLD: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], bool]]] = {
    "undecided": ("{} ended undecided", lambda row: row["error"] is None and not row["decided"]),
    "fallback": ("{} were decided by the fallback", lambda row: row["decided"] > 2),
    "unread": ("in {} a final answer, a ballot, a persona or another reply could not be read", lambda row: False),
    "partial": ("{} are partial: an agent failed, and left or got another model", lambda row: row["decided"] in (2, 4))}
"""By the option of `madplug read` that lists them; of those with an unread reply, no reason is compared."""


def told(folder: Path) -> Iterator[str]:
    """How many debates failed, and a sentence for the cells of each commonest reason; those with most come first."""
    with open_study(folder) as study:
        cells = study.overview()
        if failed := sum(cell.failed for cell in cells):
            yield f"{count(failed, 'debate')} failed; madplug read {shlex.quote(str(folder))} --failed lists them"
        for name, (what, has) in _TOLD.items():
            found = sorted((c for c in cells if getattr(c, name)), key=lambda c: -getattr(c, name))
            cells_of: dict[str, list[str]] = {}
            for cell in found[:MOST_CELLS]:
                rows = (row for row in study.figures(cell.cell) if has(row))
                ids = (DebateId(row["cell"], row["repeat"], row["sample"]) for row in islice(rows, LOOKED_AT))
                reasons = Counter(_reason(debate, name) for id in ids if (debate := study.result(id)))
                most = "" if len(reasons) == 1 else "most often "
                why = "".join(f" ({most}{reason})" for reason, _ in reasons.most_common(1))
                cells_of.setdefault(why, []).append(
                    f"{getattr(cell, name)} of {count(cell.done, 'debate')} of '{cell.cell}'")
            for why, (*most_of, last) in cells_of.items():
                many = what.format(f"{', '.join(most_of)} and {last}" if most_of else last)
                if not most_of and last.startswith("1 of "):
                    many = many.replace(" were decided", " was decided").replace(" are partial", " is partial")
                yield f"{many}{why}; madplug read {shlex.quote(str(folder))} --{name} lists them"
            if len(found) > MOST_CELLS:
                yield what.format(f"debates of {count(len(found) - MOST_CELLS, 'more cell')}")
    yield from _unscored(beside(folder, "summary.json").get("cells", ()))


def _reason(debate: DebateResult, ending: str) -> str:
    """Which agents of a partial debate failed, and why; of another, its decision's reason."""
    if ending == "partial":
        return "; ".join(missing_names(debate.agents, debate.messages))
    return debate.decision.reason if debate.decision else ""


def _unscored(cells: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A sentence for each metric that gave some debates no score. cells: those of `summary.json`."""
    found = [*cells]
    lost: Counter[str] = sum((Counter(cell["unscored"]) for cell in found), Counter())
    for metric, n in lost.items():
        of = count(sum(cell["done"] for cell in found), "debate")
        yield f"{metric} has no score in {n} of {of}, which its means leave out"
