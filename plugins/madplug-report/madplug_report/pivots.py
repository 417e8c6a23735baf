"""Tables laid out by factors: which stand in rows, which in columns, and which separate tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from madplug import Problem, UserError, nearest
from madplug_report.analysis import Analysis
from madplug_report.combining import average, combine
from madplug_report.factors import ABSENT, STUDY, Factor, Factors, is_named

_BETWEEN = "-,_ /"
"""What separates the parts of a cell's name."""
MOST_COLUMNS = 12
"""Unless asked for, no factor with more levels stands in columns."""


@dataclass(frozen=True)
class Layout:
    """Which factors stand where; a factor that is nowhere is averaged over."""

    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    families: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    """By factor, the levels of each family."""


def choose(factors: Factors, rows: Sequence[str] = (), columns: Sequence[str] = (), by: Sequence[str] = (),
           families: Sequence[str] = ()) -> Layout:
    """The layout asked for, completed where it is not.

    Data sets stand in columns, else models, else the last of two factors that are crossed; if both data sets and models
    vary, each model has its own table. families: `NAME=LEVEL,LEVEL,...`; plugins with several levels are families, too.
    """
    asked = {"--rows": rows, "--columns": columns, "--by": by}
    known = factors.names()
    problems = [Problem(option, f"there is no factor '{name}'{nearest(name, known)}; there "
                                f"{'are ' + ', '.join(known) if known else 'is none: all cells are set alike'}")
                for option, names in asked.items() for name in names if name not in known]
    used = [name for names in asked.values() for name in names]
    problems += [Problem("--rows, --columns, --by", f"'{name}' is named twice") for name in dict.fromkeys(used)
                 if used.count(name) > 1]
    if problems:
        raise UserError(problems)
    found = _families(factors, families)
    if rows or columns or by:
        return _completed(factors, tuple(rows), tuple(columns), tuple(by), found)
    return _default(factors, found)


def _default(factors: Factors, families: Mapping[str, Mapping[str, Sequence[str]]]) -> Layout:
    free = [f for f in factors.factors if len(f.levels) <= MOST_COLUMNS]
    data = [f.name for f in free if f.is_data]
    models = [f.name for f in free if f.is_model]
    columns = data[:1] or models[:1]
    by = models[:1] if data and models and len(factors.factors) > 2 else []
    if not columns and len(factors.factors) > 1:
        columns = [_crossed(factors, free)] if free else []
    rows = [f.name for f in factors.factors if f.name not in (*columns, *by)]
    return Layout(tuple(rows), tuple(c for c in columns if c), tuple(by), families) if rows else \
        Layout(tuple(columns), (), tuple(by), families)


def _crossed(factors: Factors, free: Sequence[Factor]) -> str:
    """The factor with the fewest levels, the last of equals, if rows then have values in several columns.

    Cells with names of their own are rows: that two of them differ in one setting makes no table.
    """
    of_cell = [levels for levels, named in zip(factors.of_cell, factors.named, strict=True) if not named]
    for factor in sorted(free, key=lambda f: (len(f.levels), -free.index(f))):
        rests = {tuple(level for name, level in levels.items() if name != factor.name) for levels in of_cell}
        if len(rests) < len(of_cell) and factor.name != STUDY:
            return factor.name
    return ""


def _completed(factors: Factors, rows: tuple[str, ...], columns: tuple[str, ...], by: tuple[str, ...],
               families: Mapping[str, Mapping[str, Sequence[str]]]) -> Layout:
    if not rows:
        rows = tuple(f.name for f in factors.factors if f.name not in (*columns, *by))
    return Layout(rows, columns, by, families)


