"""A study's records as data frames. pandas and polars are imported when a frame is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from madplug import flat
from madplug.errors import UserError, nearest_or_all
from madplug.rows import plain

if TYPE_CHECKING:
    from madplug.store import Reader


class Frames:
    """What gives a `Reader` its data frames."""

    def to_pandas(self, table: str = "debates", cell: str | None = None) -> Any:
        """A pandas data frame, one row for each of the `debates`, `messages`, `calls` or `figures`.

        The columns are those of an export (`docs/export.md`), except that a score's column has just its name, tokens
        have columns of their own, and tables are JSON. figures: the numbers of each debate that has ended. cell: only
        this one. Raises `UserError` if there is no such table, or pandas is not installed.
        """
        found = rows(self, table, cell)  # type: ignore[arg-type]
        return _library("pandas").DataFrame(found)

    def to_polars(self, table: str = "debates", cell: str | None = None) -> Any:
        """The same as a polars data frame."""
        found = rows(self, table, cell)  # type: ignore[arg-type]
        return _library("polars").DataFrame(found, infer_schema_length=None)

    def _repr_html_(self) -> str:
        """The study as a notebook shows it."""
        from madplug.markup import reader_page
        from madplug.study.summary import figures_by_cell

        study: Any = self
        cells = [{"cell": name, **f.report(), "tokens": f.prompt + f.completion}
                 for name, f in figures_by_cell(study.figures()).items()]
        planned = study.fact("planned")
        left = planned - sum(c["done"] + c["failed"] for c in cells) if isinstance(planned, int) else None
        folder = getattr(self, "folder", None)
        return reader_page(folder.name if folder is not None else "study", cells, left)


def _library(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise UserError(f"{name} is not installed: pip install 'madplug[{name}]'") from None


def rows(study: Reader, table: str, cell: str | None = None) -> list[dict[str, Any]]:
    """The rows of a table. Raises `UserError` for an unknown one."""
    tables: Mapping[str, Callable[[Reader, str | None], Iterator[dict[str, Any]]]] = {
        "debates": _debates, "messages": _messages, "calls": _calls, "figures": _figures}
    if table not in tables:
        raise UserError(f"unknown table '{table}'{nearest_or_all(table, tables)}")
    found = list(tables[table](study, cell))
    columns = dict.fromkeys(name for row in found for name in row)  # a debate may lack the scores of another
    return [{name: row.get(name) for name in columns} for row in found]


def _debates(study: Reader, cell: str | None) -> Iterator[dict[str, Any]]:
    for result in study.debates(cell):
        row = flat.debate_row(plain(result))
        yield {name.removeprefix(flat.METRIC): value for name, value in row.items()}


def _messages(study: Reader, cell: str | None) -> Iterator[dict[str, Any]]:
    for result in study.debates(cell):
        for row in flat.message_rows(plain(result)):
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
