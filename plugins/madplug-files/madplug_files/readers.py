"""Rows of a file, one by one or in any order, each with its number and the place to name in an error."""

from __future__ import annotations

import csv
import json
import random
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from madplug import UserError
from madplug_files.columns import nearest, problem

Numbered = tuple[int, str, Mapping[str, Any]]
"""A row's number from 1, its place, and its columns."""
ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".pq")
LONGEST_FIELD = 1 << 27


class Source(ABC):
    """A file of rows."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def rows(self) -> Iterator[Numbered]:
        """Every row, in the order of the file."""

    @abstractmethod
    def shuffled(self, rng: random.Random) -> Iterator[Numbered]:
        """Every row, in a random order."""

    @abstractmethod
    def count(self) -> int:
        """How many rows there are."""


def source(path: Path, delimiter: str | None = None) -> Source:
    """The reader for a file, by its ending."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise problem(str(path), f"has the ending '{ending}'; files.table reads {', '.join(ENDINGS)}")
    if not path.exists():
        beside = sorted(p.name for p in path.parent.glob("*") if p.suffix in ENDINGS)
        raise problem(str(path), f"there is no such file{nearest(path.name, beside)}")
    if not path.is_file():
        raise problem(str(path), "is a folder; expected a file")
    if ending in (".csv", ".tsv"):
        return Csv(path, delimiter or ("\t" if ending == ".tsv" else ","))
    if ending in (".parquet", ".pq"):
        return Parquet(path)
    return Array(path) if ending == ".json" and _first_character(path) == "[" else Lines(path)


