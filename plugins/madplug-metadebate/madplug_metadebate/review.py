"""What reviewers say, and whom it chooses."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from statistics import median
from typing import Any

from madplug_styles.prompts import as_text, read_json

_STRAY_COMMA = re.compile(r",\s{0,99}([}\]])")
Row = Sequence["Fraction | float | int"]
"""One reviewer's score of each candidate."""


def read_scores(text: str, candidates: int, criteria: Sequence[str]) -> list[Fraction] | None:
    """One score for each candidate, the mean over the criteria; None unless every score is a whole number from 1 to 5.

    The reply is an object with the fields `Agent 1`, `Agent 2`, ...; each holds a score for each criterion.
    """
    found = read_nested(text)
    if found is None:
        return None
    entries = {_plain(name): value for name, value in found.items()}
    rows = [_scores(entries.get(f"agent{i + 1}", entries.get(str(i + 1))), criteria) for i in range(candidates)]
    means_of = [Fraction(sum(row), len(row)) for row in rows if row is not None]
    return means_of if len(means_of) == candidates else None


def read_nested(text: str) -> dict[str, Any] | None:
    """The JSON object in a reply, whose parts are objects: a stray comma must not leave only the last of them."""
    return read_json(_STRAY_COMMA.sub(r"\1", text))


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


def chosen(rows: Sequence[Row | None], *, self_scores: bool = True, tie: str = "first",
           names: Sequence[str] = (), rng: random.Random | None = None) -> int | None:
    """The candidate with the highest mean; None when there are no scores, or a tie that is left undecided.

    `first`: of equals the one with the higher median, then the first. `lexical`: by name. `random`: by lot.
    """
    mean = means(rows, self_scores=self_scores)
    if mean is None:
        return None
    best = [j for j, m in enumerate(mean) if m == max(mean)]
    if len(best) == 1 or tie == "first":
        columns = given(rows, self_scores=self_scores)
        return max(best, key=lambda j: (median(columns[j]), -j))
    if tie == "random" and rng is not None:
        return rng.choice(sorted(best))
    return min(best, key=lambda j: names[j]) if tie == "lexical" else None
