"""The rows of a study's data frames; pandas and polars are imported when a frame is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from madplug import Reader, StudyResult, UserError, nearest_or_all
from madplug_export import flat


def library(name: str) -> Any:
    """The module of this name. Raises `UserError` if it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        raise UserError(f"{name} is not installed: pip install 'madplug-export[{name}]'") from None


def rows(study: Reader | StudyResult, table: str, cell: str | None = None) -> list[dict[str, Any]]:
    """The rows of a table. Raises `UserError` for an unknown one."""
    if isinstance(study, StudyResult):
        with study.open() as opened:
            return rows(opened, table, cell)
    tables: Mapping[str, Callable[[Reader, str | None], Iterator[dict[str, Any]]]] = {
        "debates": _debates, "messages": _messages, "calls": _calls, "figures": _figures}
    if table not in tables:
        raise UserError(f"unknown table '{table}'{nearest_or_all(table, tables)}")
    found = list(tables[table](study, cell))
    columns = dict.fromkeys(name for row in found for name in row)  # a debate may lack the scores of another
    return [{name: row.get(name) for name in columns} for row in found]


def _debates(study: Reader, cell: str | None) -> Iterator[dict[str, Any]]:
    for row in map(flat.debate_row, flat.marked(study, cell)):
        yield {name.removeprefix(flat.METRIC): value for name, value in row.items()}


def _messages(study: Reader, cell: str | None) -> Iterator[dict[str, Any]]:
    for record in flat.marked(study, cell):
        for row in flat.message_rows(record):
            yield {**row, "data": _json(row["data"])}


def _calls(study: Reader, cell: str | None) -> Iterator[dict[str, Any]]:
    for row in map(flat.Uses(study).of, study.calls(cell)):
        usage = row.pop("usage")
        yield {**row, **{name: usage[name] for name in ("prompt", "completion", "cached", "cost_usd")},
               "request": _json(row["request"]), "logprobs": row["logprobs"] and _json(row["logprobs"])}


def _figures(study: Reader, cell: str | None) -> Iterator[dict[str, Any]]:
    for row in study.figures():
        if cell in (None, row["cell"]):
            yield {**{k: v for k, v in row.items() if k != "metrics"}, **row["metrics"]}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
