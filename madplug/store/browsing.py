"""What pages show of a study's directory: sums by cell, and a cell's debates a few at a time, in any order.

Everything here is counted and sorted by SQLite: a study of any size is shown without being read as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from math import isfinite
from typing import Any

from madplug.errors import UserError
from madplug.records import DebateId
from madplug.store.base import CellOverview, Ending, MetricOverview, Order, Spent
from madplug.store.scope import Scope

Rows = Callable[..., Iterable[Any]]
"""Runs a query with its values and gives its rows."""
COLUMNS = ("number", "cell", "repeat", "sample", "outcome", "decided", "messages", "rounds", "calls", "prompt",
           "completion", "cost_usd", "seconds", "metrics")
"""Of a debate, what the queries here read."""
ORDERS: dict[Order, str] = {
    "sample": "", "started": "number", "messages": "messages", "rounds": "rounds", "calls": "calls",
    "tokens": "prompt + completion", "cost": "cost_usd", "seconds": "seconds"}
"""The expression each order sorts by; debates with equal values come in the order of repeat and sample id."""
_ENDINGS: dict[Ending | None, str] = {
    None: "", "running": " AND outcome IS NULL", "failed": " AND outcome = 'failed'",
    "undecided": " AND outcome = 'done' AND NOT decided", "decided": " AND outcome = 'done' AND decided"}
_OTHERS, _SINGLE = 12, 13
"""Columns of `_REPEATS`: scores other than 0 and 1, and the first of the sums over scores."""
BATCH = 100
_SUMS = "count({0}), avg({0}), sum({0} * {0}), min({0}), max({0})"
# `LIMIT -1` keeps SQLite from merging the queries, after which it would look into the metrics once for each sum.
_SCORED = """(SELECT cell, repeat, sample, number, outcome, decided, calls, prompt, completion, cost_usd, seconds,
 CASE WHEN outcome IS NOT NULL THEN json_extract(metrics, ?) END AS score,
 outcome = 'failed' AND metrics = '{{}}' AS unscored FROM debates WHERE {within} LIMIT -1)"""
_NUMBERS = """SELECT cell, repeat, min(number), coalesce(sum(outcome = 'done'), 0),
 coalesce(sum(outcome = 'failed'), 0), sum(outcome IS NULL), coalesce(sum(outcome = 'done' AND NOT decided), 0),
 coalesce(sum(calls), 0), coalesce(sum(prompt), 0), coalesce(sum(completion), 0),
 CASE WHEN sum(outcome IS NOT NULL AND cost_usd IS NULL) THEN NULL ELSE coalesce(sum(cost_usd), 0.0) END,
 coalesce(sum(seconds), 0.0)"""
_UNSCORED = f"{_NUMBERS} FROM debates WHERE {{within}} GROUP BY cell, repeat"  # an index has all of it
_REPEATS = f"""{_NUMBERS}, sum(score NOT IN (0, 1)), {_SUMS.format("score")},
 {_SUMS.format("CASE WHEN unscored THEN 0.0 ELSE score END")} FROM {_SCORED} GROUP BY cell, repeat"""
_SAMPLES = f"""SELECT cell, {_SUMS.format("mean")}, {_SUMS.format("strict")} FROM (SELECT cell, avg(score) AS mean,
 avg(CASE WHEN unscored THEN 0.0 ELSE score END) AS strict FROM {_SCORED} GROUP BY cell, sample) GROUP BY cell"""
_PAIRS = """SELECT json_extract(a.metrics, ?) AS one, json_extract(b.metrics, ?) AS two, count(*) FROM debates AS a JOIN
 debates AS b ON b.cell = ? AND b.repeat = a.repeat AND b.sample = a.sample WHERE a.cell = ?
 AND a.outcome IS NOT NULL AND b.outcome IS NOT NULL AND one IS NOT NULL AND two IS NOT NULL AND {within}
 GROUP BY one, two"""

_SCORES = """SELECT DISTINCT cell, key, type = 'null' FROM (SELECT cell, metrics FROM debates WHERE outcome IS NOT NULL
 AND {within}{more}), json_each(coalesce(metrics, '{{}}'))"""
_NAMES = """WITH RECURSIVE found(cell) AS (SELECT min(cell) FROM debates UNION ALL
 SELECT (SELECT min(cell) FROM debates WHERE cell > found.cell) FROM found WHERE found.cell IS NOT NULL)
 SELECT cell FROM found WHERE cell IS NOT NULL"""


def overview(rows: Rows, metric: str | None, scope: Scope | None = None) -> list[CellOverview]:
    """The sums of each cell, in the order in which they were started; scores as in `madplug.study.intervals`."""
    scope = scope or Scope()
    within, values = _within(scope)
    if metric is not None:
        values.insert(0, f"$.{json.dumps(metric, ensure_ascii=False)}")
    by_cell: dict[str, list[Any]] = {}
    for row in rows((_UNSCORED if metric is None else _REPEATS).format(within=within), values):
        by_cell.setdefault(row[0], []).append(row)
    scored = {} if metric is None else {c: found for c, found in by_cell.items() if any(row[_SINGLE] for row in found)}
    samples = {}
    if any(len(repeats) > 1 for repeats in scored.values()):  # their samples are first averaged over the repeats
        samples = {row[0]: row[1:] for row in rows(_SAMPLES.format(within=within), values)}
    cells = []
    for cell, repeats in sorted(by_cell.items(), key=lambda item: min(row[2] for row in item[1])):
        found = _add_up(cell, repeats)
        if cell in scored and scope.shows(cell, metric or ""):
            sums = samples[cell] if len(repeats) > 1 else repeats[0][_SINGLE:]
            found = replace(found, score=_score(metric or "", repeats, sums))
        cells.append(found)
    return cells


def _within(scope: Scope, table: str = "") -> tuple[str, list[Any]]:
    """The condition that debates are in the scope, with its values. table: `a.`, in a query of several."""
    conditions = ["TRUE"]
    values: list[Any] = []
    if scope.cells is not None:
        conditions.append(f"{table}cell IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(sorted(scope.cells)))
    if scope.repeats is not None:
        conditions.append(f"{table}repeat < ?")
        values.append(scope.repeats)
    if scope.dropped:  # one condition for all cells, since an expression may not be nested deeply
        conditions.append(f"({table}cell, {table}sample) NOT IN (SELECT cells.key, samples.value FROM json_each(?)"
                          " AS cells, json_each(cells.value) AS samples)")
        values.append(json.dumps({cell: sorted(samples) for cell, samples in scope.dropped.items()}))
    return " AND ".join(conditions), values


def _add_up(cell: str, repeats: Sequence[Any]) -> CellOverview:
    columns = list(zip(*repeats, strict=True))
    if not all(type(row[i]) is int for row in repeats for i in (1, *range(3, 10))):
        raise TypeError("they are not whole numbers")
    done, failed, running, undecided, calls, prompt, completion = map(sum, columns[3:10])
    cost, seconds = None if None in columns[10] else sum(columns[10]), sum(columns[11])
    if not (isfinite(cost or 0.0) and isfinite(seconds)):
        raise ValueError("their cost or their seconds are not finite")
    return CellOverview(cell, done, failed, running, undecided, calls, prompt, completion, cost, seconds,
                        max(columns[1]) + 1)


def _score(metric: str, repeats: Sequence[Any], sums: Sequence[Any]) -> MetricOverview:
    """From the sums over samples: first of scores as they are, then with those of unscored failures as zeros."""
    from madplug.study.intervals import interval  # what imports statistics, which only a metric needs

    proportion = not any(row[_OTHERS] for row in repeats)
    n, mean, squares, least, most = sums[5:] if proportion else sums[:5]
    variance = max(0.0, squares - n * mean * mean) / (n - 1) if n > 1 else 0.0
    debates = sum(row[_SINGLE + 5 * proportion] for row in repeats)
    found, _ = interval(n, mean, variance, debates=debates, proportion=proportion, shares=least >= 0 and most <= 1)
    return MetricOverview(metric, mean, None if found is None else (found[0], found[1]), n)


def cell_names(rows: Rows) -> list[str]:
    """The cells by name: one look into the index for each, however many debates there are."""
    return [row[0] for row in rows(_NAMES)]


def metric_names(rows: Rows, scope: Scope | None = None, *, of_each: int | None = None) -> list[str]:
    """The scores that any debate of the study has, or any of the first ones of each cell.

    A metric that gives a table has just its own name where it does not apply; that name is left out if other debates
    have its parts.
    """
    scope = scope or Scope()
    within, values = _within(scope)
    if of_each is None:
        scores = rows(_SCORES.format(within=within, more=""), values)
    else:
        query = _SCORES.format(within=within, more=" AND cell = ? LIMIT ?")
        scores = chain.from_iterable(rows(query, (*values, cell, of_each)) for cell in cell_names(rows))
    found = [(cell, name, empty) for cell, name, empty in scores if scope.shows(cell, str(name))]
    names = {str(name) for _, name, empty in found if not empty}
    without = {str(name) for _, name, empty in found if empty} - names
    return sorted(names | {name for name in without if not any(part.startswith(f"{name}.") for part in names)})


def contrast(rows: Rows, first: str, second: str, metric: str,
             scope: Scope | None = None) -> dict[tuple[float, float], int]:
    """Debates on the same sample and repeat in two cells, by their scores in the first and the second."""
    path = f"$.{json.dumps(metric, ensure_ascii=False)}"
    (one, values), (two, more) = (_within(scope or Scope(), table) for table in ("a.", "b."))
    found = rows(_PAIRS.format(within=f"{one} AND {two}"), (path, path, second, first, *values, *more))
    return {(row[0], row[1]): row[2] for row in found}


def spent(rows: Rows, keys: Iterable[bytes]) -> Spent:
    """What the calls with these keys used; their texts are not read."""
    calls = prompt = completion = retries = 0
    cost: float | None = 0.0
    seconds = 0.0
    for key in keys:
        for row in rows("SELECT prompt, completion, cost_usd, seconds, retries FROM calls WHERE key = ?", (key,)):
            calls, prompt, completion = calls + 1, prompt + row[0], completion + row[1]
            cost = None if cost is None or row[2] is None else cost + row[2]
            seconds, retries = seconds + row[3], retries + row[4]
    return Spent(calls, prompt, completion, cost, seconds, retries)


def walk(rows: Rows, cell: str, order: Order, descending: bool, after: str | None,
         ending: Ending | None) -> Iterator[tuple[str, DebateId]]:
    """The debates of a cell from a cursor on, each with the cursor of what follows it."""
    if order not in ORDERS:
        raise UserError(f"'{order}' is not an order of debates; orders are {', '.join(ORDERS)}")
    last = _read_cursor(after, order)
    while True:
        batch = list(rows(*_batch(cell, order, descending, last, ending)))
        for value, repeat, sample in batch:
            if not (type(repeat) is int and type(sample) is str):
                raise TypeError(f"repeat {repeat!r:.40}, sample {sample!r:.40} are not a number and a text")
            last = [value, repeat, sample]
            yield json.dumps(last), DebateId(cell, repeat, sample)
        if len(batch) < BATCH:
            return


def _batch(cell: str, order: Order, descending: bool, last: Sequence[Any] | None,
           ending: Ending | None) -> tuple[str, list[Any]]:
    by = f"coalesce({ORDERS[order]}, -1)" if ORDERS[order] else ""
    way, than = ("DESC", "<") if descending else ("ASC", ">")
    names = [by, "repeat", "sample"] if by else ["repeat", "sample"]
    sql, values = f"SELECT {by or 0}, repeat, sample FROM debates WHERE cell = ?{_ENDINGS[ending]}", [cell]
    if last is not None:
        sql += f" AND ({', '.join(names)}) {than} ({', '.join('?' * len(names))})"
        values += last if by else last[1:]
    return f"{sql} ORDER BY {', '.join(f'{name} {way}' for name in names)} LIMIT {BATCH}", values


def _read_cursor(text: str | None, order: str) -> list[Any] | None:
    if text is None:
        return None
    try:
        value, repeat, sample = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        value = repeat = sample = None
    if not (isinstance(value, int | float) and type(repeat) is int and isinstance(sample, str)):
        raise UserError(f"{text!r:.40} is not a cursor of debates ordered by {order}")
    return [value, repeat, sample]
