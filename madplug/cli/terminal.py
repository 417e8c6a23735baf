"""Live progress of a run on the terminal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from madplug.cli.progress import ProgressText
from madplug.components import Observer
from madplug.context import Run
from madplug.events import DebateFinished, StudyStarted
from madplug.text import safe

BAR = 10
"""Characters of the bar."""
PLAIN_EVERY, COLUMNS = 10.0, 80
"""Seconds without a printed line after which the progress is printed, if standard error is not a terminal, and the most
characters of that line."""


class _Console(Console):
    """Standard error, which may be a pipe that is no longer read: a study goes on without it."""

    def on_broken_pipe(self) -> None:
        """Print nothing more, where rich would end the program."""
        self.quiet = True


class Terminal(Observer):
    """Shows the progress of a run, as long as anything reads it."""

    name = "terminal"

    def __init__(self, *, quiet: bool = False, console: Console | None = None) -> None:
        super().__init__()
        self.console = console or _Console(stderr=True)
        self.quiet = quiet
        self._before = self._done = self._failed = 0
        self._run: Run | None = None
        self._progress: ProgressText | None = None
        self._bar: Progress | None = None
        self._printed = time.monotonic()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self, run: Run) -> None:
        """Start showing progress."""
        self._run = run
        self._progress = ProgressText(run.progress, run.planned, most=run.most)
        if self.quiet:
            return
        if self.console.is_terminal:
            self._bar = Progress(TextColumn("{task.description}"), BarColumn(bar_width=BAR), MofNCompleteColumn(),
                                 _Figures(self.figures, self.console), console=self.console, transient=True,
                                 refresh_per_second=4)
            self._task = self._bar.add_task("debates", total=run.planned)
            self._bar.start()
        else:
            self._thread = threading.Thread(target=self._print_lines, name="madplug-terminal", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Remove the progress bar."""
        self._over.set()
        if self._bar:
            with suppress(OSError):
                self._bar.stop()
            self._bar = None
        if self._thread:
            self._thread.join()
            self._thread = None

    def study_started(self, event: StudyStarted) -> None:
        """Count the debates of earlier runs."""
        self._before = self._done = event.done
        self._advance()

    def debate_finished(self, event: DebateFinished) -> None:
        """Count the debate."""
        self._done += event.outcome == "done"
        self._failed += event.outcome == "failed"
        self._advance()

    def say(self, text: str, style: str = "") -> None:
        """Print a line about the run."""
        if not self.quiet:
            self._print(Text(safe(text), style=style))

    def figures(self, width: int | None = None) -> str:
        """How far the run is, how fast, and what it waits for. width: the most characters."""
        assert self._progress is not None
        return self._progress.text(self._done + self._failed, self._failed, self._before, width)

    def _advance(self) -> None:
        if self._bar:
            self._bar.update(self._task, completed=self._done + self._failed)

    def _print_lines(self) -> None:
        """Print a line whenever nothing else was printed for a while."""
        assert self._run is not None
        while not self._over.wait(max(0.01, self._printed + PLAIN_EVERY - time.monotonic())):
            if time.monotonic() - self._printed < PLAIN_EVERY:
                continue
            counted = f"{self._done + self._failed}{f'/{self._run.planned}' if self._run.planned else ''} debates  "
            self._print(Text(counted + self.figures(COLUMNS - len(counted))))

    def _print(self, text: Text) -> None:
        """Print a line; on a terminal it is broken between words, elsewhere not at all."""
        self._printed = time.monotonic()
        console = self._bar.console if self._bar else self.console
        with suppress(OSError):  # the terminal is gone, or its disk is full
            console.print(text, soft_wrap=not console.is_terminal)


class _Figures(ProgressColumn):
    """The current figures of a run."""

    def __init__(self, figures: Callable[[int], str], console: Console) -> None:
        super().__init__()
        self._figures = figures
        self._console = console

    def render(self, task: Task) -> Text:
        """As much as fits on the line, after the name, the bar and the count."""
        counted = len(f"{task.total:.0f}") * 2 + 1 if task.total is not None else len(f"{task.completed:.0f}/?")
        return Text(self._figures(self._console.width - len("debates ") - BAR - 1 - counted - 1))
