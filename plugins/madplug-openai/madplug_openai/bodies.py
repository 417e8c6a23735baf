"""The bytes of a reply, read within limits."""

from __future__ import annotations

import json
from typing import Any

import orjson

from madplug import RefusedError

MEGABYTE = 1_000_000
MOST_OF_AN_ERROR = 100_000
"""Bytes of an error that are read."""
MOST_VALUES = 1_000_000
"""Values in a reply: reading more of them would stop every other call for too long."""


def too_large(most: int) -> RefusedError:
    """The error of a reply with more bytes than the limit."""
    return RefusedError(f"the reply is larger than max_reply_mb, {most / MEGABYTE:g} MB")


def text_of(body: bytes) -> str:
    """A body as text; JSON may be UTF-8, UTF-16 or UTF-32, with or without a byte order mark."""
    return body.decode(json.detect_encoding(body), "replace")


def parse_quickly(body: bytes) -> Any:
    """The JSON value in a body of the usual kind, or None if it needs a closer look."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def parse(text: str) -> Any:
    """The JSON value in a text, or None. Raises `RefusedError` for one that would take too long to read."""
    if len(text) > MOST_VALUES and sum(map(text.count, ",[{:")) > MOST_VALUES:
        raise RefusedError(f"the reply has more than {MOST_VALUES:,} values")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
