"""What `madplug check` says besides: what of the study is on record already, and what its limits stop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from madplug import UserError, count, dollars, safe
from madplug.store import has_study, open_study

if TYPE_CHECKING:
    from madplug.study import ResolvedStudy


def add_record(cli: click.Group) -> None:
    """Let `madplug check` tell what is on record and what the limits are."""
    check: Any = cli.commands["check"]
    shown = check.callback

    def callback(**given: Any) -> Any:
        resolved = shown(**given)
        for line in before(resolved):
            click.echo(safe(line))
        return resolved

    check.callback = callback


def before(resolved: ResolvedStudy) -> Iterator[str]:
    """A line about the records in the study's directory, and one about its limits, if there are any."""
    done: Mapping[str, int] = {}
    paid: Mapping[str, float] = {}
    try:
        if has_study(resolved.folder):
            done, paid = _records(resolved.folder)
    except (UserError, OSError) as error:  # the run file is as it should be all the same
        yield str(error)
        return
    if any(done.values()) or any(paid.values()):
        usd = f", ${dollars(paid['cost_usd'])}" if paid["cost_usd"] else ""
        yield (f"on record in {resolved.folder}: {count(sum(done.values()), 'debate')}{_left(resolved, done)}; "
               f"{count(int(paid['calls']), 'call')} paid, {count(int(paid['tokens']), 'token')}{usd}")
    most = resolved.plan.limits.model_dump(exclude_none=True)
    if texts := [_limit(name, most[name], paid.get(name, 0)) for name in most]:
        yield f"[limits] stops the study at {', or '.join(texts)}"


def _records(folder: Path) -> tuple[Mapping[str, int], Mapping[str, float]]:
    """How many debates of each cell are done, and what was paid, by the names of the limits."""
    with open_study(folder) as study:
        totals = study.totals()
        return ({cell.cell: cell.done for cell in study.overview()},
                {"calls": totals.calls, "tokens": totals.tokens, "cost_usd": totals.cost_usd})


def _left(resolved: ResolvedStudy, done: Mapping[str, int]) -> str:
    """How many of the run file's debates are left, if the data sets know how many there are."""
    sizes = {cell.slug: cell.dataset.size() if cell.dataset else None for cell in resolved.plan.cells}
    known = [size * resolved.plan.repeats - done.get(cell, 0) for cell, size in sizes.items() if size is not None]
    return f", {sum(max(0, left) for left in known):,} left to run" if len(known) == len(sizes) else ""


def _limit(name: str, most: float, paid: float) -> str:
    if name == "seconds":
        return f"{most:,g} seconds of one run"
    text = f"${dollars(most)}" if name == "cost_usd" else f"{most:,} {name.replace('_', ' ')}"
    so_far = f"${dollars(paid)}" if name == "cost_usd" else f"{paid:,}"
    return f"{text} ({so_far} so far)" if paid else text
