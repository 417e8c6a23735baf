"""What the pages show of a study, as values that become JSON. Nothing here reads a study as a whole."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from madplug import DebateResult, UserError, plain
from madplug.store import DebateId, Reader, open_study
from madplug.study import read_text
from madplug_read import TRAITS, Grader, Grades, Outline, outline
from madplug_view.charts import can_draw, draw
from madplug_view.queries import Ending, Order, contrast, metric_names, overview, walk
from madplug_view.rows import MORE, calls_behind, cut_call, row_of, texts_of
from madplug_view.texts import cut_texts

PAGE = 50
"""Rows of a page."""
ENDINGS: tuple[Ending, ...] = ("failed", "undecided", "running")
LOOKED_AT = 100
"""Debates of each cell in which the names of scores are looked up."""
PATIENCE = 0.25
"""Seconds after which a search gives what it has found, and a cursor to go on from."""
FIELDS = {"both": (1, 1), "first": (1, 0), "second": (0, 1), "neither": (0, 0)}
"""The fields of the four-fold table of two cells, by the scores in the first and in the second cell."""


@dataclass(frozen=True)
class Search:
    """Which debates of a cell, and in which order."""

    cell: str
    """An empty string for all cells, one after the other."""
    order: Order = "sample"
    descending: bool = False
    after: str | None = None
    traits: Collection[str] = ()
    """Only debates with all of these."""
    text: str = ""
    """Only debates in whose question, messages, answers or id this occurs, in any case."""
    other: str | None = None
    """Another cell: only debates whose decision differs from that of its debate on the same sample and repeat."""
    field: str | None = None
    """With `other`: instead, only debates in this field of the four-fold table of the two cells."""
    metric: str | None = None


@dataclass
class Study:
    """A study's directory. It is opened for every question, so that any thread may ask."""

    folder: Path
    name: str
    _grader: Grader | None = field(default=None, repr=False)
    _known: dict[str | None, tuple[str, str | None, dict[str, Any]]] = field(default_factory=dict, repr=False)
    """The latest overview by metric, and what it is of."""
    _charts: tuple[str, list[dict[str, Any]]] | None = field(default=None, repr=False)
    """The latest charts, and what they are of."""
    _drawing: Lock = field(default_factory=Lock, repr=False)
    _adding_up: Lock = field(default_factory=Lock, repr=False)
    _grading: Lock = field(default_factory=Lock, repr=False)

    def overview(self, metric: str | None = None) -> dict[str, Any]:
        """The cells with their sums and the scores of a metric; added up again only if something was recorded."""
        with self._adding_up, open_study(self.folder) as reader:  # several may ask at the start
            latest, status = reader.latest(), self._status()
            if self._known.get(metric, (None, None, None))[:2] != (latest, status):
                self._known[metric] = (latest, status, self._overview(reader, metric))
            return self._known[metric][2]

    def prepare(self) -> None:
        """Add up the sums and import the answer format, before a page asks for them."""
        with suppress(UserError):  # the page that asks shows it
            for cell in self.overview()["cells"][:1]:
                self.page(Search(cell["cell"]))

    def _overview(self, reader: Reader, metric: str | None) -> dict[str, Any]:
        names = metric_names(reader, LOOKED_AT)
        chosen = metric if metric in names else main_metric(names)
        started = time.perf_counter()
        cells = plain(overview(reader, chosen))
        planned = reader.fact("planned")
        return {"name": self.name, "cells": cells, "metric": chosen, "metrics": names, "traits": dict(TRAITS),
                "planned": planned if isinstance(planned, int) else None, "problems": reader.problems(),
                "status": self._status(), "settings": self._settings(), "charts": can_draw(),
                "took": time.perf_counter() - started}

    def charts(self) -> list[dict[str, Any]]:
        """The report's charts of what is on record: drawn when first asked for, and again if something was recorded."""
        with open_study(self.folder) as reader:
            latest = reader.latest()
        with self._drawing:
            if self._charts is None or self._charts[0] != latest:
                self._charts = (latest, draw(self.folder))
            return self._charts[1]

    def chart(self, name: str) -> str:
        """One of the charts that were drawn, as SVG."""
        for chart in self._charts[1] if self._charts else ():
            if chart["name"] == name:
                return str(chart["svg"])
        raise UserError(f"there is no chart '{name}'")

    def page(self, search: Search) -> dict[str, Any]:
        """The next rows of a cell, the cursor of what follows or null, and how many debates were looked at."""
        with open_study(self.folder) as reader:
            rows: list[dict[str, Any]] = []
            until, scanned, cursor = None, 0, search.after
            fits = self._filter(reader, search)
            for cursor, id in self._walk(reader, search):
                result, scanned = reader.debate(id), scanned + 1
                if result is not None:
                    found = outline(result, self.grade(reader, result))
                    if fits(found, result):
                        rows.append(row_of(found))
                until = until or time.monotonic() + PATIENCE  # the first may have to import the answer format
                if len(rows) == PAGE or time.monotonic() > until:
                    return {"rows": rows, "next": cursor, "scanned": scanned}
            return {"rows": rows, "next": None, "scanned": scanned}

    def _walk(self, reader: Reader, search: Search) -> Iterator[tuple[str, DebateId]]:
        """The debates to look at, each with the cursor of what follows."""
        def of_cell(cell: str, after: str | None) -> Iterator[tuple[str, DebateId]]:
            return walk(reader, cell, search.order, descending=search.descending, after=after,
                        ending=ending_of(search.traits))

        if search.cell:
            yield from of_cell(search.cell, search.after)
            return
        cells = [cell["cell"] for cell in self.overview()["cells"]]
        first, after = read_cursor(search.after, cells)
        for cell in cells[first:]:
            for cursor, id in of_cell(cell, after):
                yield json.dumps([cell, cursor]), id
            after = None

    def debate(self, id: DebateId) -> dict[str, Any]:
        """The outline of a debate, its long texts cut. Raises `UserError` if it is not on record."""
        with open_study(self.folder) as reader:
            result = self._result(reader, id)
            found = outline(result, self.grade(reader, result), reader.spent)
            return {**cut_texts(plain(found)), "ungraded": self.ungraded(id.cell), "cells": self.others(reader, found),
                    "behind": calls_behind(reader, found)}

    def ungraded(self, cell: str) -> str | None:
        """Why the answer format of a cell does not say what is right, or None."""
        return self._grader.problems.get(cell) if self._grader else None

    def others(self, reader: Reader, found: Outline) -> list[str]:
        """The other cells that have a debate on the same sample and repeat."""
        ids = [DebateId(cell, found.repeat, found.sample.id) for cell in reader.cells() if cell != found.cell]
        return [id.cell for id in ids if reader.debate(id) is not None]

    def calls(self, keys: Collection[str]) -> list[dict[str, Any]]:
        """What was sent and replied in these calls, in the order of the keys; unknown ones are left out."""
        with open_study(self.folder) as reader:
            found = {row["key"]: row for row in reader.calls(keys=keys)}
            return [cut_call(found[key]) for key in keys if key in found]

    def text(self, id: DebateId, message: int, offset: int) -> dict[str, Any]:
        """The next part of a message whose text was cut."""
        with open_study(self.folder) as reader:
            said = next((m for m in self._result(reader, id).messages if m.id == message), None)
            if said is None:
                raise UserError(f"{id}: there is no message {message}")
            return {"text": said.content[offset:offset + MORE], "length": len(said.content)}

    def contrast(self, first: str, second: str, metric: str | None) -> dict[str, Any]:
        """The four-fold table of two cells: debates by right and wrong in each."""
        with open_study(self.folder) as reader:
            names = metric_names(reader, LOOKED_AT)
            chosen = metric if metric in names else main_metric(names)
            table = contrast(reader, first, second, chosen) if chosen is not None else {}
            counts = {name: table.get(pair, 0) for name, pair in FIELDS.items()}
            return {"metric": chosen, **counts, "left_out": sum(table.values()) - sum(counts.values())}

    def _result(self, reader: Reader, id: DebateId) -> DebateResult:
        result = reader.debate(id)
        if result is None:
            raise UserError(f"{self.folder}: there is no debate of {id}")
        return result

    def grade(self, reader: Reader, result: DebateResult) -> Grades:
        """Right or wrong by answer key."""
        with self._grading:  # formats are imported and made once
            self._grader = self._grader or Grader(reader)
            return self._grader.grade(result)

    def _filter(self, reader: Reader, search: Search) -> Callable[[Outline, DebateResult], bool]:
        wanted, text = set(search.traits), search.text.casefold()

        def fits(found: Outline, result: DebateResult) -> bool:
            return (wanted <= set(found.traits) and (not text or any(text in t.casefold() for t in texts_of(found)))
                    and (search.other is None or self._differs(reader, search, result)))

        return fits

    def _differs(self, reader: Reader, search: Search, result: DebateResult) -> bool:
        other = reader.debate(DebateId(search.other or "", result.repeat, result.sample.id))
        if other is None:
            return False
        if search.field is None:
            return key_of(result) != key_of(other)
        scores = tuple(r.metrics.get(search.metric or "") for r in (result, other))
        return scores == FIELDS[search.field]

    def _status(self) -> str | None:
        """How the study ended, or None while it runs or if it was killed."""
        summary = self._read_summary()
        return summary.get("status") if isinstance(summary.get("status"), str) else None

    def _settings(self) -> dict[str, Any]:
        cells = self._read_summary().get("cells")
        found = [c for c in cells if isinstance(c, dict)] if isinstance(cells, list) else []
        return {str(c.get("cell")): c.get("settings") or {} for c in found}

    def _read_summary(self) -> dict[str, Any]:
        try:
            found = json.loads(read_text(self.folder / "summary.json"))
        except (OSError, ValueError, RecursionError):  # written at the end of a run; the page does without
            return {}
        return found if isinstance(found, dict) else {}


