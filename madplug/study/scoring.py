"""Metrics that are computed on recorded debates, because the study did not have them when the debates were run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from madplug.aio import maybe_await
from madplug.errors import ComponentError
from madplug.kinds import Metric
from madplug.records import DebateId, DebateResult
from madplug.store import Recorder
from madplug.store.scope import of_metric

if TYPE_CHECKING:
    from madplug.context import Debate
    from madplug.study.setup import CellSetup

MOST = 1e100
"""The largest score: sums of squares of larger ones would overflow, and no figures could be made of the study."""


class Scoring:
    """Knows which recorded debates still have to be scored, and by which metrics: each says which have scored it.

    rescore: metrics that score every debate again.
    """

    def __init__(self, setups: Mapping[str, CellSetup], recorder: Recorder, rescore: Collection[str] = ()) -> None:
        self._setups = setups
        self._recorder = recorder
        self._rescore = frozenset(rescore)
        self._left = {slug for slug, setup in setups.items() if not self._rescore.isdisjoint(setup.metric_digests)
                      or recorder.lacks_scores(slug, setup.metric_digests)}

    def has_left(self, cell: str) -> bool:
        """Whether recorded debates of a cell may have to be scored."""
        return cell in self._left

    def of(self, id: DebateId) -> tuple[DebateResult, tuple[str, ...]] | None:
        """A recorded debate and the metrics that it lacks, or None."""
        result = self._recorder.result(id) if id.cell in self._left else None
        if result is None:
            return None
        missing = tuple(name for name, digest in self._setups[id.cell].metric_digests.items()
                        if name in self._rescore or result.scored_by.get(name) != digest)
        return (result, missing) if missing else None


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
                calls: Sequence[str] = ()) -> DebateResult:
    """A recorded debate with the scores of a metric, which take the place of its earlier ones.

    digest: of the metric. calls: keys of the calls it made.
    """
    names = {*result.scored_by, name}
    kept = {part: value for part, value in result.metrics.items() if of_metric(part, names) != name}
    return replace(result, metrics={**kept, **scores}, scored_by={**result.scored_by, name: digest},
                   other_calls=tuple(dict.fromkeys([*result.other_calls, *calls])))
