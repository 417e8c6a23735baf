"""What is left of a study, found while the data are checked: one pass over the rows, whatever is on record."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from madplug.components import Dataset
from madplug.context import Sampled
from madplug.debate.cell import Cell
from madplug.debate.checks import check_iterable, describe_error, method_name
from madplug.errors import StudyError, UserError
from madplug.rows import storable_text
from madplug.store import Recorder, sample_digest
from madplug.study.setup import sampled

_ALL_BITS = (1 << 64) - 1
MOST = 1_000
"""Samples with debates left that are kept in memory; with more, the jobs read the data again, one row at a time."""


class Ids:
    """Sample ids, each of which may occur only once; takes some 20 bytes for each, whatever its length.

    Only a hash of 64 bits is stored, in an open hash table: among a million ids, two that differ pass for the same
    once in 40 million runs.
    """

    def __init__(self) -> None:
        self._table = array("Q", bytes(8 << 10))
        self._count = 0

    def add(self, id: object) -> None:
        """Add an id. Raises `StudyError` if it is not a string, cannot be stored, or was added before."""
        if not isinstance(id, str):
            raise StudyError(f"dataset: the sample id {id!r:.80} is not a string")
        if storable_text(id) != id:
            raise StudyError(f"dataset: the sample id {id!r:.80} has a character that cannot be stored")
        digest = _hash(id)
        place = self._place(digest)
        if self._table[place]:
            raise StudyError(f"dataset: two samples have the id '{id}'")
        self._table[place] = digest
        self._count += 1
        if 3 * self._count > 2 * len(self._table):
            before, self._table = self._table, array("Q", bytes(16 * len(self._table)))
            for digest in filter(None, before):
                self._table[self._place(digest)] = digest

    def __contains__(self, id: str) -> bool:
        return bool(self._table[self._place(_hash(id))])

    def _place(self, digest: int) -> int:
        """Where a hash is, or belongs: then the table has a zero there."""
        table, last = self._table, len(self._table) - 1
        place = digest & last
        while table[place] not in (digest, 0):
            place = (place + 1) & last
        return place


def _hash(id: str) -> int:
    return hash(id) & _ALL_BITS or 1


@dataclass(frozen=True)
class Survey:
    """What some cells have left of a data set."""

    left: Sequence[Sampled] = ()
    """The samples with a debate that has not ended, or failed, or was run before the row changed."""
    dropped: Mapping[str, Collection[str]] = field(default_factory=dict)
    """By cell, the ids of samples on record that the data set no longer has."""


def check_rows(dataset: Dataset) -> None:
    """Read every row once before anything is paid for. Raises `UserError` or `StudyError` for invalid data."""
    for _ in read_rows(dataset, Ids()):
        pass


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


def survey(cells: Sequence[Cell], repeats: int, recorder: Recorder,
           unchanged: Collection[str] = ()) -> dict[str, Survey]:
    """Check the rows of every data set, and find what is left of them, by cell.

    unchanged: the cells of which nothing is left; data that no other cell has are not read. A cell is missing if
    nothing of it is on record, if more than `MOST` samples are left, or if an extension chooses its samples.
    """
    found: dict[str, Survey] = {}
    for dataset in {id(cell.dataset): cell.dataset for cell in cells if cell.dataset is not None}.values():
        users = [cell for cell in cells if cell.dataset is dataset]
        if all(cell.slug in unchanged for cell in users):
            found |= {cell.slug: Survey() for cell in users}
            continue
        slugs = [cell.slug for cell in users if not chooses_samples(cell)]
        result = _survey(dataset, slugs, repeats, recorder)
        found |= dict.fromkeys(slugs, result) if result is not None else {}
    return found


def chooses_samples(cell: Cell) -> bool:
    """Whether an extension of the cell may change which samples it has."""
    return any(hasattr(extension, "madplug_samples") for extension in cell.extensions)


def _survey(dataset: Dataset, slugs: Sequence[str], repeats: int, recorder: Recorder) -> Survey | None:
    every, ids = len(slugs) * repeats, Ids()
    done = _Done(recorder, slugs, repeats)
    left: list[Sampled] | None = [] if done.count else None
    rows = 0
    for sample, references in read_rows(dataset, ids):
        rows += 1
        if left is None or done.has(sample_digest(sample, references), every):
            continue
        left.append((sample, references))
        if len(left) > MOST:
            left = None
    if left is None:
        return None
    failed = [id for id in recorder.failed() if id.cell in slugs and id.repeat < repeats]
    if not failed and done.count == (rows - len(left)) * every:  # each debate on record was found
        return Survey(left)
    recorded = [(id.cell, id.sample) for id in failed]
    recorded += [(slug, sample) for slug in slugs for repeat in range(repeats)
                 for sample, _ in recorder.digests(slug, repeat)]
    dropped: dict[str, set[str]] = {}
    for slug, id in recorded:
        if id not in ids:
            dropped.setdefault(slug, set()).add(id)
    return Survey(left, dropped)


class _Done:
    """How often each digest of a sample is on record, in eight bytes for every debate."""

    def __init__(self, recorder: Recorder, slugs: Sequence[str], repeats: int) -> None:
        self._numbers = array("Q")
        for slug in slugs:
            for repeat in range(repeats):
                self._numbers.extend([_number(digest) for _, digest in recorder.digests(slug, repeat)])
        self._numbers = array("Q", sorted(self._numbers))
        self.count = len(self._numbers)

    def has(self, digest: str, times: int) -> bool:
        """Whether a digest is on record as often as that."""
        number = _number(digest)
        last = bisect_left(self._numbers, number) + times - 1
        return last < self.count and self._numbers[last] == number


def _number(digest: str) -> int:
    """The beginning of a digest; 0 for what is not one, as in a file that is damaged."""
    try:
        return int(digest[:16], 16)
    except ValueError:
        return 0
