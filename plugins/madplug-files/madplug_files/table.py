"""The data set `files.table`."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from madplug import Problem, RunPath, Sample, UserError, Volatile
from madplug_files.columns import (
    ColumnDataset,
    ColumnOptions,
    Columns,
    Row,
    group_of,
    refuse_alternatives,
    refuse_second,
    refuse_uncounted,
)
from madplug_files.problems import Problems, ignore, problem
from madplug_files.readers import Numbered, Source, source
from madplug_files.sampling import Draw, tally
from madplug_prompting.tasks import with_instruction


class Table(ColumnDataset):
    """Rows of a JSONL, CSV or Parquet file, read one by one.

    Each row is a question; `columns` says which column is what, with dots for nested ones (`answers.text`) and
    a list where several columns make up the choices or the contexts. Without an id column, the id is `row-` and the
    row's number. Choices may be a list, a table of label to text, or either as JSON in a cell. The reference of a row
    with choices may be a letter, a label, the text or the index of the right choice, or a list of them, and becomes a
    letter; one that can be read in two ways is an error, as are numbers of which none is 0, and `reference_as` settles
    it. Images are read only from the column that `columns.images` names, and only below the folder of the file or
    `image_folder`.
    """

    name = "table"

    class Options(ColumnOptions):  # noqa: D106
        # The content of the file is part of the study's identity; its path is not.
        path: Annotated[RunPath, Volatile] = Field(
            description="the file: .jsonl, .ndjson, .json, .csv, .tsv or .parquet; relative to the run file")
        train: Annotated[RunPath | None, Volatile] = Field(
            default=None, description="a second file with the same columns, for components that prepare on examples; "
            "`metadata` may be in one of the two only")
        delimiter: str | None = Field(
            default=None, min_length=1, max_length=1,
            description="of a CSV file; unset: a comma, in .tsv a tab")

    def samples(self, split: str | None = None) -> Iterator[tuple[Sample, tuple[str, ...]]]:
        """The rows as samples with their references.

        Raises `UserError` at the end of the pass, with every problem of every row, or after 20 problems.
        """
        file = self._source(split)
        columns = self._columns(file)
        seen: dict[str, str] = {}
        problems = Problems()

        def checked(number: int, place: str, row: Row) -> tuple[Sample, tuple[str, ...]]:
            sample, references = columns.sample(row, place, f"row-{number}")
            refuse_second(sample.id, place, columns, seen)
            return with_instruction(sample, self.options.instruction), references

        for numbered in self._rows(file, split, problems):
            if found := problems.attempt(checked, *numbered):
                yield found
        problems.finish()
        if not seen:
            raise problem(str(file.path), "has no rows")

    def size(self) -> int:
        """The number of rows, or the limit."""
        count = self._source(None).count()
        return min(count, Draw.chosen(self.options).size(lambda: count) or count)

    def fingerprint(self) -> str:
        """The SHA-256 of the file, or of both files."""
        return "+".join(digest(p) for p in (self.options.path, self.options.train) if p is not None)

    def check(self, cell: Any) -> Iterable[str]:
        """Check the path, the columns, the first row of `train`, and from where references count."""
        try:
            for part in (None, "train") if self.options.train else (None,):
                file = self._source(part)
                columns = self._columns(file)
                number, place, row = next(file.rows(ignore), (0, "", None))
                if row is None and not file.count():
                    raise problem(str(file.path), "has no rows")
                if self.options.stratify and part is None and row is not None:
                    group_of(row, self.options.stratify, place)
                if part is not None and row is not None:  # those of the other file are all read with the samples
                    columns.sample(row, place, f"row-{number}")
                yield from refuse_alternatives(cell, columns, file.rows(ignore))
                yield from refuse_uncounted(columns, file.rows(ignore))
        except UserError as error:
            yield from map(str, error.problems)

    def _source(self, split: str | None) -> Source:
        if split not in (None, "train"):
            raise problem("dataset", f"files.table has no split '{split}'; only 'train', from the option 'train'")
        path = self.options.train if split else self.options.path
        if path is None:
            raise problem("dataset.train", "is not set, and a component of this study prepares on examples")
        return source(path, self.options.delimiter)

    def _columns(self, file: Source) -> Columns:
        """The column of each part, checked against the first rows."""
        present = file.columns
        options = self.options
        columns = Columns.chosen(options.columns, options, file.path.parent, options.reference_as)
        columns = columns.with_defaults(present)
        others = [source(path, options.delimiter).columns for path in (options.path, options.train)
                  if options.metadata and path is not None and path != file.path]
        wrong = [Problem(str(file.path), text) for text in columns.missing(present, *others)] if present else []
        if wrong:
            raise UserError(wrong)
        return columns

    def _rows(self, file: Source, split: str | None, problems: Problems) -> Iterator[Numbered]:
        """The rows that the options select; all rows of the training file."""
        draw = Draw.chosen(self.options) if split is None else Draw(None, None, None)
        rows = file.rows(problems.add) if draw.shuffle is None else \
            file.shuffled(random.Random(f"files.table/{draw.shuffle}"), problems.add)

        def stratum(numbered: Numbered) -> str:
            return problems.attempt(group_of, numbered[2], draw.stratify or "", numbered[1]) or ""

        return draw.rows(rows, stratum, lambda: tally(map(stratum, file.rows(ignore))), file.count)


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

