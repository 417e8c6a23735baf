"""The report as CSV files, for pandas or a spreadsheet: one row per cell and metric, per field of a table, ..."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from madplug_report.escape import line
from madplug_report.pivots import all_fields

_STEERS = ("=", "+", "-", "@")


def csv_files(report: Mapping[str, Any]) -> dict[str, str]:
    """Texts by file name; a file without rows is left out."""
    made = {"cells.csv": _cells(report), "table.csv": _tables(report), "comparisons.csv": _comparisons(report),
            "marginals.csv": _marginals(report), "spending.csv": _spending(report), "paid.csv": report["paid"],
            "published.csv": _published(report)}
    return {name: to_csv(rows) for name, found in made.items() if (rows := list(found))}


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows under the names of all their values; a value that is missing is empty."""
    head = list(dict.fromkeys(name for row in rows for name in row))
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([_safe(name) for name in head])
    writer.writerows([_safe(row.get(name)) for name in head] for row in rows)
    return file.getvalue()


def _safe(value: Any) -> Any:
    """A text on one line, which no spreadsheet takes for a formula."""
    if not isinstance(value, str):
        return value
    text = line(value)
    try:
        float(text)
    except ValueError:
        return f"'{text}" if text.startswith(_STEERS) else text
    return text


def spread(found: Mapping[str, Any]) -> dict[str, Any]:
    """A mean with its std and interval, as columns."""
    low, high = found.get("ci95") or (None, None)
    return {"mean": found["mean"], "std": found["std"], "repeats": len(found["per_repeat"]), "ci95_low": low,
            "ci95_high": high, "ci_method": found.get("ci_method"), "n": found["n"]}


def _cells(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for cell in report["cells"]:
        for name, found in cell["metrics"].items():
            yield {"study": cell["study"], "cell": cell["slug"], "label": cell["label"], **_levels(report, cell),
                   "metric": name, **spread(found), "debates": cell["debates"], "samples": cell["samples"],
                   "undecided": cell["undecided"], "failed": cell["failed"], "unread": cell["unread"],
                   "calls": cell["calls"], "tokens_read": cell["read"], "tokens_cached": cell["cached"],
                   "tokens_written": cell["written"], "cost_usd": cell["cost_usd"], "oracle": cell["oracle"]}


def _levels(report: Mapping[str, Any], cell: Mapping[str, Any]) -> dict[str, Any]:
    return {f"factor.{f['name']}": cell["factors"][f["name"]] for f in report["factors"]}


def _tables(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for pivot in report["pivots"]:
        for row, column, found in all_fields(pivot):
            yield {**pivot["by"], "row": row["label"], "column": column["label"], "metric": found["metric"],
                   **spread(found), "cells": len(found["cells"]), "best": found["best"],
                   "difference": found.get("difference"), "relative": found.get("relative"),
                   "p_holm": found.get("p_holm")}
        for row, found in zip(pivot["rows"], pivot["averages"] or (), strict=False):
            if found:
                yield {**pivot["by"], "row": row["label"], "column": "average", "metric": report["metric"],
                       **spread(found), "cells": len(found["cells"]), "best": found["best"]}


def _comparisons(report: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    for c in report["comparisons"]:
        low, high = c.get("ci95") or (None, None)
        plain = {k: v for k, v in c.items() if not isinstance(v, Mapping | list)}
        yield {**plain, "ci95_low": low, "ci95_high": high, **c["effects"]}


def _marginals(report: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    for row in report["marginals"]:
        low, high = row["difference_ci95"] or (None, None)
        yield {**row["group"], "factor": row["factor"], "level": row["level"], "metric": row["metric"], **spread(row),
               "settings": row["settings"], "difference": row["difference"], "difference_low": low,
               "difference_high": high, "p": row["p"], "p_holm": row["p_holm"]}


def _spending(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for cell in report["cells"]:
        for row in cell["spending"]["rows"]:
            yield {"cell": cell["slug"], "label": cell["label"], "debates": cell["debates"], **row}


def _published(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for row in (report["published"] or {}).get("rows", ()):
        low, high = row["ci95"] or (None, None)
        yield {**{k: v for k, v in row.items() if k not in ("ci95", "our_ci95", "cells")}, "ci95_low": low,
               "ci95_high": high}
