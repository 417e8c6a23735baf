"""The data set: which rows, what their columns mean, how many."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from madplug import Dataset, Problem, RunPath, Sample, UserError, Volatile
from madplug_datasets.loading import Rows, Where, load
from madplug_datasets.reach import commit
from madplug_files.columns import PARTS, REQUIRED, Columns, Row, Wanted, group_of, known_columns, problem, taken_twice
from madplug_files.sampling import Draw, SamplingOptions, tally
from madplug_files.table import digest

Numbered = tuple[int, Row]


class HubOptions(SamplingOptions):
    """What every data set that comes from the hub has."""

    revision: Annotated[str | None, Volatile] = Field(
        default=None, description="a commit, tag or branch; unset: the newest. The commit that was read is kept with "
                                  "the study, which goes on with no other")
    path: Annotated[RunPath | None, Volatile] = Field(
        default=None, description="a local file with the hub's columns instead (.jsonl, .json, .csv, .tsv, .parquet)")
    streaming: Annotated[bool, Volatile] = Field(
        default=False, description="read row by row over the network, without a copy on the disk")
    train: str = Field(
        default="train", description="the split for components that prepare on examples; never the study's own")
    train_path: Annotated[RunPath | None, Volatile] = Field(
        default=None, description="with `path`: the local file of that split")
    metadata: tuple[str, ...] = Field(
        default=(), description="further columns to keep with the sample; every component can see them")


class Hub(Dataset):
    """Rows of any text data set on the Hugging Face hub, or of a local file with the same columns.

    Each row is a question; `columns` says which column is what, with dots for nested ones (`answers.text`) and a list
    where several columns make up the choices or the contexts. Images become `data:` addresses. The hub is asked once,
    with a deadline, which commit the revision is; that commit is what tells the study from others. Without the hub, the
    library's cache is used. A gated data set needs HF_TOKEN in the environment.

    With a seed in `shuffle`, the same rows come in the same order whether they are streamed or not; a shuffled stream
    is read to its end.
    """

    name = "hub"

    class Options(HubOptions):
        """Options of `datasets.hub`."""

        id: str | None = Field(default=None, description="the data set on the hub, as owner/name")
        config: str | None = Field(default=None, description="the configuration, where there are several")
        split: str = Field(default="test", description="the split the study is about")
        files: tuple[str, ...] = Field(
            default=(), description="files of the repository to read as the split, where it names no splits itself")
        answers: str | dict[str, Any] | None = Field(
            default=None, description="the answer format: a name, or a table as in [answers]")
        columns: Annotated[Mapping[str, str | tuple[str, ...]], BeforeValidator(known_columns)] = Field(
            default={}, description="column by what it holds: id, question, choices, reference, context, images, "
                                    "group; the default is the same name")
        reference_as: Wanted = Field(
            default="auto", description="what the reference of a row with choices is: `letter` (or label), `index` "
                                        "from 0, `position` from 1, `text`; `verbatim`: kept as it is")

    @property
    def answers(self) -> str | Mapping[str, Any] | None:
        """As the options say."""
        answers: str | Mapping[str, Any] | None = self.options.answers
        return answers

    def samples(self, split: str | None = None) -> Iterator[tuple[Sample, tuple[str, ...]]]:
        """The rows as samples with their references."""
        where = self.where(split)
        rows = load(where)
        columns = self.layout(rows.columns, where)
        seen: dict[str, str] = {}
        for i, row in self._drawn(rows, where, split):
            place = f"{where}: row {i + 1}"
            sample, references = self.sample(columns, row, place, f"{self.stem(where)}-{i + 1}")
            taken_twice(sample.id, place, seen)
            yield sample, references
        if not seen:
            raise self.empty(rows, where)

    def size(self) -> int | None:
        """The rows there are, or the limit."""
        where = self.where(None)
        if where.path is None and where.streaming and isinstance(self.options.limit, int):
            return self.options.limit
        rows = load(where)
        count = sum(1 for _ in self._kept(rows)) if self.selects else rows.count()
        return min(count, Draw.chosen(self.options).size(lambda: count) or count)

    def fingerprint(self) -> str:
        """The commit on the hub, or the SHA-256 of the local files."""
        where = self.where(None)
        if where.path is None:
            return commit(where.id or "", where.revision) or load(where).version
        return "+".join(digest(p) for p in (where.path, self.options.train_path) if p is not None)

    def check(self, cell: Any) -> Iterable[str]:
        """Reads the first row, so that a wrong name or column is found before anything runs."""
        try:
            where = self.where(None)
            rows = load(where)
            columns = self.layout(rows.columns, where)
            i, row = next(self._kept(rows), (0, None))
            if row is None:
                raise self.empty(rows, where)
            if self.options.stratify:
                group_of(row, self.options.stratify, "dataset.stratify")
            self.sample(columns, row, f"{where}: row {i + 1}", "1")
        except UserError as error:
            yield from map(in_table, error.problems)

    # What a preset fills in differently

    selects = False
    """Whether `wanted` leaves rows out."""

    def wanted(self, row: Row) -> bool:
        """Whether a row belongs to the data set."""
        return True

    def where(self, split: str | None) -> Where:
        """What to load for a split; None is the study's own."""
        options = self.options
        if options.id is None and options.path is None:
            raise problem("dataset", "needs an id on the hub (id = \"owner/name\") or a local file (path = ...)")
        return self.place(split, options.id, options.config, options.split, options.files)

    def layout(self, present: Row, where: Where) -> Columns:
        """Which columns hold what, checked against those that are there."""
        columns = named_columns(self.options.columns, present, self.options, where)
        refuse_missing(columns, present, where)
        return columns

    def sample(self, columns: Columns, row: Row, place: str, name: str) -> tuple[Sample, tuple[str, ...]]:
        """The sample of a row and its references."""
        return columns.sample(row, place, name)

    def empty(self, rows: Rows, where: Where) -> UserError:
        """What is wrong when there is no row."""
        return problem(str(where), "holds no rows")

    def stem(self, where: Where) -> str:
        """What the ids of rows without an id begin with."""
        return where.path.stem if where.path else (where.id or "").rpartition("/")[2]

    def place(self, split: str | None, id: str | None, config: str | None, own: str,
              files: tuple[str, ...] = ()) -> Where:
        """Where a split is: on the hub, or in the local file that stands for it."""
        options = self.options
        path = options.path if split is None else options.train_path
        if split not in (None, "train"):
            raise problem("dataset", f"there is no split '{split}' to prepare on; only the one of the option 'train'")
        if split and options.path and path is None:
            raise problem("dataset.train_path", "names no file, and a component of this study prepares on examples")
        if split and path is None and overlap(options.train, own):
            raise problem("dataset.train", f"'{own}' is the split of the study itself; name another one to prepare on")
        chosen = own if split is None else options.train
        return Where(id, config, chosen, options.revision, files, options.streaming, path)

    # Which rows

    def _kept(self, rows: Rows) -> Iterator[Numbered]:
        return ((i, row) for i, row in rows if self.wanted(row)) if self.selects else iter(rows)

    def _drawn(self, rows: Rows, where: Where, split: str | None) -> Iterator[Numbered]:
        """The rows that the options ask for; of another split all of them."""
        draw = Draw.chosen(self.options) if split is None else Draw(None, None, None)

        def stratum(numbered: Numbered) -> str:
            return group_of(numbered[1], draw.stratify or "", f"{where}: row {numbered[0] + 1}")

        if draw.shuffle is None:
            return draw.rows(self._kept(rows), stratum, lambda: tally(map(stratum, self._kept(rows))), rows.count)
        if draw.stratify is None and not self.selects:
            order = [(i, "") for i in range(rows.count())]
        else:
            order = [(i, stratum((i, row)) if draw.stratify else "") for i, row in self._kept(rows)]
        random.Random(f"datasets.hub/{draw.shuffle}").shuffle(order)
        chosen = draw.rows(order, lambda pair: pair[1], lambda: tally(g for _, g in order), lambda: len(order))
        return rows.at([i for i, _ in chosen])


