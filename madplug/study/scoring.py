"""Metrics that are computed on recorded debates, because the study did not have them when the debates were run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from madplug.aio import maybe_await
from madplug.components import Metric
from madplug.errors import ComponentError
from madplug.records import DebateId, DebateResult, Usage
from madplug.store import Recorder
from madplug.store.scope import of_metric

if TYPE_CHECKING:
    from madplug.context import Debate, Spending
    from madplug.study.setup import CellSetup

SCORED = "scored"
MOST = 1e100
"""The largest score: sums of squares of larger ones would overflow, and no figures could be made of the study."""


class Scoring:
    """Knows which recorded debates still have to be scored, and by which metrics.

    By cell, the study's record has the digests of the metrics that have scored every debate; where it differs from the
    run file, each debate says which metrics have scored it. rescore: metrics that score every debate again.
    """

    def __init__(self, setups: Mapping[str, CellSetup], recorder: Recorder, rescore: Collection[str] = ()) -> None:
        self._setups = setups
        self._recorder = recorder
        self._rescore = frozenset(rescore)
        self._scored: dict[str, dict[str, str]] = {}
        self._pending: dict[str, tuple[str, ...]] = {}
        self._incomplete: set[str] = set()

    async def begin(self, recorded: Collection[str]) -> None:
        """Find the metrics that are missing. recorded: the cells that have debates on record."""
        before = self._recorder.fact(SCORED) or {}
        for slug, setup in self._setups.items():
            old = before.get(slug, {}) if slug in recorded else setup.metric_digests
            self._scored[slug] = {n: d for n, d in setup.metric_digests.items() if old.get(n) == d}
            pending = tuple(n for n in setup.metric_digests if n not in self._scored[slug] or n in self._rescore)
            if pending and slug in recorded:
                self._pending[slug] = pending
        if before:
            await self._recorder.keep_fact(SCORED, {**before, **self._scored})

    def has_left(self, cell: str) -> bool:
        """Whether recorded debates of a cell may have to be scored."""
        return cell in self._pending

    def of(self, id: DebateId) -> tuple[DebateResult, tuple[str, ...]] | None:
        """A recorded debate and the metrics that it lacks, or None."""
        pending = self._pending.get(id.cell)
        result = self._recorder.result(id) if pending else None
        if result is None:
            return None
        digests = self._setups[id.cell].metric_digests
        missing = tuple(n for n in pending or () if n in self._rescore or result.scored_by.get(n) != digests[n])
        return (result, missing) if missing else None

    def ended(self, id: DebateId, result: DebateResult | None) -> None:
        """A debate has ended or was scored."""
        digests = self._setups[id.cell].metric_digests
        if result is None or (result.error is None and any(result.scored_by.get(n) != d for n, d in digests.items())):
            self._incomplete.add(id.cell)

    async def conclude(self, *, complete: bool, left_out: Collection[str]) -> None:
        """Record which metrics have scored every debate.

        complete: no debate of any cell is left. left_out: the cells with debates on record that the study no longer
        has, which were not looked at and may come back.
        """
        incomplete = self._incomplete.union(left_out)
        for slug, setup in self._setups.items():
            if slug not in self._pending or (complete and slug not in incomplete):
                self._scored[slug] = dict(setup.metric_digests)
        before = self._recorder.fact(SCORED) or {}
        now = {**before, **self._scored}
        if now != before:
            await self._recorder.keep_fact(SCORED, now)


async def score(debate: Debate, name: str, metric: Metric, references: Sequence[str]) -> dict[str, float | None]:
    """The scores of one metric for a debate that has ended, by name: one number, or several."""
    value = await maybe_await(metric.score(debate, references))
    found = {f"{name}.{k}": v for k, v in value.items()} if isinstance(value, Mapping) else {name: value}
    for part, number in found.items():
        # isinstance first: a comparison of anything else may raise; NaN fails it.
        if number is not None and not (isinstance(number, int | float) and abs(number) <= MOST):
            raise ComponentError(f"{type(metric).__qualname__}.score gave {number!r:.40} for {part}; "
                                 f"expected a number up to {MOST:g}")
    return {part: None if number is None else float(number) for part, number in found.items()}


def with_scores(result: DebateResult, name: str, scores: Mapping[str, float | None], digest: str,
                spent: Spending, calls: Sequence[str] = ()) -> DebateResult:
    """A recorded debate with the scores of a metric, which take the place of its earlier ones.

    digest: of the metric. spent: what the metric has asked for; it is added unless the metric has scored it before.
    calls: keys of its calls.
    """
    names = {*result.scored_by, name}
    kept = {part: value for part, value in result.metrics.items() if of_metric(part, names) != name}
    scored = replace(result, metrics={**kept, **scores}, scored_by={**result.scored_by, name: digest},
                     other_calls=tuple(dict.fromkeys([*result.other_calls, *calls])))
    if name in result.scored_by or not spent.calls:
        return scored
    old, new = result.tokens, spent.usage()
    cost = None if old.cost_usd is None or new.cost_usd is None else old.cost_usd + new.cost_usd
    tokens = Usage(old.prompt + new.prompt, old.completion + new.completion, old.cached + new.cached, cost, old.raw)
    return replace(scored, calls=result.calls + spent.calls, retries=result.retries + spent.retries, tokens=tokens)
