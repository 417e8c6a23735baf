"""From a row to a sample: which column is which part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BeforeValidator, Field

from madplug import Dataset, Problem, RunPath, Sample, UserError, Volatile
from madplug_files.cells import as_list, as_metadata, as_text, as_word, is_empty, parse
from madplug_files.images import Images
from madplug_files.problems import nearest, other_mark, problem
from madplug_files.references import Choices, Wanted, as_choices, references
from madplug_files.sampling import SamplingOptions
from madplug_prompting.tasks import TaskOptions

T = TypeVar("T")
Take = Callable[[str, Callable[[Any], Any], Any], Any]
Row = Mapping[str, Any]
PARTS = ("id", "question", "choices", "reference", "context", "images", "group")
REQUIRED = ("question", "reference")


class RowOptions(TaskOptions, SamplingOptions):
    """Options of every data set that reads rows."""

    metadata: tuple[str, ...] = Field(
        default=(), description="further columns to keep with the sample; every component can see them")
    image_folder: Annotated[RunPath | None, Volatile] = Field(
        default=None, description="the folder below which image files may be read; unset: the data file's own folder")
    image_mb: int = Field(default=20, ge=1, le=1000, description="the largest image, in MB")


def known_columns(value: Any) -> Any:
    """Validate `[dataset.columns]`: its keys are parts of a sample."""
    if not isinstance(value, Mapping):
        return value
    for key in value:
        if key not in PARTS:
            raise ValueError(f"there is no '{key}' in a sample{nearest(str(key), PARTS)} (it has {', '.join(PARTS)})")
    return {k: tuple(v) if isinstance(v, list) else v for k, v in value.items()}


class ColumnOptions(RowOptions):
    """Options of a data set whose rows can be anything: the run file says which column is what."""

    answers: str | dict[str, Any] | None = Field(
        default=None, description="the answer format: a name, or a table as in [answers]")
    columns: Annotated[Mapping[str, str | tuple[str, ...]], BeforeValidator(known_columns)] = Field(
        default={}, description="column by part of a sample: id, question, choices, reference, context, images, "
                                "group; images only if named here, the others default to the same name")
    reference_as: Wanted = Field(
        default="auto", description="how the reference of a row with choices is written: `letter` (or label), "
                                    "`index` from 0, `position` from 1, `text`; `set`: all that are right, as "
                                    "with answers.choice and several = true; `verbatim`: as it is written")


class ColumnDataset(Dataset):
    """A data set with `ColumnOptions`."""

    Options: ClassVar[type[ColumnOptions]] = ColumnOptions

    @property
    def has_images(self) -> bool:
        """Whether a column of images is named."""
        return "images" in self.options.columns

    @property
    def answers(self) -> str | Mapping[str, Any] | None:
        """The option `answers`."""
        answers: str | Mapping[str, Any] | None = self.options.answers
        return answers


@dataclass(frozen=True)
class Columns:
    """The columns of one file."""

    named: Mapping[str, tuple[str, ...]]
    """By part of a sample: its column or columns. Parts that the file does not have are left out."""
    kept: tuple[str, ...]
    wanted: Wanted
    images: Images

    @classmethod
    def chosen(cls, named: Mapping[str, str | tuple[str, ...]], options: RowOptions, folder: Path | None,
               wanted: Wanted) -> Columns:
        """Columns by part of a sample, as the options have them. folder: where the data file is."""
        images = Images(options.image_folder or folder, options.image_mb * 2**20)
        return cls({part: (name,) if isinstance(name, str) else tuple(name) for part, name in named.items()},
                   options.metadata, wanted, images)

    def with_defaults(self, present: Row) -> Columns:
        """These columns, and for the rest those that are called like the part, in any case, where required or present.

        Images are never among them: what a row calls `images` is sent to a model only if the run file says so.
        """
        called = {part: [name for name in present if name == part]
                  or [name for name in present if str(name).lower() == part] for part in PARTS}
        default = {part: (found[0] if len(found) == 1 else part,) for part, found in called.items()
                   if part in REQUIRED or (found and part != "images")}
        return replace(self, named={**default, **self.named})

    def missing(self, present: Row, *others: Row) -> Iterator[str]:
        """Messages about columns that are named and not present; metadata may be in another file only."""
        there = ", ".join(map(str, present))
        if mark := other_mark(map(str, present)):
            yield f"has one column, '{there}'; with delimiter = \"{mark}\" it has several"
            return
        for part, names in [*self.named.items(), ("metadata", self.kept)]:
            for name in names:
                if not any(_has(row, name) for row in (present, *(others if part == "metadata" else ()))):
                    unnamed = name == part and part != "images"
                    setting = f"; name it with columns.{part} = \"...\"" if unnamed else ""
                    yield (f"has no column '{name}' for the {part}{nearest(name, map(str, present))}{setting} "
                           f"(it has {there})")

    def sample(self, row: Row, place: str, name: str) -> tuple[Sample, tuple[str, ...]]:
        """The sample of a row and its references. Raises `UserError` with every problem of the row.

        place: the file and the line. name: the id of a row without one.
        """
        return self.build({part: self.value(row, part) for part in self.named}, row, place, name)

    def build(self, cells: Mapping[str, Any], row: Row, place: str, name: str) -> tuple[Sample, tuple[str, ...]]:
        """As `sample`, from the cells of a row by part."""
        try:  # nearly every row is in order
            return self._assemble(lambda part, read, default: read(cells.get(part)), cells, name, self._kept(row))
        except (ValueError, RecursionError):
            careful = _Cells(self, cells, row, place)
            found = self._assemble(careful, cells, name, careful.metadata())
            if careful.problems:
                raise UserError(careful.problems) from None
            return found

    def _assemble(self, take: Take, cells: Mapping[str, Any], name: str,
                  metadata: Mapping[str, Any]) -> tuple[Sample, tuple[str, ...]]:
        """The sample and its references. take: reads the cell of a part with a function, or returns the default."""
        none: tuple[str, ...] = ()
        choices = take("choices", as_choices, Choices())
        sample = Sample(
            take("id", as_word, name) if "id" in cells else name, take("question", as_text, ""), choices.texts,
            take("context", lambda value: tuple(map(as_text, as_list(value))), none) if "context" in cells else none,
            take("images", lambda value: tuple(map(self.images.address, as_list(value))), none)
            if "images" in cells else none,
            take("group", lambda value: "" if is_empty(value) else as_word(value), "") if "group" in cells else "",
            metadata)
        return sample, take("reference", lambda value: references(value, choices, self.wanted), none)

    def _kept(self, row: Row) -> dict[str, Any]:
        """The columns that the option `metadata` names."""
        return {column: as_metadata(_at(row, column)) for column in self.kept if _has(row, column)}

    def value(self, row: Row, part: str) -> Any:
        """The cell of a part: the value of its column, or the list of several columns' values."""
        names = self.named.get(part, ())
        if len(names) == 1:
            name = names[0]
            return row[name] if type(row) is dict and name in row else _at(row, name)
        values = [_at(row, name) for name in names]
        if part == "choices":  # an empty one before others keeps its place, since references are letters or positions
            while values and is_empty(values[-1]):
                values.pop()
            return values or None
        return [value for value in values if not is_empty(value)] if values else None

    def written(self, row: Row) -> Sequence[Any]:
        """The references of a row, not yet read."""
        value = self.value(row, "reference")
        value = parse(value) if isinstance(value, str) and value.startswith("[") else value
        return value if isinstance(value, list | tuple) else [value]

    def place(self, place: str, part: str) -> str:
        """A row's place, and the column or columns of a part."""
        return in_column(place, *self.named.get(part, (part,)))


