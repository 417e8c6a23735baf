"""Progress in a notebook: one line that is updated in the output of the cell."""

from __future__ import annotations

import sys
import time
from typing import Any

from madplug.cli.progress import ProgressText
from madplug.cli.terminal import Terminal
from madplug.context import Run
from madplug.events import DebateFinished, MessageRecorded

EVERY = 0.5
"""Seconds between two updates."""


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook, without importing anything."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def progress_observers(*, quiet: bool) -> list[Terminal]:
    """What shows the progress of a study that Python code runs: in a notebook or a terminal, nothing elsewhere."""
    if quiet:
        return []
    if in_notebook():
        return [NotebookProgress()]
    terminal = Terminal()
    return [terminal] if terminal.console.is_terminal else []


class NotebookProgress(Terminal):
    """Shows the progress of a run in the output of a notebook's cell."""

    name = "notebook"

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self._display: Any = None
        self._shown = 0.0

    def open(self, run: Run) -> None:
        """Show the first line."""
        from IPython.display import display

        self._run = run
        self._progress = ProgressText(run.progress, run.planned)
        self._display = display(self._line(), display_id=True)

    def close(self) -> None:
        """Show the last figures."""
        if self._display is not None:
            self._display.update(self._line())
            self._display = None

    def message_recorded(self, event: MessageRecorded) -> None:
        """Update the line."""
        self._update()

    def debate_finished(self, event: DebateFinished) -> None:
        """Count the debate."""
        super().debate_finished(event)
        self._update()

    def _update(self) -> None:
        if self._display is not None and time.monotonic() - self._shown >= EVERY:
            self._shown = time.monotonic()
            self._display.update(self._line())

    def _line(self) -> Any:
        from IPython.display import HTML

        from madplug.markup import progress_line

        assert self._run is not None
        return HTML(progress_line(self._run.study, self._done + self._failed, self._run.planned, self.figures()))
