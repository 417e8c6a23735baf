"""Tables laid out by factors: which stand in rows, which in columns, and which separate tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from madplug import Problem, UserError, nearest, nearest_or_all
from madplug_report.analysis import Analysis
from madplug_report.combining import CHANGES, average, change, combine
from madplug_report.factors import ABSENT, STUDY, Factor, Factors, level_text
from madplug_report.reading import SPENT

METRIC, CELL, FAMILY = "metric", "cell", ".family"
"""What stands in a table beside factors: the metrics that are asked for, cells by name, the families of a factor."""
ALIKE = "cells that are set alike"
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
    over: tuple[str, ...] = ()
    """Factors that are averaged over."""
    asked: bool = False
    """Whether somebody chose it."""
    cells: Sequence[str] = ()
    """What `cell` calls each cell: see `with_cells`."""
    order: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By factor, levels that come first, in a paper's order."""

    @property
    def names(self) -> tuple[str, ...]:
        """What stands in rows and columns."""
        return (*self.rows, *self.columns)

    def level(self, analysis: Analysis, cell: int, name: str) -> str:
        """A cell's level of what stands in a table; `ABSENT` where none of the families has it."""
        if name == CELL:
            return self.cells[cell]
        levels = analysis.factors.of_cell[cell]
        if name in levels:
            return levels[name]
        factor = name.removesuffix(FAMILY)
        return next((family for family, own in self.families[factor].items() if levels[factor] in own), ABSENT)


def choose(factors: Factors, rows: Sequence[str] = (), columns: Sequence[str] = (), by: Sequence[str] = (),
           families: Sequence[str] = (), over: Sequence[str] = ()) -> Layout:
    """The layout asked for, completed where it is not.

    Data sets stand in columns, else models, else the last of two factors that are crossed; if both data sets and models
    vary, each model has its own table. families: `NAME=LEVEL,LEVEL,...`; plugins with several levels are families, too.
    """
    asked = {"--rows": rows, "--columns": columns, "--by": by, "--over": over}
    found, wrong = _families(factors, families)
    known = factors.names()
    more = [*known, *(f"{name}{FAMILY}" for name in found), METRIC, CELL]
    hint = "; the scores on a group of questions are a metric of their own: --metric qa.accuracy.GROUP"
    problems = [Problem(option, f"there is no factor '{name}'" + (hint if name == "group" else
                        nearest_or_all(name, known) if known else ": all cells are set alike"))
                for option, names in asked.items() for name in names
                if name not in (known if option in ("--by", "--over") else more)]
    used = [name for names in asked.values() for name in names]
    problems += [Problem("--rows, --columns, --by, --over", f"'{name}' is named twice") for name in dict.fromkeys(used)
                 if used.count(name) > 1]
    problems += wrong
    if problems:
        raise UserError(problems)
    if used:
        return _completed(factors, tuple(rows), tuple(columns), tuple(by), tuple(over), found)
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
    if len({tuple(levels.items()) for levels in factors.of_cell}) < len(factors.of_cell):  # cells that are set alike
        rows.append(CELL)
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
               over: tuple[str, ...], families: Mapping[str, Mapping[str, Sequence[str]]]) -> Layout:
    named = {name.removesuffix(FAMILY) for name in (*rows, *columns, *by, *over)}
    if CELL not in named:  # models are never averaged
        by += tuple(f.name for f in factors.factors if f.is_model and rows and f.name not in named)
    if not rows and CELL not in columns:
        taken = {*named, *by}
        rows = tuple(f.name for f in factors.factors if f.name not in taken)
    return Layout(rows, columns, by, families, over, asked=True)


