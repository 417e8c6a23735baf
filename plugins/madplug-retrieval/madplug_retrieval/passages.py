"""Passages of local files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from madplug import Passage, Problem, UserError

TEXTS = (".txt", ".md")
LINES = ".jsonl"
_BLANK_LINE = re.compile(r"\n\s*\n")


def passages_of(path: Path, column: str, words: int) -> Iterator[Passage]:
    """The passages of a file, or of every file in a folder, in the order of their names.

    A paragraph of a text file is a passage, and so is a row of a `.jsonl` file; longer ones are cut. The source is the
    file's name below the path, with the number of the line. column: of the rows. words: the most in a passage. Raises
    `UserError` with the file and what is wrong in it.
    """
    for file in files_of(path):
        name = file.relative_to(path) if path.is_dir() else file.name
        for line, text in _rows(file, column) if file.suffix == LINES else _paragraphs(file):
            yield from (Passage(part, f"{name}:{line}") for part in cut(text, words))


def files_of(path: Path) -> list[Path]:
    """The readable files behind a path. Raises `UserError` if there is none."""
    known = (*TEXTS, LINES)
    if path.is_dir():
        found = sorted(file for file in path.rglob("*") if file.suffix in known and file.is_file())
    else:
        found = [path] if path.is_file() and path.suffix in known else []
    if not found:
        what = f"has no file that ends in {', '.join(known)}" if path.is_dir() else \
            f"does not end in {', '.join(known)}" if path.exists() else "does not exist"
        raise UserError([Problem(str(path), what)])
    return found


def cut(text: str, words: int) -> Iterator[str]:
    """A text in parts of at most so many words, without empty ones; a short text keeps its line ends."""
    parts = text.split()
    if 0 < len(parts) <= words:
        yield text.strip()
    elif parts:
        yield from (" ".join(parts[i:i + words]) for i in range(0, len(parts), words))


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError([Problem(str(file), f"is not UTF-8 text (byte {error.start})")]) from None
    except OSError as error:
        raise UserError([Problem(str(file), f"cannot be read: {error.strerror}")]) from None


def _paragraphs(file: Path) -> Iterator[tuple[int, str]]:
    """The paragraphs of a text, each with the number of its first line."""
    text, start = _read(file), 0
    for end in (*(blank.end() for blank in _BLANK_LINE.finditer(text)), len(text)):
        yield text.count("\n", 0, start) + 1, text[start:end]
        start = end


def _rows(file: Path, column: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(_read(file).split("\n"), 1):  # not splitlines: JSON may contain other line ends
        if not line.strip():
            continue
        try:
            row: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError([Problem(f"{file}: line {number}", f"is not JSON: {error}")]) from None
        text = row.get(column) if isinstance(row, dict) else None
        if not isinstance(text, str):
            has = f"it has {', '.join(map(str, row)) or 'no columns'}" if isinstance(row, dict) else "it is not a table"
            raise UserError([Problem(f"{file}: line {number}", f"has no text in the column '{column}'; {has}")])
        yield number, text
