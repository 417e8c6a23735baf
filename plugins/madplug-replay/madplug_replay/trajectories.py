"""Recorded debates as a data set: a row is a question with all answers that were given to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from itertools import islice
from typing import Annotated, Any, TypeVar

from pydantic import Field

from madplug import ComponentError, Dataset, Options, Problem, RunPath, Sample, UserError, Volatile
from madplug_files.cells import as_list, as_metadata, as_text, as_word, is_empty
from madplug_files.columns import Row, in_column
from madplug_files.problems import Problems, Report, ignore, problem, refuse
from madplug_files.readers import Lines, Numbered
from madplug_files.table import digest
from madplug_prompting.tasks import with_instruction

T = TypeVar("T")
Scalar = str | int | float | bool
OWN = ("qid", "id", "question", "choices", "context", "group", "ref")
"""Columns that become a part of the sample; the others are its metadata."""


class TrajectoryOptions(Options):
    """Options of `replay.trajectories`."""

    path: Annotated[RunPath, Volatile] = Field(
        description="the file, one JSON object per line; relative to the run file")
    answers: str | dict[str, Any] | None = Field(default=None, description=(
        "the answer format: a name, or a table as in [answers]"))
    select: dict[str, Scalar | tuple[Scalar, ...]] = Field(default={}, description=(
        "only rows with these values: {run = \"...\"}; a list matches any of its values, `*` in a string any text"))
    limit: Annotated[int | None, Volatile] = Field(default=None, ge=1, description="the most rows to take")
    instruction: str = Field(default="", description="the task in words, for prompts that state it")


class Trajectories(Dataset):
    """Recorded debates: for each question, who answered what in which round.

    A row has `qid`, `ref` (the reference, or a list of them; an empty list where no answer is right) and
    `answers`: a list of rounds, each a list by agent, null for an agent that did not speak or could not be
    read. `question`, `choices`, `context` and `group` are optional; the question defaults to the `qid`. All other
    columns, `answers` included, go to the sample's metadata, where `replay.recorded` finds them: `score` or
    `confidence` (by agent, or by round and agent) become the agents' confidences. Images are not read.
    """

    name = "trajectories"
    Options = TrajectoryOptions

    @property
    def answers(self) -> str | Mapping[str, Any] | None:
        """The option `answers`."""
        answers: str | Mapping[str, Any] | None = self.options.answers
        return answers

    def samples(self, split: str | None = None) -> Iterator[tuple[Sample, tuple[str, ...]]]:
        """The selected rows, read one by one.

        Raises `UserError` at the end of the pass, with every problem of every row, or after 20 problems.
        """
        if split is not None:
            raise problem("dataset", f"replay.trajectories has no split '{split}'")
        seen: dict[str, str] = {}
        problems = Problems()
        runs = cache(self._runs)

        def checked(number: int, place: str, row: Row) -> tuple[Sample, tuple[str, ...]]:
            sample, references = as_sample(place, row)
            if sample.id in seen:
                raise problem(in_column(place, "qid" if "qid" in row else "id"), (
                    f"'{sample.id}' is taken by {seen[sample.id]}{runs()}"))
            seen[sample.id] = place.rpartition(": ")[2]
            return with_instruction(sample, self.options.instruction), references

        for numbered in islice(self.rows(problems.add), self.options.limit):
            if found := problems.attempt(checked, *numbered):
                yield found
        problems.finish()
        if not seen:
            raise problem(str(self.options.path), f"no row has {_condition(self.options.select)}{runs()}")

    def rows(self, report: Report = refuse) -> Iterator[Numbered]:
        """The selected rows, with their numbers and places."""
        for numbered in Lines(self.options.path).rows(report):
            if has_values(numbered[2], self.options.select):
                yield numbered

    def size(self) -> int:
        """The number of selected rows, or the limit."""
        count = sum(1 for _ in self.rows(ignore))
        return min(count, self.options.limit or count)

    def fingerprint(self) -> str:
        """The SHA-256 of the file."""
        return digest(self.options.path)

    def check(self, cell: Any) -> Iterable[str]:
        """Check the path, the selection and every row."""
        try:
            for _ in self.samples():
                pass
        except UserError as error:
            yield from map(str, error.problems)

    def _runs(self) -> str:
        """A hint that lists the runs of the file, if it has several."""
        runs = sorted({str(row["run"]) for _, _, row in Lines(self.options.path).rows(ignore) if "run" in row})
        return f"; choose a run with select = {{run = \"...\"}}, of {', '.join(runs)}" if len(runs) > 1 else ""


def as_sample(place: str, row: Row) -> tuple[Sample, tuple[str, ...]]:
    """A row as a sample, and its references. Raises `UserError` with every problem of the row."""
    wrong: list[Problem] = []
    none: tuple[str, ...] = ()

    def take(column: str, read: Callable[[Any], T], default: T) -> T:
        try:
            return read(row.get(column))
        except (ValueError, RecursionError) as error:
            wrong.append(Problem(in_column(place, column), str(error) if column in row else "is missing"))
            return default

    name = take("qid" if "qid" in row or "id" not in row else "id", as_word, "")
    take("answers", _checked_answers, None)
    kept = {column: take(column, as_metadata, None) for column in row if column not in OWN}
    sample = Sample(
        name, name if is_empty(row.get("question")) else take("question", as_text, ""), take("choices", _words, none),
        take("context", _texts, none), (), take("group", lambda value: "" if is_empty(value) else as_word(value), ""),
        kept)
    right = take("ref", _references, none)
    if wrong:
        raise UserError(wrong)
    return sample, right


def _checked_answers(value: Any) -> None:
    if not rounds_of(value):
        raise ValueError(f"is {value!r:.60}; expected a list of rounds, each a list by agent of texts, numbers or null")


def rounds_of(answers: Any) -> list[list[str | None]] | None:
    """Answers by round and agent as strings, or None for a value of another shape."""
    if not isinstance(answers, Sequence) or isinstance(answers, str) or not answers:
        return None
    if not all(isinstance(r, Sequence) and not isinstance(r, str) for r in answers):
        return None
    if any(isinstance(a, Sequence | Mapping) and not isinstance(a, str) for r in answers for a in r):
        return None
    return [[None if a is None else str(a) for a in r] for r in answers]


def recorded(sample: Sample) -> list[list[str | None]]:
    """What was answered to a sample, by round and agent."""
    answers = rounds_of(sample.metadata.get("answers"))
    if answers is None:
        raise ComponentError(f"sample '{sample.id}' has no recorded answers; use the data set replay.trajectories")
    return answers


def has_values(row: Row, select: Mapping[str, Scalar | tuple[Scalar, ...]]) -> bool:
    """Whether a row is selected."""
    return all(_has(row.get(name), wanted) for name, wanted in select.items())


def _has(value: Any, wanted: Scalar | tuple[Scalar, ...]) -> bool:
    if isinstance(wanted, tuple):
        return any(_has(value, one) for one in wanted)
    if isinstance(wanted, str) and isinstance(value, str) and "*" in wanted:
        return fnmatchcase(value, wanted.replace("[", "[[]"))
    return bool(value == wanted)


def _condition(select: Mapping[str, Any]) -> str:
    return " and ".join(f"{name} = {value!r}" for name, value in select.items()) or "anything in it"


def _references(value: Any) -> tuple[str, ...]:
    """The references; an empty list says that no answer is right."""
    return tuple(as_word(one) for one in value) if isinstance(value, list) else (as_word(value),)


def _words(value: Any) -> tuple[str, ...]:
    return tuple(as_word(one) for one in as_list(value))


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(as_text(one) for one in as_list(value))