def with_cells(analysis: Analysis, layout: Layout) -> Layout:
    """The layout with a name for each cell: without what stands elsewhere in the table or is averaged over.

    It is the name that the run file gives, else the levels that the cell sets and that tell cells apart.
    """
    taken = [name for name in (*layout.names, *layout.by, *layout.over) if name not in (CELL, METRIC)]
    bare = {name.removesuffix(FAMILY) for name in taken}
    facts, of_cell = analysis.debates.cells, analysis.factors.of_cell
    levels: dict[str, dict[int, str]] = {}
    for f in analysis.factors.factors:
        own = {i: of_cell[i][f.name] for i in range(len(facts)) if f.name not in bare and _means(analysis, f.name, [i])}
        if len({level for i, level in own.items() if not facts[i].named}) > 1:
            levels[f.name] = own
    names = [{CELL: _stripped(cell.slug, _spelled(analysis, [(name, layout.level(analysis, i, name))
                                                             for name in taken]))} if cell.named else
             {name: level_text(name, own[i]) for name, own in levels.items() if i in own and own[i] != ABSENT}
             for i, cell in enumerate(facts)]
    for name in [*(name for name in levels if name != "paradigm"), "paradigm"]:
        shorter = [{k: v for k, v in own.items() if k != name} or own for own in names]
        names = shorter if len(set(map(_joined, shorter))) == len(set(map(_joined, names))) else names
    return replace(layout, cells=[_joined(own) or analysis.factors.labels[i] for i, own in enumerate(names)])


def _joined(parts: Mapping[str, str]) -> str:
    return ", ".join(parts.values())


def _spelled(analysis: Analysis, levels: Sequence[tuple[str, str]]) -> list[str]:
    """Levels as they can stand in a cell's name: components with and without their plugin."""
    known = {f.name: f.uses for f in analysis.factors.factors}
    return [text for name, level in levels for text in (known.get(name, {}).get(level, level), level)]


def _families(factors: Factors, asked: Sequence[str]) -> tuple[dict[str, dict[str, list[str]]], list[Problem]]:
    """The families by factor: those asked for, else those of plugins; and what is wrong with them."""
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
    return {**found, **own}, problems


