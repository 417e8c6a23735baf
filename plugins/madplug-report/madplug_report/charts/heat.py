"""Charts of shaded fields: how many rounds debates had, and accuracy by agents and rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np

from madplug_report.charts import Chart
from madplug_report.charts.style import ROW, Sheet, colour, label_rows, margin, names, score
from madplug_report.escape import shortened

SHADES = "cividis"
PANELS = 24
WRITTEN = 400
"""Fields of larger tables have no numbers; they are in report.json."""
MIDDLE = 0.179
"""The relative luminance beside which black and white stand out equally."""


def fields(axes: Any, values: Any, low: float, high: float, write: str = "", *, zeros: bool = True) -> Any:
    """A table of shaded fields, the first row on top, with numbers that can be read on their shade.

    zeros: they are written; without it, only what is above 0 is.
    """
    shades = mpl.colormaps[SHADES]
    mesh = axes.pcolormesh(np.ma.masked_invalid(values), cmap=shades, vmin=low, vmax=high, edgecolors=colour("page"),
                           linewidth=0.6)
    axes.grid(False)
    for (y, x), value in np.ndenumerate(values) if write else ():
        if math.isfinite(value) and (value or zeros):
            shade = shades((value - low) / (high - low or 1))
            axes.text(x + 0.5, y + 0.5, format(value, write), ha="center", va="center", fontsize=7,
                      color="black" if luminance(shade) > MIDDLE else "white")
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0)
    axes.set_ylim(len(values), 0)
    return mesh


def luminance(shade: Sequence[float]) -> float:
    """How light a shade is, from 0 to 1, as WCAG defines it. shade: red, green, blue."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shade[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def scale(sheet: Sheet, mesh: Any, x: float, wide: float, title: str) -> None:
    """What the shades mean, above the plot."""
    bar = sheet.axes(x, wide, 1 + 0.1 / sheet.plot, 0.1 / sheet.plot)
    shades = sheet.figure.colorbar(mesh, cax=bar, orientation="horizontal").solids
    if shades is not None:
        shades.set(rasterized=False, edgecolor="face")  # a picture in the picture is what the page's policy forbids
    bar.xaxis.set_ticks_position("top")
    bar.tick_params(labelsize=7, length=2, pad=1)
    bar.set_title(title, loc="left", pad=13)
    bar.grid(False)


def table(report: Mapping[str, Any], cells: Sequence[Mapping[str, Any]], panels: Sequence[tuple[str, Any]], *,
          about: Sequence[str], separate: bool, first: int = 1, across: str = "round", zeros: bool = True) -> Sheet:
    """Panels side by side: a row for each cell, a column for each round or place; `separate`: one scale each."""
    texts = names(report, cells)
    sheet = Sheet(report, about, plot=ROW * len(cells), left=margin(texts), top=0.7)
    columns = max(values.shape[1] for _, values in panels)
    each = 1 / len(panels)
    highest = [float(np.nanmax(values)) or 1.0 for _, values in panels]
    for i, (title, values) in enumerate(panels):
        part = each * (0.95 if len(panels) > 1 else 1)
        axes = sheet.axes(i * each, part)
        wide = sheet.inner * part / columns
        few = wide > 0.34 and values.size * len(panels) <= WRITTEN
        mesh = fields(axes, values, 0.0, highest[i] if separate else max(highest), ".2f" if few else "",
                      zeros=zeros)
        axes.set_yticks([])
        label_rows(axes, np.arange(len(texts)) + 0.5, texts if i == 0 else [""] * len(texts))
        shown = np.arange(0, values.shape[1], max(1, math.ceil(0.25 / wide)))
        axes.set_xticks(shown + 0.5, [str(c + first) for c in shown])
        axes.set_xlabel(across)
        scale(sheet, mesh, i * each, min(part * 0.85, 2.2 / sheet.inner), title)
    return sheet


def _sides(axes: Any, agents: Sequence[int], counts: Sequence[int]) -> None:
    axes.set_xticks(np.arange(len(counts)) + 0.5, [str(c) for c in counts])
    axes.set_yticks(np.arange(len(agents)) + 0.5, [str(a) for a in agents])
    axes.set_ylim(0, len(agents))
    axes.set_xlabel("rounds")


def surface(report: Mapping[str, Any]) -> Chart | None:
    """The metric over agents and rounds, a panel for each set of cells that differ in nothing else."""
    metric, surfaces = report["metric"], report["surfaces"][:PANELS]
    if not surfaces:
        return None
    by_name = {c["cell"]: c for c in report["cells"]}
    mean = {name: found["mean"] for name, c in by_name.items() if (found := score(c))}
    across = min(3, len(surfaces))
    down = -(-len(surfaces) // across)
    agents = sorted({a for s in surfaces for a, _, _ in s["points"]})
    counts = sorted({r for s in surfaces for _, r, _ in s["points"]})
    tall = max(1.0, 0.26 * len(agents))
    about = ("oracle", "unfinished", "repeats", "samples", "uneven")
    sheet = Sheet(report, about, plot=down * (tall + 0.8), top=0.6, bottom=0.05)
    shown = [mean[name] for s in surfaces for _, _, name in s["points"]]
    wide = sheet.inner * 0.88 / across / len(counts)
    for i, s in enumerate(surfaces):
        y = 1 - (i // across + 1) / down + 0.5 / sheet.plot
        axes = sheet.axes(i % across / across, 0.88 / across, y, tall / sheet.plot)
        values = np.full((len(agents), len(counts)), np.nan)
        for a, r, name in s["points"]:
            values[agents.index(a), counts.index(r)] = mean[name]
        mesh = fields(axes, values, min(shown), max(shown), ".2f" if wide > 0.34 else "")
        axes.set_ylabel("agents" if i % across == 0 else "")
        _sides(axes, agents, counts)
        mark = " (oracle)" if any(by_name[name]["oracle"] for _, _, name in s["points"]) else ""
        axes.set_title(shortened(f"{s['of']}{mark}", int(sheet.inner / across / 0.085)), loc="left", fontsize=8)
    scale(sheet, mesh, 0, 2.2 / sheet.inner, metric)
    left = len(report["surfaces"]) - len(surfaces)
    more = f" {left} more surfaces are in report.json." if left else ""
    return sheet.chart("surface", "Agents by rounds",
                       f"{metric} of each number of agents and rounds, other settings being equal. Neighbouring fields "
                       f"differ by chance too: see the intervals.{more}",
                       [{"of": s["of"], "agents": a, "rounds": r, "mean": mean[name]} for s in report["surfaces"]
                        for a, r, name in s["points"] if name in mean])
