"""Queries of a study: sums and scores by cell, and a cell's debates a few at a time, in any order.

Everything here is counted and sorted by SQLite: a study of any size is shown without being read as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, Literal, TypeVar

from madplug import DebateId, UserError
from madplug.store import CellOverview, Reader
from madplug_read import natural

Order = Literal["sample", "started", "messages", "rounds", "calls", "tokens", "cost", "seconds"]
"""What the debates of a cell can be sorted by; `sample`: by repeat and sample id, as `natural` sorts ids."""
Ending = Literal["running", "failed", "undecided", "decided"]
"""How debates ended; `decided` and `undecided` have not failed."""
T = TypeVar("T")
ORDERS: dict[Order, str] = {
    "sample": "0", "started": "number", "messages": "messages", "rounds": "rounds", "calls": "calls",
    "tokens": "prompt + completion", "cost": "cost_usd", "seconds": "seconds"}
"""The expression each order sorts by; debates with equal values come in the order of repeat and sample id."""
BY_METRIC = "metric:"
"""Before the name of a metric: the order by its scores; debates without one are the lowest."""
_NO_SCORE = -1e300
_NATURAL = ("rtrim(sample, '0123456789')", "length(sample)", "sample")
"""The parts of `madplug_read.natural`."""
_ENDINGS: dict[Ending | None, str] = {
    None: "", "running": " AND outcome IS NULL", "failed": " AND outcome = 'failed'",
    "undecided": " AND outcome = 'done' AND NOT decided", "decided": " AND outcome = 'done' AND decided"}
_OTHERS, _SINGLE = 2, 3
"""Columns of `_REPEATS`: scores other than 0 and 1, and the first of the sums over scores."""
BATCH = 100
_SUMS = "count({0}), avg({0}), sum({0} * {0}), min({0}), max({0})"  # of a debate that failed there is no score
# `LIMIT -1` keeps SQLite from merging the queries, after which it would look into the metrics once for each sum.
_SCORED = """(SELECT cell, repeat, sample,
 CASE WHEN outcome IS NOT NULL THEN json_extract(metrics, ?) END AS score FROM debates WHERE {within} LIMIT -1)"""
_REPEATS = f"""SELECT cell, repeat, sum(score NOT IN (0, 1)), {_SUMS.format("score")} FROM {_SCORED}
 GROUP BY cell, repeat"""
_SAMPLES = f"""SELECT cell, {_SUMS.format("mean")} FROM (SELECT cell, avg(score) AS mean FROM {_SCORED}
 GROUP BY cell, sample) GROUP BY cell"""
_DEBATES = """SELECT repeat, sample, digest, json_extract(metrics, ?) AS score FROM debates WHERE cell = ?
 AND outcome IS NOT NULL AND score IS NOT NULL AND {within}"""

_SCORES = """SELECT DISTINCT cell, key, type = 'null' FROM (SELECT cell, metrics FROM debates WHERE outcome IS NOT NULL
 AND {within}{more}), json_each(coalesce(metrics, '{{}}'))"""


@dataclass(frozen=True, slots=True)
class Score:
    """A metric over the debates of a cell."""

    metric: str
    mean: float
    """Over samples, of the means over repeats."""
    ci95: tuple[float, float] | None
    """Over samples, as `madplug.study.intervals.interval` has it; scores that are all 0 or 1 count as a proportion."""
    samples: int
    debates: int
    """That have a score."""


@dataclass(frozen=True, slots=True)
class ScoredCell(CellOverview):
    """The sums over the debates of a cell, and a metric."""

    score: Score | None = None


def overview(reader: Reader, metric: str | None) -> list[ScoredCell]:
    """The sums of each cell and, if named, a metric, in the order of the run file."""
    scores = {} if metric is None else _read(lambda: _scores(reader, metric))
    return [ScoredCell(**asdict(cell), score=scores.get(cell.cell)) for cell in reader.overview()]


def _scores(reader: Reader, metric: str) -> dict[str, Score]:
    scope = reader.scope
    within, values = scope.condition()
    values = [f"$.{json.dumps(metric, ensure_ascii=False)}", *values]
    by_cell: dict[str, list[Any]] = {}
    for row in reader.rows(_REPEATS.format(within=within), values):
        by_cell.setdefault(row[0], []).append(row)
    scored = {cell: rows for cell, rows in by_cell.items()
              if any(row[_SINGLE] for row in rows) and scope.shows(cell, metric)}
    samples = {}
    if any(len(repeats) > 1 for repeats in scored.values()):  # their samples are first averaged over the repeats
        samples = {row[0]: row[1:] for row in reader.rows(_SAMPLES.format(within=within), values)}
    return {cell: _score(metric, rows, samples[cell] if len(rows) > 1 else rows[0][_SINGLE:])
            for cell, rows in scored.items()}


def _score(metric: str, repeats: Sequence[Any], sums: Sequence[Any]) -> Score:
    """From the sums over samples."""
    from madplug.study import interval

    proportion = not any(row[_OTHERS] for row in repeats)
    n, mean, squares, least, most = sums
    variance = max(0.0, squares - n * mean * mean) / (n - 1) if n > 1 else 0.0
    debates = sum(row[_SINGLE] for row in repeats)
    found, _ = interval(n, mean, variance, debates=debates, proportion=proportion, shares=least >= 0 and most <= 1)
    return Score(metric, mean, None if found is None else (found[0], found[1]), n, debates)


def metric_names(reader: Reader, of_each: int | None = None) -> list[str]:
    """The scores that any debate of the study has, or any of the first ones of each cell.

    A metric that gives a table has just its own name where it does not apply; that name is left out if other debates
    have its parts.
    """
    scope = reader.scope
    within, values = scope.condition()
    if of_each is None:
        scores = reader.rows(_SCORES.format(within=within, more=""), values)
    else:
        query = _SCORES.format(within=within, more=" AND cell = ? LIMIT ?")
        scores = chain.from_iterable(reader.rows(query, (*values, cell, of_each)) for cell in reader.cells())
    found = [(cell, str(name), empty) for cell, name, empty in scores if scope.shows(str(cell), str(name))]
    names = {name for _, name, empty in found if not empty}
    without = {name for _, name, empty in found if empty} - names
    unscored = {name for name in without if not any(part.startswith(f"{name}.") for part in names)}
    return sorted(names | unscored, key=natural)


def failures(reader: Reader, most: int = 5) -> list[tuple[str, int]]:
    """The most frequent errors of debates that failed, each with how many have it."""
    within, values = reader.scope.condition()
    rows = reader.rows(f"SELECT error, count(*) FROM debates WHERE outcome = 'failed' AND {within} GROUP BY error"
                       " ORDER BY 2 DESC LIMIT ?", (*values, most))
    return [(str(error), int(number)) for error, number in rows]


Scores = dict[tuple[int, str], tuple[str, float]]
"""By repeat and sample id, what identifies the sample's content, and a score."""


