"""Studies from Python: `madplug.run` and, inside a running event loop, `await madplug.arun`."""

from __future__ import annotations

import asyncio
import signal
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from madplug.components import Component, Observer
from madplug.config import load
from madplug.errors import UserError
from madplug.records import DebateResult
from madplug.registry.installed import Registry
from madplug.store import Reader, open_study
from madplug.study.session import open_session

if TYPE_CHECKING:
    from madplug.study.run import StudyRun

T = TypeVar("T")


@dataclass(frozen=True)
class StudyResult:
    """A study that was run, and the way to its records."""

    folder: Path
    """The study's directory."""
    summary: Mapping[str, Any]
    """As in `summary.json`."""

    @property
    def status(self) -> str:
        """`finished`; `stopped` if a limit was reached; `failed` if debates failed or a model could not be used."""
        return str(self.summary["status"])

    @property
    def metrics(self) -> dict[str, dict[str, float]]:
        """The mean of each score, by cell."""
        return {cell["cell"]: {name: found["mean"] for name, found in cell["metrics"].items()}
                for cell in self.summary["cells"]}

    def open(self, *, everything: bool = False) -> Reader:
        """The study's records, as `open_study` gives them; close it, or use it in a `with` block."""
        return open_study(self.folder, everything=everything)

    def debates(self, cell: str | None = None) -> list[DebateResult]:
        """The debates of a cell, or all."""
        with self.open() as study:
            return list(study.debates(cell))


async def arun(source: str | Path | Mapping[str, Any], *, settings: Mapping[str, Any] | None = None,
               output: str | Path | None = None, components: Sequence[type[Component]] = (),
               observers: Sequence[Observer] = (), quiet: bool = False) -> StudyResult:
    """Run a study, or resume it, and return its result; like `madplug run`.

    source: a run file, or its content as nested mappings. settings: changes by dotted key, `{"debate.rounds": 3}`.
    output: the study's directory, by default `runs/NAME`. components: classes that the study names by their class
    names, without a plugin. observers: they receive the study's events. quiet: show no progress.

    Debates that fail do not raise; look at `status`. If the task is cancelled, however often, calls in flight are
    answered and stored first. Raises `UserError` for mistakes in the run file, with every one of them, and `StudyError`
    if the study cannot go on.
    """
    return await _Run(source, settings, output, components, observers, quiet).run()


def run(source: str | Path | Mapping[str, Any], *, settings: Mapping[str, Any] | None = None,
        output: str | Path | None = None, components: Sequence[type[Component]] = (),
        observers: Sequence[Observer] = (), quiet: bool = False) -> StudyResult:
    """Run a study, or resume it, and return its result; the arguments are those of `arun`.

    Can be called in a notebook, where it blocks until the study has ended. An interrupt lets the calls in flight be
    answered and stored, and then raises `KeyboardInterrupt`.
    """
    study = _Run(source, settings, output, components, observers, quiet)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(study.run_interruptibly())
    return _in_thread(study)


class _Run:
    """One call of `run` or `arun`."""

    def __init__(self, source: str | Path | Mapping[str, Any], settings: Mapping[str, Any] | None,
                 output: str | Path | None, components: Sequence[type[Component]], observers: Sequence[Observer],
                 quiet: bool) -> None:
        if odd := [one for one in observers if not isinstance(one, Observer)]:
            raise UserError(f"observers: {odd[0]!r:.80} is not an observer, such as an instance of a subclass of "
                            "madplug.Observer")
        source = source if isinstance(source, Mapping) else Path(source)
        self._registry = Registry(classes=components)
        self._resolved = load(source, settings or {}, self._registry)
        self._folder = Path(output) if output is not None else Path("runs") / self._resolved.plan.name
        self._place = self._folder.absolute()  # a program may change its current directory meanwhile
        self._observers = observers
        self._quiet = quiet
        self._study: StudyRun | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.interrupted = False

    async def run(self) -> StudyResult:
        """Run the study; if this task is cancelled, however often, calls in flight are answered and stored first."""
        task = asyncio.ensure_future(self._run())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.done():
                raise
            self.interrupted = True  # also if the study has not begun
            self._stop()
            await _outlast(task)
            raise

    async def run_interruptibly(self) -> StudyResult:
        """Run the study; an interrupt stops it, and then raises `KeyboardInterrupt`."""
        with self.interruptible():
            result = await self._run()
        if self.interrupted:
            raise KeyboardInterrupt
        return result

    def interrupt(self) -> None:
        """Stop the study, from any thread."""
        self.interrupted = True
        if self._loop is not None:
            with suppress(RuntimeError):  # it has ended meanwhile
                self._loop.call_soon_threadsafe(self._stop)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """The first interrupt stops the study, the second raises `KeyboardInterrupt` at once."""
        def interrupted(*_: object) -> None:
            if self.interrupted:
                raise KeyboardInterrupt
            self.interrupt()

        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, interrupted)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    async def _run(self) -> StudyResult:
        self._loop = asyncio.get_running_loop()
        with open_session(self._resolved, self._place) as session:
            for text in session.warnings:
                warnings.warn(text, stacklevel=1)
            shown = [] if self._quiet else self._shown()
            try:
                summary = await session.run([*shown, *self._observers], begun=self._begun)
            finally:
                for observer in shown:
                    observer.close()
        return StudyResult(self._folder, summary)

    def _shown(self) -> list[Observer]:
        """What shows the progress: the terminal, if there is one, or what plugins show it on."""
        from madplug.cli.terminal import Terminal

        terminal = Terminal()
        return [terminal] if terminal.console.is_terminal else self._registry.progress()

    def _begun(self, study: StudyRun) -> None:
        self._study = study
        if self.interrupted:
            self._stop()

    def _stop(self) -> None:
        if self._study is not None:
            self._study.interrupt()


async def _outlast(task: asyncio.Task[Any]) -> None:
    """Wait until a task has ended, and raise what it raised. The scopes of anyio cancel this wait again and again."""
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])
    task.result()


def _in_thread(study: _Run) -> StudyResult:
    """Run a study beside the event loop that is running in this thread."""
    results: list[StudyResult] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(asyncio.run(study.run()))
        except BaseException as error:  # raised again in the thread that waits
            errors.append(error)

    thread = threading.Thread(target=work, name="madplug-run", daemon=True)
    thread.start()
    with study.interruptible():
        thread.join()
    if study.interrupted:
        raise KeyboardInterrupt
    if errors:
        raise errors[0]
    return results[0]
