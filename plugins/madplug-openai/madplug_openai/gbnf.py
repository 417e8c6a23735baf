"""A regular expression as a grammar of llama.cpp, whose server takes grammars only."""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import Any

if sys.version_info >= (3, 11):
    from re import _constants as op  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
else:  # the same modules under their names of before
    import sre_constants as op
    import sre_parse as parser

Span = tuple[int, int]
_LAST = 0x10FFFF
_MOST = 1000
"""llama.cpp refuses grammars with more than 2,000 repetitions; a longer bound becomes none."""
_CATEGORIES: dict[str, list[Span]] = {
    "DIGIT": [(48, 57)], "WORD": [(48, 57), (65, 90), (95, 95), (97, 122)], "SPACE": [(9, 13), (32, 32)]}


class _Unheld(Exception):
    """The expression has something no grammar can say: a look-around, a back-reference."""


@lru_cache(maxsize=1024)
def grammar_of(pattern: str) -> str | None:
    """The grammar of all texts that a pattern matches from end to end, or None where there is none."""
    try:
        tree = parser.parse(pattern)
        return f"root ::= {_sequence(tree, tree.state.flags)}"
    except (re.error, _Unheld):
        return None


def _sequence(nodes: Any, flags: int) -> str:
    return " ".join(filter(None, (_node(kind, value, flags) for kind, value in nodes))) or '""'


def _node(kind: Any, value: Any, flags: int) -> str:
    if kind is op.AT and value in (op.AT_BEGINNING, op.AT_BEGINNING_STRING, op.AT_END, op.AT_END_STRING):
        return ""
    if kind in (op.LITERAL, op.NOT_LITERAL, op.IN, op.ANY):
        return _class(_spans(kind, value, flags))
    if kind is op.BRANCH:
        return "(" + " | ".join(_sequence(branch, flags) for branch in value[1]) + ")"
    if kind is op.SUBPATTERN:
        _, added, removed, inside = value
        return "(" + _sequence(inside, (flags | added) & ~removed) + ")"
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT):
        low, high, inside = value
        return f"({_sequence(inside, flags)}){_times(low, high)}"
    raise _Unheld


def _times(low: int, high: Any) -> str:
    if low > _MOST:
        raise _Unheld
    known = {(0, 1): "?", (1, 1): ""}.get((low, high))
    if known is not None:
        return known
    if high is op.MAXREPEAT or high > _MOST:
        return {0: "*", 1: "+"}.get(low, f"{{{low},}}")
    return f"{{{low},{high}}}"


def _spans(kind: Any, value: Any, flags: int) -> list[Span]:
    """The characters that one node matches."""
    if kind is op.ANY:
        return [(0, _LAST)] if flags & re.DOTALL else _others([(10, 10)])
    if kind is op.LITERAL:
        return _cased([(value, value)], flags)
    if kind is op.NOT_LITERAL:
        return _others(_cased([(value, value)], flags))
    spans: list[Span] = []
    for inner, what in value:
        if inner is op.RANGE:
            spans += _cased([what], flags)
        elif inner is op.LITERAL:
            spans += _cased([(what, what)], flags)
        elif inner is op.CATEGORY:
            name = str(what).removeprefix("CATEGORY_")
            named = _CATEGORIES[name.removeprefix("NOT_")]
            spans += _others(named) if name.startswith("NOT_") else named
    return _others(spans) if value[0][0] is op.NEGATE else spans


def _cased(spans: list[Span], flags: int) -> list[Span]:
    """With the other case of ASCII letters, where the expression ignores case."""
    if not flags & re.IGNORECASE:
        return spans
    both = list(spans)
    for low, high in spans:
        for first, last, shift in ((65, 90, 32), (97, 122, -32)):
            if max(low, first) <= min(high, last):
                both.append((max(low, first) + shift, min(high, last) + shift))
    return both


def _others(spans: list[Span]) -> list[Span]:
    """Every character outside."""
    others, start = [], 0
    for low, high in sorted(spans):
        if low > start:
            others.append((start, low - 1))
        start = max(start, high + 1)
    return [*others, (start, _LAST)] if start <= _LAST else others


def _class(spans: list[Span]) -> str:
    """As a class of the grammar; what reaches to the last character is written by what it leaves out."""
    outside = _others(spans)
    if not outside:
        return r"[^\x00]"
    if outside[-1][1] == _LAST:
        return "[" + "".join(map(_span, _others(outside))) + "]"
    return "[^" + "".join(map(_span, outside)) + "]"


def _span(span: Span) -> str:
    low, high = span
    return _character(low) if low == high else f"{_character(low)}-{_character(high)}"


def _character(code: int) -> str:
    if chr(code).isascii() and (chr(code).isalnum() or chr(code) in " :.,_()"):
        return chr(code)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
