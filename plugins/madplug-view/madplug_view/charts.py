"""The charts of `madplug report`, where it is installed; drawn by a process of its own, whose memory goes with it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from madplug import UserError, python_command

MOST_SECONDS = 300
_MAIN = """
from madplug_view.charts import _main
_main(*sys.argv[1:])
"""


def can_draw() -> bool:
    """Whether the report is installed."""
    return find_spec("madplug_report") is not None


def draw(folder: Path) -> list[dict[str, Any]]:
    """The charts of a study: `name`, `title`, `caption`, `svg`. Raises `UserError` with what the report said."""
    if not can_draw():
        raise UserError("the charts are madplug-report's: pip install madplug-report")
    command = python_command(_MAIN, str(folder))
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        raise UserError(f"the charts take more than {MOST_SECONDS} s; draw them with madplug report") from None
    if done.returncode:
        raise UserError(f"the charts cannot be drawn: {(done.stderr.strip().splitlines() or ['unknown error'])[-1]}")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def _main(folder: str) -> None:
    from madplug_report.building import build
    from madplug_report.charts import charts
    from madplug_report.charts.style import css

    try:
        found = charts(build([Path(folder)]))
    except UserError as error:
        sys.exit(str(error))
    style = f"<style>{css()}</style>"
    print(json.dumps([{"name": c.name, "title": c.title, "caption": c.caption,
                       "svg": _with_style(c.svg, style)} for c in found]))


def _with_style(svg: str, style: str) -> str:
    """A chart as a file of its own, with the colours for light and dark pages."""
    end = svg.index(">") + 1
    return svg[:end] + style + svg[end:]
