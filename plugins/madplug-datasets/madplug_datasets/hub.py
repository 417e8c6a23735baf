"""The data set `datasets.hub`, and what presets build on."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from madplug import Problem, RunPath, Sample, UserError, Volatile
from madplug_datasets.loading import Where, load
from madplug_datasets.reach import commit
from madplug_files.columns import (
    ColumnDataset,
    ColumnOptions,
    Columns,
    Row,
    RowOptions,
    group_of,
    refuse_alternatives,
    refuse_second,
    refuse_uncounted,
)
from madplug_files.problems import Problems, Report, ignore, problem, refuse
from madplug_files.readers import Numbered, Rows
from madplug_files.references import Wanted
from madplug_files.sampling import Draw, tally
from madplug_files.table import digest
from madplug_prompting.tasks import with_instruction


class HubOptions(RowOptions):
    """Options of every data set that comes from the hub."""

    revision: Annotated[str | None, Volatile] = Field(
        default=None, description="a commit, tag or branch; unset: the newest commit. The commit that was read is "
                                  "kept with the study")
    path: Annotated[RunPath | None, Volatile] = Field(
        default=None, description="a local file to read instead, with the hub's columns (.jsonl, .json, .csv, .tsv, "
                                  ".parquet)")
    streaming: Annotated[bool, Volatile] = Field(
        default=False, description="read row by row over the network instead of downloading first")
    train: str = Field(
        default="train", description="the split for components that prepare on examples; never the study's own split")
    train_path: Annotated[RunPath | None, Volatile] = Field(
        default=None, description="with `path`: the local file to read as that split")


class Hub(ColumnDataset):
    """Rows of a data set on the Hugging Face hub, or of a local file with the same columns.

    Each row is a question; `columns` says which column is what, with dots for nested ones (`answers.text`) and a list
    where several columns make up the choices or the contexts. Images are read only if
    `columns.images` names their column, and become `data:` addresses. The hub is asked once, with a deadline, which
    commit the revision is; the commit is kept with the study. Without the hub, the library's cache is used. A gated
    data set needs HF_TOKEN in the environment.

    With a seed in `shuffle`, the same rows come in the same order whether they are streamed or not; a shuffled stream
    is read to its end.
    """

    name = "hub"

    class Options(HubOptions, ColumnOptions):
        """Options of `datasets.hub`."""

        id: str | None = Field(default=None, description="the data set on the hub, as owner/name")
        config: str | None = Field(default=None, description="the configuration, if there are several")
        split: str = Field(default="test", description="the split the study is about")
        files: tuple[str, ...] = Field(
            default=(), description="files of the repository to read as the split, if it does not define splits")

    def samples(self, split: str | None = None) -> Iterator[tuple[Sample, tuple[str, ...]]]:
        """The rows as samples with their references.

        Raises `UserError` at the end of the pass, with every problem of every row, or after 20 problems.
        """
        where = self.where(split)
        rows = load(where)
        columns = self.layout(rows.columns, where)
        seen: dict[str, str] = {}
        problems = Problems()

        def checked(number: int, place: str, row: Row) -> tuple[Sample, tuple[str, ...]]:
            sample, references = self.sample(columns, row, place, f"{self.stem()}-{number}")
            refuse_second(sample.id, place, columns, seen)
            return with_instruction(sample, self.options.instruction), references

        for numbered in self._drawn(rows, split, problems):
            if found := problems.attempt(checked, *numbered):
                yield found
        problems.finish()
        if not seen:
            raise self.empty(rows, where)

    def size(self) -> int | None:
        """The number of rows, or the limit."""
        where = self.where(None)
        if where.path is None and where.streaming and isinstance(self.options.limit, int):
            return self.options.limit
        rows = load(where)
        count = sum(1 for _ in self._kept(rows, ignore)) if self.selects else rows.count()
        return min(count, Draw.chosen(self.options).size(lambda: count) or count)

    def fingerprint(self) -> str:
        """The commit on the hub, or the SHA-256 of the local files."""
        where = self.where(None)
        if where.path is None:
            return commit(where.id or "", where.revision) or load(where).version
        return "+".join(digest(p) for p in (where.path, self.options.train_path) if p is not None)

    def check(self, cell: Any) -> Iterable[str]:
        """Check the names, the columns and the first row."""
        try:
            where = self.where(None)
            rows = load(where)
            columns = self.layout(rows.columns, where)
            number, place, row = next(self._kept(rows, refuse), (0, "", None))
            if row is None:
                raise self.empty(rows, where)
            if self.options.stratify:
                group_of(row, self.options.stratify, "dataset.stratify")
            self.sample(columns, row, place, str(number))
            if not where.streaming:
                yield from refuse_alternatives(cell, columns, self._kept(rows, ignore))
                yield from refuse_uncounted(columns, self._kept(rows, ignore))
        except UserError as error:
            yield from map(in_table, error.problems)

    # What a preset overrides

    selects = False
    """Whether `wanted` may leave rows out."""

    def wanted(self, row: Row) -> bool:
        """Whether a row belongs to the data set."""
        return True

    def where(self, split: str | None) -> Where:
        """What to load for a split; None is the study's own split."""
        options = self.options
        if options.id is None and options.path is None:
            raise problem("dataset", "needs an id on the hub (id = \"owner/name\") or a local file (path = ...)")
        return self.place(split, options.id, options.config, options.split, options.files)

    def layout(self, present: Row, where: Where) -> Columns:
        """The column of each part, checked against the columns that are present."""
        columns = columns_of(self.options.columns, self.options, where, self.options.reference_as)
        columns = columns.with_defaults(present)
        refuse_missing(columns, present, where)
        return columns

    def sample(self, columns: Columns, row: Row, place: str, name: str) -> tuple[Sample, tuple[str, ...]]:
        """The sample of a row and its references."""
        return columns.sample(row, place, name)

    def empty(self, rows: Rows, where: Where) -> UserError:
        """The error for a data set without rows."""
        return problem(str(where), "has no rows")

    def stem(self) -> str:
        """The first part of the ids of rows without one; it never depends on a file's path."""
        return (self.options.id or "row").rpartition("/")[2]

    def place(self, split: str | None, id: str | None, config: str | None, own: str,
              files: tuple[str, ...] = ()) -> Where:
        """Where a split is: on the hub, or in a local file."""
        options = self.options
        path = options.path if split is None else options.train_path
        if split not in (None, "train"):
            raise problem("dataset", f"there is no split '{split}' to prepare on, only 'train'")
        if split and options.path and path is None:
            raise problem("dataset.train_path", "is not set, and a component of this study prepares on examples")
        if split and path is None and overlap(options.train, own):
            raise problem("dataset.train", f"'{own}' is the split of the study itself; name another one to prepare on")
        chosen = own if split is None else options.train
        return Where(id, config, chosen, options.revision, files, options.streaming, path)

    # Which rows

    def _kept(self, rows: Rows, report: Report) -> Iterator[Numbered]:
        found = rows.rows(report)
        return (numbered for numbered in found if self.wanted(numbered[2])) if self.selects else found

    def _drawn(self, rows: Rows, split: str | None, problems: Problems) -> Iterator[Numbered]:
        """The rows that the options select; all rows of the training split."""
        draw = Draw.chosen(self.options) if split is None else Draw(None, None, None)

        def stratum(numbered: Numbered) -> str:
            return problems.attempt(group_of, numbered[2], draw.stratify or "", numbered[1]) or ""

        if draw.shuffle is None:
            return draw.rows(self._kept(rows, problems.add), stratum,
                             lambda: tally(map(stratum, self._kept(rows, ignore))), rows.count)
        if draw.stratify is None and not self.selects:
            order = [(i, "") for i in range(rows.count())]
        else:
            order = [(numbered[0] - 1, stratum(numbered) if draw.stratify else "")
                     for numbered in self._kept(rows, problems.add)]
        random.Random(f"datasets.hub/{draw.shuffle}").shuffle(order)
        chosen = draw.rows(order, lambda pair: pair[1], lambda: tally(g for _, g in order), lambda: len(order))
        return rows.at([i for i, _ in chosen], problems.add)


def in_table(found: Problem) -> str:
    """A problem as `check` yields it: the host puts `dataset` before it."""
    place = found.place.removeprefix("dataset").removeprefix(".")
    return f"{place}: {found.message}" if place else found.message


def overlap(one: str, other: str) -> bool:
    """Whether two splits share rows; two slices of one split (`train[:100]`) are taken to be disjoint."""
    parts, others = one.split("+"), other.split("+")
    return any(a.partition("[")[0] == b.partition("[")[0] and (a == b or "[" not in a or "[" not in b)
               for a in parts for b in others)


def columns_of(named: Mapping[str, str | tuple[str, ...]], options: RowOptions, where: Where,
               wanted: Wanted) -> Columns:
    """Columns by part of a sample; images are read below the folder of a local file."""
    return Columns.chosen(named, options, where.path.parent if where.path else None, wanted)


def refuse_missing(columns: Columns, present: Row, where: Where) -> None:
    """Raise `UserError` with every named column that is not present; without rows there is nothing to compare with."""
    wrong = [Problem(str(where), text) for text in columns.missing(present)] if present else []
    if wrong:
        raise UserError(wrong)
