"""What `madplug check` says besides: what of the study is on record already, and what its limits stop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from madplug import Reader, UserError, count, dollars, safe
from madplug.store import has_study, open_study, sample_digest

if TYPE_CHECKING:
    from madplug.study import ResolvedStudy

COMPARED = 1000
"""Rows of a data set that are compared with what is on record."""


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
    paid: Mapping[str, float] = {}
    try:
        if has_study(resolved.folder):
            with open_study(resolved.folder) as study:
                totals = study.totals()
                paid = {"calls": totals.calls, "tokens": totals.tokens, "cost_usd": totals.cost_usd,
                        "unpriced": totals.unpriced}
                yield from _on_record(resolved, study, paid)
    except (UserError, OSError) as error:  # the run file is as it should be all the same
        yield str(error)
        return
    most = resolved.plan.limits.model_dump(exclude_none=True)
    if texts := [_limit(name, most[name], paid.get(name, 0)) for name in most]:
        yield f"[limits] stops the study at {', or '.join(texts)}"
    if "cost_usd" in most and paid.get("unpriced"):
        yield f"limits.cost_usd: {count(int(paid['unpriced']), 'call')} of earlier runs had no price and cannot count"


def _on_record(resolved: ResolvedStudy, study: Reader, paid: Mapping[str, float]) -> Iterator[str]:
    """What is on record, and what of it counts for the run file."""
    from madplug.study import changed_settings, check_facts

    check_facts(study, resolved.folder)
    done = {(cell, sample, repeat): digest for cell, sample, repeat, digest in study.rows(
        "SELECT cell, sample, repeat, digest FROM debates WHERE outcome = 'done'") if isinstance(repeat, int)}
    if not (done or any(paid.values())):
        return
    usd = f", ${dollars(paid['cost_usd'])}" if paid["cost_usd"] else ""
    usd += " and what has no known price" if usd and paid["unpriced"] else ""
    there = (f"on record in {resolved.folder}: {count(len(done), 'debate')}{{}}; {count(int(paid['calls']), 'call')} "
             f"paid, {count(int(paid['tokens']), 'token')}{usd}")
    if found := changed_settings(resolved, study):
        more = f" and {count(len(found) - 1, 'more difference')}" if found[1:] else ""
        yield there.format("")
        yield (f"warning: they were run with other settings ({found[0]}{more}), so that run refuses: it takes another "
               "directory, with --output, or, if only a cell changed, another name for it")
        return
    left, changed = _left(resolved, done)
    yield there.format("" if left is None else f", {left:,} left to run")
    if changed:
        yield (f"warning: {count(changed, 'sample')} changed since then; the debates are run again, and calls whose "
               "prompts are the same are not paid again")


def _left(resolved: ResolvedStudy, done: Mapping[tuple[str, str, int], str]) -> tuple[int | None, int]:
    """How many of the run file's debates are left, if that is known, and how many samples are not as on record.

    Of a large data set, the first rows are compared.
    """
    left: int | None = 0
    changed = set[str]()
    repeats = range(resolved.plan.repeats)
    for cell in resolved.plan.cells:
        dataset = None if cell.chooses_samples else cell.dataset
        size = dataset.size() if dataset else None
        ours = {key[1:]: digest for key, digest in done.items() if key[0] == cell.slug and key[2] in repeats}
        compared, same = set[str](), 0
        rows = dataset.samples() if dataset and ours else ()
        for sample, references in islice(rows, COMPARED):
            compared.add(sample.id)
            found = [ours[sample.id, repeat] for repeat in repeats if (sample.id, repeat) in ours]
            as_now = sum(digest in ("", sample_digest(sample, references)) for digest in found)
            changed |= {sample.id} if as_now < len(found) else set()
            same += as_now
        if size is None or left is None:
            left = None
            continue
        others = sum(sample not in compared for sample, _ in ours)  # of later rows, or of rows that are gone
        left += size * len(repeats) - same - min(others, (size - len(compared)) * len(repeats))
    return left, len(changed)


def _limit(name: str, most: float, paid: float) -> str:
    if name == "seconds":
        return f"{most:,g} seconds of one run"
    text = f"${dollars(most)}" if name == "cost_usd" else f"{most:,} {name.replace('_', ' ')}"
    so_far = f"${dollars(paid)}" if name == "cost_usd" else f"{paid:,}"
    return f"{text} ({'reached: ' * (paid >= most)}{so_far} so far)" if paid else text
