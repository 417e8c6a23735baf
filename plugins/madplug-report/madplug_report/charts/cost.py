"""Accuracy against what it cost: the front of the best, and what more samples alone would have given."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

from madplug_report.charts import Chart
from madplug_report.charts.style import (
    DASHES,
    ROW,
    WIDTH,
    Sheet,
    colour,
    columns,
    in_full,
    legend,
    logarithmic,
    names,
    score,
)
from madplug_report.csvs import spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

Point = tuple[float, float]
NAMED = 12
"""Of at most this many cells, the names are at the points, if there is room; otherwise numbers, and a key below."""
NUMBERED = 24
"""Of more cells than this, only the front and the baseline have numbers."""
PLACES = [(dx, dy) for distance in (7, 13, 22, 34, 50) for dx, dy in (
    (distance, 0), (-distance, 0), (0, distance), (0, -distance), (distance, distance), (-distance, distance),
    (distance, -distance), (-distance, -distance))]
"""Possible places of a label, in points from what it names; the nearest free one is taken."""
CURVES = ("green", "purple", "red")
"""The colours of curves in turn; those of cells and of the front are left out."""
CALLS = 3
"""Calls are drawn if they take at least this many values; under equal budgets all points would be in one line."""


def against(report: Mapping[str, Any]) -> Chart | None:
    """The metric against tokens and calls."""
    cells = [c for c in report["cells"] if score(c)]
    costs = [cost for cost in ("tokens", "calls") if any(c[cost] for c in cells)]
    calls = sorted({round(c["calls"], 1) for c in cells})
    if len(costs) == 2 and len(calls) < CALLS:
        costs = ["tokens"]
    if not costs:
        return None
    key = _numbers(report, cells)
    sheet = (_sheet(report, cells, costs, dict(zip(names(report, cells), cells, strict=True)), numbered=False)
             if len(cells) <= NAMED else None) or _sheet(report, cells, costs, key, numbered=True)
    assert sheet is not None
    luck = " With this many cells, some are there by chance." if len(cells) > 12 else ""
    curve = (" A curve is the vote of the first 1, 2, 3, ... of a cell's independent samples, or of all where a "
             "debate has fewer, their tokens taken in proportion; where models take turns, each point is another mix "
             "of them.") if any(c["vote_of_first"] for c in cells) else ""
    some = " Only the front and the baseline are named." if len(key) < len(cells) else ""
    same = "" if "calls" in costs else f" Calls per debate: {' or '.join(f'{n:g}' for n in calls)}."
    what = "Accuracy" if "accuracy" in report["metric"] else report["metric"]
    return sheet.chart("cost", f"{what} against {' and '.join(costs)}",
                       f"On the front no cell on the same questions is as good for less.{luck}{some}{curve}{same}",
                       [*({"cell": c["label"], "calls": c["calls"], "tokens": c["tokens"], "read": c["read"],
                           "written": c["written"], "cost_usd": c["cost_usd"], **spread(f)}
                          for c in cells if (f := score(c))),
                        *({"cell": text, "mean": mean, **{cost: _share(c, cost, samples) for cost in costs}}
                          for text, c in _curves(report, cells) for samples, mean in c["vote_of_first"])])


def _sheet(report: Mapping[str, Any], cells: Sequence[Mapping[str, Any]], costs: Sequence[str],
           key: Mapping[str, Mapping[str, Any]], *, numbered: bool) -> Sheet | None:
    """A chart for each cost, with a key below if points have numbers; None if there is no room for all names."""
    lines = -(-len(key) // 2) if numbered else 0
    curves = _curves(report, cells)
    entries = ["a cell", "Pareto front", *(text for text, _ in curves)]
    across = 3 if len(entries) < 4 else columns(entries)
    sheet = Sheet(report, ("oracle", "unfinished", "repeats", "samples", "uneven"), plot=3.6,
                  top=0.13 + ROW * -(-len(entries) // across), bottom=0.55 + ROW * 0.8 * lines)
    for i, cost in enumerate(costs):
        axes = sheet.axes(i * 0.525, 0.475 if len(costs) == 2 else 1.0)
        _draw(report, axes, cells, curves, cost)
        axes.set_ylabel(report["metric"] if i == 0 else "")
        placed = _name(sheet, axes, {n: (c[cost], _mean(c)) for n, c in key.items()},
                       [(c[cost], _mean(c)) for c in cells], clear=not numbered)
        if not numbered and placed < len(key):
            return None
        if i == 0:
            legend(axes, sheet, across)
    if lines:
        _write_key(report, sheet, key, lines)
    return sheet


def _curves(report: Mapping[str, Any], cells: Sequence[Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """The cells of independent samples, with what the legend calls their curves."""
    found = [c for c in cells if c["vote_of_first"] and len(c["vote_of_first"]) > 1]
    called = names(report, found) if len(found) > 1 else ["self-consistency"] * len(found)
    return [(f"{name}, 1 to all samples", cell) for name, cell in zip(called, found, strict=True)]


def _draw(report: Mapping[str, Any], axes: Axes, cells: Sequence[Mapping[str, Any]],
          curves: Sequence[tuple[str, Mapping[str, Any]]], cost: str) -> None:
    """The cells, the front, and the curves of independent samples."""
    _points(axes, cells, cost)
    for k, front in enumerate(report["pareto"]):
        _front(axes, [c for name in front[cost] for c in cells if c["cell"] == name], cost, first=k == 0)
    for k, (text, cell) in enumerate(curves):
        _curve(axes, cell, cost, text, k)
    _scales(axes, [c[cost] for c in cells] + [c[cost] / c["vote_of_first"][-1][0] for _, c in curves])
    axes.set_xlabel(f"{cost} per debate")


def _numbers(report: Mapping[str, Any], cells: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The cells to name on the chart, by their numbers."""
    front = {name for found in report["pareto"] for names_ in found.values() for name in names_}
    front |= {g["baseline"] for g in report["groups"]}
    return {str(i): c for i, c in enumerate(cells, 1) if len(cells) <= NUMBERED or c["cell"] in front}


