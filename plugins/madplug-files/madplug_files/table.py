"""The data set: which rows, in which order, under which ids."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from madplug import Dataset, Problem, RunPath, Sample, UserError, Volatile
from madplug_files.columns import Columns, Wanted, group_of, known_columns, problem, taken_twice
from madplug_files.readers import Numbered, Source, source
from madplug_files.sampling import Draw, SamplingOptions, tally

HEAD = 100
"""A column that none of the first rows has is taken for a mistake."""


class Table(Dataset):
    """Rows of a JSONL, CSV or Parquet file, read one by one.

    Each row is a question; `columns` says which column is what, with dots for nested ones (`answers.text`) and
    a list where several columns make up the choices or the contexts. Without an id column, a row's id is the
    file's name and its number. Choices may be a list, a table of label to text, or either as JSON in a cell.
    The reference of a row with choices may be a letter, a label, the text or the index of the right choice, or a
    list of them, and becomes a letter. What can be read in two ways is an error; `reference_as` settles it.
    """

    name = "table"

    class Options(SamplingOptions):  # noqa: D106
        # The file is told from others by its contents, so it may move.
        path: Annotated[RunPath, Volatile] = Field(
            description="the file: .jsonl, .ndjson, .json, .csv, .tsv or .parquet; relative to the run file")
        train: Annotated[RunPath | None, Volatile] = Field(
            default=None, description="a second file of the same columns, for components that prepare on examples")
        answers: str | dict[str, Any] | None = Field(
            default=None, description="the answer format: a name, or a table as in [answers]")
        columns: Annotated[Mapping[str, str | tuple[str, ...]], BeforeValidator(known_columns)] = Field(
            default={}, description="column by what it holds: id, question, choices, reference, context, "
                                    "images, group; the default is the same name")
        reference_as: Wanted = Field(
            default="auto", description="what the reference of a row with choices is: `letter` (or label), "
                                        "`index` from 0, `position` from 1, `text`; `verbatim`: kept as it is")
        metadata: tuple[str, ...] = Field(
            default=(), description="further columns to keep with the sample; every component can see them")
        delimiter: str | None = Field(
            default=None, min_length=1, max_length=1,
            description="of a CSV file, where it is not a comma (in .tsv: a tab)")

    @property
    def answers(self) -> str | Mapping[str, Any] | None:
        """As the options say."""
        answers: str | Mapping[str, Any] | None = self.options.answers
        return answers

    def samples(self, split: str | None = None) -> Iterator[tuple[Sample, tuple[str, ...]]]:
        """The rows as samples with their references."""
        file = self._source(split)
        columns = self._columns(file)
        seen: dict[str, str] = {}
        for number, place, row in self._rows(file, split):
            sample, references = columns.sample(row, place, f"{file.path.stem}-{number}")
            taken_twice(sample.id, place, seen)
            yield sample, references
        if not seen:
            raise problem(str(file.path), "holds no rows")

    def size(self) -> int:
        """The rows there are, or the limit."""
        count = self._source(None).count()
        return min(count, Draw.chosen(self.options).size(lambda: count) or count)

    def fingerprint(self) -> str:
        """The SHA-256 of the file, or of both files."""
        return "+".join(digest(p) for p in (self.options.path, self.options.train) if p is not None)

    def check(self, cell: Any) -> Iterable[str]:
        """Reads the first rows, so that a wrong path or column is found before anything runs."""
        try:
            for part in (None, "train") if self.options.train else (None,):
                file = self._source(part)
                columns = self._columns(file)
                number, place, row = next(file.rows(), (0, "", None))
                if row is None:
                    raise problem(str(file.path), "holds no rows")
                if self.options.stratify and part is None:
                    group_of(row, self.options.stratify, place)
                columns.sample(row, place, f"{file.path.stem}-{number}")
        except UserError as error:
            yield from map(str, error.problems)

    def _source(self, split: str | None) -> Source:
        if split not in (None, "train"):
            raise problem("dataset", f"files.table has no split '{split}'; only 'train', from the option 'train'")
        if split and self.options.train is None:
            raise problem("dataset.train", "names no file, and a component of this study prepares on examples")
        return source(self.options.train if split else self.options.path, self.options.delimiter)

    def _columns(self, file: Source) -> Columns:
        """Which columns hold what, checked against the first rows."""
        present: dict[str, Any] = {}
        for _, _, row in islice(file.rows(), HEAD):
            present = {**row, **present}
        columns = Columns.chosen(self.options, present)
        wrong = [Problem(str(file.path), text) for text in columns.missing(present)] if present else []
        if wrong:
            raise UserError(wrong)
        return columns

    def _rows(self, file: Source, split: str | None) -> Iterator[Numbered]:
        """The rows that the options ask for; of a second file all of them."""
        draw = Draw.chosen(self.options) if split is None else Draw(None, None, None)
        rows = file.rows() if draw.shuffle is None else file.shuffled(random.Random(f"files.table/{draw.shuffle}"))

        def stratum(numbered: Numbered) -> str:
            return group_of(numbered[2], draw.stratify or "", numbered[1])

        return draw.rows(rows, stratum, lambda: tally(map(stratum, file.rows())), file.count)


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    total = sha256()
    try:
        with path.open("rb") as file:
            while part := file.read(1 << 20):
                total.update(part)
    except OSError as error:
        raise problem(str(path), f"cannot be read: {error.strerror}") from None
    return total.hexdigest()

