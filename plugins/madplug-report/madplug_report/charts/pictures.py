"""Pictures that plugins bring as data: what their metrics found about whole cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import FixedLocator, MaxNLocator
from matplotlib.transforms import Bbox

from madplug import Picture, pictures_in
from madplug_report.charts import Chart
from madplug_report.charts.style import DASHES, MARKERS, SERIES, Sheet, colour, columns, names

MOST_SERIES = 12
"""More lines or groups of bars than this are not told apart; the numbers are in the chart's rows."""
Rows = Sequence[Mapping[str, Any]]


def pictures(report: Mapping[str, Any]) -> Iterator[Chart]:
    """Each picture of each metric; cells of a data set that have the same share a chart without series of its own."""
    shared: dict[tuple[str, str, str], list[tuple[str, Picture]]] = {}
    for cell, name in zip(report["cells"], names(report, report["cells"]), strict=True):
        for metric, picture in pictures_in(cell["figures"]):
            alone = picture.series or picture.kind in ("table", "heat")
            of = name if alone else cell["factors"].get("dataset", "")
            shared.setdefault((metric, picture.title, of), []).append((name, picture))
    for number, ((metric, title, of), parts) in enumerate(shared.items(), 1):
        first = parts[0][1]
        by = first.series or "cell"
        rows = [{"cell": name, **row} for name, picture in parts for row in picture.rows]
        sheet = _DRAWN[first.kind](report, first, rows, by)
        more = f" ({of})" if of and len(report["cells"]) > 1 else ""
        caption = f"{first.caption.rstrip('.')}. " if first.caption else ""
        yield sheet.chart(f"picture-{number}", f"{title}{more}", f"{caption}From {metric}.", rows)


def _by(rows: Rows, column: str) -> dict[str, Rows]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(str(row.get(column, "")), []).append(row)
    return dict(list(groups.items())[:MOST_SERIES])


def _sheet(report: Mapping[str, Any], groups: Mapping[str, Rows]) -> Sheet:
    """A sheet with room for the legend above it."""
    return Sheet(report, ("oracle",), plot=2.6, left=0.7, top=0.15 + 0.2 * -(-len(groups) // columns([*groups])),
                 bottom=0.6)


def _line(report: Mapping[str, Any], picture: Picture, rows: Rows, by: str) -> Sheet:
    groups = _by(rows, by)
    sheet = _sheet(report, groups)
    axes = sheet.axes()
    for k, (name, part) in enumerate(groups.items()):
        points = [(_number(row[picture.x]), _number(row[picture.y])) for row in part]
        axes.plot(*zip(*points, strict=True), color=colour(SERIES[k % len(SERIES)]), marker=MARKERS[k % len(MARKERS)],
                  ls=DASHES[k % len(DASHES)], lw=1.5, ms=4, label=name)
    if all(isinstance(row[picture.x], int) for row in rows):
        places = {row[picture.x] for row in rows}
        axes.xaxis.set_major_locator(FixedLocator(sorted(places)) if len(places) < 12 else MaxNLocator(integer=True))
    return _named(sheet, axes, picture)


def _bars(report: Mapping[str, Any], picture: Picture, rows: Rows, by: str) -> Sheet:
    groups = _by(rows, by)
    sheet = _sheet(report, groups)
    axes = sheet.axes()
    places = list(dict.fromkeys(str(row[picture.x]) for row in rows))
    wide = 0.8 / max(1, len(groups))
    for k, (name, part) in enumerate(groups.items()):
        at = [places.index(str(row[picture.x])) + (k - (len(groups) - 1) / 2) * wide for row in part]
        axes.bar(at, [_number(row[picture.y]) for row in part], wide, label=name, color=colour(SERIES[k % len(SERIES)]))
    axes.set_xticks(range(len(places)), [place[:16] for place in places])
    return _named(sheet, axes, picture)


def _heat(report: Mapping[str, Any], picture: Picture, rows: Rows, by: str) -> Sheet:
    across, down = (list(dict.fromkeys(str(row[c]) for row in rows)) for c in (picture.x, picture.y))
    values = np.full((len(down), len(across)), np.nan)
    for row in rows:
        values[down.index(str(row[picture.y])), across.index(str(row[picture.x]))] = _number(row[picture.series])
    sheet = Sheet(report, ("oracle",), plot=max(1.0, 0.3 * len(down)), left=1.4, bottom=0.6)
    axes = sheet.axes()
    axes.imshow(values, aspect="auto", cmap="Blues", origin="upper")
    axes.grid(visible=False)
    axes.set_xticks(range(len(across)), [text[:12] for text in across])
    axes.set_yticks(range(len(down)), [text[:20] for text in down])
    middle = np.nanmean([np.nanmin(values), np.nanmax(values)]) if np.isfinite(values).any() else 0
    for (i, k), value in np.ndenumerate(values) if values.size <= 400 else ():
        if np.isfinite(value):
            axes.text(k, i, f"{value:.3g}", ha="center", va="center", fontsize=7,
                      color="white" if value > middle else "black")
    axes.set_xlabel(picture.x)
    axes.set_ylabel(picture.y)
    return sheet


def _table(report: Mapping[str, Any], picture: Picture, rows: Rows, by: str) -> Sheet:
    columns = [c for c in dict.fromkeys(c for row in rows for c in row) if c != "cell"]
    shown = [[_text(row.get(c)) for c in columns] for row in rows[:40]]
    sheet = Sheet(report, ("oracle",), plot=0.24 * (len(shown) + 1), left=0.2, bottom=0.2)
    axes = sheet.axes()
    axes.set_axis_off()
    made = axes.table(shown or [[""] * len(columns)], colLabels=columns, bbox=Bbox.unit(), edges="horizontal",
                      cellLoc="left", colLoc="left")
    made.auto_set_font_size(False)
    made.set_fontsize(8)
    return sheet


_DRAWN = {"line": _line, "bars": _bars, "heat": _heat, "table": _table}


def _named(sheet: Sheet, axes: Any, picture: Picture) -> Sheet:
    axes.set_xlabel(picture.x)
    axes.set_ylabel(picture.y)
    labels = axes.get_legend_handles_labels()[1]
    if len(labels) > 1:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.02), ncols=columns(labels), borderaxespad=0)
    return sheet


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")


def _text(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)[:40]
