"""What a person sees: live progress, messages as they come, and tables. Model text is data here."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from madplug.hookspecs import hookimpl
from madplug.text import columns, safe

if TYPE_CHECKING:
    from madplug.study import StudyRun

MOST_PARTS = 6
"""A metric with more figures than this is not spread over the table."""
PLAIN_EVERY = 10.0
"""Seconds between two lines of progress where there is no terminal."""


class Watcher:
    """Shows a run while it goes on: progress, and with `messages` every message."""

    def __init__(self, total: int | None, done: int, *, messages: bool = False, quiet: bool = False,
                 console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self.total = total
        self.done = done
        self.failed = 0
        self.run: StudyRun | None = None
        self._messages = messages
        self._quiet = quiet
        self._begin = time.monotonic()
        self._done_before = done
        self._told = self._begin
        live = self.console.is_terminal and not quiet
        self._bar = Progress(TextColumn("{task.fields[study]}"), BarColumn(bar_width=24), MofNCompleteColumn(),
                             TextColumn("{task.fields[figures]}"), console=self.console, transient=True,
                             refresh_per_second=4) if live else None
        self._task = self._bar.add_task("", total=total, completed=done, study="debates", figures="") \
            if self._bar else None

    def __enter__(self) -> Watcher:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    @hookimpl
    def madplug_debate_finished(self, debate: Any, result: Any) -> None:
        """Count it."""
        self.done += result.error is None
        self.failed += result.error is not None
        if self._messages:
            end = f"failed: {result.error}" if result.error else _ending(result.decision)
            self._say(Text(f"{self._where(debate)} ends: {safe(end)}", style="bold"))
        self.tick()

    @hookimpl
    def madplug_debate_started(self, debate: Any) -> None:
        """Show the question."""
        if self._messages:
            self._say(Text(f"\n{self._where(debate)} {safe(debate.sample.question)}", style="bold"))

    @hookimpl
    def madplug_message(self, debate: Any, message: Any) -> None:
        """Show a message."""
        if self._messages:
            who = debate.agents[message.agent].persona.name if message.agent is not None else "(note)"
            head = f"{self._where(debate)} round {message.round}, {safe(who)}, {message.move}: "
            self._say(Text.assemble((head, "cyan"), safe(message.content.strip())))
        self.tick()

    def say(self, text: str, style: str = "") -> None:
        """A line about the run."""
        if not self._quiet:
            self._say(Text(safe(text), style=style))

    def tick(self) -> None:
        """Bring the progress up to date."""
        if self._quiet or self.run is None:
            return
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=self.done + self.failed, figures=self.figures())
        elif not self._messages and time.monotonic() - self._told >= PLAIN_EVERY:
            self._told = time.monotonic()
            total = f"/{self.total}" if self.total else ""
            self._say(Text(f"{self.done + self.failed}{total} debates  {self.figures()}"))

    def figures(self) -> str:
        """Calls and tokens a second, cost, failures, time left."""
        assert self.run is not None
        gateway, seconds = self.run.gateway, max(time.monotonic() - self._begin, 1e-3)
        used = sum(line.used for line in gateway.channels.values())
        parts = [f"{gateway.paid} calls, {gateway.paid / seconds:.1f}/s", f"{used / seconds:.0f} tokens/s"]
        if gateway.totals.cost_usd:
            parts.append(f"${gateway.totals.cost_usd:.4f}")
        if gateway.retries:
            parts.append(f"{gateway.retries} retries")
        if self.failed:
            parts.append(f"{self.failed} failed")
        ended = self.done + self.failed - self._done_before
        if self.total and ended:
            left = (self.total - self.done - self.failed) * seconds / ended
            parts.append(f"{_duration(left)} left")
        return ", ".join(parts)

    def _say(self, text: Text) -> None:
        (self._bar.console if self._bar else self.console).print(text, soft_wrap=True)

    def _where(self, debate: Any) -> str:
        repeat = f" #{debate.repeat + 1}" if self.run and self.run.plan.repeats > 1 else ""
        return f"[{debate.cell.slug} {safe(debate.sample.id)}{repeat}]"


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
        held = max(1, cell["done"] + cell["failed"])
        tokens = (cell["tokens"]["prompt"] + cell["tokens"]["completion"]) / held
        cost = ["?" if cell["cost_usd"] is None else f"{cell['cost_usd']:.4f}"] if costs else []
        rows.append([safe(cell["cell"]) + (" (oracle)" if cell["oracle"] else ""),
                     *(figure(cell["metrics"].get(name)) for name in metrics), str(cell["done"]),
                     str(cell["undecided"]), str(cell["failed"]), f"{cell['calls'] / held:.1f}", f"{tokens:.0f}",
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
