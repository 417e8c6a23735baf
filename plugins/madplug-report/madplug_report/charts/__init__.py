"""Charts of a report, as SVG that can be embedded in a page, and as files for a paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Chart:
    """A chart: its name, what it shows, the picture, and the numbers in it."""

    name: str
    title: str
    caption: str
    svg: str
    figure: Figure | None = field(default=None, compare=False)
    rows: Sequence[Mapping[str, Any]] = ()


def charts(report: Mapping[str, Any], fit: str | None = None) -> list[Chart]:
    """Every chart there is something for. fit: a regression in charts over a number, `linear` or `log`."""
    from madplug_report.charts import bars, cost, curves, heat, layout, lines, parts, pictures
    from madplug_report.charts.style import settings

    if not any(cell["debates"] for cell in report["cells"]):
        return []
    with settings():
        made = [*layout.pictured(report), bars.accuracy(report), *curves.curves(report, fit), parts.boxes(report),
                cost.against(report), heat.surface(report), bars.outcomes(report), bars.rounds(report),
                lines.by_round(report),
                lines.changes(report), lines.dynamics(report), lines.lone(report), parts.places(report),
                parts.challenges(report), parts.alterations(report), bars.seconds(report),
                *pictures.pictures(report)]
    return [chart for chart in made if chart is not None]


def write_figures(made: Sequence[Chart], folder: Path) -> list[Path]:
    """Each chart as `NAME.svg`, `.pdf` and `.png`, and its numbers as `NAME.csv`."""
    from madplug.study import write_whole
    from madplug_report.charts.style import save, settings
    from madplug_report.csvs import to_csv

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with settings():
        for chart in made:
            if chart.figure is not None:
                written += save(chart.figure, folder / chart.name)
            if chart.rows:
                path = folder / f"{chart.name}.csv"
                write_whole(path, to_csv(chart.rows))
                written.append(path)
    return written