def read_cursor(text: str | None, cells: list[str]) -> tuple[int, str | None]:
    """Where a walk through all cells goes on: the place of the cell, and the cursor in it."""
    if text is None:
        return 0, None
    try:
        cell, cursor = json.loads(text)
        return cells.index(cell), str(cursor)
    except (ValueError, TypeError, RecursionError):
        raise UserError(f"{text!r:.40} is not a cursor of debates") from None


def ending_of(traits: Collection[str]) -> Ending | None:
    """The ending that debates with these traits have, by which the store selects them."""
    if {"right", "wrong"} & set(traits):
        return "decided"
    for ending in ENDINGS:
        if ending in traits:
            return ending
    return None


def key_of(result: DebateResult) -> str | None:
    """The key of the decision, or None."""
    return result.decision.key if result.decision else None


def main_metric(names: Collection[str]) -> str | None:
    """The metric to show first."""
    return "qa.accuracy" if "qa.accuracy" in names else next(iter(names), None)


def open_studies(folders: Collection[Path]) -> list[Study]:
    """The studies in these directories, called after them; raises `UserError` for one that cannot be read."""
    found: list[Study] = []
    problems: list[str] = []
    for folder in dict.fromkeys(Path(os.path.realpath(f)) for f in folders):
        try:
            open_study(folder).close()
        except UserError as error:
            problems += [str(problem) for problem in error.problems]
            continue
        taken = {study.name for study in found}
        name = folder.name if folder.name not in taken else f"{folder.parent.name}/{folder.name}"
        found.append(Study(folder, name if name not in taken else str(folder)))
    if problems:
        raise UserError("\n".join(problems))
    return found
