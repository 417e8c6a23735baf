"""A study's records as data frames. pandas and polars are imported when a frame is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from madplug.errors import UserError, nearest_or_all

if TYPE_CHECKING:
    from madplug.records import DebateResult
    from madplug.store.base import Reader


class Frames:
    """What gives a `Reader` its data frames."""

    def to_pandas(self, table: str = "debates", cell: str | None = None) -> Any:
        """A pandas data frame, one row for each of the `debates`, `messages`, `calls` or `figures`.

        figures: the numbers of each debate that has ended. Scores have a column by name. cell: only this one. Raises
        `UserError` if there is no such table, or pandas is not installed.
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
        from madplug.summary import figures_by_cell

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
        decision, sample, tokens = result.decision, result.sample, result.tokens
        yield {**_id(result), "question": sample.question, "group": sample.group,
               "references": list(result.references), "answer": decision.answer if decision else None,
               "key": decision.key if decision else None, "agreed": decision.agreed if decision else None,
               "tie": decision.tie if decision else None, "fallback": decision.fallback if decision else None,
               "reason": decision.reason if decision else None, "error": result.error, "rounds": result.rounds,
               "messages": len(result.messages), "calls": result.calls, "retries": result.retries,
               "prompt": tokens.prompt, "completion": tokens.completion, "cached": tokens.cached,
               "cost_usd": tokens.cost_usd, "seconds": result.seconds, **result.metrics}


def _messages(study: Reader, cell: str | None) -> Iterator[dict[str, Any]]:
    for result in study.debates(cell):
        personas = {agent.id: agent.persona.name for agent in result.agents}
        for m in result.messages:
            yield {**_id(result), "id": m.id, "round": m.round, "wave": m.wave, "agent": m.agent,
                   "persona": personas.get(m.agent) if m.agent is not None else None, "model": m.model,
                   "move": m.move, "stage": m.stage, "content": m.content, "answer": m.answer, "key": m.key,
                   "agreement": m.agreement, "confidence": m.confidence, "retracted": m.retracted,
                   "seen": list(m.seen), "calls": list(m.calls), "data": _json(m.data)}


def _calls(study: Reader, cell: str | None) -> Iterator[dict[str, Any]]:
    for row in study.calls(cell):
        usage = row["usage"]
        yield {**{k: v for k, v in row.items() if k not in ("usage", "request", "logprobs")},
               "prompt": usage["prompt"], "completion": usage["completion"], "cached": usage["cached"],
               "cost_usd": usage["cost_usd"], "request": _json(row["request"]),
               "logprobs": None if row["logprobs"] is None else _json(row["logprobs"])}


def _figures(study: Reader, cell: str | None) -> Iterator[dict[str, Any]]:
    for row in study.figures():
        if cell in (None, row["cell"]):
            yield {**{k: v for k, v in row.items() if k != "metrics"}, **row["metrics"]}


def _id(result: DebateResult) -> dict[str, Any]:
    return {"cell": result.cell, "repeat": result.repeat, "sample": result.sample.id}


def _json(value: Any) -> str:
    from madplug.rows import plain

    return json.dumps(plain(value), ensure_ascii=False)
