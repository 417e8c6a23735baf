"""Text for people: columns, plurals, and model output made safe for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

_UNSAFE = {c: "\N{REPLACEMENT CHARACTER}"
           for c in (*range(0x20), *range(0x7F, 0xA0), 0xAD, 0x61C, 0x180E, 0x200B, 0x200E, 0x200F,
                     *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xFEFF, *range(0xFFF9, 0xFFFC),
                     *range(0xD800, 0xE000), *range(0xE0000, 0xE0080))
           if c not in (0x09, 0x0A)}


def safe(text: str) -> str:
    """The text with control, direction and invisible characters made visible; tabs and line ends stay.

    So do the two joiners (U+200C, U+200D), which some scripts and emoji need.
    """
    return text.translate(_UNSAFE)


def a(noun: str) -> str:
    """The noun with its article: `a turn order`, `an extension`."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def columns(rows: Sequence[Sequence[str]], head: Sequence[str]) -> str:
    """Rows under a head, in plain columns."""
    every = [head, *rows]
    widths = [max(len(row[i]) for row in every) for i in range(len(head) - 1)]
    lines = ["  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[-1]]) for row in every]
    return "\n".join(line.rstrip() for line in lines)


def count(number: int, noun: str) -> str:
    """A number with its noun: `1 cell`, `3 cells`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def dollars(amount: float) -> str:
    """US dollars: with two decimals, four below a dollar, and two digits that say something below a tenth of a cent."""
    amount = round(amount, 12)  # so that a sum is shown alike in whatever order it was added up
    return "0" if not amount else f"{amount:,.2f}" if amount >= 1 else f"{amount:.4f}" if amount >= 0.001 else \
        f"{Decimal(f'{amount:.2g}'):f}"
