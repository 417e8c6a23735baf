"""Check the data before anything is paid: every row is a sample with an id of its own, and fits the components."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from madplug.component import Component, identity_of
from madplug.context import Sampled
from madplug.debate.cell import Cell
from madplug.debate.checks import check_iterable, describe_error, method_name
from madplug.errors import Problem, StudyError, UserError
from madplug.kinds import AnswerFormat, Dataset
from madplug.rows import storable_text
from madplug.study.setup import sampled

CHECKED = 1_000
"""Rows of a data set that `madplug check` looks at; a run looks at all."""

MOST_MISFITS = 20
"""Rows that do not fit, after which no more are looked for."""


def add_id(id: str, ids: set[str]) -> None:
    """Add a sample's id to those before. Raises `StudyError` if it cannot be stored, or is there."""
    if storable_text(id) != id:
        raise StudyError(f"dataset: the sample id {id!r:.80} has a character that cannot be stored")
    if id in ids:
        raise StudyError(f"dataset: two samples have the id '{id}'")
    ids.add(id)


def read_rows(dataset: Dataset) -> Iterator[Sampled]:
    """The rows of a data set, each checked. Raises `UserError` or `StudyError`."""
    ids = set[str]()
    given = f"{method_name(dataset, 'samples')} gave"
    try:
        for row in check_iterable(dataset.samples(), f"{method_name(dataset, 'samples')} returned"):
            found = sampled(row, given)
            add_id(found[0].id, ids)
            yield found
    except (UserError, StudyError):
        raise
    except (Exception, SystemExit) as error:
        raise StudyError(f"data set {dataset.full_name}: the samples cannot be read: "
                         f"{describe_error(error)}") from error


def fitting(rows: Iterable[Sampled], cells: Iterable[Cell]) -> Iterator[Sampled]:
    """The rows, as long as each fits the components of these cells.

    Raises `UserError` with every row that does not, at the end, or once there are `MOST_MISFITS`.
    """
    cells = list(cells)
    asked = ((one, cell.slug) for cell in cells for one in cell.components() if type(one).misfit is not Component.misfit
             and (not isinstance(one, AnswerFormat) or (one is cell.answers and cell.metrics)))
    choosy: dict[str, tuple[Component, dict[str, None]]] = {}
    for one, slug in asked:
        choosy.setdefault(identity_of(one), (one, {}))[1][slug] = None
    named = [(one, one.full_name + (f" of cell '{next(iter(slugs))}'" if len(slugs) < len(cells) else ""))
             for one, slugs in choosy.values()]
    problems: list[Problem] = []
    for sample, references in rows:
        problems += (Problem("dataset", f"sample '{sample.id}' does not fit {name}: {why}")
                     for one, name in named if (why := one.misfit(sample, references)))
        if len(problems) >= MOST_MISFITS:
            problems.append(Problem("dataset", f"no row after '{sample.id}' was looked at"))
            break
        yield sample, references
    if problems:
        raise UserError(problems)


def check_rows(cells: Sequence[Cell]) -> Iterator[str]:
    """Check the first rows of every data set, and tell what to know of them. Raises `UserError` or `StudyError`."""
    for dataset, theirs in _by_dataset(cells):
        rows = [(sample.id, len(set(sample.choices)) < len(sample.choices), bool(references))
                for sample, references in fitting(islice(read_rows(dataset), CHECKED), theirs)]
        if twice := [id for id, same, _ in rows if same]:
            more = f" (and {len(twice) - 1:,} more)" if len(twice) > 1 else ""
            yield (f"warning: dataset: sample '{twice[0]}'{more} has two equal choices; an answer that names the other "
                   "one than the reference is wrong")
        if any(known for *_, known in rows) and not any(cell.metrics for cell in theirs):
            yield (f'warning: metrics: there is none, so no answer is scored; for example metrics = '
                   f'["{theirs[0].answers.scored_by}"]')


def check_every_row(cells: Sequence[Cell]) -> dict[str, set[str]]:
    """Check the rows of every data set. Raises `UserError` or `StudyError`.

    Returns the ids by cell, of data of a known size, unless an extension of the cell chooses others. What a server is
    asked has no size.
    """
    found: dict[str, set[str]] = {}
    for dataset, theirs in _by_dataset(cells):
        ids = {sample.id for sample, _ in fitting(read_rows(dataset), theirs)}
        found |= {cell.slug: ids for cell in theirs if dataset.size() is not None and not cell.chooses_samples}
    return found


def _by_dataset(cells: Sequence[Cell]) -> Iterator[tuple[Dataset, list[Cell]]]:
    for dataset in {id(cell.dataset): cell.dataset for cell in cells if cell.dataset is not None}.values():
        yield dataset, [cell for cell in cells if cell.dataset is dataset]
