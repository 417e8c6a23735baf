"""A study in its directory: locked and checked, run, logged and summarised, whoever asked for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from madplug.components import Dataset, Executor, Observer
from madplug.config import ResolvedStudy
from madplug.config.check import warnings as spoiling
from madplug.errors import StudyError, UserError
from madplug.rows import plain
from madplug.store import Recorder, open_recorder, open_study
from madplug.study.directory import PART, check_folder, check_same_study, keep_identity, write_provenance
from madplug.study.files import write_whole
from madplug.study.log import open_log, trace
from madplug.study.open_files import check_open_files
from madplug.study.run import StudyRun
from madplug.study.survey import Ids, chooses_samples, read_rows


class Task(Protocol):
    """What is done with recorded debates instead of running the study."""

    def options(self) -> dict[str, Any]:
        """The arguments of `StudyRun` that differ."""


class Session:
    """A study that this process may write to."""

    def __init__(self, resolved: ResolvedStudy, folder: Path, recorder: Recorder, log: Any, warnings: Sequence[str],
                 task: Task | None) -> None:
        self.resolved = resolved
        self.folder = folder
        self.recorder = recorder
        self.warnings = warnings
        """What the user should know before the run."""
        self._log = log
        self._task = task

    async def run(self, observers: Sequence[Observer] = (), warn: Callable[[str], None] = lambda text: None,
                  begun: Callable[[StudyRun], None] = lambda run: None) -> dict[str, Any]:
        """Run the study and return its summary, which is also written into the directory.

        warn: called with everything that does not affect results. begun: called with the run, through which it can be
        stopped.
        """
        plan, log = self.resolved.plan, self._log
        total = await self._describe()

        def warned(text: str) -> None:
            log.warning("warning", text=text)
            warn(text)

        with ExitStack() as stack:
            options = self._task.options() if self._task is not None else {}
            reuse = [*options.pop("reuse", ()), *(stack.enter_context(open_study(path)) for path in self._reused())]
            run = StudyRun(plan, self.recorder, observers, lambda text: log.warning("problem", text=text), warned,
                           planned=total, reuse=reuse, **options)
            for text in self.warnings:
                warn(text)
            log.info("run", study=plan.name, planned=total)
            begun(run)
            try:
                summary = await run.run()
            except StudyError as error:
                with suppress(OSError):  # the log lies on the same disk
                    log.error("stopped", reason=str(error))
                raise
        try:
            write_whole(self.folder / "summary.json", json.dumps(plain(summary), indent=2, ensure_ascii=False))
        except OSError as error:
            raise StudyError(f"{self.folder}: summary.json cannot be written: {error}; every debate is saved") from None
        log.info("ended", status=summary["status"], reason=summary["reason"], paid=summary["paid"])
        return summary

    async def _describe(self) -> int | None:
        """Record what the study is now, and how many debates it has."""
        await keep_identity(self.resolved, self.recorder)
        if self.resolved.part:
            await self.recorder.keep_fact(PART, self.resolved.part)
        total = planned(self.resolved)
        await self.recorder.keep_fact("planned", total)
        await self.recorder.forget_problems()
        return total

    def _reused(self) -> list[Path]:
        return [path for path in self.resolved.reuse if path.resolve() != self.folder.resolve()]


@contextmanager
def open_session(resolved: ResolvedStudy, folder: Path, *, traced: bool = False,
                 task: Task | None = None) -> Iterator[Session]:
    """Lock a study's directory, check that it is this study's, and write what runs it.

    traced: log every hook call. Raises `UserError` if the directory cannot be used.
    """
    check_open_files(more=3 * len(resolved.reuse))
    check_folder(folder)
    with ExitStack() as stack:
        recorder = stack.enter_context(closing(open_recorder(folder)))
        try:
            check_part(resolved, recorder, folder)
            warnings = [*check_same_study(resolved, recorder, folder), *spoiling(resolved.plan.cells)]
            write_provenance(resolved, folder)
            (folder / "summary.json").unlink(missing_ok=True)  # an earlier run's figures are not this one's
            log = stack.enter_context(open_log(folder))
            for cell in resolved.plan.cells if traced else ():
                trace(cell, log)
        except OSError as error:
            raise UserError(f"{folder}: cannot be used: {error}; choose another directory with --output") from None
        yield Session(resolved, folder, recorder, log, warnings, task)


def check_part(resolved: ResolvedStudy, recorder: Recorder, folder: Path) -> None:
    """Refuse a directory that has another part of the study in it, or all of it."""
    before, now = recorder.fact(PART), resolved.part
    if recorder.fact("identity") is not None and (before or "") != now:
        has, wanted = (f"part {part!s:.40}" if part else "the whole study" for part in (before, now))
        raise UserError(f"{folder}: contains {has} and not {wanted}; choose another directory with --output")


def planned(resolved: ResolvedStudy) -> int | None:
    """How many debates the study has, or None if a data set does not know its size or an extension chooses samples.

    For a part of a study, reads and checks every sample.
    """
    plan, executor = resolved.plan, resolved.plan.executor if resolved.part else None
    datasets = {id(cell.dataset): cell.dataset for cell in plan.cells if cell.dataset is not None}
    counts = {key: dataset.size() if executor is None else _size_of_part(executor, dataset)
              for key, dataset in datasets.items()}
    sizes = [counts.get(id(cell.dataset)) for cell in plan.cells]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes) or any(map(chooses_samples, plan.cells)):
        return None
    return sum(known) * plan.repeats


def _size_of_part(executor: Executor, dataset: Dataset) -> int:
    return sum(executor.includes(sample) for sample, _ in read_rows(dataset, Ids()))
