"""Replies in the form that a request asks for, so that a trial without a model goes on as with a model that agrees."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

if sys.version_info >= (3, 11):
    from re import _parser as parser
else:
    import sre_parse as parser


def reply_in(form: Mapping[str, Any] | None, words: str, ending: str, number: int) -> str:
    """A reply that a form allows: of several spellings the first, such as an agreement.

    words: its prose. ending: its last line, also without a form or in a grammar. number: of the request, so that names
    that are asked for are not all alike.
    """
    if form and "regex" in form:
        parsed: Any = parser.parse(form["regex"])
        return _matching(parsed, words)
    if form and "json_schema" in form:
        return json.dumps(_instance(form["json_schema"], f"{words[:40]} {number}\n{ending}"))
    return f"{words}\n{ending}"


def _matching(parts: Iterable[tuple[Any, Any]], words: str) -> str:
    """A text that a parsed regular expression matches."""
    return "".join(_part(str(kind), value, words) for kind, value in parts)


def _part(kind: str, value: Any, words: str) -> str:
    if kind == "LITERAL":
        return chr(value)
    if kind == "IN":
        what, which = str(value[0][0]), value[0][1]
        return chr(which[0] if what == "RANGE" else which) if what in ("RANGE", "LITERAL") else \
            "1" if str(which) == "CATEGORY_DIGIT" else " " if str(which) == "CATEGORY_SPACE" else "x"
    if kind in ("BRANCH", "SUBPATTERN"):
        return _matching(value[1][0] if kind == "BRANCH" else value[-1], words)
    if kind in ("MAX_REPEAT", "MIN_REPEAT"):
        least, most, repeated = value
        if _is_prose(most, repeated):
            return words[:int(most)]
        inner = any(str(k).endswith("_REPEAT") and _is_prose(v[1], v[2]) for k, v in repeated)
        return _matching(repeated, words) * max(int(least), int(inner))  # prose that may be left out is not
    return "x" if kind in ("ANY", "NOT_LITERAL") else ""


def _is_prose(most: Any, repeated: Any) -> bool:
    """Whether many characters of nearly every kind are allowed: `[\\s\\S]*`, `.*`, `[^"]{0,500}`."""
    kind, value = repeated[0]
    return int(most) > 100 and len(repeated) == 1 and (str(kind) in ("ANY", "NOT_LITERAL") or (
        str(kind) == "IN" and (str(value[0][0]) == "NEGATE" or {str(which) for _, which in value} >= {
            "CATEGORY_SPACE", "CATEGORY_NOT_SPACE"})))


def _instance(schema: Mapping[str, Any], text: str) -> Any:
    """The first value that a JSON schema allows."""
    if "enum" in schema:
        return schema["enum"][0]
    kind, items = schema.get("type"), schema.get("items", {})
    if kind == "object":
        return {name: _instance(inner, text) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        least = schema.get("minItems", 1)
        return items["enum"][:least] if "enum" in items else [_instance(items, text)] * least
    return {"string": text, "boolean": True}.get(str(kind), schema.get("minimum", 1))
