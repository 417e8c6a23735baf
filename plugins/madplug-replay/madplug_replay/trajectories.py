"""Recorded debates as questions: a row of a file is a question with everything that was answered."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from madplug import ComponentError, Dataset, Options, Problem, RunPath, Sample, UserError, Volatile

Row = Mapping[str, Any]
Scalar = str | int | float | bool
OWN = ("qid", "id", "question", "choices", "context", "images", "group", "ref")
"""Columns that become a part of the sample; the others are its metadata."""


class TrajectoryOptions(Options):
    """The file, which of its rows, and what counts as an answer."""

    path: Annotated[RunPath, Volatile] = Field(description="the file: JSON, a row a line; relative to the run file")
    answers: str | dict[str, Any] | None = Field(default=None, description=(
        "the answer format: a name, or a table as in [answers]"))
    select: dict[str, Scalar | tuple[Scalar, ...]] = Field(default={}, description=(
        "only rows that have these values: {run = \"...\"}; a list: one of them; a text may hold *"))
    limit: int | None = Field(default=None, ge=1, description="take no more rows than this")


class Trajectories(Dataset):
    """Recorded debates, a question each: who answered what in which round.

    A row has `qid`, `ref` (the reference, or a list of them; an empty list where no answer is right) and
    `answers`: a list of rounds, each a list by agent, null for an agent that did not speak or could not be
    read. `question`, `choices`, `context`, `group` are used where there are any; the question is else the
    `qid`. All other columns, `answers` among them, go to the sample's metadata, where `replay.recorded`
    finds them: `score` or `confidence` (by agent, or by round and agent) become the agents' confidences.
    """

    name = "trajectories"
    Options = TrajectoryOptions

    @property
    def answers(self) -> str | Mapping[str, Any] | None:
        """As the options say."""
        answers: str | Mapping[str, Any] | None = self.options.answers
        return answers

    def samples(self, split: str | None = None) -> Iterator[tuple[Sample, tuple[str, ...]]]:
        """The selected rows, read one by one."""
        if split is not None:
            raise _problem(f"replay.trajectories has no split '{split}'")
        seen: set[str] = set()
        for place, row in islice(self.rows(), self.options.limit):
            sample, references = as_sample(place, row)
            if sample.id in seen:
                raise _problem(f"{place}: a second row with the qid '{sample.id}'{self._runs()}")
            seen.add(sample.id)
            yield sample, references
        if not seen:
            raise _problem(f"{self.options.path}: no row has {_told(self.options.select)}{self._runs()}")

    def rows(self) -> Iterator[tuple[str, Row]]:
        """The selected rows, and where they stand."""
        for place, row in self._all():
            if all(_has(row.get(name), wanted) for name, wanted in self.options.select.items()):
                yield place, row

    def size(self) -> int:
        """The selected rows, or the limit."""
        count = sum(1 for _ in self.rows())
        return min(count, self.options.limit or count)

    def fingerprint(self) -> str:
        """The SHA-256 of the file."""
        return sha256(_bytes(self.options.path)).hexdigest()

    def check(self, cell: Any) -> Iterable[str]:
        """Reads the file once, so that a wrong path, row or selection is found before anything runs."""
        try:
            for _ in self.samples():
                pass
        except UserError as error:
            yield from (problem.message for problem in error.problems)

    def _all(self) -> Iterator[tuple[str, Row]]:
        path = self.options.path
        for number, line in enumerate(_bytes(path).decode("utf-8-sig").split("\n"), start=1):
            if not line.strip():
                continue
            place = f"{path}: line {number}"
            try:
                row = json.loads(line)
            except ValueError as error:
                raise _problem(f"{place}: not JSON: {error}") from None
            if not isinstance(row, dict):
                raise _problem(f"{place}: expected a table, found {type(row).__name__}")
            yield place, row

    def _runs(self) -> str:
        """What to select: the runs of a file that has some."""
        runs = sorted({str(row["run"]) for _, row in self._all() if "run" in row})
        return f"; choose a run with select = {{run = \"...\"}}, of {', '.join(runs)}" if len(runs) > 1 else ""


def as_sample(place: str, row: Row) -> tuple[Sample, tuple[str, ...]]:
    """A row as a sample, and its references."""
    name = row.get("qid", row.get("id"))
    if name is None or not rounds_of(row.get("answers")):
        raise _problem(f"{place}: expected 'qid', 'ref' and 'answers' (a list of rounds, each a list by agent)")
    if row.get("ref") is None:
        raise _problem(f"{place}: has no 'ref'; an empty list says that no answer is right")
    kept = {column: value for column, value in row.items() if column not in OWN}
    return Sample(
        str(name), str(row.get("question") or name), _texts(row.get("choices")), _texts(row.get("context")),
        _texts(row.get("images")), str(row.get("group") or ""), kept), _texts(row["ref"])


def rounds_of(answers: Any) -> list[list[str | None]] | None:
    """Answers by round and agent as texts; None where that is not what it is."""
    if not isinstance(answers, Sequence) or isinstance(answers, str) or not answers:
        return None
    if not all(isinstance(r, Sequence) and not isinstance(r, str) for r in answers):
        return None
    return [[None if a is None else str(a) for a in r] for r in answers]


def recorded(sample: Sample) -> list[list[str | None]]:
    """What was answered to a sample, by round and agent."""
    answers = rounds_of(sample.metadata.get("answers"))
    if answers is None:
        raise ComponentError(f"sample '{sample.id}' has no recorded answers; replay.trajectories gives them")
    return answers


def _has(value: Any, wanted: Scalar | tuple[Scalar, ...]) -> bool:
    if isinstance(wanted, tuple):
        return any(_has(value, one) for one in wanted)
    if isinstance(wanted, str) and isinstance(value, str) and "*" in wanted:
        return fnmatchcase(value, wanted.replace("[", "[[]"))
    return bool(value == wanted)


def _told(select: Mapping[str, Any]) -> str:
    return " and ".join(f"{name} = {value!r}" for name, value in select.items()) or "anything in it"


def _texts(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _problem(f"{path}: {(error.strerror or str(error)).lower()}") from None


def _problem(message: str) -> UserError:
    return UserError([Problem("dataset", message)])
