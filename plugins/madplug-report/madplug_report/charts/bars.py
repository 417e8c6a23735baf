"""Charts with a row for each cell: accuracy, how debates ended, seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.collections import PolyCollection
from matplotlib.ticker import MaxNLocator

from madplug_report.charts import Chart
from madplug_report.charts.style import ROW, TALL, Sheet, colour, legend, logarithmic, margin, names, rows, score
from madplug_report.csvs import spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARTS = {"agreed": ("blue", "", "agreed: the protocol's own rule was met"),
         "decided": ("sky", "", "decided without that"), "fallback": ("orange", "///", "answer of a fallback"),
         "undecided": ("grey", "", "undecided"), "failed": ("red", "xxx", "failed")}
Cells = Sequence[Mapping[str, Any]]


def accuracy(report: Mapping[str, Any]) -> Chart | None:
    """The metric of each cell with its interval, and the repeats."""
    metric = report["metric"]
    cells = [c for c in report["cells"] if score(c)]
    if not cells:
        return None
    sheet, axes = row_sheet(report, cells, ("oracle", "unfinished", "repeats", "samples", "uneven", "failed"))
    found = [f for c in cells if (f := score(c))]
    _means(axes, found)
    base = next((f for c in cells if c["cell"] == report["baseline"] and (f := score(c))), None)
    if base:
        axes.axvline(base["mean"], color=colour("quiet"), lw=0.8, ls="--", label="baseline", zorder=1)
    if all(0 <= x <= 1 for f in found for x in f["per_repeat"]):
        axes.set_xlim(-0.02, 1.02)
    judged = "accuracy" in metric
    decided = judged and all(c["decides"] for c in cells)
    axes.set_xlabel(f"{metric}; undecided debates count as wrong, failed ones not at all" if decided else metric)
    legend(axes, sheet, 4)
    title = "Accuracy with intervals" if judged else f"{metric} with intervals"
    return sheet.chart("accuracy", title,
                       "The interval says how far the mean would move with other samples of the same kind.",
                       [{"cell": c["label"], **spread(f), **{f"repeat {k}": x for k, x in enumerate(f["per_repeat"])}}
                        for c in cells if (f := score(c))])


def _means(axes: Axes, found: Sequence[Mapping[str, Any]]) -> None:
    repeats = [(x, y) for y, f in enumerate(found) if len(f["per_repeat"]) > 1 for x in f["per_repeat"]]
    if repeats:
        axes.plot(*zip(*repeats, strict=True), "|", color=colour("orange"), ms=8, mew=1.2, label="one repeat", zorder=2)
    known = [(y, *f["ci95"]) for y, f in enumerate(found) if f["ci95"]]
    if known:
        axes.hlines(*zip(*known, strict=True), color=colour("blue"), lw=1.6, label="95% interval", zorder=3)
    axes.plot([f["mean"] for f in found], range(len(found)), "o", color=colour("blue"), ms=5, label="mean", zorder=4)


def outcomes(report: Mapping[str, Any]) -> Chart:
    """How debates ended."""
    cells = [c for c in report["cells"] if c["debates"]]
    sheet, axes = row_sheet(report, cells, ("oracle", "unfinished", "samples"))
    start = [0.0] * len(cells)
    for part, (name, hatch, meaning) in PARTS.items():
        shares = [c["outcomes"][part] / c["debates"] for c in cells]
        corners = [((a, y - 0.35), (a, y + 0.35), (a + b, y + 0.35), (a + b, y - 0.35))
                   for y, (a, b) in enumerate(zip(start, shares, strict=True)) if b]
        if corners:
            axes.add_collection(PolyCollection(corners, facecolor=colour(name), hatch=hatch, label=meaning,
                                               edgecolor=colour("page"), linewidth=0.5))
        start = [a + b for a, b in zip(start, shares, strict=True)]
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of debates")
    legend(axes, sheet, 3)
    return sheet.chart("outcomes", "How debates ended",
                       "A decision succeeds where its own rule is met; a fallback never does.",
                       [{"cell": c["label"], "debates": c["debates"], **c["outcomes"]} for c in cells])


def seconds(report: Mapping[str, Any]) -> Chart | None:
    """How long debates took."""
    cells = [c for c in report["cells"] if c["seconds"]]
    if not any(c["seconds"][-1] for c in cells):
        return None
    sheet, axes = row_sheet(report, cells, ("oracle", "unfinished", "samples"))
    low, quarter, middle, three, high = zip(*(c["seconds"] for c in cells), strict=True)
    axes.hlines(range(len(cells)), low, high, color=colour("blue"), lw=1, label="5% to 95%")
    axes.hlines(range(len(cells)), quarter, three, color=colour("blue"), lw=5, label="middle half")
    axes.plot(middle, range(len(cells)), "o", color=colour("page"), mec=colour("blue"), ms=4.5, label="median")
    least, most = min(low), max(high)
    if least > 0 and most > 30 * least:
        logarithmic(axes)
    else:
        axes.set_xlim(left=0)
    axes.set_xlabel("seconds per debate, waiting for other debates included")
    legend(axes, sheet, 3)
    return sheet.chart("seconds", "Seconds per debate",
                       "Debates wait for each other, and a cell whose completions another has paid for is quicker: "
                       "these are seconds of this run, not of the method.",
                       [{"cell": c["label"], **dict(zip(("q05", "q25", "median", "q75", "q95"), c["seconds"],
                                                        strict=True))} for c in cells])


def rounds(report: Mapping[str, Any]) -> Chart | None:
    """How many rounds debates had: a bar for each number in the row of each cell, and the mean."""
    cells = [c for c in report["cells"] if c["rounds"]]
    if not cells:
        return None
    sheet, axes = row_sheet(report, cells, ("oracle", "unfinished", "samples"))
    bars, means = [], []
    for y, cell in enumerate(cells):
        ran, whole = cell["rounds"], sum(cell["rounds"].values())
        for n, k in ran.items():
            half = 0.44 * k / max(ran.values())
            bars.append([(n - 0.2, y - half), (n - 0.2, y + half), (n + 0.2, y + half), (n + 0.2, y - half)])
        means.append(sum(n * k for n, k in ran.items()) / whole)
    axes.add_collection(PolyCollection(bars, facecolor=colour("sky"), edgecolor=colour("blue"), linewidth=0.8,
                                       label="debates that ended after this round"))
    axes.plot(means, range(len(cells)), "|", color=colour("red"), ms=11, mew=2.2, label="mean")
    axes.set_xlim(min(1, *(min(c["rounds"]) for c in cells)) - 0.5, max(max(c["rounds"]) for c in cells) + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("rounds")
    legend(axes, sheet, 2)
    return sheet.chart("rounds", "Rounds until the end", "Of the debates of a cell that did not fail; the highest bar "
                       "of each row is its most common number of rounds.",
                       [{"cell": c["label"], "rounds": n, "debates": k, "mean": mean}
                        for c, mean in zip(cells, means, strict=True) for n, k in c["rounds"].items()])


def row_sheet(report: Mapping[str, Any], cells: Cells, about: Sequence[str]) -> tuple[Sheet, Axes]:
    """A sheet with a row for each cell."""
    texts = names(report, cells)
    top = 0.75 if len(cells) > TALL else 0.55
    sheet = Sheet(report, about, plot=ROW * len(cells) + 0.15, left=margin(texts), top=top)
    axes = sheet.axes()
    rows(axes, texts)
    return sheet, axes
