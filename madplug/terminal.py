"""Output to the terminal: live progress, messages as they are recorded, and tables. Model text is untrusted."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from madplug.components import Observer
from madplug.events import DebateFinished, DebateStarted, MessageRecorded
from madplug.observers import Run
from madplug.store.base import DebateId
from madplug.text import columns, safe

MOST_PARTS = 6
"""A metric with more figures than this gets no columns in the table."""
PLAIN_EVERY = 10.0
"""Seconds between two lines of progress if standard error is not a terminal."""


class Terminal(Observer):
    """Shows the progress of a run, and with `messages` every message."""

    name = "terminal"

    def __init__(self, done: int = 0, *, messages: bool = False, quiet: bool = False,
                 console: Console | None = None) -> None:
        super().__init__()
        self.console = console or Console(stderr=True)
        self.quiet = quiet
        self._messages = messages
        self._done_before = self._done = done
        self._failed = 0
        self._run: Run | None = None
        self._bar: Progress | None = None
        self._begin = self._said = time.monotonic()

    def open(self, run: Run) -> None:
        """Start showing progress."""
        self._run = run
        self._begin = self._said = time.monotonic()
        if self.console.is_terminal and not self.quiet:
            self._bar = Progress(TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(),
                                 _Figures(self.figures), console=self.console, transient=True, refresh_per_second=4)
            self._task = self._bar.add_task("debates", total=run.planned, completed=self._done)
            self._bar.start()

    def close(self) -> None:
        """Remove the progress bar."""
        if self._bar:
            self._bar.stop()
            self._bar = None

    def debate_started(self, event: DebateStarted) -> None:
        """Show the question."""
        if self._messages:
            self._print(Text(f"\n{self._where(event.debate)} {safe(event.sample.question)}", style="bold"))

    def message_recorded(self, event: MessageRecorded) -> None:
        """Show a message."""
        if self._messages:
            who = event.agent.persona.name if event.agent else "(note)"
            what = "retracted" if event.message.retracted else event.message.move
            head = f"{self._where(event.debate)} round {event.message.round}, {safe(who)}, {safe(what)}: "
            self._print(Text.assemble((head, "cyan"), safe(event.message.content.strip())))
        self._tick()

    def debate_finished(self, event: DebateFinished) -> None:
        """Count the debate."""
        self._done += event.outcome == "done"
        self._failed += event.outcome == "failed"
        if self._messages and event.result is not None:
            result = event.result
            end = f"failed: {result.error}" if result.error else _ending(result.decision)
            self._print(Text(f"{self._where(event.debate)} ends: {safe(end)}", style="bold"))
        self._tick()

    def say(self, text: str, style: str = "") -> None:
        """Print a line about the run."""
        if not self.quiet:
            self._print(Text(safe(text), style=style))

    def figures(self) -> str:
        """Calls and tokens per second, cost, failures, time left."""
        assert self._run is not None
        progress, seconds = self._run.progress(), max(time.monotonic() - self._begin, 1e-3)
        parts = [f"{progress.paid} calls, {progress.paid / seconds:.1f}/s", f"{progress.tokens / seconds:.0f} tokens/s"]
        if progress.in_flight:
            parts.append(f"{progress.in_flight} in flight")
        if progress.cost_usd:
            parts.append(f"${progress.cost_usd:.4f}")
        if progress.retries:
            parts.append(f"{progress.retries} retries")
        if self._failed:
            parts.append(f"{self._failed} failed")
        ended = self._done + self._failed - self._done_before
        if self._run.planned and ended:
            left = (self._run.planned - self._done - self._failed) * seconds / ended
            parts.append(f"{_duration(left)} left")
        return ", ".join(parts)

    def _tick(self) -> None:
        """Update the progress."""
        if self.quiet or self._run is None:
            return
        if self._bar:
            self._bar.update(self._task, completed=self._done + self._failed)
        elif not self._messages and time.monotonic() - self._said >= PLAIN_EVERY:
            self._said = time.monotonic()
            total = f"/{self._run.planned}" if self._run.planned else ""
            self._print(Text(f"{self._done + self._failed}{total} debates  {self.figures()}"))

    def _print(self, text: Text) -> None:
        (self._bar.console if self._bar else self.console).print(text, soft_wrap=True)

    def _where(self, debate: DebateId) -> str:
        repeat = f" #{debate.repeat + 1}" if self._run and self._run.repeats > 1 else ""
        return f"[{safe(debate.cell)} {safe(debate.sample)}{repeat}]"


class _Figures(ProgressColumn):
    """The current figures of a run."""

    def __init__(self, figures: Callable[[], str]) -> None:
        super().__init__()
        self._figures = figures

    def render(self, task: Task) -> Text:
        return Text(self._figures())


def summary_table(summary: Mapping[str, Any]) -> str:
    """The cells of a study with their figures; calls and tokens are means over a cell's debates."""
    cells = summary["cells"]
    metrics = sorted({name for cell in cells for name in cell["metrics"]})
    parts = Counter(name.rpartition(".")[0] for name in metrics if name.count(".") > 1)
    many = {whole: n for whole, n in parts.items() if n > MOST_PARTS}
    metrics = [name for name in metrics if name.rpartition(".")[0] not in many]
    costs = any(cell["cost_usd"] for cell in cells)
    head = ["cell", *metrics, "debates", "undecided", "failed", "calls", "tokens", *(["USD"] if costs else [])]
    rows = []
    for cell in cells:
        debates = max(1, cell["done"] + cell["failed"])
        tokens = (cell["tokens"]["prompt"] + cell["tokens"]["completion"]) / debates
        cost = ["?" if cell["cost_usd"] is None else f"{cell['cost_usd']:.4f}"] if costs else []
        rows.append([safe(cell["cell"]) + (" (oracle)" if cell["oracle"] else ""),
                     *(figure(cell["metrics"].get(name)) for name in metrics), str(cell["done"]),
                     str(cell["undecided"]), str(cell["failed"]), f"{cell['calls'] / debates:.1f}", f"{tokens:.0f}",
                     *cost])
    return "\n".join([columns(rows, head), *(f"{whole}: {n} figures in summary.json" for whole, n in many.items())])


def figure(metric: Mapping[str, Any] | None) -> str:
    """A mean with its interval."""
    if metric is None:
        return "-"
    interval = metric.get("ci95")
    return f"{metric['mean']:.3f}" + (f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")


def _ending(decision: Any) -> str:
    answer = decision.answer if decision.answer is not None else f"no answer ({decision.reason})"
    return f"{answer}" + (" (agreed)" if decision.agreed else " (fallback)" if decision.fallback else "")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s" if minutes else f"{rest}s"
