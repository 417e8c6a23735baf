"""The metric over a number that was swept: agents, rounds, samples, a share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from madplug_report.charts import Chart
from madplug_report.charts.style import DASHES, MARKERS, SERIES, Sheet, colour, score
from madplug_report.csvs import spread
from madplug_report.factors import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINES = 6
"""Of more lines each is grey, and their mean is drawn."""
Point = tuple[float, Mapping[str, Any]]


def curves(report: Mapping[str, Any], fit: str | None = None) -> list[Chart]:
    """A chart for each factor whose levels are numbers."""
    made = []
    for factor in report["factors"]:
        levels = [x for level in factor["levels"] if (x := number(level)) is not None]
        lines = _lines(report, factor["name"])
        if len(levels) > 1 and any(len({x for x, _ in line}) > 1 for line in lines.values()):
            made.append(_chart(report, factor["name"], lines, fit))
    return made


def _lines(report: Mapping[str, Any], factor: str) -> dict[str, list[Point]]:
    """The points of each line: cells that differ in nothing else."""
    found: dict[str, list[Point]] = {}
    for cell in report["cells"]:
        x, own = number(cell["factors"][factor]), score(cell)
        if x is None or own is None or cell["named"]:
            continue
        rest = ", ".join(_level(name, level) for name, level in cell["factors"].items() if name != factor
                         and _varied(report, name, factor))
        found.setdefault(rest, []).append((x, own))
    return {name: sorted(line, key=lambda p: p[0]) for name, line in found.items()}


def _level(name: str, level: str) -> str:
    return level if number(level) is None and level not in ("none", "true", "false") else f"{name}={level}"


def _varied(report: Mapping[str, Any], name: str, factor: str) -> bool:
    return len({c["factors"][name] for c in report["cells"] if not c["named"]}) > 1 and name != factor


def _chart(report: Mapping[str, Any], factor: str, lines: Mapping[str, Sequence[Point]], fit: str | None) -> Chart:
    few = len(lines) <= LINES
    down = (len(lines) if max(map(len, lines)) > 24 else -(-len(lines) // 3)) if few else 1
    sheet = Sheet(report, ("oracle", "unfinished", "repeats", "samples", "uneven"), plot=3.2, left=0.6,
                  top=0.2 + 0.2 * down)
    axes = sheet.axes()
    drawn = dict(lines) if few else {"mean of the lines": _mean(lines), **lines}
    rows = []
    for k, (name, line) in enumerate(drawn.items()):
        rows += [{factor: x, "line": name, **spread(own)} for x, own in line] if few or k else []
        look = k if few else 0 if k == 0 else None
        _draw(axes, name, line, look, bars=few)
        if fit and (few or k == 0):
            rows.append({"line": name, "fit": fit, **_fit(axes, line, fit, look or 0)})
    _scale(axes, sorted({x for line in lines.values() for x, _ in line}), factor)
    axes.set_ylabel(str(report["metric"]))
    axes.set_xlabel(factor)
    if few and (len(lines) > 1 or next(iter(lines))):
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1 + 0.05 / sheet.plot), ncols=-(-len(lines) // down),
                    borderaxespad=0, handlelength=3)
    elif not few:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1 + 0.05 / sheet.plot), borderaxespad=0)
    bars = f"Bars are the {bars_are([own for line in lines.values() for _, own in line], 'over repeats')}."
    caption = (f"Each line is of cells that differ in {factor} alone. {bars if few else ''}"
               f"{_said(rows) if fit else ''}".strip())
    return sheet.chart(f"over-{_file(factor)}", f"{report['metric']} over {factor}", caption, rows)


def _file(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name)


def _mean(lines: Mapping[str, Sequence[Point]]) -> list[Point]:
    """The mean of the lines at each place that all of them have."""
    shared = set.intersection(*({x for x, _ in line} for line in lines.values()))
    return [(x, {"mean": float(np.mean([own["mean"] for line in lines.values() for at, own in line if at == x])),
                 "std": None, "ci95": None}) for x in sorted(shared)]


def _draw(axes: Axes, name: str, line: Sequence[Point], look: int | None, *, bars: bool) -> None:
    x, y = [x for x, _ in line], [own["mean"] for _, own in line]
    if look is None:
        axes.plot(x, y, color=colour("grey"), lw=0.7, alpha=0.6, zorder=1)
        return
    shade = colour(SERIES[look])
    axes.plot(x, y, color=shade, marker=MARKERS[look], ls=DASHES[look], lw=1.6, ms=5, label=name, zorder=3)
    for at, own in line if bars else ():
        ends = bar(own)
        if ends:
            axes.plot([at, at], ends, color=shade, lw=1, marker="_", ms=5, alpha=0.8, zorder=2)


def bar(own: Mapping[str, Any]) -> list[float]:
    """The ends of a mean's bar: its std, else its interval."""
    if own["std"] is not None:
        return [own["mean"] - own["std"], own["mean"] + own["std"]]
    return list(own["ci95"] or ())


def bars_are(found: Sequence[Mapping[str, Any]], spread_of: str) -> str:
    """What the bars of these means are, as words. spread_of: what their std is of."""
    interval = "95% interval over samples"
    if all(own["std"] is None for own in found):
        return interval
    some = any(own["std"] is None and own["ci95"] for own in found)
    return f"std {spread_of}{f', or where there is none the {interval}' if some else ''}"


def _scale(axes: Axes, levels: Sequence[float], factor: str) -> None:
    """Every level is a tick; levels that grow by factors have a logarithmic scale."""
    if min(levels) > 0 and max(levels) > 12 * min(levels) and levels[-1] - levels[-2] > 2 * (levels[1] - levels[0]):
        axes.set_xscale("log")
    shown = levels if len(levels) <= 14 else levels[:: -(-len(levels) // 14)]
    axes.xaxis.set_major_locator(FixedLocator(list(shown)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.margins(x=0.06, y=0.12)


def _fit(axes: Axes, line: Sequence[Point], kind: str, look: int) -> dict[str, float | None]:
    """The least-squares line through the means, over the number or its logarithm."""
    x, y = np.array([x for x, _ in line]), np.array([own["mean"] for _, own in line])
    over = np.log(x) if kind == "log" and (x > 0).all() else x
    if len(np.unique(over)) < 2:
        return {"slope": None, "intercept": None, "r2": None}
    slope, intercept = np.polyfit(over, y, 1)
    rest, whole = float(((y - slope * over - intercept) ** 2).sum()), float(((y - y.mean()) ** 2).sum())
    places = np.linspace(x.min(), x.max(), 60)
    axes.plot(places, slope * (np.log(places) if over is not x else places) + intercept, color=colour(SERIES[look]),
              lw=1, ls=(0, (1, 2)), zorder=1)
    return {"slope": float(slope), "intercept": float(intercept), "r2": 1 - rest / whole if whole else None}


def _said(rows: Sequence[Mapping[str, Any]]) -> str:
    fits = [row for row in rows if row.get("slope") is not None]
    texts = [f"{row['line'] or 'slope'}: {row['slope']:+.4f}" + ("" if row["r2"] is None else f" (R² {row['r2']:.2f})")
             for row in fits]
    over = "per e-fold" if fits and fits[0]["fit"] == "log" else "per unit"
    return f" Least squares through the means, slope {over}: {'; '.join(texts)}." if texts else ""
