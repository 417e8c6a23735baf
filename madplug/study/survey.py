"""Find the samples that still need debates, in one pass over the data that also checks them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from madplug.component import Component, identity_of
from madplug.context import Sampled
from madplug.debate.cell import Cell
from madplug.debate.checks import check_iterable, describe_error, method_name
from madplug.errors import Problem, StudyError, UserError
from madplug.kinds import AnswerFormat, Dataset
from madplug.rows import storable_text
from madplug.store import Recorder, sample_digest
from madplug.study.setup import sampled

MOST = 1_000
"""Samples with debates left that are kept in memory; with more, the jobs read the data again, one row at a time."""

CHECKED = 1_000
"""Rows of a data set that `madplug check` looks at; a run looks at all."""

MOST_MISFITS = 20
"""Rows that do not fit, after which no more are looked for."""


class Ids:
    """Sample ids, each of which may occur only once.

    Only a hash of 64 bits is kept, some 65 bytes for each: among a million ids, two that differ pass for the same once
    in 40 million runs.
    """

    def __init__(self) -> None:
        self._hashes: set[int] = set()

    def add(self, id: object) -> None:
        """Add an id. Raises `StudyError` if it is not a string, cannot be stored, or was added before."""
        if not isinstance(id, str):
            raise StudyError(f"dataset: the sample id {id!r:.80} is not a string")
        if storable_text(id) != id:
            raise StudyError(f"dataset: the sample id {id!r:.80} has a character that cannot be stored")
        if id in self:
            raise StudyError(f"dataset: two samples have the id '{id}'")
        self._hashes.add(hash(id))

    def __contains__(self, id: str) -> bool:
        return hash(id) in self._hashes


@dataclass(frozen=True)
class Survey:
    """What some cells have left of a data set."""

    left: Sequence[Sampled] = ()
    """The samples with a debate that has not ended, or failed, or was run before the row changed."""
    dropped: Mapping[str, Collection[str]] = field(default_factory=dict)
    """By cell, the ids of samples on record that the data set no longer has."""


def read_rows(dataset: Dataset, ids: Ids) -> Iterator[Sampled]:
    """The rows of a data set, each checked, with their ids added. Raises `UserError` or `StudyError`."""
    given = f"{method_name(dataset, 'samples')} gave"
    try:
        for row in check_iterable(dataset.samples(), f"{method_name(dataset, 'samples')} returned"):
            found = sampled(row, given)
            ids.add(found[0].id)
            yield found
    except (UserError, StudyError):
        raise
    except (Exception, SystemExit) as error:
        raise StudyError(f"data set {dataset.full_name}: the samples cannot be read: "
                         f"{describe_error(error)}") from error


def fitting(rows: Iterable[Sampled], cells: Iterable[Cell]) -> Iterator[Sampled]:
    """The rows, as long as each fits the components of these cells.

    Raises `UserError` with every row that does not, at the end, or once there are `MOST_MISFITS`.
    """
    asked = (one for cell in cells for one in cell.components() if type(one).misfit is not Component.misfit
             and (not isinstance(one, AnswerFormat) or (one is cell.answers and cell.metrics)))
    choosy = {identity_of(one): one for one in asked}.values()
    problems: list[Problem] = []
    for sample, references in rows:
        problems += (Problem("dataset", f"sample '{sample.id}' does not fit {one.full_name}: {why}")
                     for one in choosy if (why := one.misfit(sample, references)))
        if len(problems) >= MOST_MISFITS:
            break
        yield sample, references
    if problems:
        raise UserError(problems)


def check_rows(cells: Sequence[Cell]) -> Iterator[str]:
    """Check the first rows of every data set, and tell what to know of them. Raises `UserError` or `StudyError`."""
    for dataset in {id(cell.dataset): cell.dataset for cell in cells if cell.dataset is not None}.values():
        theirs = [cell for cell in cells if cell.dataset is dataset]
        rows = [(sample.id, len(set(sample.choices)) < len(sample.choices), bool(references))
                for sample, references in fitting(islice(read_rows(dataset, Ids()), CHECKED), theirs)]
        if twice := [id for id, same, _ in rows if same]:
            more = f" (and {len(twice) - 1:,} more)" if len(twice) > 1 else ""
            yield (f"warning: dataset: sample '{twice[0]}'{more} has two equal choices; an answer that names the other "
                   "one than the reference is wrong")
        if any(known for *_, known in rows) and not any(cell.metrics for cell in theirs):
            yield (f'warning: metrics: there is none, so no answer is scored; for example metrics = '
                   f'["{theirs[0].answers.scored_by}"]')


def survey(cells: Sequence[Cell], repeats: int, recorder: Recorder) -> dict[str, Survey]:
    """Check the rows of every data set, and find what is left of them, by cell.

    A cell is missing if nothing of it is on record, if more than `MOST` samples are left, or if an extension chooses
    its samples.
    """
    found: dict[str, Survey] = {}
    for dataset in {id(cell.dataset): cell.dataset for cell in cells if cell.dataset is not None}.values():
        theirs = [cell for cell in cells if cell.dataset is dataset]
        slugs = [cell.slug for cell in theirs if not chooses_samples(cell)]
        result = _survey(dataset, theirs, slugs, repeats, recorder)
        found |= dict.fromkeys(slugs, result) if result is not None else {}
    return found


def chooses_samples(cell: Cell) -> bool:
    """Whether an extension of the cell may change which samples it has."""
    return any(hasattr(extension, "madplug_samples") for extension in cell.extensions)


def _survey(dataset: Dataset, cells: Sequence[Cell], slugs: Sequence[str], repeats: int,
            recorder: Recorder) -> Survey | None:
    places = [(slug, repeat) for slug in slugs for repeat in range(repeats)]
    done = Counter(hash(digest) for place in places for _, digest in recorder.digests(*place))
    ids, rows = Ids(), 0
    left: list[Sampled] | None = [] if done else None
    for sample, references in fitting(read_rows(dataset, ids), cells):
        rows += 1
        if left is None or done[hash(sample_digest(sample, references))] >= len(places):
            continue
        left.append((sample, references))
        if len(left) > MOST:
            left = None
    if left is None:
        return None
    failed = [id for id in recorder.failed() if id.cell in slugs and id.repeat < repeats]
    if not failed and done.total() == (rows - len(left)) * len(places):  # each debate on record was found
        return Survey(left)
    recorded = [(id.cell, id.sample) for id in failed]
    recorded += [(place[0], sample) for place in places for sample, _ in recorder.digests(*place)]
    dropped: dict[str, set[str]] = {}
    for slug, id in recorded:
        if id not in ids:
            dropped.setdefault(slug, set()).add(id)
    return Survey(left, dropped)
