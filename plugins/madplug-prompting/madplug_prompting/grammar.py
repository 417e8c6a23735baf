"""Regular expressions as GBNF grammars, the notation in which llama.cpp constrains replies."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

if sys.version_info >= (3, 11):
    from re import _constants as codes  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
else:  # the same modules under their earlier names
    import sre_constants as codes
    import sre_parse as parser

Span = tuple[int, int]
"""The first and the last code point of a range of characters."""

MOST = 2000
"""llama.cpp refuses grammars with more repetitions."""
_LAST = 0x10FFFF
_NUL = (0, 0)
_CLASSES: dict[str, list[Span]] = {
    "DIGIT": [(48, 57)],
    "SPACE": [(9, 13), (32, 32)],
    "WORD": [(48, 57), (65, 90), (95, 95), (97, 122)],
}
_BEGINNINGS = {codes.AT_BEGINNING, codes.AT_BEGINNING_STRING}
_ENDS = {codes.AT_END, codes.AT_END_STRING}
_ONE_CHARACTER = (codes.ANY, codes.IN, codes.LITERAL, codes.NOT_LITERAL)


class NoGrammarError(ValueError):
    """No grammar says what a regular expression says; the message is the reason."""


@lru_cache(maxsize=1024)
def grammar_of(pattern: str, most: int = MOST) -> str:
    r"""The grammar of the texts that a pattern matches from end to end.

    Classes such as `\d` mean ASCII characters, and `(?i)` folds ASCII letters. most: a repetition that may go on longer
    has no upper bound in the grammar, since the length of a reply is bounded anyway. Raises `NoGrammarError` where the
    pattern is broken, or has what no grammar can say: look-arounds, back-references, anchors inside it.
    """
    try:
        tree: Any = parser.parse(pattern)
        return f"root ::= {_Writer(most).sequence(tree, tree.state.flags, True, True)}"
    except (re.error, OverflowError, RecursionError) as error:
        raise NoGrammarError(str(error)) from None


class _Writer:
    """Writes parsed expressions as the right-hand side of a rule."""

    def __init__(self, most: int) -> None:
        self.most = most

    def sequence(self, nodes: Any, flags: int, begins: bool, ends: bool) -> str:
        """Nodes one after the other. begins, ends: whether the text begins before the first and ends after the last."""
        parts: list[str] = []
        text = ""
        for at, (op, value) in enumerate(nodes):
            first, last = begins and at == 0, ends and at == len(nodes) - 1
            if op is codes.AT:
                if not (first and value in _BEGINNINGS) and not (last and value in _ENDS):
                    raise NoGrammarError("anchors inside a pattern cannot be expressed")
            elif op is codes.LITERAL and len(_cased([(value, value)], flags)) == 1:
                text += _escaped(value, '"')
            else:
                parts += [f'"{text}"'] if text else []
                text = ""
                parts.append(self.node(op, value, flags, first, last))
        return " ".join([*parts, f'"{text}"'] if text or not parts else parts)

    def node(self, op: Any, value: Any, flags: int, first: bool, last: bool) -> str:
        """One node: characters, alternatives, a group or a repetition."""
        if op in _ONE_CHARACTER:
            return _class(_spans(op, value, flags))
        if op is codes.BRANCH:
            return "(" + " | ".join(self.sequence(way, flags, first, last) for way in value[1]) + ")"
        if op is codes.SUBPATTERN:
            _, added, removed, inside = value
            return f"({self.sequence(inside, (flags | added) & ~removed, first, last)})"
        if op in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            low, high, inside = value
            repeated = self.sequence(inside, flags, False, False)
            simple = len(inside) == 1 and inside[0][0] in (*_ONE_CHARACTER, codes.SUBPATTERN) and repeated[0] in "[("
            return (repeated if simple else f"({repeated})") + self.times(low, high)
        raise NoGrammarError(f"{str(op).lower().replace('_', ' ')} cannot be expressed")

    def times(self, low: int, high: Any) -> str:
        """How often something is repeated."""
        if low > self.most:
            raise NoGrammarError(f"more than {self.most} repetitions cannot be expressed")
        if high is codes.MAXREPEAT or high > self.most:
            return {0: "*", 1: "+"}.get(low, f"{{{low},}}")
        return "?" if (low, high) == (0, 1) else f"{{{low}}}" if low == high else f"{{{low},{high}}}"


# Characters

def _spans(op: Any, value: Any, flags: int) -> list[Span]:
    """The characters that a node matches."""
    if op is codes.ANY:
        return [(0, _LAST)] if flags & re.DOTALL else _others([(10, 10)])
    if op is codes.LITERAL:
        return _cased([(value, value)], flags)
    if op is codes.NOT_LITERAL:
        return _others(_cased([(value, value)], flags))
    spans = [span for kind, what in value for span in _item(kind, what, flags)]
    return _others(spans) if value[0][0] is codes.NEGATE else spans


def _item(kind: Any, what: Any, flags: int) -> list[Span]:
    """The characters of one item of a class."""
    if kind is codes.LITERAL:
        return _cased([(what, what)], flags)
    if kind is codes.RANGE:
        return _cased([what], flags)
    if kind is not codes.CATEGORY:
        return []
    name = str(what).removeprefix("CATEGORY_")
    inside = _CLASSES[name.removeprefix("NOT_")]
    return _others(inside) if name.startswith("NOT_") else inside


def _cased(spans: list[Span], flags: int) -> list[Span]:
    """The characters, and where the expression ignores case the other case of the ASCII letters among them."""
    if not flags & re.IGNORECASE:
        return spans
    both = list(spans)
    for low, high in spans:
        for first, last, shift in ((65, 90, 32), (97, 122, -32)):
            if max(low, first) <= min(high, last):
                both.append((max(low, first) + shift, min(high, last) + shift))
    return both


def _others(spans: Sequence[Span]) -> list[Span]:
    """Every character that is in none of the ranges."""
    others, at = [], 0
    for low, high in sorted(spans):
        if low > at:
            others.append((at, low - 1))
        at = max(at, high + 1)
    return [*others, (at, _LAST)] if at <= _LAST else others


def _class(spans: Sequence[Span]) -> str:
    """The ranges as a class; one that has no upper end is written by what it leaves out, so that it stays readable."""
    if not spans:
        raise NoGrammarError("a class that no character is in")
    if any(high == _LAST for _, high in spans):
        return "[^" + "".join(map(_range, _others(spans) or [_NUL])) + "]"
    return "[" + "".join(map(_range, spans)) + "]"


def _range(span: Span) -> str:
    low, high = span
    return _escaped(low, "[]^-") if low == high else f"{_escaped(low, '[]^-')}-{_escaped(high, '[]^-')}"


def _escaped(code: int, special: str) -> str:
    character = chr(code)
    if character == "\n":
        return r"\n"
    if 32 <= code < 127 and character not in special + "\\":
        return character
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