def _write_key(report: Mapping[str, Any], sheet: Sheet, key: Mapping[str, Mapping[str, Any]], lines: int) -> None:
    texts = names(report, list(key.values()))
    for i, (number, text) in enumerate(zip(key, texts, strict=True)):
        x, y = 0.3 + 4.4 * (i // lines), sheet.bottom - 0.6 - ROW * 0.8 * (i % lines)
        sheet.figure.text(x / WIDTH, y / sheet.height, f"{number}  {text}", fontsize=8, va="center")


def _scales(axes: Axes, values: Sequence[float]) -> None:
    """Logarithmic if the values span much and are spread more evenly then; otherwise from 0."""
    if min(values) > 0 and max(values) > 8 * min(values) and _gap(np.log(values)) < _gap(values):
        logarithmic(axes)
        axes.margins(x=0.12)
    else:
        axes.set_xlim(left=0, right=max(values) * 1.15 or 1)
        axes.xaxis.set_major_formatter(in_full())
    axes.margins(y=0.15)


def _gap(values: Sequence[float] | NDArray[np.float64]) -> float:
    """The widest gap between neighbours, as a share of the range."""
    inner = np.sort(values)
    return float(np.diff(inner).max() / (inner[-1] - inner[0]))


def _mean(cell: Mapping[str, Any]) -> float:
    return float((score(cell) or {})["mean"])


def _points(axes: Axes, cells: Sequence[Mapping[str, Any]], cost: str) -> None:
    if len(cells) <= 15:
        for c in cells:
            if (found := score(c)) and found["ci95"]:
                axes.plot([c[cost]] * 2, found["ci95"], color=colour("blue"), lw=1, alpha=0.55, zorder=2)
    axes.plot([c[cost] for c in cells], [_mean(c) for c in cells], "o", color=colour("blue"),
              ms=5 if len(cells) <= 40 else 3.5, alpha=0.9, ls="", label="a cell", zorder=3)


def _front(axes: Axes, front: Sequence[Mapping[str, Any]], cost: str, *, first: bool) -> None:
    x, y = [c[cost] for c in front], [_mean(c) for c in front]
    axes.step(x, y, where="post", color=colour("orange"), lw=1.3, ls="--", zorder=1)
    axes.plot(x, y, "s", mfc="none", mec=colour("orange"), ms=9, mew=1.4, label="Pareto front" if first else "_",
              zorder=4)


def _curve(axes: Axes, cell: Mapping[str, Any], cost: str, text: str, k: int) -> None:
    curve = cell["vote_of_first"]
    x = [_share(cell, cost, samples) for samples, _ in curve]
    axes.plot(x, [accuracy for _, accuracy in curve], color=colour(CURVES[k % len(CURVES)]), lw=1.4, marker=".", ms=5,
              ls=DASHES[k // len(CURVES) % len(DASHES)], zorder=2, label=text)


def _share(cell: Mapping[str, Any], cost: str, samples: float) -> float:
    """What so many of a cell's samples cost: their share of all of them."""
    return float(cell[cost] * samples / cell["vote_of_first"][-1][0])


def _name(sheet: Sheet, axes: Axes, key: Mapping[str, Point], points: Sequence[Point], *, clear: bool) -> int:
    """Write the labels of points, none over other points or labels, or over lines if possible; returns how many.

    clear: leave out a label that would cover a line.
    """
    renderer = FigureCanvasAgg(sheet.figure).get_renderer()  # type: ignore[no-untyped-call]
    sheet.figure.draw_without_rendering()
    taken = [Bbox.from_bounds(x - 4, y - 4, 8, 8) for x, y in axes.transData.transform(points)]
    lines = np.vstack([_along(line) for line in axes.get_lines()])
    room = axes.get_window_extent(renderer)
    placed = 0
    for name, point in key.items():
        text = _label(axes, name, point, PLACES[0])
        free = [(place, box) for place, box in _tried(text, renderer)
                if box.x0 >= room.x0 and box.x1 <= room.x1 and box.y0 >= room.y0 and box.y1 <= room.y1
                and not any(box.overlaps(other) for other in taken)]
        text.remove()
        best = next((p for p in free if not p[1].count_contains(lines)), None)
        if not free or (best is None and clear):
            continue
        place, box = best or free[0]
        _label(axes, name, point, place)
        taken.append(box)
        placed += 1
    return placed


def _label(axes: Axes, name: str, point: Point, place: Point) -> Annotation:
    """A label, with a line from its near side to what it names."""
    near = tuple(0.0 if d > 0 else 1.0 if d < 0 else 0.5 for d in place)
    line = {"arrowstyle": "-", "color": colour("quiet"), "lw": 0.5, "shrinkA": 0, "shrinkB": 3, "relpos": near}
    paper = {"facecolor": colour("page"), "edgecolor": "none", "pad": 0.5, "alpha": 0.8}
    text = axes.annotate(name, point, textcoords="offset points", fontsize=7.5, zorder=5, arrowprops=line, bbox=paper)
    _put(text, place)
    return text


def _along(line: Line2D) -> NDArray[np.float64]:
    """Points along a line, as it is drawn, close enough that no name slips between."""
    corners = line.get_transform().transform(line.get_xydata())
    if line.get_drawstyle() == "steps-post":
        turns = np.column_stack([corners[1:, 0], corners[:-1, 1]])
        corners = np.vstack([np.column_stack([corners[:-1], turns]).reshape(-1, 2), corners[-1:]])
    if line.get_linestyle() == "None" or len(corners) < 2:
        return corners
    parts = [np.linspace(a, b, max(2, int(np.hypot(*(b - a)) / 3))) for a, b in itertools.pairwise(corners)]
    return np.vstack(parts)


def _tried(text: Annotation, renderer: Any) -> Iterator[tuple[Point, Bbox]]:
    """The places that a name may take, and its box in each."""
    for place in PLACES:
        _put(text, place)
        text.update_positions(renderer)
        yield place, Text.get_window_extent(text, renderer).padded(2)  # without the line to what it names


def _put(text: Annotation, place: Point) -> None:
    dx, dy = place
    text.set(position=place, horizontalalignment="left" if dx > 0 else "right" if dx < 0 else "center",
             verticalalignment="bottom" if dy > 0 else "top" if dy < 0 else "center")
