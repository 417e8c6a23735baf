"""How far a study is, from its records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from madplug.store import open_study


def status_of(folder: Path) -> dict[str, Any]:
    """Done, failed, left, calls, tokens and cost (USD; None if a price is unknown) of a study, also while it runs."""
    with open_study(folder) as study:
        found = study.overview()
        cells: list[dict[str, Any]] = [
            {"cell": f.cell, "done": f.done, "failed": f.failed, "undecided": f.undecided, "calls": f.calls,
             "tokens": f.prompt + f.completion, "seconds": round(f.seconds, 3)}
            for f in sorted(found, key=lambda one: one.cell) if f.done + f.failed]
        totals, planned = study.totals(), study.fact("planned")
        done, failed = sum(c["done"] for c in cells), sum(c["failed"] for c in cells)
        left = planned - done - failed if isinstance(planned, int) else None
        cost = None if any(f.cost_usd is None for f in found) else totals.cost_usd
        return {"done": done, "failed": failed, "left": left, "calls": totals.calls, "retries": study.retries(),
                "tokens": totals.tokens, "cost_usd": cost, "problems": study.problems(), "cells": cells}
