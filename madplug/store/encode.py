"""Records as text; each part of a debate is encoded once, when it is recorded.

A debate's line of JSON has five parts, in this order: its opening (cell, repeat, sample, references), its agents, its
messages, its metrics, and how it ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from hashlib import blake2b
from numbers import Real
from typing import Any

import orjson

from madplug.errors import ComponentError, message_of
from madplug.records import DebateId, DebateResult, Message, Sample, Usage
from madplug.rows import to_json
from madplug.store.base import Call

MOST_TOKENS = 10**9
"""No call uses more tokens, or costs more than `MOST_USD`; an account that says so is wrong."""
MOST_USD = 10.0**6
MOST_LEVELS = 500
"""Levels of nesting that a record may have; Python's own reader stops at about a thousand."""
_PADDING = 1024 - MOST_LEVELS  # orjson reads 1024 levels, whatever the interpreter's limit is
_NUMBERS: tuple[Any, ...] = (int, float, Real)
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


def check_ids(result: DebateResult) -> None:
    """Raise `ComponentError` if two messages of a debate have the same id."""
    if len({m.id for m in result.messages}) != len(result.messages):
        raise ComponentError(f"{id_of(result)}: two messages have the same id")


def clamp_usage(usage: Usage, calls: int = 1) -> Usage:
    """The usage of some calls with every number in a plausible range, marked if one was not.

    Negative tokens and those that are not a number become zero, more than `MOST_TOKENS` per call become that many; a
    cost that is negative, above `MOST_USD` per call or not a number becomes unknown. `raw["clamped"]` is then true.
    """
    most = MOST_TOKENS * max(calls, 1)
    given = (usage.prompt, usage.completion, usage.cached)
    raw = usage.raw if isinstance(usage.raw, Mapping) else {}
    if raw is usage.raw and usage.cost_usd is None and all(type(n) is int and 0 <= n <= most for n in given):
        return usage
    tokens = (_tokens(given[0], most), _tokens(given[1], most), _tokens(given[2], most))
    spent = usage.cost_usd
    cost = float(spent) if isinstance(spent, _NUMBERS) and 0 <= spent <= MOST_USD * max(calls, 1) else None
    if tokens == given and cost == spent:
        if raw is usage.raw and all(type(n) is int for n in given) and type(usage.cost_usd) in (float, type(None)):
            return usage
        # Of another library's type, which would not be stored as a number.
        return Usage(*tokens, cost, raw)
    return Usage(*tokens, cost, {**raw, "clamped": True})


def clamp_call(call: Call) -> Call:
    """A call with its usage in range."""
    usage = clamp_usage(call.completion.usage)
    return call if usage is call.completion.usage else replace(call, completion=replace(call.completion, usage=usage))


def clamp_result(result: DebateResult) -> DebateResult:
    """A debate with its usage in range."""
    tokens = clamp_usage(result.tokens, result.calls)
    return result if tokens is result.tokens else replace(result, tokens=tokens)


def _tokens(value: Any, most: int) -> int:
    return int(max(0, min(value, most))) if isinstance(value, _NUMBERS) and value == value else 0
