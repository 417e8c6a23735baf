"""A paper's own numbers, from a TOML file, beside those of a report."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from madplug import Problem, UserError, nearest
from madplug_report.analysis import Analysis
from madplug_report.combining import combine
from madplug_report.factors import Factor

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Z = 1.959963984540054
OURS_ALONE = "ours alone"
BOTH = "both"


MOST = 1e100
"""The largest number, and one over the smallest scale: with larger ones, differences would not be numbers."""


class Value(BaseModel):
    """One number of a paper, and which cells it is of."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(description="how the paper calls it")
    mean: float = Field(ge=-MOST, le=MOST, description="as printed")
    std: float | None = Field(default=None, ge=0, le=MOST, description="as printed, over repeats")
    samples: int | None = Field(default=None, ge=2, le=10**9, description="of how many questions, if it is a share")
    cell: str | None = Field(default=None, description="the cell's name")
    levels: Mapping[str, str] = Field(default={}, description="else its factors' levels; several cells are averaged")
    metric: str | None = Field(default=None, description="unless it is the file's")
    scale: float | None = Field(default=None, ge=1 / MOST, le=MOST, description="unless it is the file's")
    note: str = ""


class Paper(BaseModel):
    """A file of published numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str = Field(description="the paper, and its table or figure")
    metric: str = "qa.accuracy"
    scale: float = Field(default=1.0, ge=1 / MOST, le=MOST, description="100 for percentages")
    note: str = ""
    values: tuple[Value, ...] = ()


def read_paper(path: Path) -> Paper:
    """The file. Raises `UserError` with everything that is wrong in it."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"--compare {path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"--compare {path}: is not TOML: {error}") from None
    try:
        return Paper.model_validate(table)
    except ValidationError as error:
        raise UserError([Problem(f"--compare {path}: {'.'.join(map(str, found['loc']))}", found["msg"])
                         for found in error.errors()]) from None


def compare(analysis: Analysis, paper: Paper, path: Path) -> dict[str, Any]:
    """Ours, theirs and the difference of every number, in the paper's scale; `missing` are not in the studies.

    The interval of a difference is that of our mean, and of theirs if the file says of how many samples it is.
    """
    _check(analysis, paper, path)
    rows = [_row(analysis, paper, value) for value in paper.values]
    return {"source": paper.source, "note": paper.note, "rows": [row for row in rows if row["ours"] is not None],
            "missing": [row["name"] for row in rows if row["ours"] is None]}


def _check(analysis: Analysis, paper: Paper, path: Path) -> None:
    factors, problems = analysis.factors, []
    known = [*factors.labels, *(c.slug for c in analysis.debates.cells)]
    for i, value in enumerate(paper.values):
        where = f"--compare {path}: values.{i} ({value.name})"
        problems += [Problem(where, f"there is no factor '{name}'{nearest(name, factors.names())}")
                     for name in value.levels if name not in factors.names()]
        problems += [Problem(where, f"'{level}' is {' or '.join(meant)}; name the level in full")
                     for name, level in value.levels.items() if name in factors.names()
                     if len(meant := _meant(factors[name], level)) > 1]
        if value.cell is not None and value.cell not in known and not value.levels and len(known) == 1:
            problems.append(Problem(where, f"there is no cell '{value.cell}'{nearest(value.cell, known)}"))
        if value.cell is None and not value.levels:
            problems.append(Problem(where, "needs `cell` or `levels`"))
    if problems:
        raise UserError(problems)


def _row(analysis: Analysis, paper: Paper, value: Value) -> dict[str, Any]:
    metric, scale = value.metric or paper.metric, value.scale or paper.scale
    cells = [i for i in _cells(analysis, value)
             if metric in analysis.debates.metrics and len(analysis.scores(metric, i))]
    row: dict[str, Any] = {"name": value.name, "metric": metric, "theirs": value.mean, "their_std": value.std,
                           "note": value.note, "cells": [analysis.debates.cells[i].name for i in cells], "ours": None}
    if not cells:
        return row
    own = analysis.figure(metric, cells[0]) if len(cells) == 1 else combine(
        analysis, dict.fromkeys(cells, 1 / len(cells)), metric=metric)
    assert own is not None
    difference = scale * own["mean"] - value.mean
    below, above = _halves(own, value, scale)
    return {**row, "ours": scale * own["mean"], "our_std": None if own["std"] is None else scale * own["std"],
            "our_ci95": own["ci95"] and [scale * end for end in own["ci95"]], "samples": own["n"],
            "difference": difference, "ci95": None if below is None else [difference - below, difference + above],
            "ci_of": OURS_ALONE if value.samples is None else BOTH}


def _cells(analysis: Analysis, value: Value) -> Sequence[int]:
    """The cells that a number is of: by name, or all with these levels."""
    facts, of_cell = analysis.debates.cells, analysis.factors.of_cell
    if value.cell is not None:
        return [i for i, c in enumerate(facts) if value.cell in (c.slug, analysis.factors.labels[i])]
    return [i for i, levels in enumerate(of_cell)
            if all(levels[name] in _meant(analysis.factors[name], level) for name, level in value.levels.items())]


def _meant(factor: Factor, wanted: str) -> list[str]:
    """The levels that a text can stand for: the one of this name, else those of components without their plugin."""
    if wanted in factor.levels:
        return [wanted]
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
