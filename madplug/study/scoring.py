"""The scores of a debate that has ended: of one that was just run, or of one on record that lacks some."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from madplug.aio import maybe_await
from madplug.debate.state import DebateState
from madplug.errors import ComponentError
from madplug.records import DebateResult
from madplug.store.scope import of_metric

MOST = 1e100
"""The largest score: sums of squares of larger ones would overflow, and no figures could be made of the study."""


async def score(debate: DebateState, result: DebateResult, name: str, digest: str) -> DebateResult:
    """The result with the scores of a metric, one number or several, which take the place of its earlier ones.

    digest: of the metric.
    """
    metric = debate.cell.metrics[name]
    value = await maybe_await(metric.score(debate, debate.right))
    scores = {f"{name}.{k}": v for k, v in value.items()} if isinstance(value, Mapping) else {name: value}
    for part, number in scores.items():
        # isinstance first: a comparison of anything else may raise; NaN fails it.
        if number is not None and not (isinstance(number, int | float) and abs(number) <= MOST):
            raise ComponentError(f"{type(metric).__qualname__}.score gave {number!r:.40} for {part}; "
                                 f"expected a number up to {MOST:g}")
        scores[part] = None if number is None else float(number)
    names = {*result.scored_by, name}
    kept = {part: value for part, value in result.metrics.items() if of_metric(part, names) != name}
    return replace(result, metrics={**kept, **scores}, scored_by={**result.scored_by, name: digest},
                   other_calls=tuple(dict.fromkeys([*result.other_calls, *debate.other_calls])))
