"""Charts of a report, as SVG that can be embedded in a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Chart:
    """A chart: its name, what it shows, and the picture."""

    name: str
    title: str
    caption: str
    svg: str


def charts(report: Mapping[str, Any]) -> list[Chart]:
    """Every chart there is something for."""
    from madplug_report.charts import bars, cost, heat, lines
    from madplug_report.charts.style import settings

    if not any(cell["debates"] for cell in report["cells"]):
        return []
    with settings():
        made = [bars.accuracy(report), cost.against(report), heat.surface(report), bars.outcomes(report),
                heat.rounds(report), lines.changes(report), lines.dynamics(report), bars.seconds(report)]
    return [chart for chart in made if chart is not None]
