"""Rows of a file, in order or by position, each with its number and the place that errors name.

A row that cannot be read is given to `report`, and the rows after it are read.
"""

from __future__ import annotations

import csv
import json
import random
from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

from madplug import UserError
from madplug_files.problems import Report, ignore, nearest, other_mark, problem, refuse

Numbered = tuple[int, str, Mapping[str, Any]]
"""A row's number from 1, its place, and its columns."""
ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".pq")
LONGEST_FIELD = 1 << 27
HEAD = 100
"""A column that none of the first rows has is taken for a mistake."""


class Rows(ABC):
    """Rows that can be read in any order."""

    version = ""
    """What tells these rows from other versions of them; empty for a file, which is told by its content."""

    @property
    def columns(self) -> Mapping[str, Any]:
        """The columns that the first rows have, as the keys."""
        present: dict[str, Any] = {}
        for _, _, row in islice(self.rows(ignore), HEAD):
            present = {**row, **present}
        return present

    @abstractmethod
    def rows(self, report: Report = refuse) -> Iterator[Numbered]:
        """Every row, as they are stored."""

    @abstractmethod
    def at(self, order: Sequence[int], report: Report = refuse) -> Iterator[Numbered]:
        """The rows at these positions from 0, in this order."""

    @abstractmethod
    def count(self) -> int:
        """How many rows there are."""

    def shuffled(self, rng: random.Random, report: Report = refuse) -> Iterator[Numbered]:
        """Every row, in a random order."""
        order = array("Q", range(self.count()))
        rng.shuffle(order)
        return self.at(order, report)


class Source(Rows):
    """A file of rows."""

    def __init__(self, path: Path) -> None:
        self.path = path


