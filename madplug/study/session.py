"""A study in its directory: locked and checked, run, logged, interrupted and summarised."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

from madplug.config import ResolvedStudy
from madplug.config.check import warnings as spoiling
from madplug.debate.loop import run_debate
from madplug.errors import StudyError, UserError
from madplug.kinds import Observer
from madplug.records import Ending
from madplug.rows import plain
from madplug.store import EDITED, Reader, Recorder, open_recorder, open_study
from madplug.study.directory import (
    PART,
    PRICES,
    check_folder,
    check_same_study,
    edited_components,
    keep_identity,
    prices,
    write_provenance,
)
from madplug.study.files import write_whole
from madplug.study.jobs import Samples
from madplug.study.log import open_log, trace
from madplug.study.run import StudyRun
from madplug.study.survey import read_rows
from madplug.study.worker import Runner


class Session:
    """A study in its directory: opened by a `with` block, run once, and interrupted from wherever a signal arrives.

    traced: log every hook call. Opening it locks the directory, checks that it is this study's, and writes what runs
    it; it raises `UserError` if the directory cannot be used.
    """

    def __init__(self, resolved: ResolvedStudy, folder: Path, *, traced: bool = False) -> None:
        self.resolved = resolved
        self.folder = folder
        self.warnings: Sequence[str] = ()
        """What the user should know before the run."""
        self.interrupted = False
        self.recorder: Recorder
        self._edited: Mapping[str, Collection[str]] = {}
        """Warnings of what changed since the study began, with the cells whose debates it affects."""
        self._log: Any = None
        self._traced = traced
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: Callable[[], None] = lambda: None
        self._warn: Callable[[str], None] = lambda text: None
        self._open = ExitStack()

    def __enter__(self) -> Session:
        resolved, folder = self.resolved, self.folder
        check_folder(folder)
        with self._open:  # closes what was opened if something is wrong
            self.recorder = self._open.enter_context(closing(open_recorder(folder)))
            try:
                spoiled = () if resolved.recorded_from else spoiling(resolved.plan, resolved.table)
                same = [*check_same_study(resolved, self.recorder, folder)]
                self._edited = edited_components(resolved, self.recorder, folder)
                self.warnings = [*same, *self._edited, *spoiled]
                write_provenance(resolved, folder)
                self._log = self._open.enter_context(open_log(folder, lambda text: self._warn(text)))
                for cell in resolved.plan.cells if self._traced else ():
                    trace(cell, self._log)
            except OSError as error:
                raise UserError(f"{folder}: cannot be used: {error}; choose another directory with --output") from None
            self._open = self._open.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def interrupt(self) -> None:
        """Start no further call; those in flight are answered and stored. From any thread, at any time."""
        self.interrupted = True
        if self._loop is not None:
            with suppress(RuntimeError):  # it has ended meanwhile
                self._loop.call_soon_threadsafe(self._stop)

    async def run(self, observers: Sequence[Observer] = (), *, warn: Callable[[str], None] = lambda text: None,
                  begun: Callable[[StudyRun], None] = lambda run: None,
                  stopping: Callable[[], None] = lambda: None, samples: Samples | None = None,
                  runner: Runner = run_debate, metrics: Collection[str] | None = None,
                  unfinished: str = "") -> dict[str, Any]:
        """Run the study and return its summary, which is also written into the directory.

        warn: called with everything that does not affect results. begun: called with the run. stopping: called when the
        run was interrupted. samples: gives the samples of a cell; by default those of its data set and extensions.
        runner: brings a debate to its decision; by default the loop. metrics: run no debate, but score recorded ones by
        these metrics again, and by those that are new. unfinished: what is left of the study whose records these
        are, in words.
        """
        self._loop, self._warn = asyncio.get_running_loop(), warn
        total = await self._describe()
        if unfinished or self.recorder.fact("unfinished"):
            await self.recorder.keep_fact("unfinished", unfinished)
        with ExitStack() as stack:
            paths = [path for path in self.resolved.reuse if path.resolve() != self.folder.resolve()]
            readers = [stack.enter_context(open_study(path)) for path in paths]

            def warned(text: str) -> None:
                self._log.warning("warning", text=text)
                warn(text)

            run = StudyRun(self.resolved.plan, self.recorder, observers,
                           lambda text: self._log.warning("problem", text=text), warned, planned=total, reuse=readers,
                           runner=runner, samples=samples, rescore=metrics, unfinished=unfinished)
            for text in self.warnings:
                warn(text)
            for text in _not_reused(readers, self.resolved):
                warned(text)
            self._log.info("run", study=run.plan.name, planned=total)
            (self.folder / "summary.json").unlink(missing_ok=True)  # an earlier run's figures are not this one's
            begun(run)

            def stop() -> None:
                run.driver.stop(Ending("interrupted", "interrupted"))
                stopping()

            self._stop = stop
            if self.interrupted:
                stop()
            try:
                summary = await run.run()
                if mixed := [text for text, cells in self._edited.items() if any(run.driver.ended[c] for c in cells)]:
                    await self.recorder.keep_fact(EDITED, [*dict.fromkeys([*self.recorder.edited(), *mixed])])
                return self._conclude(summary)
            except StudyError as error:
                with suppress(OSError):  # the log lies on the same disk
                    self._log.error("stopped", reason=str(error))
                raise

    def _conclude(self, summary: dict[str, Any]) -> dict[str, Any]:
        try:
            write_whole(self.folder / "summary.json", json.dumps(plain(summary), indent=2, ensure_ascii=False))
        except OSError as error:
            raise StudyError(f"{self.folder}: summary.json cannot be written: {error}; every debate is saved") from None
        self._log.info("ended", status=summary["status"], reason=summary["reason"], paid=summary["paid"])
        return summary

    async def _describe(self) -> int | None:
        """Record what the study is now, and how many debates it has."""
        await keep_identity(self.resolved, self.recorder)
        if self.resolved.part:
            await self.recorder.keep_fact(PART, self.resolved.part)
        await self.recorder.keep_fact("settings", {cell.slug: cell.settings for cell in self.resolved.plan.cells})
        await self.recorder.keep_fact(PRICES, prices(self.resolved))
        total = planned(self.resolved)
        await self.recorder.keep_fact("planned", total)
        await self.recorder.forget_problems()
        return total


def _not_reused(readers: Sequence[Reader], resolved: ResolvedStudy) -> Iterator[str]:
    """The studies in `reuse` that were run with another `share_completions` or `seed`, on which every key of a call
    depends."""
    for reader in readers:
        identity = reader.fact("identity") or {}
        for key in ("share_completions", "seed"):
            if key in identity and identity[key] != resolved.identity[key]:
                yield (f"reuse: {reader.folder} was run with {key} = {json.dumps(identity[key])}, so none of its calls "
                       "is one of this study")


def planned(resolved: ResolvedStudy) -> int | None:
    """How many debates the study has, or None if a data set does not know its size or an extension chooses samples.

    For a part of a study, reads and checks every sample.
    """
    plan, executor = resolved.plan, resolved.plan.executor if resolved.part else None
    datasets = {id(cell.dataset): cell.dataset for cell in plan.cells if cell.dataset is not None}
    counts = {key: dataset.size() if executor is None
              else sum(executor.includes(sample) for sample, _ in read_rows(dataset))
              for key, dataset in datasets.items()}
    sizes = [counts.get(id(cell.dataset)) for cell in plan.cells]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes) or any(cell.chooses_samples for cell in plan.cells):
        return None
    return sum(known) * plan.repeats