class Text(Source):
    """A file whose rows begin at positions that one can go back to."""

    @abstractmethod
    def marks(self, file: IO[bytes]) -> Iterator[tuple[int, int]]:
        """Where each row begins: the position and the line."""

    @abstractmethod
    def read(self, file: IO[bytes], line: int) -> Mapping[str, Any]:
        """The row that begins here."""

    def rows(self) -> Iterator[Numbered]:
        """Reads on from row to row."""
        with self._open() as ahead, self._open() as file:
            for number, (position, line) in enumerate(self.marks(ahead), start=1):
                file.seek(position)
                yield number, self.place(line), self.read(file, line)

    def shuffled(self, rng: random.Random) -> Iterator[Numbered]:
        """Keeps the position of every row, and goes back to them in a random order."""
        positions, lines = array("Q"), array("Q")
        with self._open() as file:
            for position, line in self.marks(file):
                positions.append(position)
                lines.append(line)
            order = array("Q", range(len(positions)))
            rng.shuffle(order)
            for i in order:
                file.seek(positions[i])
                yield i + 1, self.place(lines[i]), self.read(file, lines[i])

    def count(self) -> int:
        """Counts the rows without reading what they say."""
        with self._open() as file:
            return sum(1 for _ in self.marks(file))

    def place(self, line: int) -> str:
        """How an error names a row."""
        return f"{self.path}: line {line}"

    def _open(self) -> IO[bytes]:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise problem(str(self.path), f"cannot be read: {error.strerror}") from None

    def _decoded(self, raw: bytes, line: int) -> str:
        try:
            return raw.decode("utf-8-sig" if line == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise problem(self.place(line), f"is not UTF-8 (byte {error.start + 1} of the line); save the file as "
                          "UTF-8") from None


class Lines(Text):
    """One JSON object a line."""

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
            raise problem(self.place(line), f"is a {type(row).__name__}; expected one JSON object a line")
        return row


class Csv(Text):
    """Comma-separated values with a header."""

    def __init__(self, path: Path, delimiter: str) -> None:
        super().__init__(path)
        self.delimiter = delimiter
        with self._open() as file:
            found = next(self._records(file, 1), None)
        self.header = [name.strip() for name in found[2]] if found else []
        twice = sorted({name for name in self.header if self.header.count(name) > 1})
        if twice:
            raise problem(self.place(1), f"the header names '{twice[0]}' twice")

    def marks(self, file: IO[bytes]) -> Iterator[tuple[int, int]]:
        """Every record after the header; a record may span lines."""
        records = self._records(file, 1)
        next(records, None)
        for position, line, _ in records:
            yield position, line

    def read(self, file: IO[bytes], line: int) -> Mapping[str, Any]:
        """The record that begins here, by the header's names."""
        _, _, values = next(self._records(file, line))
        if len(values) != len(self.header):
            raise problem(self.place(line), f"has {len(values)} fields, and the header has {len(self.header)}")
        return dict(zip(self.header, values, strict=True))

    def _records(self, file: IO[bytes], line: int) -> Iterator[tuple[int, int, list[str]]]:
        """Records from here on, each with the position and the line where it begins."""
        # The module's own limit of 128 kB is shorter than many a context; it can only be set for the process.
        csv.field_size_limit(LONGEST_FIELD)
        taken = [file.tell(), line]

        def lines() -> Iterator[str]:
            for raw in file:
                text = self._decoded(raw, taken[1])
                taken[0] += len(raw)
                taken[1] += 1
                yield text

        reader = csv.reader(lines(), delimiter=self.delimiter, strict=True)
        while True:
            position, begins = taken
            try:
                values = next(reader, None)
            except csv.Error as error:
                raise problem(self.place(begins), f"is not CSV: {error}") from None
            if values is None:
                return
            if values:
                yield position, begins, values


class Array(Source):
    """A JSON array of objects; read as a whole."""

    def rows(self) -> Iterator[Numbered]:
        """Every element."""
        for number, row in enumerate(self._all(), start=1):
            yield self._numbered(number, row)

    def shuffled(self, rng: random.Random) -> Iterator[Numbered]:
        """Every element, in a random order."""
        rows = self._all()
        order = list(range(len(rows)))
        rng.shuffle(order)
        return (self._numbered(i + 1, rows[i]) for i in order)

    def count(self) -> int:
        """The length of the array."""
        return len(self._all())

    def _all(self) -> list[Any]:
        try:
            rows = json.loads(self.path.read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            raise problem(str(self.path), f"is not JSON: {error}") from None
        return rows if isinstance(rows, list) else [rows]

    def _numbered(self, number: int, row: Any) -> Numbered:
        place = f"{self.path}: row {number}"
        if not isinstance(row, dict):
            raise problem(place, f"is a {type(row).__name__}; expected a JSON object")
        return number, place, row


class Parquet(Source):
    """A Parquet file, read in batches of rows."""

    def rows(self) -> Iterator[Numbered]:
        """Batch by batch."""
        number = 0
        with self._open() as file:
            for batch in file.iter_batches(batch_size=256):
                for row in batch.to_pylist():
                    number += 1
                    yield number, f"{self.path}: row {number}", row

    def shuffled(self, rng: random.Random) -> Iterator[Numbered]:
        """Row groups cannot be entered in the middle, so the table is held in memory, in Arrow's compact form."""
        with self._open() as file:
            table = file.read()
        order = array("Q", range(table.num_rows))
        rng.shuffle(order)
        for i in order:
            yield i + 1, f"{self.path}: row {i + 1}", table.slice(i, 1).to_pylist()[0]

    def count(self) -> int:
        """As the file's footer says."""
        with self._open() as file:
            count: int = file.metadata.num_rows
        return count

    def _open(self) -> Any:
        try:
            from pyarrow import ArrowInvalid
            from pyarrow.parquet import ParquetFile
        except ImportError:
            raise UserError("files.table reads Parquet with pyarrow; pip install 'madplug-files[parquet]'") from None
        try:
            return ParquetFile(self.path)
        except (ArrowInvalid, OSError) as error:
            raise problem(str(self.path), f"is not a Parquet file: {error}") from None


def _first_character(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(4096).decode("utf-8-sig", "replace").lstrip()[:1]