def source(path: Path, delimiter: str | None = None) -> Source:
    """The reader for a file, by its ending."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise problem(str(path), f"has the ending '{ending}'; expected {', '.join(ENDINGS)}")
    try:
        exists = path.exists()
    except OSError as error:
        raise problem(f"{path!s:.200}", f"cannot be read: {error.strerror}") from None
    if not exists:
        beside = sorted(p.name for p in path.parent.glob("*") if p.suffix in ENDINGS and nearest(path.stem, [p.stem]))
        raise problem(str(path), f"there is no such file{nearest(path.name, beside)}")
    if not path.is_file():
        raise problem(str(path), f"is {'a folder' if path.is_dir() else 'not a regular file'}; expected a file")
    if ending in (".parquet", ".pq"):
        return Parquet(path)
    begins = _beginning(path)
    if begins.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise problem(str(path), "is UTF-16; save the file as UTF-8")
    if ending in (".csv", ".tsv"):
        return Csv(path, delimiter or ("\t" if ending == ".tsv" else ","))
    array = ending == ".json" and begins.decode("utf-8-sig", "replace").lstrip()[:1] == "["
    return Array(path) if array else Lines(path)


class Text(Source):
    """A file whose rows begin at positions that can be sought."""

    @abstractmethod
    def marks(self, file: IO[bytes]) -> Iterator[tuple[int, int]]:
        """Where each row begins: the position and the line."""

    @abstractmethod
    def read(self, file: IO[bytes], line: int) -> Mapping[str, Any]:
        """The row that begins here."""

    def rows(self, report: Report = refuse) -> Iterator[Numbered]:
        """Row by row."""
        with self._open() as ahead, self._open() as file:
            for number, (position, line) in enumerate(self.marks(ahead), start=1):
                yield from self._row(file, position, number, line, report)

    def at(self, order: Sequence[int], report: Report = refuse) -> Iterator[Numbered]:
        """Collects where every row begins, then seeks each."""
        positions, lines = array("Q"), array("Q")
        with self._open() as file:
            for position, line in self.marks(file):
                positions.append(position)
                lines.append(line)
            for i in order:
                yield from self._row(file, positions[i], i + 1, lines[i], report)

    def count(self) -> int:
        """Counts the rows without parsing them."""
        with self._open() as file:
            return sum(1 for _ in self.marks(file))

    def place(self, line: int) -> str:
        """How errors name a row."""
        return f"{self.path}: line {line}"

    def _row(self, file: IO[bytes], position: int, number: int, line: int, report: Report) -> Iterator[Numbered]:
        """The row at a position, or nothing if it cannot be read."""
        file.seek(position)
        try:
            row = self.read(file, line)
        except UserError as error:
            report(error)
            return
        yield number, self.place(line), row

    def _open(self) -> IO[bytes]:
        return _opened(self.path)

    def _decoded(self, raw: bytes, line: int) -> str:
        try:
            return raw.decode("utf-8-sig" if line == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise problem(self.place(line), f"is not UTF-8 (byte {error.start + 1} of the line); save the file as "
                          "UTF-8") from None


class Lines(Text):
    """One JSON object per line."""

    def rows(self, report: Report = refuse) -> Iterator[Numbered]:
        """Line by line, without seeking."""
        number = 0
        with self._open() as file:
            for line, raw in enumerate(file, start=1):
                if not raw.strip():
                    continue
                number += 1
                try:
                    row = self._object(self._decoded(raw, line), line)
                except UserError as error:
                    report(error)
                    continue
                yield number, self.place(line), row

    def marks(self, file: IO[bytes]) -> Iterator[tuple[int, int]]:
        """Every line that is not blank."""
        position = 0
        for line, raw in enumerate(file, start=1):
            if raw.strip():
                yield position, line
            position += len(raw)

    def read(self, file: IO[bytes], line: int) -> Mapping[str, Any]:
        """The object on this line."""
        return self._object(self._decoded(file.readline(), line), line)

    def _object(self, text: str, line: int) -> Mapping[str, Any]:
        try:
            row = json.loads(text)
        except json.JSONDecodeError as error:
            raise problem(self.place(line), f"is not JSON: {error.msg} (column {error.colno})") from None
        except (RecursionError, ValueError) as error:
            raise problem(self.place(line), f"is not JSON: {error}") from None
        if not isinstance(row, dict):
            raise problem(self.place(line), f"is a {type(row).__name__}; expected one JSON object per line")
        return row


class Csv(Text):
    """Comma-separated values with a header."""

    def __init__(self, path: Path, delimiter: str) -> None:
        super().__init__(path)
        self.delimiter = delimiter
        with self._open() as file:
            found = next(self._records(file, 1), None)
        names = found[2] if found else []
        if isinstance(names, UserError):
            raise names
        self.header = [name.strip() for name in names]
        if twice := named_twice(self.header):
            raise problem(self.place(1), f"the header names '{twice}' twice")

    def marks(self, file: IO[bytes]) -> Iterator[tuple[int, int]]:
        """Every record after the header; a record may span lines."""
        records = self._records(file, 1)
        next(records, None)
        for position, line, _ in records:
            yield position, line

    def read(self, file: IO[bytes], line: int) -> Mapping[str, Any]:
        """The record that begins here, by the header's names."""
        _, _, values = next(self._records(file, line))
        if isinstance(values, UserError):
            raise values
        if len(values) != len(self.header):
            hint = f"; with delimiter = \"{mark}\" that has several" if (mark := other_mark(self.header)) else ""
            raise problem(self.place(line), f"has {len(values)} fields, and the header has {len(self.header)}{hint}")
        return dict(zip(self.header, values, strict=True))

    def _records(self, file: IO[bytes], line: int) -> Iterator[tuple[int, int, list[str] | UserError]]:
        """Records from here on, each with the position and the line where it begins, or what is wrong with it."""
        # The module's own limit of 128 kB is shorter than many a context; it can only be set for the process.
        csv.field_size_limit(LONGEST_FIELD)
        taken = [file.tell(), line]
        wrong: list[UserError] = []

        def lines() -> Iterator[str]:
            for raw in file:
                text = self._text(raw, taken[1], wrong)
                taken[0] += len(raw)
                taken[1] += 1
                yield text

        reader = csv.reader(lines(), delimiter=self.delimiter, strict=True)
        while True:
            position, begins = taken
            wrong.clear()
            try:
                values = next(reader, None)
            except csv.Error as error:
                other = "; if no comma separates the columns, name what does with delimiter" \
                    if "',' expected" in str(error) else ""
                wrong.append(problem(self.place(begins), f"is not CSV: {error}{other}"))
                values = []
            if values is None:
                return
            if values or wrong:
                yield position, begins, wrong[0] if wrong else values

    def _text(self, raw: bytes, line: int, wrong: list[UserError]) -> str:
        """A line as text. What is wrong with it is kept, so that the record's end is found all the same."""
        try:
            text = self._decoded(raw, line)
        except UserError as error:
            wrong.append(error)
            text = raw.decode("utf-8", "replace")
        if "\0" in text:
            wrong.append(problem(
                self.place(line), "contains a NUL character, which CSV does not allow; the file may be damaged"))
        return text.replace("\0", "")


