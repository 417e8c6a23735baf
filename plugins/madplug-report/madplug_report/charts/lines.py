"""What happens from round to round: lines for a few cells, shaded rows for many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from madplug_report.charts import Chart
from madplug_report.charts.heat import table
from madplug_report.charts.style import DASHES, MARKERS, SERIES, Sheet, colour, names

LINES = 6
"""More cells than this are shown as rows."""
ABOUT = ("oracle", "unfinished", "samples")
GOING = ("A round's figure covers the debates that were to give answers in it, not those that ended earlier or only "
         "reviewed.")


def changes(report: Mapping[str, Any]) -> Chart | None:
    """How many voters changed their answer, and which way."""
    what = [("changed", "changed"), ("to_right", "wrong to right"), ("to_wrong", "right to wrong")]
    judged = all(c["judges"] for c in report["cells"] if _has(c, "changed"))
    chosen = what if judged else what[:1]
    unknown = "" if judged else " Which answers are right is not shown: references are not spelled as answers are."
    return _chart(report, chosen, "flips", "Answers changed from round to round",
                  f"Shares of voters' answers that could be read and have one before. {GOING}{unknown}", start=2,
                  separate=False)


def dynamics(report: Mapping[str, Any]) -> Chart | None:
    """How far apart the answers are."""
    what = [("entropy_of_several", "entropy where several vote, bits"), ("agreement", "pairs of voters that agree")]
    return _chart(report, what, "dynamics", "Entropy and agreement",
                  f"Means over debates with several voters; entropy where an answer could be read. {GOING}",
                  start=1, separate=True, count="of_several")


def by_round(report: Mapping[str, Any]) -> Chart | None:
    """How good the most common answer of each round is, and how far answers are apart."""
    what = [("accuracy", "most common answer is right"), ("entropy", "entropy of answers, bits")]
    judged = {**report, "cells": [c if c["judges"] else {**c, "by_round": []} for c in report["cells"]]}
    return _chart(judged, what, "by-round", "Accuracy and entropy by round",
                  "Accuracy of debates in which it is known which answers are right, entropy of all in which an answer "
                  f"could be read; n counts all that were to give answers. {GOING}", start=1, separate=True, need=0)


def lone(report: Mapping[str, Any]) -> Chart | None:
    """What becomes of a voter who alone is right."""
    what = [("lone", "one voter alone is right"), ("lone_kept", "is right in the next, too"),
            ("lone_won", "the debate ends right")]
    judged = {**report, "cells": [c if c["judges"] else {**c, "by_round": []} for c in report["cells"]]}
    return _chart(judged, what, "lone", "Survival of lone right answers",
                  "First the share of debates with several voters, in which it is known which answers are right, where "
                  "one alone is right in a round; then shares of these: of those in which that voter's next answer "
                  f"could be read, and of all. {GOING}", start=1, separate=False, need=1, count="contested")


def _has(cell: Mapping[str, Any], key: str) -> bool:
    return any(r[key] is not None for r in cell["by_round"])


def _chart(report: Mapping[str, Any], what: Sequence[tuple[str, str]], name: str, title: str, caption: str,
           start: int, separate: bool, need: int | None = None, count: str = "debates") -> Chart | None:
    """A panel for each figure; with separate scales where their units differ. need: the figure a cell must have.

    count: the number of debates that stands below a round: all that were to give answers, or those of several voters.
    """
    key = what[need][0] if need is not None else what[-1][0] if separate else "changed"
    cells = [c for c in report["cells"] if _has(c, key)]
    if not cells:
        return None
    most = max(r["round"] for c in cells for r in c["by_round"])
    values = {key: np.array([_row(c, key, most) for c in cells]) for key, _ in what}
    if len(cells) > LINES:
        panels = [(said, values[key][:, start - 1:]) for key, said in what]
        sheet = table(report, cells, panels, about=ABOUT, separate=separate, first=start)
    else:
        sheet = _lines(report, cells, [(said, values[key]) for key, said in what], most, start, count,
                       separate=separate)
    rows = [{"cell": c["label"], "round": r["round"], "debates": r["debates"], **{k: r[k] for k, _ in what}}
            for c in cells for r in c["by_round"]]
    return sheet.chart(name, title, caption, rows)


def _row(cell: Mapping[str, Any], key: str, most: int) -> list[float]:
    by_round = {r["round"]: r[key] for r in cell["by_round"]}
    return [np.nan if by_round.get(n) is None else by_round[n] for n in range(1, most + 1)]


def _lines(report: Mapping[str, Any], cells: Sequence[Mapping[str, Any]], panels: Sequence[tuple[str, Any]], most: int,
           start: int, count: str, *, separate: bool) -> Sheet:
    texts = names(report, cells)
    down = len(texts) if max(map(len, texts)) > 24 else -(-len(texts) // 3)
    sheet = Sheet(report, ABOUT, plot=2.4, left=0.55, top=0.35 + 0.2 * down, bottom=0.75)
    each = 1 / len(panels)
    for i, (said, values) in enumerate(panels):
        axes = sheet.axes(i * each, each - 0.06)
        draw(axes, report, cells, values, texts)
        axes.set_title(said, loc="left")
        axes.set_xlim(start - 0.3, max(most, start) + 0.3)
        axes.set_ylim(0, 1.08 * (highest(values) if separate else max(highest(v) for _, v in panels)))
        _round_ticks(axes, cells, most, start, count)
    sheet.figure.axes[0].legend(loc="lower left", bbox_to_anchor=(0, 1 + 0.28 / 2.4), ncols=-(-len(texts) // down),
                                borderaxespad=0, handlelength=3)
    return sheet


def draw(axes: Any, report: Mapping[str, Any], cells: Sequence[Mapping[str, Any]], values: Any,
         texts: Sequence[str]) -> None:
    """A line for each of these cells, called by these texts, from its values at 1, 2, ...

    A cell looks the same in all charts, unless the report has more cells than there are colours.
    """
    every = report["cells"]
    for i, (cell, row) in enumerate(zip(cells, values, strict=True)):
        k = every.index(cell) if len(every) <= len(SERIES) else i
        axes.plot(range(1, len(row) + 1), row, color=colour(SERIES[k]), marker=MARKERS[k], ls=DASHES[k], lw=1.5, ms=5,
                  label=texts[i])


def highest(values: Any) -> float:
    """The largest known value, or 1 where all are zero."""
    return float(np.nanmax(values)) or 1.0


def _round_ticks(axes: Any, cells: Sequence[Mapping[str, Any]], most: int, start: int, count: str) -> None:
    """Round numbers, and below each how many debates its figures are of."""
    asked = [sum(r[count] for c in cells for r in c["by_round"] if r["round"] == n) for n in range(1, most + 1)]
    step = max(1, -(-(most - start + 1) // 5))
    shown = range(start, most + 1, step)
    axes.set_xticks(list(shown), [f"{n}\nn={asked[n - 1]}" for n in shown])
    axes.set_xlabel(f"round; n: debates with {'answers' if count == 'debates' else 'several voters'} in it")
