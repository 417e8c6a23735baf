"""What the pages show of a study, as values that become JSON. Nothing here reads a study as a whole."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property
from heapq import merge
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from madplug import DebateResult, UserError, plain
from madplug.store import DebateId, Reader, find_studies, is_running, open_study
from madplug.study import read_text
from madplug_read import (
    TRAITS,
    Grader,
    Grades,
    Outline,
    StudyFacts,
    decided_again,
    outline,
    saw_references,
    study_facts,
    study_state,
)
from madplug_view.charts import can_draw, draw
from madplug_view.index import ALL, Index
from madplug_view.levels import levels
from madplug_view.notes import Note, read_notes, words_of, write_note
from madplug_view.queries import Ending, Scores, failures, in_order, metric_names, overview, scores, walk
from madplug_view.rows import MORE, calls_behind, cut_call, row_of, texts_of
from madplug_view.texts import cut_texts

PAGE = 50
"""Rows of a page."""
ENDINGS: tuple[Ending, ...] = ("failed", "undecided", "running")
CHANGES = "changes"
"""The order by changes of mind."""
LAST = 2**53
"""A repeat behind all others."""
LOOKED_AT = 100
"""Debates of each cell in which the names of scores are looked up."""
PATIENCE = 0.25
"""Seconds after which a search gives what it has found, and a cursor to go on from; and for which an index is made."""
FIELDS = {"both": (1, 1), "first": (1, 0), "second": (0, 1), "neither": (0, 0)}
"""The fields of the four-fold table of two cells, by the scores in the first and in the second cell."""


@dataclass(frozen=True)
class Search:
    """Which debates of a cell, and in which order."""

    cell: str
    """An empty string for all cells."""
    cells: Collection[str] = ()
    """Of all cells only these."""
    order: str = "sample"
    descending: bool = False
    after: str | None = None
    traits: Collection[str] = ()
    """Only debates with all of these."""
    group: str = ""
    """Only debates on samples of this group."""
    tag: str = ""
    """Only debates that the reader gave this tag; `*`: that have any note or tag."""
    text: str = ""
    """Only debates in whose question, messages, answers or id this occurs, in any case."""
    other: str | None = None
    """Another cell: only debates whose decision differs from that of its debate on the same sample and repeat."""
    study: Study | None = None
    """The study that has the other cell, if it is another one."""
    field: str | None = None
    """With `other`: instead, only debates in this field of the four-fold table of the two cells."""
    metric: str | None = None


@dataclass
class Study:
    """A study's directory. It is opened for every question, so that any thread may ask."""

    folder: Path
    name: str
    _grader: Grader | None = field(default=None, repr=False)
    _known: dict[str | None, tuple[Any, dict[str, Any]]] = field(default_factory=dict, repr=False)
    """The latest overview by metric, and what it is of."""
    _facts: tuple[Any, StudyFacts] | None = field(default=None, repr=False)
    _charts: tuple[str, list[dict[str, Any]]] | None = field(default=None, repr=False)
    """The latest charts, and what they are of."""
    _drawing: Lock = field(default_factory=Lock, repr=False)
    _adding_up: Lock = field(default_factory=Lock, repr=False)
    _grading: Lock = field(default_factory=Lock, repr=False)
    _indexing: Lock = field(default_factory=Lock, repr=False)

    def overview(self, metric: str | None = None) -> dict[str, Any]:
        """The cells with their sums and the scores of a metric; added up again only if something was recorded."""
        with self._adding_up, open_study(self.folder) as reader:  # several may ask at the start
            now = self._now(reader)
            if self._known.get(metric, (None,))[0] != now:
                self._known[metric] = (now, self._overview(reader, metric))
            return self._known[metric][1]

    def facts(self) -> StudyFacts:
        """The study in a list of studies."""
        with suppress(UserError), open_study(self.folder) as reader:
            now = self._now(reader)
            if self._facts is None or self._facts[0] != now:
                self._facts = (now, study_facts(self.folder))
            return self._facts[1]
        return study_facts(self.folder)

    def listed(self) -> dict[str, Any]:
        """The same as JSON."""
        return {**plain(self.facts()), "folder": self.folder.name}

    def _now(self, reader: Reader) -> tuple[Any, ...]:
        """What an overview depends on."""
        return reader.latest(), is_running(self.folder), self._read_summary().get("status")

    @cached_property
    def index(self) -> Index:
        """What there is to see in each debate."""
        return Index(self._outline)

    def _outline(self, reader: Reader, id: DebateId) -> Outline | None:
        result = reader.debate(id)
        return None if result is None else outline(result, self.grade(reader, result))

    def prepare(self) -> None:
        """Add up the sums and import the answer format, before a page asks for them."""
        with suppress(UserError):  # the page that asks shows it
            for cell in self.overview()["cells"][:1]:
                self.page(Search(cell["cell"]))

    def _make_index(self) -> None:
        """Look at every debate, in parts between which pages can ask."""
        with suppress(UserError), self._indexing:
            whole = False
            while not whole:
                with open_study(self.folder) as reader:
                    whole = self.index.update(reader, PATIENCE)

    def counts(self, search: Search) -> dict[str, Any]:
        """How many debates would be left by each further filter, as far as they were looked at, and the tags."""
        with open_study(self.folder) as reader:
            whole = self.index.update(reader, PATIENCE)
            if not whole and not self._indexing.locked():
                Thread(target=self._make_index, daemon=True).start()
            cells = self._cells(search)
            notes = {id: note for id, note in read_notes(self.folder).items() if id.cell in cells}
            return {**self.index.counts(cells, search.traits, search.group), "whole": whole, "noted": len(notes),
                    "tags": Counter(tag for note in notes.values() for tag in note["tags"])}

    def _cells(self, search: Search) -> list[str]:
        if search.cell:
            return [search.cell]
        return [c["cell"] for c in self.overview()["cells"] if not search.cells or c["cell"] in search.cells]

    def keep_note(self, id: DebateId, note: Mapping[str, Any]) -> Note:
        """Replace the reader's note on a debate. Raises `UserError` if there is no such debate."""
        with open_study(self.folder) as reader:
            self._result(reader, id)
        return write_note(self.folder, id, note)

    def _overview(self, reader: Reader, metric: str | None) -> dict[str, Any]:
        names = metric_names(reader, LOOKED_AT)
        chosen = metric if metric in names else main_metric(names)
        started = time.perf_counter()
        cells = plain(overview(reader, chosen))
        planned, paid = reader.fact("planned"), reader.totals()
        cost = None if any(cell["cost_usd"] is None for cell in cells) else paid.cost_usd
        return {"name": self.name, "cells": cells, "metric": chosen, "metrics": names, "traits": dict(TRAITS),
                "planned": planned if isinstance(planned, int) else None, "problems": reader.problems(),
                "failures": failures(reader) if any(cell["failed"] for cell in cells) else [],
                "paid": {"calls": paid.calls, "cost_usd": cost}, "estimated": reader.estimated(),
                "edited": reader.edited(), "decided_again": decided_again(reader),
                "status": self._status(reader, cells, planned), "charts": can_draw(),
                "settings": (own := self._settings()), "levels": levels(own, _cells_of(reader.fact("identity"))),
                "oracle": saw_references(reader),
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
        with ExitStack() as stack:
            reader = stack.enter_context(open_study(self.folder))
            other = stack.enter_context(open_study(search.study.folder)) if search.study else reader
            if search.traits or search.group or search.order == CHANGES:
                self.index.update(reader, ALL if search.order == CHANGES else 0)
            rows: list[dict[str, Any]] = []
            until, scanned, cursor = None, 0, search.after
            notes = read_notes(self.folder)
            fits = self._filter(other, search)
            for cursor, id in self._walk(reader, search):
                scanned += 1
                if self._may_fit(id, search, notes) and (result := reader.debate(id)) is not None:
                    found = outline(result, self.grade(reader, result))
                    if fits(found, result, notes.get(id)):
                        rows.append({**row_of(found), "note": notes.get(id)})
                until = until or time.monotonic() + PATIENCE  # the first may have to import the answer format
                if len(rows) == PAGE or time.monotonic() > until:
                    return {"rows": rows, "next": cursor, "scanned": scanned}
            return {"rows": rows, "next": None, "scanned": scanned}

    def _may_fit(self, id: DebateId, search: Search, notes: Mapping[DebateId, Note]) -> bool:
        """Whether a debate is worth reading, by its note and by what the index knows."""
        note = notes.get(id)
        if search.tag and (note is None or search.tag not in ("*", *note["tags"])):
            return False
        known = self.index.get(id) if search.traits or search.group else None
        return known is None or known.fits(search.traits, search.group)

    def _walk(self, reader: Reader, search: Search) -> Iterator[tuple[str, DebateId]]:
        """The debates to look at, each with the cursor of what follows."""
        if search.cell:
            yield from self._of_cell(reader, search, search.cell, search.after)
            return
        cells, descending = self._cells(search), search.descending
        at, last = read_cursor(search.after, len(cells))
        streams = []
        for i, cell in enumerate(cells):
            after = None
            if last is not None:  # of another cell, all debates with the same value were given, or none
                after = json.dumps(last if i == at else [last[0], LAST if i < at else -1, ""])
            streams.append(_placed(i, self._of_cell(reader, search, cell, after)))
        for (_, i), place, id in merge(*streams, key=lambda found: found[0], reverse=descending):
            yield json.dumps([i, place]), id

    def _of_cell(self, reader: Reader, search: Search, cell: str, after: str | None) -> Iterator[tuple[str, DebateId]]:
        if search.order != CHANGES:
            return walk(reader, cell, search.order, descending=search.descending, after=after,
                        ending=ending_of(search.traits))
        last = None if after is None else in_order(read_place(after))
        found = self.index.by_changes(cell, descending=search.descending)
        return ((json.dumps(place), id) for place, id in found
                if last is None or (in_order(place) < last if search.descending else in_order(place) > last))

    def debate(self, id: DebateId) -> dict[str, Any]:
        """The outline of a debate, its long texts cut. Raises `UserError` if it is not on record."""
        with open_study(self.folder) as reader:
            result = self._result(reader, id)
            found = outline(result, self.grade(reader, result), reader.spent)
            return {**cut_texts(plain(found)), **self.beside(reader, found)}

    def beside(self, reader: Reader, found: Outline) -> dict[str, Any]:
        """What a page tells of a debate besides its outline."""
        repeated = reader.rows("SELECT 1 FROM debates WHERE cell = ? AND repeat > 0 LIMIT 1", (found.cell,))
        return {"ungraded": self.ungraded(found.cell), "cells": self.others(reader, found), "repeated": any(repeated),
                "oracle": saw_references(reader), "behind": calls_behind(reader, found)}

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

    def contrast(self, first: str, second: str, metric: str | None, other: Study | None = None) -> dict[str, Any]:
        """The four-fold table of two cells: debates on the same samples by right and wrong in each.

        other: the study that has the second cell, if it is another one.
        """
        chosen, found = self._scores(first, second, metric, other)
        same = in_both(*found)
        pairs = Counter((found[0][key][1], found[1][key][1]) for key in same)
        counts = {name: pairs.get(pair, 0) for name, pair in FIELDS.items()}
        shared = len(found[0].keys() & found[1].keys())
        return {"metric": chosen, **counts, "left_out": len(same) - sum(counts.values()), "others": shared - len(same),
                "unpaired": [len(side) - shared for side in found], "tests": can_draw()}

    def test(self, first: str, second: str, metric: str | None, other: Study | None = None) -> dict[str, Any] | None:
        """The report's paired test of the same cells, or None without samples that both have; it may take seconds."""
        return tested(*self._scores(first, second, metric, other)[1])

    def _scores(self, first: str, second: str, metric: str | None,
                other: Study | None) -> tuple[str | None, tuple[Scores, Scores]]:
        """The metric that both cells have, and the scores of their debates."""
        with open_study(self.folder) as reader, open_study((other or self).folder) as reader_of_second:
            theirs = metric_names(reader_of_second, LOOKED_AT)
            names = [name for name in metric_names(reader, LOOKED_AT) if name in theirs]
            chosen = metric if metric in names else main_metric(names)
            if chosen is None:
                return None, ({}, {})
            return chosen, (scores(reader, first, chosen), scores(reader_of_second, second, chosen))

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

    def _filter(self, reader: Reader, search: Search) -> Callable[[Outline, DebateResult, Note | None], bool]:
        wanted, text = set(search.traits), search.text.casefold()

        def fits(found: Outline, result: DebateResult, note: Note | None) -> bool:
            return (wanted <= set(found.traits) and search.group in ("", found.sample.group)
                    and (not text or any(text in t.casefold() for t in (*texts_of(found), *words_of(note))))
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

    def _status(self, reader: Reader, cells: list[dict[str, Any]], planned: Any) -> str:
        """Whether it runs, or how it ended."""
        failed = sum(cell["failed"] for cell in cells)
        left = planned - failed - sum(cell["done"] for cell in cells) if isinstance(planned, int) else None
        return study_state(reader, left, failed)

    def _settings(self) -> dict[str, Any]:
        cells = self._read_summary().get("cells")
        found = [c for c in cells if isinstance(c, dict)] if isinstance(cells, list) else []
        own = {str(c.get("cell")): c.get("settings") for c in found}
        return {cell: settings if isinstance(settings, dict) else {} for cell, settings in own.items()}

    def _read_summary(self) -> dict[str, Any]:
        try:
            found = json.loads(read_text(self.folder / "summary.json"))
        except (OSError, ValueError, RecursionError):  # written at the end of a run; the page does without
            return {}
        return found if isinstance(found, dict) else {}


def _cells_of(identity: Any) -> dict[str, Any]:
    """The cells of a study's identity; a directory may be anybody's."""
    cells = identity.get("cells") if isinstance(identity, dict) else None
    return cells if isinstance(cells, dict) else {}


def in_both(first: Scores, second: Scores) -> list[tuple[int, str]]:
    """The debates that both have on the same content."""
    return [key for key, (content, _) in first.items() if key in second and second[key][0] == content]


def tested(first: Scores, second: Scores) -> dict[str, Any] | None:
    """The report's test of the samples' means over repeats."""
    same = in_both(first, second)
    if not same or not can_draw():
        return None
    from madplug_report.comparing import paired_test

    by_sample: dict[str, list[float]] = {}
    for key in same:
        by_sample.setdefault(key[1], []).append(first[key][1] - second[key][1])
    binary = len(by_sample) == len(same) and all(side[key][1] in (0, 1) for side in (first, second) for key in same)
    return paired_test([sum(found) / len(found) for found in by_sample.values()], binary=binary)


def _placed(i: int, found: Iterator[tuple[str, DebateId]]) -> Iterator[tuple[tuple[float, int], list[Any], DebateId]]:
    """The debates of the i-th cell, each behind its place among those of all."""
    for cursor, id in found:
        place = json.loads(cursor)
        yield (place[0], i), place, id


def read_cursor(text: str | None, cells: int) -> tuple[int, list[Any] | None]:
    """Where a walk through all cells goes on: the number of the cell, and the place in its order."""
    if text is None:
        return 0, None
    try:
        cell, place = json.loads(text)
        if not 0 <= cell < cells:
            raise ValueError
        return cell, read_place(json.dumps(place))
    except (ValueError, TypeError, RecursionError):
        raise UserError(f"{text!r:.40} is not a cursor of debates") from None


def read_place(text: str) -> list[Any]:
    """A value, a repeat and a sample id."""
    try:
        value, repeat, sample = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        value = repeat = sample = None
    if not (isinstance(value, int | float) and type(repeat) is int and isinstance(sample, str)):
        raise UserError(f"{text!r:.40} is not a cursor of debates")
    return [value, repeat, sample]


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


def open_studies(folders: Collection[Path], taken: Collection[str] = ()) -> list[Study]:
    """The studies in these directories, or directly below them, called after their directories.

    taken: names that other studies have. Raises `UserError` for one that cannot be read.
    """
    names = {*taken}
    found: list[Study] = []
    problems: list[str] = []
    for folder in dict.fromkeys(Path(os.path.realpath(f)) for f in find_studies(folders)):
        try:
            open_study(folder).close()
        except UserError as error:
            problems += [str(problem) for problem in error.problems]
            continue
        name = folder.name if folder.name not in names else f"{folder.parent.name}/{folder.name}"
        name = name if name not in names else str(folder)
        names.add(name)
        found.append(Study(folder, name))
    if problems:
        raise UserError("\n".join(problems))
    return found
