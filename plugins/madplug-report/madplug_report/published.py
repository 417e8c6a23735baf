"""A paper's own numbers, from a CSV file in long form, beside those of a report."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import isfinite, sqrt
from pathlib import Path
from typing import Any

from madplug import Problem, UserError, nearest
from madplug_report.analysis import Analysis
from madplug_report.combining import CHANGES, average, change
from madplug_report.factors import Factor
from madplug_report.pivots import CELL, FAMILY, Layout

Z = 1.959963984540054
OURS_ALONE = "ours alone"
BOTH = "both"
MOST = 1e100
"""The largest number: with larger ones, differences would not be numbers."""
SAID = ("source", "metric", "value", "std", "gain", "unit", "n", "repeats", "note")
"""Columns about a number itself; every other column says which cells it is of."""
SCALES = {"percent": 100.0, "points": 100.0}


@dataclass(frozen=True)
class Value:
    """One number of a paper, and which cells it is of."""

    line: int
    where: Mapping[str, str]
    """Levels by factor; `cell` and `FACTOR.family` are like factors."""
    mean: float
    """As printed."""
    std: float | None
    """As printed."""
    samples: int | None
    """Of how many questions, if it is a share."""
    scale: float
    metric: str
    source: str
    note: str


def read_paper(path: Path) -> list[Value]:
    """The numbers of the file. Raises `UserError` with everything that is wrong in it."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            columns, lines = list(rows.fieldnames or ()), list(rows)
    except OSError as error:
        raise UserError(f"--compare {path}: cannot be read: {error.strerror}") from None
    except (ValueError, csv.Error) as error:
        raise UserError(f"--compare {path}: is not CSV: {error}") from None
    if "value" not in columns:
        raise UserError(f"--compare {path}: has no column 'value'{nearest('value', columns)}")
    problems: list[Problem] = []
    found = [_value(number, {k: (v or "").strip() for k, v in line.items() if k and isinstance(v, str | None)},
                    problems, f"--compare {path}: line {number}") for number, line in enumerate(lines, 2)]
    if problems:
        raise UserError(problems)
    return found


def _value(line: int, row: Mapping[str, str], problems: list[Problem], place: str) -> Value:
    def number(column: str, least: float, most: float) -> float | None:
        text = row.get(column, "")
        try:
            found = float(text) if text else None
        except ValueError:
            found = float("nan")
        if found is not None and not (isfinite(found) and least <= found <= most):
            problems.append(Problem(f"{place}: {column}", f"'{text:.40}' is not a number that it can be"))
        return found

    mean, samples = number("value", -MOST, MOST), number("n", 2, 10**9)
    if mean is None:
        problems.append(Problem(f"{place}: value", "is missing"))
    return Value(line, {k: v for k, v in row.items() if k not in SAID}, mean or 0.0, number("std", 0, MOST),
                 None if samples is None or samples != samples else int(samples), SCALES.get(row.get("unit", ""), 1.0),
                 row.get("metric") or "qa.accuracy", row.get("source", ""), row.get("note", ""))


def order(values: Sequence[Value]) -> dict[str, list[str]]:
    """The levels of each factor in the order of the file."""
    return {name: list(dict.fromkeys(v.where[name] for v in values if v.where[name])) for name in values[0].where
            } if values else {}


def compare(analysis: Analysis, layout: Layout, values: Sequence[Value], path: Path) -> dict[str, Any]:
    """Ours, theirs and the difference of every number, in the paper's scale; `missing` are not in the studies.

    The interval of a difference is that of our mean, and of theirs if the file says of how many samples it is.
    """
    known = [*analysis.factors.names(), *(f"{name}{FAMILY}" for name in layout.families), CELL]
    columns = {name: list(dict.fromkeys(v.where[name] for v in values)) for v in values[:1] for name in v.where}
    _check(analysis, columns, known, path)
    for metric in {value.metric for value in values}:
        analysis.debates.add_measure(metric)
    varied = [name for name, levels in columns.items() if len(levels) > 1 or (name in known and levels != [""])]
    several = len({value.metric for value in values}) > 1

    @cache
    def having(name: str, wanted: str) -> set[int]:
        return {i for i in range(len(analysis.debates.cells)) if _has(analysis, layout, i, name, wanted)}

    rows = [_row(analysis, having, value, [name for name in varied if name in known],
                 ", ".join([*(t for n in varied if (t := value.where[n])), *([value.metric] if several else [])]))
            for value in values if _is_of(analysis, value, [name for name in varied if name not in known])]
    ours = [row for row in rows if row["ours"] is not None]
    return {"source": next((v.source for v in values if v.source), path.name), "rows": ours, "said": _said(ours),
            "notes": list(dict.fromkeys(f"{row['name']}: {row['note']}" for row in ours if row["note"])),
            "missing": [row["name"] for row in rows if row["ours"] is None]}