class Array(Source):
    """A JSON array of objects, read as a whole."""

    def rows(self, report: Report = refuse) -> Iterator[Numbered]:
        """Every element."""
        for number, row in enumerate(self._all(), start=1):
            yield from self._numbered(number, row, report)

    def at(self, order: Sequence[int], report: Report = refuse) -> Iterator[Numbered]:
        """These elements."""
        rows = self._all()
        for i in order:
            yield from self._numbered(i + 1, rows[i], report)

    def count(self) -> int:
        """The length of the array."""
        return len(self._all())

    def _all(self) -> list[Any]:
        with _opened(self.path) as file:
            try:
                rows = json.loads(file.read())
            except (ValueError, RecursionError) as error:
                raise problem(str(self.path), f"is not JSON: {error}") from None
        return rows if isinstance(rows, list) else [rows]

    def _numbered(self, number: int, row: Any, report: Report) -> Iterator[Numbered]:
        place = f"{self.path}: row {number}"
        if isinstance(row, dict):
            yield number, place, row
        else:
            report(problem(place, f"is a {type(row).__name__}; expected a JSON object"))


class Parquet(Source):
    """A Parquet file, read in batches of rows."""

    def rows(self, report: Report = refuse) -> Iterator[Numbered]:
        """Batch by batch."""
        number = 0
        with self._open() as file, self._explained():
            for batch in file.iter_batches(batch_size=256):
                yield from self._batch(batch, number, report)
                number += batch.num_rows

    def at(self, order: Sequence[int], report: Report = refuse) -> Iterator[Numbered]:
        """Row groups cannot be entered in the middle, so the table is read as a whole, in Arrow's compact form."""
        with self._open() as file, self._explained():
            table = file.read()
        for i in order:
            yield from self._row(table, i, i + 1, report)

    def count(self) -> int:
        """As the file's footer says."""
        with self._open() as file:
            count: int = file.metadata.num_rows
        return count

    def _batch(self, batch: Any, before: int, report: Report) -> Iterator[Numbered]:
        """The rows of a batch, at once where all its values can be read."""
        try:
            rows = batch.to_pylist(maps_as_pydicts="strict")
        except (ValueError, OverflowError, TypeError, KeyError):
            for i in range(batch.num_rows):
                yield from self._row(batch, i, before + i + 1, report)
            return
        for number, row in enumerate(rows, start=before + 1):
            yield number, f"{self.path}: row {number}", row

    def _row(self, table: Any, i: int, number: int, report: Report) -> Iterator[Numbered]:
        """A row as Python values, or nothing if it has a value that Python has no type for, such as nanoseconds."""
        place, row = f"{self.path}: row {number}", {}
        for name, column in zip(table.schema.names, table.columns, strict=True):
            try:
                row[name] = column[i].as_py(maps_as_pydicts="strict")
            except (ValueError, OverflowError, TypeError, KeyError) as error:  # ArrowInvalid is a ValueError
                report(problem(f"{place}, column '{name}'", f"cannot be read: {error}"))
                return
        yield number, place, row

    @contextmanager
    def _explained(self) -> Iterator[None]:
        from pyarrow import ArrowException

        try:
            yield
        except (ArrowException, OSError) as error:
            raise problem(str(self.path), f"cannot be read: {error}") from None

    def _open(self) -> Any:
        try:
            from pyarrow import ArrowException
            from pyarrow.parquet import ParquetFile
        except ImportError:
            raise UserError("Parquet files are read with pyarrow; pip install 'madplug-files[parquet]'") from None
        try:
            file = ParquetFile(self.path)
        except (ArrowException, OSError) as error:
            raise problem(str(self.path), f"is not a Parquet file: {error}") from None
        if twice := named_twice(file.schema_arrow.names):
            file.close()
            raise problem(str(self.path), f"has two columns named '{twice}'")
        return file


def named_twice(names: Sequence[str]) -> str | None:
    """The first name, in alphabetical order, that occurs more than once."""
    return min((name for name, times in Counter(names).items() if times > 1), default=None)


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise problem(str(path), f"cannot be read: {error.strerror}") from None


def _beginning(path: Path) -> bytes:
    with _opened(path) as file:
        return file.read(4096)
