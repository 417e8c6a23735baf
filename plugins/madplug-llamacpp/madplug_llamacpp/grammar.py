"""Regular expressions as GBNF grammars, which the engine holds replies to.

The engine also takes regular expressions as they are, in another notation. It is not used: that part of the
engine shares one tokenizer between all engines of a process, builds it anew (a second) whenever two of them
take turns, and ignores what it cannot say.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import Any

if sys.version_info >= (3, 11):
    from re import _constants as codes  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
else:  # the same modules under their earlier names
    import sre_constants as codes
    import sre_parse as parser

MOST = 2000
"""The engine refuses a bound beyond this; a larger one becomes none, since the length of a reply is bounded anyway."""
_LAST = 0x10FFFF
_NUL = (0, 0)
_CLASSES: dict[str, list[tuple[int, int]]] = {
    "DIGIT": [(48, 57)],
    "SPACE": [(9, 13), (32, 32)],
    "WORD": [(48, 57), (65, 90), (95, 95), (97, 122)],
}
_STARTS = {codes.AT_BEGINNING, codes.AT_BEGINNING_STRING}
_ENDS = {codes.AT_END, codes.AT_END_STRING}


class NoGrammar(ValueError):
    """A regular expression that no grammar says, or that is none."""


@lru_cache(maxsize=256)
def grammar_of(pattern: str) -> str:
    r"""The grammar of the texts that a pattern matches as a whole. Classes such as `\d` mean ASCII characters."""
    try:
        tree: Any = parser.parse(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise NoGrammar(str(error)) from None
    if tree.state.flags & ~(re.UNICODE | re.ASCII | re.DOTALL):
        raise NoGrammar("flags other than (?a) and (?s) cannot be held")
    return f"root ::= {_sequence(list(tree), bool(tree.state.flags & re.DOTALL))}"


def _sequence(nodes: list[Any], dotall: bool) -> str:
    """Nodes one after another; characters that follow each other make one text."""
    parts: list[str] = []
    text = ""
    for at, (op, value) in enumerate(nodes):
        if op is codes.LITERAL:
            text += _escaped(value, '"')
            continue
        if op is codes.AT:
            if (at == 0 and value in _STARTS) or (at == len(nodes) - 1 and value in _ENDS):
                continue
            raise NoGrammar("anchors inside a pattern cannot be held")
        if text:
            parts, text = [*parts, f'"{text}"'], ""
        parts.append(_node(op, value, dotall))
    if text or not parts:
        parts.append(f'"{text}"')
    return " ".join(parts)


def _node(op: Any, value: Any, dotall: bool) -> str:
    if op is codes.ANY:
        return _class([(0, _LAST)] if dotall else _others([(10, 10)]))
    if op is codes.NOT_LITERAL:
        return _class(_others([(value, value)]))
    if op is codes.IN:
        return _class(_spans(value))
    if op is codes.BRANCH:
        return "(" + " | ".join(_sequence(list(way), dotall) for way in value[1]) + ")"
    if op is codes.SUBPATTERN:
        _, added, removed, inside = value
        if (added | removed) & ~(re.DOTALL | re.ASCII | re.UNICODE):
            raise NoGrammar("flags other than (?a) and (?s) cannot be held")
        return f"({_sequence(list(inside), (dotall or bool(added & re.DOTALL)) and not removed & re.DOTALL)})"
    if op in (codes.MAX_REPEAT, codes.MIN_REPEAT):
        low, high, inside = value
        one = _sequence(list(inside), dotall)
        simple = len(inside) == 1 and inside[0][0] in (codes.IN, codes.ANY, codes.NOT_LITERAL, codes.SUBPATTERN)
        return (one if simple else f"({one})") + _times(low, high)
    raise NoGrammar(f"{str(op).lower().replace('_', ' ')} cannot be held")


def _times(low: int, high: Any) -> str:
    if low > MOST:
        raise NoGrammar(f"more than {MOST} repetitions cannot be held")
    if high is codes.MAXREPEAT or high > MOST:
        return {0: "*", 1: "+"}.get(low, f"{{{low},}}")
    return "?" if (low, high) == (0, 1) else f"{{{low}}}" if low == high else f"{{{low},{high}}}"


# Characters

def _spans(items: list[Any]) -> list[tuple[int, int]]:
    """The characters of a class, as ranges of code points."""
    spans: list[tuple[int, int]] = []
    negated = False
    for op, value in items:
        if op is codes.NEGATE:
            negated = True
        elif op is codes.LITERAL:
            spans.append((value, value))
        elif op is codes.RANGE:
            spans.append(value)
        elif op is codes.CATEGORY:
            name = str(value).removeprefix("CATEGORY_")
            inside = _CLASSES[name.removeprefix("NOT_")]
            spans += _others(inside) if name.startswith("NOT_") else inside
    return _others(spans) if negated else spans


def _others(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Every character that is in none of the ranges."""
    others, at = [], 0
    for low, high in sorted(spans):
        if low > at:
            others.append((at, low - 1))
        at = max(at, high + 1)
    return [*others, (at, _LAST)] if at <= _LAST else others


def _class(spans: list[tuple[int, int]]) -> str:
    """Ranges as a class; one that is open above by what it leaves out, so that it stays readable."""
    if not spans:
        raise NoGrammar("a class that no character is in")
    if any(high == _LAST for _, high in spans):
        return "[^" + "".join(map(_range, _others(spans) or [_NUL])) + "]"
    return "[" + "".join(map(_range, spans)) + "]"


def _range(span: tuple[int, int]) -> str:
    low, high = span
    return _escaped(low, "[]^-") if low == high else f"{_escaped(low, '[]^-')}-{_escaped(high, '[]^-')}"


def _escaped(code: int, special: str) -> str:
    character = chr(code)
    if character == "\n":
        return r"\n"
    if 32 <= code < 127 and character not in special + "\\":
        return character
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
