"""Studies from Python: `madplug.run` and, inside a running event loop, `await madplug.arun`."""

from __future__ import annotations

import asyncio
import signal
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from madplug.cli.launch import endings
from madplug.component import Component
from madplug.config import ResolvedStudy, load
from madplug.config.check import notes, sizes
from madplug.config.read import Settings, read
from madplug.errors import UserError
from madplug.kinds import Observer
from madplug.records import DebateResult
from madplug.registry.installed import Registry
from madplug.store import Reader, open_study
from madplug.study.process import echo, interruptible
from madplug.study.session import Session
from madplug.study.survey import check_rows
from madplug.study.trust import confirm
from madplug.text import safe

T = TypeVar("T")


@dataclass(frozen=True)
class StudyResult:
    """A study that was run, and the way to its records."""

    folder: Path
    """The study's directory."""
    summary: Mapping[str, Any] = field(repr=False)
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

    def __str__(self) -> str:
        """The status, the results and what went wrong, as `madplug run` prints them at the end."""
        with self.open() as study:
            return "\n".join([Registry().results(self.summary), *endings(self.summary, study)])

    def open(self, *, everything: bool = False) -> Reader:
        """The study's records, as `open_study` gives them; close it, or use it in a `with` block."""
        return open_study(self.folder, everything=everything)

    def debates(self, cell: str | None = None) -> list[DebateResult]:
        """The debates of a cell, or all."""
        with self.open() as study:
            return list(study.debates(cell))


async def arun(source: str | Path | Mapping[str, Any] | ResolvedStudy, *, settings: Mapping[str, Any] | None = None,
               output: str | Path | None = None, components: Sequence[type[Component]] = (),
               observers: Sequence[Observer] = (), quiet: bool = False, yes: bool = False) -> StudyResult:
    """Run a study, or resume it, and return its result; like `madplug run`.

    source: a run file, its content as nested mappings, or a resolved study. settings: changes by dotted key,
    `{"debate.rounds": 3}`. output: the study's directory, by default `runs/NAME`. components: classes that the study
    names by their class names, without a plugin (a resolved study has both already). observers: they receive the
    study's events. quiet: show no progress. yes: do not ask whether a study that somebody else began is trusted.

    Debates that fail do not raise; look at `status`. If the task is cancelled, however often, calls in flight are
    answered and stored first. Raises `UserError` for mistakes in the run file, with every one of them, and `StudyError`
    if the study cannot go on.
    """
    session, folder = _session(source, settings, output, components, observers, yes=yes)
    task = asyncio.ensure_future(_run(session, observers, quiet=quiet))
    try:
        return StudyResult(folder, await asyncio.shield(task))
    except asyncio.CancelledError:
        if not task.done():
            session.interrupt()
            await _outlast(task)
        raise


def run(source: str | Path | Mapping[str, Any], *, settings: Mapping[str, Any] | None = None,
        output: str | Path | None = None, components: Sequence[type[Component]] = (),
        observers: Sequence[Observer] = (), quiet: bool = False, yes: bool = False) -> StudyResult:
    """Run a study, or resume it, and return its result; the arguments are those of `arun`.

    Can be called in a notebook, where it blocks until the study has ended. An interrupt lets the calls in flight be
    answered and stored, and then raises `KeyboardInterrupt`.
    """
    session, folder = _session(source, settings, output, components, observers, yes=yes)

    def work() -> dict[str, Any]:
        return asyncio.run(_run(session, observers, quiet=quiet))

    with interruptible(session.interrupt, partial(signal.default_int_handler, signal.SIGINT, None), [signal.SIGINT]):
        summary = _in_thread(work) if _has_loop() else work()
    if session.interrupted:
        raise KeyboardInterrupt
    return StudyResult(folder, summary)


def check(source: str | Path | Mapping[str, Any], settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What `madplug check` tells of a run file: `cells`, with agents, samples and the most calls of each, and `notes`.

    The arguments are those of `run`. Raises `UserError` with every mistake.
    """
    return facts(load(Path(source) if isinstance(source, str) else source, settings or {}))


def facts(resolved: ResolvedStudy) -> dict[str, Any]:
    """What `check` tells of a study, whose data set is read for it."""
    odd = list(check_rows(resolved.plan.cells))
    return {"study": resolved.plan.name, "cells": sizes(resolved.plan),
            "notes": [*notes(resolved.plan, resolved.table), *odd]}


def list_components(kind: str | None = None) -> list[dict[str, str]]:
    """Name, distribution, version and summary of the installed components, or of a kind's or plugin's, as `style`.

    Raises `UserError` if there is no such kind or plugin.
    """
    return Registry().listing(kind)["components"]  # type: ignore[no-any-return]


def _session(source: str | Path | Mapping[str, Any] | ResolvedStudy, settings: Mapping[str, Any] | None,
             output: str | Path | None, components: Sequence[type[Component]], observers: Sequence[Observer], *,
             yes: bool) -> tuple[Session, Path]:
    """The study, and its directory as the user calls it: a program may change its current directory meanwhile."""
    if odd := [one for one in observers if not isinstance(one, Observer)]:
        raise UserError(f"observers: {odd[0]!r:.80} is not an observer, such as an instance of a subclass of "
                        "madplug.Observer")
    resolved, folder = trusted(source, settings or {}, output, Registry(classes=components), yes=yes)
    return Session(resolved, folder.absolute()), folder


def trusted(source: str | Path | Mapping[str, Any] | ResolvedStudy, settings: Settings, output: str | Path | None,
            registry: Registry, observers: Sequence[Any] = (), *, yes: bool) -> tuple[ResolvedStudy, Path]:
    """The study and its directory, once the user trusts whoever began them. observers: slots beside the file's."""
    if not isinstance(source, (Mapping, ResolvedStudy)):
        confirm(Path(source).parent, read(Path(source), settings), yes=yes)
    resolved = source if isinstance(source, ResolvedStudy) else load(source, settings, registry, observers=observers)
    folder = Path(output) if output is not None else resolved.folder
    confirm(folder, resolved.table, yes=yes)
    return resolved, folder


async def _run(session: Session, observers: Sequence[Observer], *, quiet: bool) -> dict[str, Any]:
    shown = [] if quiet else Registry().progress()

    def warn(text: str) -> None:
        if not quiet and text not in session.warnings:
            echo(safe(text), err=True)  # a warning that is an error would break off what was paid for

    with session:
        for text in session.warnings:
            warnings.warn(text, stacklevel=1)
        return await session.run([*shown, *observers], warn=warn)


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _outlast(task: asyncio.Task[Any]) -> None:
    """Wait until a task has ended, and raise what it raised. The scopes of anyio cancel this wait again and again."""
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])
    task.result()


def _in_thread(work: Callable[[], T]) -> T:
    """The result of work that needs an event loop, beside the one that is running in this thread."""
    found: Future[T] = Future()

    def guarded() -> None:
        try:
            found.set_result(work())
        except BaseException as error:  # raised again in the thread that waits
            found.set_exception(error)

    threading.Thread(target=guarded, name="madplug-run", daemon=True).start()
    return found.result()