def in_table(found: Problem) -> str:
    """A problem as `check` says it, which is printed below the name of the table."""
    place = found.place.removeprefix("dataset").removeprefix(".")
    return f"{place}: {found.message}" if place else found.message


def overlap(one: str, other: str) -> bool:
    """Whether two splits share rows; two slices of one split (`train[:100]`) are taken to be apart."""
    parts, others = one.split("+"), other.split("+")
    return any(a.partition("[")[0] == b.partition("[")[0] and (a == b or "[" not in a or "[" not in b)
               for a in parts for b in others)


def named_columns(named: Mapping[str, Any], present: Row, options: Any, where: Where) -> Columns:
    """What is named; of the rest what is required, and what is there under the part's own name."""
    chosen = {part: (name,) if isinstance(name, str) else tuple(name) for part, name in named.items()}
    for part in PARTS:
        if part not in chosen and (part in REQUIRED or part in present):
            chosen[part] = (part,)
    return Columns(chosen, options.metadata, getattr(options, "reference_as", "auto"), folder(where))


def folder(where: Where) -> Path:
    """Where the images beside a local file are."""
    return where.path.parent if where.path else Path()


def refuse_missing(columns: Columns, present: Row, where: Where) -> None:
    """An error that names every column that is not there."""
    wrong = [Problem(str(where), text) for text in columns.missing(present)]
    if wrong:
        raise UserError(wrong)
