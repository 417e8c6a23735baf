"""What reviewers say, and which model it selects."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from statistics import median
from typing import Any

from madplug_common.prompts import as_text
from madplug_common.replies import read_json
from madplug_common.ties import leaders

Row = Sequence["Fraction | float | int"]
"""One reviewer's score of each candidate."""


def read_scores(text: str, candidates: int, criteria: Sequence[str]) -> list[Fraction] | None:
    """One score for each candidate, the mean over the criteria; None unless every score is a whole number from 1 to 5.

    The reply is an object with the fields `Agent 1`, `Agent 2`, ...; each has a score for each criterion.
    """
    found = read_json(text)
    if found is None:
        return None
    entries = {_plain(name): value for name, value in found.items()}
    rows = [_scores(entries.get(f"agent{i + 1}", entries.get(str(i + 1))), criteria) for i in range(candidates)]
    means_of = [Fraction(sum(row), len(row)) for row in rows if row is not None]
    return means_of if len(means_of) == candidates else None


def _scores(entry: Any, criteria: Sequence[str]) -> list[int] | None:
    """The scores of one candidate, one per criterion."""
    if isinstance(entry, Mapping) and isinstance(entry.get("scores"), (Mapping, list)):
        entry = entry["scores"]
    if isinstance(entry, list):
        given = entry if len(entry) == len(criteria) else []
    elif isinstance(entry, Mapping):
        by_name = {_plain(name): value for name, value in entry.items()}
        given = [by_name.get(_plain(name)) for name in criteria]
    else:
        given = [entry] if len(criteria) == 1 else []
    scores = [_score(value) for value in given]
    return [s for s in scores if s is not None] if scores and None not in scores else None


def _score(value: Any) -> int | None:
    if isinstance(value, Mapping):
        value = value.get("score")
    if isinstance(value, bool):
        return None
    found = re.fullmatch(r"([1-5])(?:\.0+)?(?:\s*/\s*5)?", as_text(value))
    return int(found[1]) if found else None


def _plain(name: object) -> str:
    """A field's name as it is compared: letters and digits only."""
    return re.sub(r"[\W_]+", "", str(name)).lower()


def means(rows: Sequence[Row | None], *, self_scores: bool = True) -> list[Fraction] | None:
    """Each candidate's mean score over the reviewers; None when there is none for some candidate.

    rows: by reviewer, None for one that was dropped. self_scores: count what candidates gave themselves.
    """
    columns = given(rows, self_scores=self_scores)
    return [sum(c, Fraction(0)) / len(c) for c in columns] if columns and all(columns) else None


def given(rows: Sequence[Row | None], *, self_scores: bool = True) -> list[list[Fraction]]:
    """The scores that each candidate was given, by candidate."""
    width = max((len(row) for row in rows if row is not None), default=0)
    return [[Fraction(row[j]) for k, row in enumerate(rows) if row is not None and (self_scores or j != k)]
            for j in range(width)]


def best_candidates(rows: Sequence[Row | None], *, self_scores: bool = True) -> list[int]:
    """The candidates with the highest mean, those with the higher median first; empty without scores."""
    mean = means(rows, self_scores=self_scores)
    if mean is None:
        return []
    columns = given(rows, self_scores=self_scores)
    return sorted(leaders(dict(enumerate(mean))), key=lambda j: (-median(columns[j]), j))