def scores(reader: Reader, cell: str, metric: str) -> Scores:
    """The scores of the debates of a cell."""
    within, values = reader.scope.condition()
    path = f"$.{json.dumps(metric, ensure_ascii=False)}"
    return {row[:2]: row[2:] for row in reader.rows(_DEBATES.format(within=within), (path, cell, *values))}


def walk(reader: Reader, cell: str, order: str = "sample", *, descending: bool = False, after: str | None = None,
         ending: Ending | None = None) -> Iterator[tuple[str, DebateId]]:
    """The debates of a cell one after the other, each with a cursor; given as `after`, it continues behind it.

    order: of `ORDERS`, or `metric:NAME`. ending: only debates that ended so. Reads the records of no more than
    it gives, a batch ahead. Raises `UserError` for a string that is not a cursor.
    """
    if order not in ORDERS and not order.startswith(BY_METRIC):
        raise UserError(f"'{order}' is not an order of debates; orders are {', '.join(ORDERS)}, {BY_METRIC}NAME")
    last, scope = _read_cursor(after, order), reader.scope
    while True:
        batch = list(reader.rows(*_batch(cell, order, descending, last, ending)))
        for value, repeat, sample in batch:
            if not (type(repeat) is int and type(sample) is str):
                raise UserError(f"{reader.folder}: the debates of cell '{cell}' cannot be read: repeat {repeat!r:.40}, "
                                f"sample {sample!r:.40} are not a number and a text")
            last = [value, repeat, sample]
            if scope.has(cell, repeat, sample):
                yield json.dumps(last), DebateId(cell, repeat, sample)
        if len(batch) < BATCH:
            return


def _read(get: Callable[[], T]) -> T:
    try:
        return get()
    except (ValueError, TypeError) as error:
        raise UserError(f"the metrics cannot be read: {error}") from None


def in_order(place: Sequence[Any]) -> tuple[Any, ...]:
    """What the place of a debate, its value, repeat and sample id, is sorted by."""
    return (*place[:2], *natural(place[2]))


def _batch(cell: str, order: str, descending: bool, last: Sequence[Any] | None,
           ending: Ending | None) -> tuple[str, list[Any]]:
    metric = order.removeprefix(BY_METRIC) if order.startswith(BY_METRIC) else None
    by = f"coalesce(json_extract(metrics, ?), {_NO_SCORE})" if metric is not None else \
        f"coalesce({ORDERS[order]}, -1)"  # type: ignore[index]
    path = [] if metric is None else [f"$.{json.dumps(metric, ensure_ascii=False)}"]
    way, than = ("DESC", "<") if descending else ("ASC", ">")
    names = [by, "repeat", *_NATURAL]
    sql = f"SELECT {by}, repeat, sample FROM debates WHERE cell = ?{_ENDINGS[ending]}"
    values: list[Any] = [*path, cell]
    if last is not None:
        sql += f" AND ({', '.join(names)}) {than} ({', '.join('?' * len(names))})"
        values += [*path, *in_order(last)]
    return f"{sql} ORDER BY {', '.join(f'{name} {way}' for name in names)} LIMIT {BATCH}", [*values, *path]


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
