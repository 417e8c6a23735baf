"""The tables that a report is asked for, as charts: bars, or lines over a factor whose levels are numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from matplotlib.ticker import MaxNLocator

from madplug_report.charts import Chart
from madplug_report.charts.curves import bar, bars_are
from madplug_report.charts.style import DASHES, MARKERS, ROW, SERIES, Sheet, colour, columns, margin, rows
from madplug_report.csvs import spread
from madplug_report.escape import distinct
from madplug_report.factors import number
from madplug_report.tables import NOTHING

MOST = 60
"""A table with more fields than this is read as a table, unless it is lines."""
LINES = 6
HATCHES = ("", "///", "...", "xxx")
_HIGH = 0.16
"""Inches of a single bar."""
Fields = Sequence[tuple[str, Sequence[tuple[str, Mapping[str, Any]]]]]
"""By group (a row of the table) its bars: what each is called, and its mean."""


def pictured(report: Mapping[str, Any]) -> Iterator[Chart]:
    """A chart of each table by factors that somebody asked for."""
    for i, table in enumerate((t for t in report["pivots"] if t["asked"]), 1):
        groups = _groups(table)
        metrics = list(dict.fromkeys(f["metric"] for _, fields in groups for _, f in fields))
        series = list(dict.fromkeys(label for _, fields in groups for label, _ in fields))
        places = [number(label) for label, _ in groups]
        if not metrics:
            continue
        if len(groups) > 1 and None not in places and len(series) <= LINES:
            sheet = _lines(report, [x for x in places if x is not None], groups, series, table, metrics)
        elif len(groups) * len(series) <= MOST:
            sheet = _bars(report, groups, metrics if "metric" in table["column_factors"] else [""])
        else:
            continue
        for axes in sheet.figure.axes[:1] if table["by"] else ():
            axes.set_xlabel(f"{axes.get_xlabel()} ({', '.join(table['by'].values())})")
        yield _chart(report, table, sheet, groups, metrics, f"table{f'-{i}' if i > 1 else ''}")


def _groups(table: Mapping[str, Any]) -> Fields:
    """The rows, or the columns where these are numbers or all that there is."""
    labels, across = [row["label"] or NOTHING for row in table["rows"]], [c["label"] for c in table["columns"]]
    fields = table["fields"]
    turned = len(across) > 1 and (len(labels) == 1 or all(number(label) is not None for label in across))
    if turned and not all(number(label) is not None for label in labels):
        labels, across, fields = across, labels, list(zip(*fields, strict=True))
    return [(label, [(name, field) for name, field in zip(across, line, strict=True) if field])
            for label, line in zip(labels, fields, strict=True)]


def _bars(report: Mapping[str, Any], groups: Fields, panels: Sequence[str]) -> Sheet:
    """Groups of bars; of metrics in columns each has a panel, because their scales differ."""
    texts = distinct([label for label, _ in groups], 52)
    series = list(dict.fromkeys(_bare(label, field) for _, fields in groups for label, field in fields))
    wide = len(series)
    above = -(-wide // columns(series)) if wide > 1 else 0
    sheet = Sheet(report, ("oracle", "unfinished", "repeats", "samples", "uneven"), left=margin(texts), bottom=0.6,
                  plot=max(ROW, _HIGH * wide + 0.08) * len(groups), top=0.15 + 0.2 * above)
    for k, panel in enumerate(panels):
        axes = sheet.axes(k / len(panels), 1 / len(panels) - 0.03 * (len(panels) > 1))
        rows(axes, texts if k == 0 else [""] * len(texts))
        for y, (_, fields) in enumerate(groups):
            for label, field in fields:
                if panel in ("", field["metric"]):
                    _bar(axes, y, field, series.index(_bare(label, field)), wide, _bare(label, field))
        axes.margins(x=0.06)
        measured = dict.fromkeys(f["metric"] for _, fields in groups for _, f in fields)
        axes.set_xlabel(panel or _shared([*measured]))
        axes.xaxis.set_major_locator(MaxNLocator(max(2, 8 // len(panels))))
        if wide > 1 and k == 0:
            found = dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
            named = sorted(found, key=series.index)
            axes.legend([found[name] for name in named], named, loc="lower left", borderaxespad=0,
                        ncols=columns(named), bbox_to_anchor=(0, 1 + 0.05 / sheet.plot))
    return sheet


def _shared(metrics: Sequence[str]) -> str:
    """What is measured; of more metrics than can be listed, what their names share."""
    text = ", ".join(metrics)
    parts = zip(*(name.split(".") for name in metrics), strict=False)
    return text if len(text) < 100 else ".".join(part[0] if len(set(part)) == 1 else "*" for part in parts)


def _bare(label: str, field: Mapping[str, Any]) -> str:
    """What a bar is called beside its metric, which is on the axis."""
    return label.removesuffix(field["metric"]).removesuffix(", ")


def _bar(axes: Any, y: int, field: Mapping[str, Any], k: int, wide: int, label: str) -> None:
    high = 0.8 / wide
    at = y - 0.4 + high * (k + 0.5)
    axes.barh(at, field["mean"], high * 0.92, color=colour(SERIES[k % len(SERIES)]), label=label,
              hatch=HATCHES[k // len(SERIES) % len(HATCHES)], edgecolor=colour("page"), linewidth=0.5, zorder=2)
    ends = bar(field)
    if ends:
        axes.plot(ends, [at, at], color=colour("text"), lw=1, marker="|", ms=4, zorder=3)


def _lines(report: Mapping[str, Any], places: Sequence[float], groups: Fields, series: Sequence[str],
           table: Mapping[str, Any], metrics: Sequence[str]) -> Sheet:
    """A line for each series over the numbers."""
    sheet = Sheet(report, ("oracle", "unfinished", "repeats", "samples", "uneven"), plot=3.0, left=0.6, top=0.4)
    axes = sheet.axes()
    for k, name in enumerate(series):
        points = [(x, field) for x, (_, fields) in zip(places, groups, strict=True) for label, field in fields
                  if label == name]
        axes.plot([x for x, _ in points], [f["mean"] for _, f in points], color=colour(SERIES[k]), ls=DASHES[k], lw=1.5,
                  marker=MARKERS[k] if len(places) <= 20 else "", ms=5, label=name)
        for x, field in points if len(places) <= 20 else ():
            axes.plot([x, x], bar(field) or [field["mean"]] * 2, color=colour(SERIES[k]), lw=1, marker="_", ms=5)
    factors = [*table["row_factors"], *table["column_factors"]]
    axes.set_xlabel(next((f for f in factors if any(c["factors"].get(f) == groups[0][0] for c in report["cells"])), ""))
    axes.set_ylabel(_shared(metrics))
    axes.xaxis.set_major_locator(MaxNLocator(integer=all(x == int(x) for x in places)))
    if len(series) > 1:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1 + 0.05 / sheet.plot), ncols=len(series), borderaxespad=0)
    return sheet


def _chart(report: Mapping[str, Any], table: Mapping[str, Any], sheet: Sheet, groups: Fields, metrics: Sequence[str],
           name: str) -> Chart:
    found = [(row, label, f) for row, fields in groups for label, f in fields]
    by, factors = ", ".join(table["by"].values()), [*table["row_factors"], *table["column_factors"]]
    title = f"{_shared(metrics)} by {' and '.join(factors)}" + (f": {by}" if by else "")
    bars = bars_are([f for _, _, f in found], report["spread_of"])
    return sheet.chart(name, title, f"The thin lines are the {bars}.", [
        {"row": row, "column": label, "metric": f["metric"], **spread(f)} for row, label, f in found])
