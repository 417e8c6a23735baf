"""What a run is doing, in words: how far it is, how fast it has been lately, and what it waits for."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from textwrap import shorten

from typing_extensions import override

from madplug import DebateFinished, DebateResult, Observer, Progress, Run, StudyStarted, count, dollars

RECENT = 5.0
"""Seconds over which rates are taken."""
QUIET = 1.0
"""Seconds without news after which it is said what the run waits for."""
FIRST = 20
"""Debates, and at least as many as calls are in flight, after which the study's calls and dollars are foretold."""
IN_VAIN = 20
"""First debates of a cell after which it is said if none could be read as a whole: the others may be paid in vain."""


class ProgressText:
    """Describes the progress of one run. clock: seconds from any start. most: calls that the study can make."""

    def __init__(self, progress: Callable[[], Progress], planned: int | None,
                 clock: Callable[[], float] = time.monotonic, most: int | None = None) -> None:
        self._progress, self._planned, self._clock, self._most = progress, planned, clock, most
        self._begin = self._news = clock()
        self._cost_before = progress().cost_usd
        self._seen: tuple[int, ...] = ()
        self._recent: deque[tuple[float, int, int]] = deque([(self._begin, 0, 0)])

    def text(self, ended: int = 0, failed: int = 0, before: int = 0, width: int | None = None) -> str:
        """One line. ended: debates that have ended, with those of earlier runs; failed: of these; before: of earlier
        runs. width: the most characters; what matters least is left out.
        """
        parts = self._parts(ended, failed, before)
        for word in (" tokens/s", " calls/s", " retries", " retry", " in flight", " elapsed", " left"):
            if width is None or len(", ".join(parts)) <= width:
                break
            parts = [part for part in parts if not part.endswith(word)]
        return shorten(", ".join(parts), width, placeholder="...") if width else ", ".join(parts)

    def _parts(self, ended: int, failed: int, before: int) -> list[str]:
        progress, now, new = self._progress(), self._clock(), ended - before
        left = self._planned - ended if self._planned and new else 0
        times = left / new if new >= max(FIRST, progress.in_flight) else 0.0
        if self._most and progress.paid:  # those that ended may be the long ones
            times = min(times, max(0.0, self._most / progress.paid - 1))
        asks = progress.paid or progress.in_flight or not new
        whole = f"/~{progress.paid * (1 + times):,.0f}" if times else ""
        parts = [f"{progress.paid:,}{whole} answered"] if asks else []  # debates that ask no model end all the same
        if progress.in_flight:
            parts.append(f"{progress.in_flight:,} in flight")
        parts += self._rates(progress, now)
        if waiting := self._waiting(progress, now):
            parts = [*parts[:1], waiting] if progress.in_flight else [*parts, waiting]
        if progress.cost_usd:
            whole = f"/~${dollars(progress.cost_usd + (progress.cost_usd - self._cost_before) * times)}" * (times > 0)
            parts.append(f"${dollars(progress.cost_usd)}{whole}")
        if progress.retries:
            parts.append("1 retry" if progress.retries == 1 else f"{progress.retries:,} retries")
        if failed:
            parts.append(f"{failed:,} failed")
        parts.append(f"{clock_text(now - self._begin)} elapsed")
        if left:
            parts.append(f"about {clock_text(left * (now - self._begin) / new)} left")
        return parts

    def _rates(self, progress: Progress, now: float) -> list[str]:
        """Calls and tokens per second over the last seconds."""
        self._recent.append((now, progress.paid, progress.tokens))
        while len(self._recent) > 2 and now - self._recent[1][0] >= RECENT:
            self._recent.popleft()
        then, paid, before = self._recent[0]
        if now - then < 0.5 or progress.paid == paid:
            return []
        calls, tokens = (progress.paid - paid) / (now - then), (progress.tokens - before) / (now - then)
        return [f"{calls:.1f} calls/s", f"{tokens:,.0f} tokens/s"]

    def _waiting(self, progress: Progress, now: float) -> str:
        """What the run waits for, if nothing has happened for a while."""
        seen = (progress.paid, progress.retries, progress.debates)
        if seen != self._seen:
            self._seen, self._news = seen, now
        quiet = now - self._news
        if quiet < QUIET:
            return ""
        if progress.waiting:
            return f"{progress.waiting}, {clock_text(quiet)}"
        return f"{count(progress.in_flight, 'call')} in flight, {clock_text(quiet)}" if progress.in_flight else ""


class ProgressObserver(Observer):
    """Counts the debates of a run that have ended; a subclass shows them."""

    def __init__(self) -> None:
        super().__init__()
        self._before = self._done = self._failed = 0
        self._unread: Counter[str] = Counter()
        self._read: set[str] = set()

    @override
    def open(self, run: Run) -> None:
        self._run = run
        self._text = ProgressText(run.progress, run.planned, most=run.most)

    @override
    def study_started(self, event: StudyStarted) -> None:
        self._before = self._done = event.done
        self._show()

    @override
    def debate_finished(self, event: DebateFinished) -> None:
        self._done += event.outcome == "done"
        self._failed += event.outcome == "failed"
        self._show()
        if event.result is not None and event.debate.cell not in self._read:
            self._look(event.debate.cell, event.result)

    def _look(self, cell: str, result: DebateResult) -> None:
        """Count a debate of a cell of which none could be read yet."""
        if not result.unread:
            self._read.add(cell)
            return
        self._unread[cell] += 1
        if self._unread[cell] == IN_VAIN and self._run.progress().paid:
            listed = f"madplug read {self._run.folder} --unread lists them, and " if self._run.folder else ""
            self._warn(f"in all of the first {IN_VAIN} debates of '{cell}' a final answer, a ballot or another reply "
                       f"could not be read; {listed}Ctrl-C stops the run")

    @property
    def ended(self) -> int:
        """Debates that have ended, with those of earlier runs."""
        return self._done + self._failed

    def figures(self, width: int | None = None) -> str:
        """How far the run is, how fast, and what it waits for. width: the most characters."""
        return self._text.text(self.ended, self._failed, self._before, width)

    def _show(self) -> None:
        """Show what has changed."""

    def _warn(self, text: str) -> None:
        """Show a sentence."""


def clock_text(seconds: float) -> str:
    """Seconds as `0:12` or `1:02:03`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
