"""Notebooks: studies and debates as pages, and progress as a line that is updated."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from typing import Any

from typing_extensions import override

from madplug import MessageRecorded, Run
from madplug_read.progress import ProgressObserver

EVERY = 0.5
"""Seconds between two updates."""
PAGES = {("madplug.records", "DebateResult"): "debate_page", ("madplug.cli.api", "StudyResult"): "study_page",
         ("madplug.store.reading", "Reader"): "reader_page",
         ("madplug.store.recorder", "Recorder"): "reader_page",
         ("madplug.store.recorder", "MemoryStore"): "reader_page"}
"""The function of `markup` that draws the records of a class, by the class's module and name."""


def shell() -> Any:
    """The running IPython, or None; nothing is imported to find out."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def show_pages(shell: Any) -> None:
    """Let IPython show records as pages. By name, so that it starts without importing what it may never show."""
    for (module, name), drawn_by in PAGES.items():
        shell.display_formatter.formatters["text/html"].for_type_by_name(module, name, _drawn(drawn_by))


def _drawn(name: str) -> Any:
    def draw(record: Any) -> str:
        from madplug_read import markup

        return str(getattr(markup, name)(record))

    return draw


class NotebookProgress(ProgressObserver):
    """Shows the progress of a run in the output of a notebook's cell."""

    name = "notebook"

    def __init__(self) -> None:
        super().__init__()
        self._display: Any = None
        self._shown = 0.0

    @override
    def open(self, run: Run) -> None:
        super().open(run)
        self._display = import_module("IPython.display").display(self._line(), display_id=True)

    @override
    def close(self) -> None:
        if self._display is not None:
            self._display.update(self._line())
            self._display = None

    @override
    def message_recorded(self, event: MessageRecorded) -> None:
        self._show()

    @override
    def _show(self) -> None:
        if self._display is not None and time.monotonic() - self._shown >= EVERY:
            self._shown = time.monotonic()
            self._display.update(self._line())

    def _line(self) -> Any:
        from madplug_read.markup import progress_line

        line = progress_line(self._run.study, self.ended, self._run.planned, self.figures())
        return import_module("IPython.display").HTML(line)
