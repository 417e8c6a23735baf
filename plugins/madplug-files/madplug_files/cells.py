"""What a cell means: a text, a list, metadata."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID


def as_text(value: Any) -> str:
    """A cell as text, with the space around it.

    Raises `ValueError` for an empty cell and for bytes other than UTF-8.
    """
    if type(value) is str and value.isascii() and value and not value.isspace():  # nearly every cell
        return value
    if is_empty(value):
        raise ValueError("is empty")
    if isinstance(value, str):
        text = value
    elif isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        text = str(int(value))
    elif isinstance(value, Mapping | list | tuple):
        text = json.dumps(value, ensure_ascii=False, default=str)
    elif isinstance(value, bytes):
        try:
            text = value.decode()
        except UnicodeDecodeError:
            raise ValueError("contains bytes that are not UTF-8 text") from None
    else:
        text = str(value)
    return _storable(text)


def as_word(value: Any) -> str:
    """A cell as text, without the space around it."""
    return as_text(value).strip()


def as_list(value: Any) -> list[Any]:
    """A cell as a list: a list, one written as JSON or Python in a cell, a single value, or nothing."""
    if is_empty(value):
        return []
    if isinstance(value, str) and value.lstrip().startswith("["):
        parsed = parse(value)
        several = isinstance(parsed, list) and all(isinstance(v, str) for v in parsed)
        return parsed if several else [value]
    return list(value) if isinstance(value, list | tuple) else [value]


def as_metadata(value: Any) -> Any:
    """A cell as a JSON value.

    Dates and times become ISO 8601, durations seconds, decimals and UUIDs text, NaN null. Raises `ValueError` for
    what JSON cannot express: bytes, infinite numbers, objects of other types.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return _storable(value)
    if isinstance(value, float | Decimal) and not math.isfinite(value):
        if math.isnan(value):
            return None
        raise ValueError("is infinite, which JSON cannot express")
    if isinstance(value, float):
        return value
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal | UUID):
        return str(value)
    if isinstance(value, Mapping):
        return {_storable(str(key)): as_metadata(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_metadata(inner) for inner in value]
    if isinstance(value, bytes):
        raise ValueError("is bytes; metadata may be text, numbers, dates, and lists and tables of them")
    raise ValueError(f"is a {type(value).__name__}; metadata may be text, numbers, dates, and lists and tables of "
                     "them")


def is_empty(value: Any) -> bool:
    """Whether a cell is empty: null, NaN, or blank."""
    if type(value) is str:  # nearly every cell
        return not value or value.isspace()
    return value is None or (isinstance(value, float | Decimal) and math.isnan(value)) \
        or (isinstance(value, str | bytes) and not value.strip())


def parse(text: str) -> Any:
    """A value written as JSON or Python; the text itself where it is neither."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            continue
    return text


def _storable(text: str) -> str:
    """A text whose lone surrogates, which JSON may contain and UTF-8 may not, are question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