def _check(analysis: Analysis, columns: Mapping[str, Sequence[str]], known: Sequence[str], path: Path) -> None:
    """Columns are factors, or hold one value, or are of what studies differ in elsewhere."""
    problems = [Problem(f"--compare {path}: column '{name}'", f"there is no factor '{name}'{nearest(name, known)}")
                for name, levels in columns.items()
                if name not in known and len(levels) > 1 and name not in ("model", "dataset")]
    problems += [Problem(f"--compare {path}: column '{f.name}'", f"'{level}' is {' or '.join(meant)}; name the level "
                         "in full") for f in analysis.factors.factors for level in columns.get(f.name, ())
                 if len(meant := _meant(f, level)) > 1]
    if problems:
        raise UserError(problems)


def _is_of(analysis: Analysis, value: Value, names: Sequence[str]) -> bool:
    """Whether a number is of these studies' model and data set, where they have one alone."""
    cell = analysis.debates.cells[0].resolved if analysis.debates.cells else {}
    tables = {"model": (cell.get("models") or {}).values(), "dataset": [cell.get("dataset") or {}]}
    return all(_base(value.where[name]) in {_base(text) for table in tables[name] for text in _texts(table)}
               for name in names)


def _texts(table: Any) -> Iterator[str]:
    if isinstance(table, Mapping):
        use, subset = str(table.get("use", "")).rpartition(".")[2], table.get("subset")
        yield from (f"{use} {subset}", use, *(v for v in table.values() if isinstance(v, str)))


def _base(text: str) -> str:
    return text.rpartition("/")[2].lower()


def _row(analysis: Analysis, having: Callable[[str, str], set[int]], value: Value, names: Sequence[str],
         name: str) -> dict[str, Any]:
    def cells_of(where: Mapping[str, str]) -> list[int]:
        every = set(range(len(analysis.debates.cells)))
        return sorted(every.intersection(*(having(column, where[column]) for column in names)))

    cells, changed = cells_of(value.where), value.metric.startswith(CHANGES)
    if not changed:
        cells = [i for i in cells if value.metric in analysis.debates.metrics and len(analysis.scores(value.metric, i))]
    row: dict[str, Any] = {"name": name, "metric": value.metric, "theirs": value.mean, "their_std": value.std,
                           "note": value.note, "cells": [analysis.debates.cells[i].name for i in cells], "ours": None}
    if not cells:
        return row
    if changed:
        level = value.metric.partition(".")[2]
        bases = (cells_of({**value.where, name: level}) for name in names)
        own = next((found for base in bases if (found := change(analysis, value.metric, cells, base))), None)
    else:
        own = analysis.figure(value.metric, cells[0]) if len(cells) == 1 else average(analysis, cells, value.metric)
    if own is None:
        return row
    scale = value.scale
    difference = scale * own["mean"] - value.mean
    below, above = _halves(own, value, scale)
    return {**row, "ours": scale * own["mean"], "our_std": None if own["std"] is None else scale * own["std"],
            "our_ci95": own["ci95"] and [scale * end for end in own["ci95"]], "samples": own["n"],
            "difference": difference, "ci95": None if below is None else [difference - below, difference + above],
            "ci_of": OURS_ALONE if value.samples is None else BOTH}


def _has(analysis: Analysis, layout: Layout, cell: int, name: str, wanted: str) -> bool:
    """Whether a cell has a level; an empty one is any."""
    own = layout.level(analysis, cell, name)
    if not wanted or own == wanted:
        return True
    if name == CELL:
        return analysis.debates.cells[cell].slug == wanted
    return name in analysis.factors.names() and own in _meant(analysis.factors[name], wanted)


def _meant(factor: Factor, wanted: str) -> list[str]:
    """The levels that a text can stand for: the one of this name, else those of components without their plugin.

    The name of a model may have its owner before it.
    """
    if wanted in factor.levels or not wanted:
        return [wanted]
    if factor.is_model:
        return [level for level in factor.levels if _base(level) == _base(wanted)]
    plugins = {level: f"{factor.uses.get(level, '').partition('.')[0]}." for level in factor.levels}
    return [level for level, plugin in plugins.items()
            if level.removeprefix(plugin) == wanted.removeprefix(plugin) and plugin != "."]


def _halves(own: Mapping[str, Any], value: Value, scale: float) -> tuple[Any, Any]:
    """How far the interval of the difference reaches down and up."""
    if not own["ci95"]:
        return None, None
    low, high = (scale * end for end in own["ci95"])
    mean, theirs = scale * own["mean"], 0.0
    if value.samples is not None:
        share = min(1.0, max(0.0, value.mean / scale))
        theirs = Z * scale * sqrt(share * (1 - share) / value.samples)
    return sqrt((mean - low) ** 2 + theirs**2), sqrt((high - mean) ** 2 + theirs**2)


def _said(rows: Sequence[Mapping[str, Any]]) -> str:
    """The comparison in one sentence."""
    known = [row for row in rows if row["ci95"]]
    if not known:
        return ""
    inside = sum(row["ci95"][0] <= 0 <= row["ci95"][1] for row in known)
    far = max(known, key=lambda row: abs(row["difference"]))
    largest = f"{far['difference']:+.4g}".replace("-", "−")
    return (f"{inside} of {len(known)} numbers are no farther from the paper's than chance allows; the largest "
            f"difference is {largest} ({far['name'] or far['metric']})")
