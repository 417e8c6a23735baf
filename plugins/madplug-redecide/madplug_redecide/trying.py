"""How many calls deciding again takes: a trial in which no model is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from madplug import dollars
from madplug.store import MemoryStore, Reader
from madplug.study import StudyPlan, StudyRun
from madplug_prices.forecast import PATIENCE, SAMPLES, SHORT, echoes
from madplug_redecide.deciding import Redecider


async def usual(plan: StudyPlan, again: Redecider, reuse: Sequence[Reader]) -> str:
    """How many calls are not on record if every reply can be read and agrees, and what they cost if prices are known.

    Empty if a trial does not tell. reuse: records whose calls are not made again.
    """
    if any(cell.services or cell.more for cell in plan.cells):
        return ""  # a trial would have to start them
    store = MemoryStore()
    try:
        failed = await asyncio.wait_for(_try(plan, again, store, reuse), PATIENCE)
    except asyncio.TimeoutError:
        return f"how many is not known after {PATIENCE:g} s of trying without a model, "
    calls = [*store.call_figures()]
    if failed or not calls:
        return ""
    priced = all(plan.models[name].price for cell in plan.cells for name in cell.channels.values())
    usd = f" (${dollars(sum(call.cost_usd or 0 for call in calls))} with replies of {SHORT} tokens)" if priced else ""
    return f"about {len(calls):,}{usd} if every reply can be read and agrees, "


async def _try(plan: StudyPlan, again: Redecider, store: MemoryStore, reuse: Sequence[Reader]) -> int:
    """Decide every debate again in memory; how many failed that had not failed before."""
    failed, before = 0, {cell.cell: cell.failed for cell in again.recorded.overview()}
    for cell in plan.cells:
        rows = [(debate.sample, debate.references) for debate in islice(again.recorded.debates(cell.slug), SAMPLES)]
        tried = replace(plan, cells=[replace(cell, match=None)], limits=type(plan.limits)(), executor=None,
                        observers=(), models=echoes(plan.models, cell, rows, longest=False))
        summary = await StudyRun(tried, store, runner=again.run, samples=again.samples, reuse=reuse).run()
        failed += summary["cells"][0]["failed"] - before.get(cell.slug, 0)
    return failed