def _families(factors: Factors, asked: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    found = {f.name: f.families() for f in factors.factors if f.families()}
    problems, own = [], dict[str, dict[str, list[str]]]()
    for text in asked:
        name, equals, given = text.partition("=")
        levels = [level.strip() for level in given.split(",") if level.strip()]
        factor = next((f for f in factors.factors if levels and set(levels) <= set(f.levels)), None)
        if equals and name and factor is not None:
            own.setdefault(factor.name, {})[name] = levels
            continue
        known = [level for f in factors.factors for level in f.levels]
        unknown = [level for level in levels if level not in known]
        problems.append(Problem(f"--family {text}", (
            f"no factor has the level '{unknown[0]}'{nearest(unknown[0], known)}" if unknown else
            "its levels are of several factors" if levels else "expected NAME=LEVEL,LEVEL,...")))
    if problems:
        raise UserError(problems)
    return {**found, **own}


def pivots(analysis: Analysis, layout: Layout, compared: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A table for each level of `by`; compared: the comparisons with the baselines."""
    if len(analysis.factors.of_cell) < 2 or not analysis.factors.factors:
        return []
    cells: dict[tuple[str, ...], list[int]] = {}
    for i, levels in enumerate(analysis.factors.of_cell):
        cells.setdefault(tuple(levels[name] for name in layout.by), []).append(i)
    against = {c["cell"]: c for c in compared if c["why"] == "baseline"}
    return [_pivot(analysis, layout, dict(zip(layout.by, key, strict=True)), own, against)
            for key, own in cells.items()]


def _pivot(analysis: Analysis, layout: Layout, by: Mapping[str, str], cells: Sequence[int],
           against: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    rows, columns = _lines(analysis, layout.rows, cells, by), _lines(analysis, layout.columns, cells, by)
    fields = [[_field(analysis, [i for i in row["cells"] if i in set(column["cells"])], against)
               for column in columns] for row in rows]
    for k in range(len(columns)):
        _mark_best([line[k] for line in fields])
    averages = [_average(analysis, columns, line) for line in fields] if _averaged(analysis, layout, columns) else None
    if averages:
        _mark_best(averages)
    return {"by": dict(by), "rows": [_shown(r, analysis) for r in rows],
            "columns": [_shown(c, analysis) for c in columns],
            "row_factors": list(layout.rows), "column_factors": list(layout.columns), "fields": fields,
            "averages": averages,
            "averaged": [f.name for f in analysis.factors.factors
                         if f.name not in (*layout.rows, *layout.columns, *layout.by)
                         and any(f and len(f["cells"]) > 1 for line in fields for f in line)]}


def _lines(analysis: Analysis, names: Sequence[str], cells: Sequence[int],
           by: Mapping[str, str]) -> list[dict[str, Any]]:
    """The rows or columns of a table: the cells of each, and what it is called."""
    found: dict[tuple[str, ...], list[int]] = {}
    for i in cells:
        found.setdefault(tuple(analysis.factors.of_cell[i][name] for name in names), []).append(i)
    factors = analysis.factors
    keys = sorted(found, key=lambda key: [factors[name].levels.index(level) for name, level in
                                          zip(names, key, strict=True)]) if len(names) < 2 else list(found)
    return [{"levels": dict(zip(names, key, strict=True)), "cells": found[key],
             "label": _label(analysis, names, key, found[key])} for key in keys]


def _label(analysis: Analysis, names: Sequence[str], key: Sequence[str], cells: Sequence[int]) -> str:
    """The name that the run file gives to all cells of a line, else its levels."""
    own = [_own_name(analysis, i, names) for i in cells]
    if len(names) > 1 and own[0] and len(set(own)) == 1:
        return own[0]
    varied = _varied(analysis, names)
    parts = [_with_name(name, level, len(varied)) for name, level in zip(names, key, strict=True)
             if len(names) == 1 or (level != ABSENT and name in varied)]
    return ", ".join(parts)


def _varied(analysis: Analysis, names: Sequence[str]) -> list[str]:
    """The factors in which cells without a name of their own differ: the others say nothing in a label."""
    unnamed = [levels for facts, levels in zip(analysis.debates.cells, analysis.factors.of_cell, strict=True)
               if not is_named(facts)]
    return [name for name in names if len({levels[name] for levels in unnamed}) > 1] or list(names)


def _with_name(name: str, level: str, several: int) -> str:
    bare = several == 1 or not (level.replace(".", "").isdigit() or level in ("none", "true", "false"))
    return level if bare else f"{name}={level}"


def _own_name(analysis: Analysis, cell: int, names: Sequence[str]) -> str:
    """A named cell's name, without the levels that stand elsewhere in the table."""
    facts = analysis.debates.cells[cell]
    if not is_named(facts):
        return ""
    name = facts.slug
    for other, level in analysis.factors.of_cell[cell].items():
        if other not in names:
            part = re.compile(rf"(?:(?<=[{_BETWEEN}])|^){re.escape(level)}(?:[{_BETWEEN}]|$)")
            name = part.sub("", name).rstrip(_BETWEEN) or name
    return name


def _field(analysis: Analysis, cells: Sequence[int], against: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """A cell as it is in the report, or the average over several."""
    if not cells:
        return None
    found = [analysis.cells[i] for i in cells]
    ends = {"undecided": sum(c["outcomes"]["undecided"] for c in found), "failed":
            sum(c["outcomes"]["failed"] for c in found), "debates": sum(c["debates"] for c in found)}
    if len(cells) > 1:
        mean = average(analysis, cells)
        return None if mean is None else {**mean, "metric": analysis.metric_of[cells[0]], **ends}
    metric = found[0]["metric"]
    own = found[0]["metrics"].get(metric)
    if own is None:
        return None
    change = against.get(found[0]["cell"]) or {}
    base = any(g.baseline == cells[0] for g in analysis.groups)
    return {**own, "cells": [found[0]["cell"]], "metric": metric, **ends, "is_baseline": base,
            **{name: change.get(name) for name in ("difference", "relative", "p", "p_holm")}}


def _averaged(analysis: Analysis, layout: Layout, columns: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the mean over the columns is a macro average: they are data sets."""
    return len(columns) > 1 and any(analysis.factors[name].is_data for name in layout.columns)


def _average(analysis: Analysis, columns: Sequence[Mapping[str, Any]],
             line: Sequence[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """The macro average of a row that has a value in every column."""
    if not all(line):
        return None
    names = {c.name: i for i, c in enumerate(analysis.debates.cells)}
    parts = [[names[name] for name in f["cells"]] for f in line if f]
    weights: dict[int, float] = {}
    for part in parts:
        for i in part:
            weights[i] = 1 / len(part) / len(parts)
    return combine(analysis, weights)


def _mark_best(fields: Sequence[dict[str, Any] | None]) -> None:
    known = [f for f in fields if f]
    best = max((f["mean"] for f in known), default=None)
    for f in known:
        f["best"] = len(known) > 1 and f["mean"] == best


def _shown(line: Mapping[str, Any], analysis: Analysis) -> dict[str, Any]:
    metrics = {m for i in line["cells"] if (m := analysis.metric_of[i]) is not None}
    return {"label": line["label"], "levels": line["levels"], "metrics": sorted(metrics)}


def all_fields(pivot: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any], dict[str, Any]]]:
    """(row, column, field) of every field that has a value."""
    for row, line in zip(pivot["rows"], pivot["fields"], strict=True):
        for column, found in zip(pivot["columns"], line, strict=True):
            if found is not None:
                yield row, column, found