class _Cells:
    """Reads the cells of one row, part by part, and collects what is wrong with them."""

    def __init__(self, columns: Columns, cells: Mapping[str, Any], row: Row, place: str) -> None:
        self.columns, self.cells, self.row, self.place = columns, cells, row, place
        self.problems: list[Problem] = []
        self._failed: set[str] = set()

    def __call__(self, part: str, read: Callable[[Any], T], default: T) -> T:
        """The cell of a part as `read` returns it, or the default where it raises."""
        if part == "reference" and "choices" in self._failed:
            return default
        try:
            return read(self.cells.get(part))
        except (ValueError, RecursionError) as error:
            absent = str(error) == "is empty" and not any(_has(self.row, n) for n in self.columns.named.get(part, ()))
            self._failed.add(part)
            self.problems.append(Problem(self.columns.place(self.place, part), "is missing" if absent else str(error)))
            return default

    def metadata(self) -> dict[str, Any]:
        """The columns that the option `metadata` names."""
        kept = {}
        for column in self.columns.kept:
            if _has(self.row, column):
                try:
                    kept[column] = as_metadata(_at(self.row, column))
                except (ValueError, RecursionError) as error:
                    self.problems.append(Problem(in_column(self.place, column), str(error)))
        return kept


def in_column(place: str, *names: str) -> str:
    """`rows.jsonl: line 2, column 'answer'`."""
    return f"{place}, column{'s' if len(names) > 1 else ''} {' and '.join(map(repr, names))}"


