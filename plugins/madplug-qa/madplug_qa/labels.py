"""Answers that people have graded, and how well other grades agree with theirs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from statistics import fmean
from typing import Any

from madplug import Sample, nearest, to_json

MOST_PROBLEMS = 5
"""The most problems of a file that are shown."""


@dataclass(frozen=True)
class Label:
    """An answer with the grade that people gave it."""

    sample: Sample
    answer: str
    references: tuple[str, ...]
    grade: str


def read_labels(path: Path, grades: Mapping[str, float]) -> tuple[list[Label], list[str]]:
    """The labels of a file, and what is wrong with it, in words."""
    try:
        state = path.stat()
    except OSError as error:
        return [], [f"labels: {path} cannot be read: {error.strerror}"]
    labels, problems = _read(path, tuple(grades), (state.st_mtime_ns, state.st_size))
    return list(labels), list(problems)


@lru_cache(maxsize=8)
def _read(path: Path, grades: tuple[str, ...], changed: tuple[int, int]) -> tuple[tuple[Label, ...], tuple[str, ...]]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # not splitlines: JSON may contain other line ends
    except OSError as error:
        return (), (f"labels: {path} cannot be read: {error.strerror}",)
    except UnicodeDecodeError:
        return (), (f"labels: {path} is not UTF-8",)
    labels: list[Label] = []
    problems: list[str] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            found = _label(line, number, grades)
            (problems if isinstance(found, str) else labels).append(found)  # type: ignore[arg-type]
    if not labels and not problems:
        problems.append("it has no rows")
    more = [f"and {len(problems) - MOST_PROBLEMS} more"] if len(problems) > MOST_PROBLEMS else []
    return tuple(labels), tuple(f"labels: {path.name}: {p}" for p in [*problems[:MOST_PROBLEMS], *more])


def _label(line: str, number: int, grades: Sequence[str]) -> Label | str:
    """A row, or what is wrong with it."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return f"line {number} is not valid JSON"
    if not isinstance(row, dict):
        return f"line {number} is not an object"
    for name in ("question", "answer", "grade"):
        if not isinstance(row.get(name), str):
            return f"line {number}: '{name}' is not a string"
    grade = next((g for g in grades if g.lower() == row["grade"].strip().lower()), None)
    if grade is None:
        return f"line {number}: there is no grade '{row['grade']:.40}'{nearest(row['grade'], grades)}"
    reference = row.get("reference")
    references = [reference] if isinstance(reference, str) else reference or []
    if not (isinstance(references, list) and all(isinstance(r, str) for r in references)):
        return f"line {number}: 'reference' is neither a string nor a list of strings"
    return Label(Sample(f"label {number}", row["question"]), row["answer"], tuple(references), grade)


def agreement(labels: Sequence[Label], given: Sequence[str | None],
              grades: Mapping[str, float]) -> dict[str, float | None]:
    """How well grades agree with the labels: over those answers that were graded.

    `agreement` is the share of equal grades, `kappa` Cohen's (None if chance alone would agree fully), `bias` the mean
    difference of what the grades are worth, grader's minus people's.
    """
    pairs = [(label.grade, grade) for label, grade in zip(labels, given, strict=True) if grade is not None]
    counts: dict[str, float | None] = {"labels": len(labels), "labels_ungraded": len(labels) - len(pairs)}
    if not pairs:
        return counts
    n = len(pairs)
    equal = sum(a == b for a, b in pairs) / n
    people, grader = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum(people[g] * grader[g] for g in grades) / n**2
    bias = fmean(grades[b] - grades[a] for a, b in pairs)
    return {**counts, "agreement": equal, "kappa": None if chance == 1 else (equal - chance) / (1 - chance),
            "bias": bias}


def digest_of(options: Any, grader: str) -> str:
    """Identifies a calibration: everything that it depends on. grader: what the model is."""
    labels = options.labels.read_bytes()
    asked = to_json([grader, options.rubric, options.grades, options.show_reference,
                     options.prompt, options.prompt_again])
    return blake2b(asked.encode() + labels, digest_size=12).hexdigest()
