"""Records as text; each part of a debate is encoded once, when it is recorded.

A debate's line of JSON has five parts, in this order: its opening (cell, repeat, sample, references), its agents, its
messages, its metrics, and how it ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from hashlib import blake2b
from typing import Any

import orjson

from madplug.errors import ComponentError, message_of
from madplug.records import DebateId, DebateResult, Message, Sample
from madplug.rows import to_json

MOST_LEVELS = 500
"""Levels of nesting that a record may have; Python's own reader stops at about a thousand."""
_PADDING = 1024 - MOST_LEVELS  # orjson reads 1024 levels, whatever the interpreter's limit is
_APART = {"cell", "repeat", "sample", "references", "agents", "messages", "metrics"}
_END = tuple(f.name for f in fields(DebateResult) if f.name not in _APART)


def id_of(result: DebateResult) -> DebateId:
    """The id of the debate."""
    return DebateId(result.cell, result.repeat, result.sample.id)


def encode(value: Any, *what: object) -> str:
    """A value as JSON. Raises `ComponentError`, which says what it is, if that fails. what: put together only then."""
    try:
        text = to_json(value)
        if text.count("[") + text.count("{") > MOST_LEVELS:  # it may be nested too deeply to be read back
            orjson.loads("[" * _PADDING + text + "]" * _PADDING)
        return text
    except Exception as error:  # objects of components may raise anything
        raise ComponentError(f"{''.join(map(str, what))} cannot be recorded: {message_of(error, 200)}") from None


def encode_content(sample: Sample, references: Sequence[str], what: object) -> str:
    """A sample with its references: `{"sample": ..., "references": ...}`."""
    return encode({"sample": sample, "references": references}, what, ": the sample")


def digest(content: str) -> str:
    """32 hexadecimal digits that identify the content of a sample."""
    return blake2b(content.encode(), digest_size=16).hexdigest()


def sample_digest(sample: Sample, references: Sequence[str]) -> str:
    """32 hexadecimal digits that identify the content of a sample, including its references."""
    return digest(encode_content(sample, references, f"sample '{sample.id}'"))


def encode_opening(id: DebateId, content: str) -> str:
    """The first part of a debate's line."""
    return f'{{"cell":{to_json(id.cell)},"repeat":{id.repeat},{content[1:]}'


def encode_message(message: Message, id: DebateId) -> str:
    """A message as JSON."""
    return encode(message, id, ": message ", message.id)


def encode_end(result: DebateResult) -> str:
    """The last part of a debate's line."""
    return encode({name: getattr(result, name) for name in _END}, id_of(result))


UNFINISHED = encode_end(DebateResult("", 0, Sample("", ""), ()))
"""The last part of the line of a debate that has not ended."""


def join(opening: str, agents: str | None, messages: str | None, metrics: str | None, end: str | None) -> str:
    """The line of a debate from its parts; messages are separated by commas."""
    return (f'{opening[:-1]},"agents":{agents or "[]"},"messages":[{messages or ""}],"metrics":{metrics or "{}"},'
            f'{(end or UNFINISHED)[1:]}')