def refuse_second(name: str, place: str, columns: Columns, seen: dict[str, str]) -> None:
    """Raises `UserError` for an id that another row has; `seen` keeps the line by id."""
    if name in seen:
        raise problem(columns.place(place, "id"), f"the id '{name}' is taken by {seen[name]}; ids must differ")
    seen[name] = place.rpartition(": ")[2]


def refuse_alternatives(cell: Any, columns: Columns, rows: Iterable[tuple[int, str, Row]]) -> Iterator[str]:
    """A message for a row whose references are alternatives, where the answer is a set of several choices."""
    answers: Any = getattr(cell, "answers", None)
    several = getattr(getattr(answers, "options", None), "several", False)
    for _, place, row in rows if several and columns.wanted not in ("set", "verbatim") else ():
        values = columns.written(row)
        if len(values) > 1 and not is_empty(columns.value(row, "choices")):
            yield (f"{columns.place(place, 'reference')}: has {len(values)} references, any of which would be right, "
                   f"but {answers.full_name} has several = true; say reference_as = \"set\" if all of them together "
                   "are the answer")
            return


def refuse_uncounted(columns: Columns, rows: Iterable[tuple[int, str, Row]]) -> Iterator[str]:
    """A message where references are numbers of choices, and no row says 0, so that they may count from 0 or from 1."""
    doubt = ""
    for _, place, row in rows if columns.wanted == "auto" and "choices" in columns.named else ():
        with suppress(ValueError, RecursionError):  # a wrong row is refused where it is read as a sample
            choices = as_choices(columns.value(row, "choices"))
            for value in columns.written(row):
                found = choices.readings(value, as_word(value))
                if found.get("index") == 0 or found.keys() & {"letter", "text"}:
                    return
                if not doubt and found.keys() >= {"index", "position"}:
                    index, position = (f"{choices.texts[found[how]]!r:.80}" for how in ("index", "position"))
                    doubt = (f"{columns.place(place, 'reference')}: the reference {value!r:.80} is {position} counted "
                             f"from 1 and {index} from 0, and no row says 0; say reference_as = \"position\" (from 1) "
                             "or \"index\" (from 0)")
    if doubt:
        yield doubt


def group_of(row: Row, column: str, place: str) -> str:
    """The value of the column that `stratify` names. Raises `UserError` where the row has no such column."""
    if not _has(row, column):
        raise problem(place, f"has no column '{column}' to stratify by{nearest(column, map(str, row))} "
                             f"(it has {', '.join(map(str, row))})")
    value = _at(row, column)
    try:
        return "" if is_empty(value) else as_word(value)
    except (ValueError, RecursionError) as error:
        raise problem(in_column(place, column), str(error)) from None


def _at(row: Any, name: str) -> Any:
    """The value under a name; dots lead into tables and, with a number, into lists."""
    if isinstance(row, Mapping) and name in row:
        return row[name]
    first, dot, rest = name.partition(".")
    if isinstance(row, list) and first.isdecimal() and int(first) < len(row):
        inner = row[int(first)]
    elif dot and isinstance(row, Mapping):
        inner = row.get(first)
    else:
        return None
    if isinstance(inner, str) and dot and inner.lstrip()[:1] in ("[", "{"):
        inner = parse(inner)
    return _at(inner, rest) if dot else inner


def _has(row: Row, name: str) -> bool:
    return name in row or ("." in name and name.partition(".")[0] in row)
