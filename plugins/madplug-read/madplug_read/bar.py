"""Live progress of a run on the terminal: a bar, or elsewhere a line every few seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text
from typing_extensions import override

from madplug import Run, safe
from madplug_read.console import Stderr, print_line
from madplug_read.progress import ProgressObserver

BAR = 10
"""Characters of the bar."""
PLAIN_EVERY = 10.0
"""Seconds between two lines, if standard error is not a terminal."""


class Terminal(ProgressObserver):
    """Shows the progress of a run on standard error, as long as anything reads it."""

    name = "terminal"

    def __init__(self, console: Console | None = None) -> None:
        super().__init__()
        self._console = console or Stderr()
        self._bar: Progress | None = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    @override
    def open(self, run: Run) -> None:
        super().open(run)
        if self._console.is_terminal:
            self._bar = Progress(TextColumn("{task.description}"), BarColumn(bar_width=BAR), MofNCompleteColumn(),
                                 _Figures(self.figures, self._console), console=self._console, transient=True,
                                 refresh_per_second=4)
            self._task = self._bar.add_task("debates", total=run.planned)
            self._bar.start()
        else:
            self._thread = threading.Thread(target=self._print_lines, name="madplug-terminal", daemon=True)
            self._thread.start()

    @override
    def close(self) -> None:
        self._over.set()
        if self._bar:
            with suppress(OSError):
                self._bar.stop()
            self._bar = None
        if self._thread:
            self._thread.join()
            self._thread = None

    @override
    def _show(self) -> None:
        if self._bar:
            self._bar.update(self._task, completed=self.ended)

    @override
    def _warn(self, text: str) -> None:
        print_line(self._console, [f"warning: {safe(text)}"])

    def _print_lines(self) -> None:
        while not self._over.wait(PLAIN_EVERY):
            counted = f"{self.ended}{f'/{self._run.planned}' if self._run.planned else ''} debates  "
            print_line(self._console, [counted, self.figures()])


class _Figures(ProgressColumn):
    """The current figures of a run."""

    def __init__(self, figures: Callable[[int], str], console: Console) -> None:
        super().__init__()
        self._figures = figures
        self._console = console

    @override
    def render(self, task: Task) -> Text:
        # As much as fits on the line, after the name, the bar and the count.
        counted = len(f"{task.total:.0f}") * 2 + 1 if task.total is not None else len(f"{task.completed:.0f}/?")
        return Text(self._figures(self._console.width - len("debates ") - BAR - 1 - counted - 1))
