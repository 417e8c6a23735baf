"""What reviewers say, and which model it selects."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from statistics import median
from typing import Any

from madplug_prompting.prompts import as_text
from madplug_prompting.replies import read_json
from madplug_prompting.ties import leaders

Row = Sequence["Fraction | float | int"]
"""One reviewer's score of each candidate."""


def read_scores(text: str, candidates: int, criteria: Sequence[str]) -> list[Fraction] | None:
    """One score for each candidate, the mean over the criteria; None unless every score is there, from 1 to 5.

    The reply is a JSON object with the fields `Agent 1`, `Agent 2`, ..., each with a score for each criterion; or
    lines that name agent and criterion before each score (`Agent 1: Correctness: 4, Clarity: 5`), in sections by agent
    or by criterion. A score between two whole numbers is taken as it is.
    """
    found = read_json(text)
    entries = {_plain(name): value for name, value in (found or {}).items()}
    in_json = any(name in entries for i in range(candidates) for name in (f"agent{i + 1}", str(i + 1)))
    rows = (_from_json(entries, candidates, criteria) if in_json else _from_lines(text, candidates, criteria))
    return None if rows is None else [sum(row, Fraction(0)) / len(row) for row in rows]


def _from_json(entries: Mapping[str, Any], candidates: int, criteria: Sequence[str]) -> list[list[Fraction]] | None:
    rows = [_scores(entries.get(f"agent{i + 1}", entries.get(str(i + 1))), criteria) for i in range(candidates)]
    complete = [row for row in rows if row is not None]
    return complete if len(complete) == candidates else None


def _scores(entry: Any, criteria: Sequence[str]) -> list[Fraction] | None:
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


def _score(value: Any) -> Fraction | None:
    """A score from 1 to 5."""
    if isinstance(value, Mapping):
        value = value.get("score")
    if isinstance(value, bool):
        return None
    found = re.fullmatch(r"(\d(?:\.\d{1,9})?)(?:\s*/\s*5)?", as_text(value))
    score = Fraction(found[1]) if found else None
    return score if score is not None and 1 <= score <= 5 else None


# Lines

_AGENT = re.compile(r"(?i)\b(?:agent|candidate|proposal|participant)\s{0,3}[#:]?\s{0,3}(\d{1,3})\b")
_SCORED = re.compile(r"[^\w\n]{0,12}(?:scores?|rating)?[^\w\n]{0,12}(?<![-\d.])(\d{1,2}(?:\.\d{1,3})?)(?![\d.]*\d)")
_READ_AT_MOST = 20_000


def _from_lines(text: str, candidates: int, criteria: Sequence[str]) -> list[list[Fraction]] | None:
    """The scores by candidate and criterion that lines of text name."""
    named = [re.compile(rf"(?i)\b(?:{_words(name)}|criterion\W{{0,3}}{i + 1})\b") for i, name in enumerate(criteria)]
    scores: dict[tuple[int, int], Fraction] = {}
    agent = criterion = None
    for line in text[-_READ_AT_MOST:].splitlines():
        places = [(m.end(), "agent", int(m[1]) - 1) for m in _AGENT.finditer(line)]
        places += [(m.end(), "criterion", i) for i, name in enumerate(named) for m in name.finditer(line)]
        for end, kind, number in sorted(places):
            agent, criterion = (number, criterion) if kind == "agent" else (agent, number)
            value = _SCORED.match(line, end)
            score = _score(value[1]) if value else None
            if score is not None and agent is not None and criterion is not None:
                scores[agent, criterion] = score
    rows = [[scores.get((i, k)) for k in range(len(criteria))] for i in range(candidates)]
    complete = [[s for s in row if s is not None] for row in rows if None not in row]
    return complete if rows and len(complete) == candidates else None


def _words(name: str) -> str:
    """A criterion's name as it may be written in a line."""
    return r"\W{1,3}".join(map(re.escape, re.findall(r"\w+", name))) or r"(?!)"


def _plain(name: object) -> str:
    """A field's name as it is compared: letters and digits only."""
    return re.sub(r"[\W_]+", "", str(name)).lower()


def means(rows: Sequence[Row | None], *, self_scores: bool = True,
          authors: Sequence[int] | None = None) -> list[Fraction] | None:
    """Each candidate's mean score over the reviewers; None when there is none for some candidate.

    rows: by reviewer, None for one that was dropped. self_scores: count what candidates gave themselves. authors: by
    candidate, which reviewer it is; by default, candidates and reviewers are the same, in the same order.
    """
    columns = given(rows, self_scores=self_scores, authors=authors)
    return [sum(c, Fraction(0)) / len(c) for c in columns] if columns and all(columns) else None


def given(rows: Sequence[Row | None], *, self_scores: bool = True,
          authors: Sequence[int] | None = None) -> list[list[Fraction]]:
    """The scores that each candidate was given, by candidate."""
    width = max((len(row) for row in rows if row is not None), default=0)
    who = range(width) if authors is None else authors
    return [[Fraction(row[j]) for k, row in enumerate(rows) if row is not None and (self_scores or who[j] != k)]
            for j in range(width)]


def best_candidates(rows: Sequence[Row | None], *, self_scores: bool = True,
                    authors: Sequence[int] | None = None) -> list[int]:
    """The candidates with the highest mean, those with the higher median first; empty without scores."""
    mean = means(rows, self_scores=self_scores, authors=authors)
    if mean is None:
        return []
    columns = given(rows, self_scores=self_scores, authors=authors)
    return sorted(leaders(dict(enumerate(mean))), key=lambda j: (-median(columns[j]), j))
