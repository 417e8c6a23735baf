"""A recorded study made ready to be decided or scored again, for the commands and for Python."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from madplug import Component, StudyResult, UserError, count, listed
from madplug.store import Reader, has_study, open_study
from madplug.study import ResolvedStudy, Session, check_facts, read_manifest
from madplug_redecide.deciding import Redecider, keep_settings, most_calls, resolve_again, without_paying
from madplug_redecide.scoring import resolve_rescored
from madplug_redecide.trying import usual


class NotPaid(UserError):
    """Calls that are not on record are needed and not paid for; nothing was made."""


class Again(NamedTuple):
    """What is left to do."""

    resolved: ResolvedStudy
    run: Callable[..., Awaitable[dict[str, Any]]]
    """`Session.run` with what it needs."""
    most: int
    """Model calls, at most."""
    left_out: int = 0
    """Debates on record of cells, repeats and samples that the run file no longer has."""


@contextmanager
def decided_again(folder: Path, output: Path, changes: Sequence[Mapping[str, Any]],
                  patterns: Sequence[str] = ("*",), *,
                  phases: bool = True, pay: bool = False, components: Sequence[type[Component]] = (),
                  yes: bool = False) -> Iterator[Again]:
    """A study that decides the debates in a directory by another rule. Raises `UserError`.

    Without `pay`, running it raises `NotPaid` at the first call that is not on record. components: classes of a Python
    session that it may name.
    """
    if output.resolve() == folder.resolve():
        raise UserError(f"--output {output}: is the study itself; name another directory")
    with open_study(folder) as recorded, open_study(folder, everything=True) as every, ExitStack() as stack:
        there: Container[str] = ()
        if has_study(output):
            with open_study(output) as earlier:
                there = earlier.fact("settings") or ()
        resolved = resolve_again(folder, changes, output.resolve().name, patterns, there, phases=phases,
                                 components=components, yes=yes)
        keep_settings(resolved, recorded, changes)
        resolved.recorded_from = recorded.fact("identity")
        most = most_calls(resolved, recorded)
        if not pay:
            without_paying(resolved)
        reused = reused_by(folder)
        resolved.reuse = (folder.resolve(), *reused)
        records = [recorded, *(stack.enter_context(open_study(path)) for path in reused)]
        again = Redecider(*records)
        run = partial(Session.run, runner=again.run, samples=again.samples,
                      unfinished=_left(recorded, f" in {folder}"))
        with _unless_unpaid(output):
            yield Again(resolved, run if pay else partial(_on_record, run, most, partial(usual, again=again,
                                                                                          reuse=records)), most,
                        _ended(every) - _ended(recorded))


def _ended(study: Reader) -> int:
    return sum(cell.done + cell.failed for cell in study.overview())


def _left(study: Reader, where: str = "") -> str:
    """How many debates of a study are left, in words; empty if none is."""
    planned, of_source = study.fact("planned"), study.fact("unfinished")
    if isinstance(of_source, str) and of_source and planned is None:
        return of_source  # its debates are those of another study
    left = planned - _ended(study) if isinstance(planned, int) else 0
    return f"{count(left, 'debate')}{where} left to run" if left > 0 else ""


def reused_by(folder: Path) -> list[Path]:
    """The studies whose answered calls a study has used, as far as they are still there."""
    found = (path for run in read_manifest(folder)["runs"] if isinstance(run, Mapping) for path in run.get("reuse", ()))
    return [path for path in map(Path, dict.fromkeys(found)) if has_study(path)]


async def _on_record(run: Callable[..., Awaitable[dict[str, Any]]], most: int, usual: Callable[..., Awaitable[str]],
                     session: Session, *args: Any, **options: Any) -> dict[str, Any]:
    summary = await run(session, *args, **options)
    if summary["ending"] == "limit":
        plan = session.resolved.plan
        phases = any(cell.phases for cell in plan.cells)
        asking = sorted({name for cell in plan.cells for name, metric in cell.metrics.items()
                         if metric.calls(cell.plan)})
        raise NotPaid(f"decide: calls that are not on record are needed, {await usual(plan)}at most {most:,}, "
                      "which is all that the decision, the phases and the metrics can ask in every debate"
                      f"{f' (metrics that ask: {listed(asking)})' if asking else ''}"
                      f"{', or fewer with --without-phases' if phases else ''}; nothing was decided")
    return summary


@contextmanager
def _unless_unpaid(output: Path) -> Iterator[None]:
    """Leave no study behind that was begun only to find that it has to be paid for."""
    new = not output.exists()
    try:
        yield
    except NotPaid:
        if new:
            shutil.rmtree(output)
        raise


@contextmanager
def scored_again(folder: Path, metrics: Sequence[Any], *, components: Sequence[type[Component]] = (),
                 yes: bool = False) -> Iterator[Again]:
    """The study in a directory, to be scored in place. components: as for `decided_again`. Raises `UserError`."""
    with open_study(folder) as recorded:
        resolved, scores = resolve_rescored(folder, metrics, Path.cwd(), components, yes=yes)
        check_facts(recorded, folder)
        keep_settings(resolved, recorded)
        resolved.recorded_from = (recorded.fact("identity") or {}).get("recorded_from")
        written = read_manifest(folder).get("data", {})  # as in the run file; study.toml spells out paths and options
        keys = dict.fromkeys(cell.dataset_key for cell in resolved.plan.cells if cell.dataset is not None)
        if len(written) == len(keys):
            renamed = dict(zip(keys, written, strict=True))
            for cell in resolved.plan.cells:
                cell.dataset_key = renamed.get(cell.dataset_key, cell.dataset_key)
        yield Again(resolved, partial(Session.run, samples=Redecider(recorded).samples, metrics=scores,
                                      unfinished=_left(recorded)),
                    most_calls(resolved, recorded, deciding=False))


def result_of(ready: AbstractContextManager[Again], folder: Path) -> StudyResult:
    """Do it, in a thread of its own: a notebook has an event loop already."""
    async def run() -> dict[str, Any]:
        with ready as again, Session(again.resolved, folder) as session:
            return await again.run(session)

    with ThreadPoolExecutor(1) as thread:
        return StudyResult(folder, thread.submit(asyncio.run, run()).result())
