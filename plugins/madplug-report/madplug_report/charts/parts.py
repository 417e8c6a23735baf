"""Charts of parts of debates: repeats, places in a view, challenges, other presentations of a vote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.collections import PolyCollection

from madplug_report.charts import Chart
from madplug_report.charts.bars import row_sheet
from madplug_report.charts.heat import table
from madplug_report.charts.lines import LINES, draw
from madplug_report.charts.style import ROW, Sheet, colour, legend, margin, names, rows, score
from madplug_report.escape import distinct

BOXES = 3
"""A box needs as many repeats."""
_OUTCOMES = {"higher": ("green", "", "better answer"),
             "same": ("grey", "", "as good"),
             "lower": ("red", "xxx", "worse answer")}


def boxes(report: Mapping[str, Any]) -> Chart | None:
    """How far apart repeats are."""
    cells = [c for c in report["cells"] if (f := score(c)) and len(f["per_repeat"]) >= BOXES]
    if not cells:
        return None
    sheet, axes = row_sheet(report, cells, ("oracle", "unfinished", "samples"))
    for y, cell in enumerate(cells):
        values = np.asarray((score(cell) or {})["per_repeat"])
        low, first, middle, third, high = np.quantile(values, (0, 0.25, 0.5, 0.75, 1))
        axes.plot([low, high], [y, y], color=colour("blue"), lw=1, zorder=1, label="_" if y else "all repeats")
        axes.add_collection(PolyCollection([((first, y - 0.3), (first, y + 0.3), (third, y + 0.3), (third, y - 0.3))],
                                           facecolor=colour("sky"), edgecolor=colour("blue"), linewidth=0.8, zorder=2,
                                           label="_" if y else "middle half"))
        axes.plot([middle, middle], [y - 0.3, y + 0.3], color=colour("text"), lw=1.4, zorder=3,
                  label="_" if y else "median")
        axes.plot(values, [y] * len(values), "o", color=colour("orange"), ms=3, zorder=4,
                  label="_" if y else "one repeat")
    axes.set_xlabel(report["metric"])
    legend(axes, sheet, 4)
    return sheet.chart("repeats", "Spread over repeats", "Each repeat asks the same questions again.",
                       [{"cell": c["label"], "repeat": i, "mean": value} for c in cells
                        for i, value in enumerate((score(c) or {})["per_repeat"])])


def places(report: Mapping[str, Any]) -> Chart | None:
    """How often the answer at each place of a view is taken over."""
    cells = [c for c in report["cells"] if len({p["place"] for p in c["places"]}) > 1]
    if not cells:
        return None
    data = [{"cell": c["label"], **p} for c in cells for p in c["places"]]
    most = max(p["place"] for p in data)
    values = np.full((len(cells), most), np.nan)
    for y, cell in enumerate(cells):
        for x in range(1, most + 1):
            own = [p for p in cell["places"] if p["place"] == x]
            if own:
                values[y, x - 1] = sum(p["adopted"] for p in own) / sum(p["opportunities"] for p in own)
    about = ("oracle", "unfinished", "samples")
    caption = ("Shares of the answers that one peer alone had given in the round before, differently from the agent, "
               "and that were the agent's next answer. The first place is what stands first in its prompt.")
    if len(cells) > LINES:
        sheet = table(report, cells, [("taken over, by place in the view", values)], about=about, separate=True,
                      across="place in the view")
        return sheet.chart("places", "Power of a place in the view", caption, data)
    texts = names(report, cells)
    sheet = Sheet(report, about, plot=2.4, top=0.2 + 0.2 * len(texts), bottom=0.55)
    axes = sheet.axes()
    draw(axes, report, cells, values, texts)
    axes.set_xticks(range(1, most + 1))
    axes.set_xlim(0.7, most + 0.3)
    axes.set_ylim(0, 1.1 * (float(np.nanmax(values)) or 1.0))
    axes.set_xlabel("place in the view")
    axes.set_ylabel("taken over")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1 + 0.05 / sheet.plot), borderaxespad=0, handlelength=3)
    return sheet.chart("places", "Power of a place in the view", caption, data)


def challenges(report: Mapping[str, Any]) -> Chart | None:
    """How often answers are challenged after the decision, and what comes of it."""
    data = [{"cell": c["label"], **found} for c in report["cells"] for found in c["challenges"]]
    if not data:
        return None
    texts = distinct([f"{row['cell']}: {row['setting']}" if len(report["cells"]) > 1 else row["setting"]
                      for row in data], 52)
    sheet = Sheet(report, ("oracle", "unfinished", "repeats", "samples"), plot=ROW * len(data) + 0.15,
                  left=margin(texts), top=0.55)
    axes = sheet.axes()
    rows(axes, texts)
    start = np.zeros(len(data))
    for part, (name, hatch, meaning) in _OUTCOMES.items():
        wide = np.array([row[part] for row in data])
        axes.add_collection(PolyCollection(
            [((a, y - 0.35), (a, y + 0.35), (a + b, y + 0.35), (a + b, y - 0.35))
             for y, (a, b) in enumerate(zip(start, wide, strict=True))], facecolor=colour(name), hatch=hatch,
            edgecolor=colour("page"), linewidth=0.5, label=meaning))
        start = start + wide
    axes.set_xlim(0, max(0.05, 1.1 * max(row["rate"] for row in data)))
    axes.set_xlabel("share of agents that challenge the decision, by how their new answer scores beside it")
    legend(axes, sheet, 3)
    return sheet.chart("challenges", "Challenges of the decision",
                       "Means over debates in which it is known which answers are right; the parts of a bar are the "
                       "challengers' new answers, by whether they score higher than, the same as, or lower than the "
                       "debate's.", data)


def alterations(report: Mapping[str, Any]) -> Chart | None:
    """What votes would have decided with the candidates presented in other ways."""
    data = [{"cell": c["label"], **a, "right": a["right"] if c["judges"] else None}
            for c in report["cells"] for a in c["alterations"]]
    if not data:
        return None
    texts = distinct([f"{row['cell']}: {row['presentation']}" if len(report["cells"]) > 1 else row["presentation"]
                      for row in data], 52)
    sheet = Sheet(report, ("oracle", "unfinished", "samples"), plot=ROW * len(data) + 0.15, left=margin(texts),
                  top=0.55)
    axes = sheet.axes()
    rows(axes, texts)
    judged = [(row["right"], y) for y, row in enumerate(data) if row["right"] is not None]
    if judged:
        axes.plot(*zip(*judged, strict=True), "o", color=colour("blue"), ms=5, label="right")
    axes.plot([row["undecided"] for row in data], range(len(data)), "x", color=colour("red"), ms=5, label="undecided")
    axes.set_xlim(-0.02, 1.02)
    axes.set_xlabel("share of last votes")
    legend(axes, sheet, 2)
    unknown = "" if len(judged) == len(data) else (
        " Shares of right ones are not shown where references are not spelled as answers are.")
    return sheet.chart("alterations", "Votes with other presentations of the candidates",
                       "Of the last vote of each debate in which it is known which answers are right; only the "
                       f"official presentation decided.{unknown}", data)
