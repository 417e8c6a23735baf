"""Text for a person: columns, and model output that cannot steer a terminal."""

from __future__ import annotations

from collections.abc import Sequence

_UNSAFE = {c: "\N{REPLACEMENT CHARACTER}"
           for c in (*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
           if c not in (0x09, 0x0A)}


def safe(text: str) -> str:
    """The text with control and direction characters made visible; tabs and line ends stay."""
    return text.translate(_UNSAFE)


def columns(rows: Sequence[Sequence[str]], head: Sequence[str]) -> str:
    """Rows under a head, in plain columns."""
    every = [head, *rows]
    widths = [max(len(row[i]) for row in every) for i in range(len(head) - 1)]
    lines = ["  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[-1]]) for row in every]
    return "\n".join(line.rstrip() for line in lines)