def pivots(analysis: Analysis, layout: Layout, compared: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A table for each level of `by`; compared: the comparisons with the baselines."""
    if not layout.asked and (len(analysis.factors.of_cell) < 2 or not analysis.factors.factors):
        return []
    cells: dict[tuple[str, ...], list[int]] = {}
    for i, levels in enumerate(analysis.factors.of_cell):
        cells.setdefault(tuple(levels[name] for name in layout.by), []).append(i)
    against = {c["cell"]: c for c in compared if c["why"] == "baseline"}
    return [_pivot(analysis, layout, dict(zip(layout.by, key, strict=True)), own, against)
            for key, own in cells.items()]


def _pivot(analysis: Analysis, layout: Layout, by: Mapping[str, str], every: Sequence[int],
           against: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    families = [name for name in layout.names if name.endswith(FAMILY) and name not in analysis.factors.names()]
    cells = [i for i in every if all(layout.level(analysis, i, name) != ABSENT for name in families)]
    left = {analysis.factors.of_cell[i][name.removesuffix(FAMILY)] for name in families for i in every if i not in cells
            and layout.level(analysis, i, name) == ABSENT}
    rows, columns = (_lines(analysis, layout, names, cells) for names in (layout.rows, layout.columns))
    shared = [[_shared(row, column) for column in columns] for row in rows]
    fields = [[_field(analysis, own, against, row["metric"] or column["metric"], _base(row, rows, column, columns))
               for column, own in zip(columns, line, strict=True)] for row, line in zip(rows, shared, strict=True)]
    averages = [_average(analysis, row, line) for row, line in zip(rows, fields, strict=True)] \
        if _averaged(analysis, layout, columns) else None
    for line in [*(fields if _in_rows(analysis, layout) else zip(*fields, strict=True)), averages or ()]:
        _mark_best(line)
    return {"by": dict(by), "rows": [_shown(r, analysis) for r in rows],
            "columns": [_shown(c, analysis) for c in columns],
            "row_factors": list(layout.rows), "column_factors": list(layout.columns), "fields": fields,
            "averages": averages, "asked": layout.asked, "left_out": sorted(left),
            "averaged": [*dict.fromkeys(name for line in shared for own in line
                                        for name in over([analysis.factors.of_cell[i] for i in own]))]}


def over(levels: Sequence[Mapping[str, str]]) -> list[str]:
    """What an average over cells with these levels of each factor is over."""
    return [name for name in (levels[0] if levels else ()) if len({own[name] for own in levels}) > 1
            ] or [ALIKE] * (len(levels) > 1)


def _shared(row: Mapping[str, Any], column: Mapping[str, Any]) -> list[int]:
    within = set(column["cells"])
    return [i for i in row["cells"] if i in within]


def _base(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], column: Mapping[str, Any],
          columns: Sequence[Mapping[str, Any]]) -> list[int]:
    """The cells that a change is from: those of the row, or column, that its metric names."""
    name = (row["metric"] or column["metric"] or "").partition(".")[2]
    if row["metric"]:
        return next((_shared(row, other) for other in columns if other["label"] == name), [])
    return next((_shared(other, column) for other in rows if other["label"] == name), [])


def _in_rows(analysis: Analysis, layout: Layout) -> bool:
    """Whether what cannot be compared stands in rows: data sets or metrics."""
    data = [f.name for f in analysis.factors.factors if f.is_data]
    return any(name == METRIC or name.removesuffix(FAMILY) in data for name in layout.rows)


def _lines(analysis: Analysis, layout: Layout, names: Sequence[str], cells: Sequence[int]) -> list[dict[str, Any]]:
    """The rows or columns of a table: the cells of each, what it is called, and its metric if metrics stand there."""
    found: dict[tuple[str, ...], list[int]] = {}
    metrics = analysis.asked if METRIC in names else [""]
    for i in cells:
        for metric in metrics:
            key = tuple(metric if name == METRIC else layout.level(analysis, i, name) for name in names)
            found.setdefault(key, []).append(i)
    order = {name: analysis.factors[name].levels for name in names if name in analysis.factors.names()}
    keys = sorted(found, key=lambda key: order[names[0]].index(key[0])) if len(names) == 1 and order else list(found)
    keys.sort(key=lambda key: [_place(layout.order.get(n, ()), level) for n, level in zip(names, key, strict=True)])
    short = dict(zip(metrics, short_names(metrics), strict=True))
    labels = [_label(analysis, names, [short.get(part, part) for part in key], found[key]) for key in keys]
    counts = Counter(labels)
    return [{"levels": dict(zip(names, key, strict=True)), "cells": found[key],
             "metric": key[names.index(METRIC)] if METRIC in names else None,
             "label": f"{key[names.index(STUDY)]}/{label}" if counts[label] > 1 and STUDY in names else label}
            for key, label in zip(keys, labels, strict=True)]


def _place(order: Sequence[str], level: str) -> int:
    return order.index(level) if level in order else len(order)


def short_names(metrics: Sequence[str]) -> list[str]:
    """Names of metrics without the parts with which all of them begin and end: `a.x.rate`, `a.y.rate` are x and y."""
    parts = [name.split(".") for name in metrics]
    first = last = 0
    while len(parts) > 1 and all(len(p) > first + last + 1 for p in parts) and len({p[first] for p in parts}) == 1:
        first += 1
    while len(parts) > 1 and all(len(p) > first + last + 1 for p in parts) and len({p[-last - 1] for p in parts}) == 1:
        last += 1
    return [".".join(p[first:len(p) - last]) for p in parts]


def _label(analysis: Analysis, names: Sequence[str], key: Sequence[str], cells: Sequence[int]) -> str:
    """The name that the run file gives to all cells of a line, else its levels."""
    facts, of_cell = analysis.debates.cells, analysis.factors.of_cell
    own = [_stripped(facts[i].slug, _spelled(analysis, [pair for pair in of_cell[i].items() if pair[0] not in names]))
           if facts[i].named else "" for i in cells]
    if len(names) > 1 and own[0] and len(set(own)) == 1:
        return own[0]
    varied = _varied(analysis, names)
    parts = [_with_name(name, level, len(varied)) for name, level in zip(names, key, strict=True)
             if len(names) == 1 or (level != ABSENT and name in varied and _means(analysis, name, cells))]
    return ", ".join(parts)


def _means(analysis: Analysis, name: str, cells: Sequence[int]) -> bool:
    """Whether a level says something of these cells: one that a cell has from its own paradigm does not."""
    if name not in analysis.factors.names():
        return True
    own = [analysis.debates.cells[i].settings for i in cells]
    key = analysis.factors[name].key
    return not all("debate.paradigm" in settings and key not in settings for settings in own)


def _varied(analysis: Analysis, names: Sequence[str]) -> list[str]:
    """The factors in which cells without a name of their own differ: the others say nothing in a label."""
    unnamed = [levels for facts, levels in zip(analysis.debates.cells, analysis.factors.of_cell, strict=True)
               if not facts.named]
    return [name for name in names if len({levels.get(name, str(i)) for i, levels in enumerate(unnamed)}) > 1
            ] or list(names)


def _with_name(name: str, level: str, several: int) -> str:
    bare = several == 1 or not (level.replace(".", "").isdigit() or level in ("none", "true", "false"))
    return level if bare else f"{name}={level}"


def _stripped(name: str, levels: Sequence[str]) -> str:
    """A cell's name without levels that stand elsewhere in the table."""
    for level in levels:
        part = re.compile(rf"(?:(?<=[{_BETWEEN}])|^){re.escape(level)}(?:[{_BETWEEN}]|$)")
        name = part.sub("", name).rstrip(_BETWEEN) or name
    return name


def _field(analysis: Analysis, cells: Sequence[int], against: Mapping[str, Mapping[str, Any]],
           asked: str | None = None, base: Sequence[int] = ()) -> dict[str, Any] | None:
    """A cell as it is in the report, or the average over several.

    asked: the metric, unless it is their own. base: what a change is from.
    """
    if not cells:
        return None
    found, ends = [analysis.cells[i] for i in cells], _ends(analysis, cells)
    if asked is not None and asked.startswith(CHANGES):
        found_change = change(analysis, asked, cells, base)
        return found_change and {**found_change, "metric": asked, **ends}
    if len(cells) > 1:
        measured = cells if asked is None else [i for i in cells if len(analysis.scores(asked, i))]
        mean = average(analysis, measured, asked)
        return None if mean is None else {**mean, "metric": asked or analysis.metric_of[cells[0]], **ends}
    metric = asked or found[0]["metric"]
    own = found[0]["metrics"].get(metric)
    if own is None:
        return None
    against_base = (against.get(found[0]["cell"]) or {}) if metric == found[0]["metric"] else {}
    is_baseline = any(g.baseline == cells[0] for g in analysis.groups)
    return {**own, "cells": [found[0]["cell"]], "metric": metric, **ends, "is_baseline": is_baseline,
            **{name: against_base.get(name) for name in ("difference", "relative", "p", "p_holm")}}


def _averaged(analysis: Analysis, layout: Layout, columns: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the mean over the columns is a macro average: they are data sets."""
    data = [f.name for f in analysis.factors.factors if f.is_data and f.name in layout.columns]
    return len(columns) > 1 and METRIC not in layout.columns and bool(data)


def _average(analysis: Analysis, row: Mapping[str, Any],
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
    found = combine(analysis, weights, metric=row["metric"])
    return found and {**found, "metric": next(f["metric"] for f in line if f)}


def _mark_best(fields: Sequence[dict[str, Any] | None]) -> None:
    known = [f for f in fields if f]
    order = (min, max) if known and known[0]["metric"] in SPENT else (max, min)
    best, worst = (choose((f["mean"] for f in known), default=None) for choose in order)
    for f in known:
        f |= {"best": len(known) > 1 and f["mean"] == best, "worst": len(known) > 1 and f["mean"] == worst != best}


def _ends(analysis: Analysis, cells: Sequence[int]) -> dict[str, int]:
    """How many debates these cells have, and how many were undecided or failed."""
    found = [analysis.cells[i] for i in cells]
    return {**{name: sum(c["outcomes"][name] for c in found) for name in ("undecided", "failed")},
            "debates": sum(c["debates"] for c in found)}


def _shown(line: Mapping[str, Any], analysis: Analysis) -> dict[str, Any]:
    metrics = {line["metric"]} if line["metric"] else {
        m for i in line["cells"] if (m := analysis.metric_of[i]) is not None}
    return {"label": line["label"], "levels": line["levels"], "metrics": sorted(metrics),
            **_ends(analysis, line["cells"])}


def all_fields(pivot: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any], dict[str, Any]]]:
    """(row, column, field) of every field that has a value."""
    for row, line in zip(pivot["rows"], pivot["fields"], strict=True):
        for column, found in zip(pivot["columns"], line, strict=True):
            if found is not None:
                yield row, column, found
