"""A response in OpenAI's shape, read with the tolerance that other servers' responses need."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from madplug import Completion, EmptyReplyError, ModelError, RefusedError, Usage
from madplug.log import hide

_MOST_LEVELS = 100
"""Levels of nesting in an account of the usage."""


class Shapeless(Exception):
    """The response has no choice with a message in it, or cannot be read for another reason, which it says."""


def completion_in(reply: Any, model: str, *, keep_reasoning: bool = True, cost: float | None = None) -> Completion:
    """The completion in a response of `model`. Raises `Shapeless`, or a `ModelError` where it says nothing."""
    try:
        choice = reply["choices"][0]
        message = choice["message"]
        text = text_in(message.get("content")) or text_in(message.get("refusal"))
    except (AttributeError, IndexError, KeyError, TypeError):
        raise Shapeless("has no message") from None
    given = reply.get("usage")
    raw = dict(given) if type(given) is dict or isinstance(given, Mapping) else {}
    raw["finish_reason"] = choice.get("finish_reason")
    if reply.get("model") not in (None, model):
        raw["model"] = reply["model"]
    if not text.strip():
        raise _silent(raw["finish_reason"], _usage(raw, cost))
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if reasoning and keep_reasoning:
        raw["reasoning"] = reasoning
    return Completion(text, _usage(raw, cost), _logprobs(choice.get("logprobs")))


def without_keys(completion: Completion, keys: Iterable[str]) -> Completion:
    """The completion without keys, wherever an endpoint repeats what it was sent. Raises `Shapeless`."""
    keys, usage = tuple(keys), completion.usage
    if not keys and _is_shallow(usage.raw):
        return completion
    raw = _hidden(usage.raw, keys, _MOST_LEVELS)
    text = hide(completion.text, keys, "[key]")
    if text == completion.text and raw == usage.raw:
        return completion
    return replace(completion, text=text, usage=replace(usage, raw=raw))


def _is_shallow(raw: Mapping[str, Any]) -> bool:
    """Whether nothing is nested more than one level deep, as in nearly every account of a usage."""
    return not any(type(inner) in (dict, list) for value in raw.values() if type(value) in (dict, list)
                   for inner in (value.values() if type(value) is dict else value))


def _hidden(value: Any, keys: tuple[str, ...], levels: int) -> Any:
    if isinstance(value, str):
        return hide(value, keys, "[key]")
    if not levels:
        raise Shapeless("is nested too deeply")
    if isinstance(value, Mapping):
        return {hide(str(name), keys, "[key]"): _hidden(inner, keys, levels - 1) for name, inner in value.items()}
    return [_hidden(inner, keys, levels - 1) for inner in value] if isinstance(value, list | tuple) else value


def _usage(raw: dict[str, Any], cost: float | None) -> Usage:
    prompt, completion = _count(raw.get("prompt_tokens")), _count(raw.get("completion_tokens"))
    details = raw.get("prompt_tokens_details")
    cached = 0 if details is None or not isinstance(details, Mapping) else _count(details.get("cached_tokens"))
    return Usage(prompt, completion, min(cached, prompt), cost, raw)


def text_in(content: Any) -> str:
    """The text of a message, given as such or in parts."""
    if isinstance(content, str):
        if content.isascii():
            return content
        try:
            content.encode()
        except UnicodeEncodeError:  # JSON can escape half a character, which no text encoding can represent
            return content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return content
    if content is None:
        return ""
    return "".join(text_in(part.get("text")) for part in content if part.get("type", "text") == "text")


def _silent(finish: Any, usage: Usage) -> ModelError:
    """Of an answer without text: why there is none."""
    if finish == "length":
        return RefusedError("the answer's tokens were used up before it began; raise max_tokens")
    if finish == "content_filter":
        return RefusedError("the endpoint's content filter withheld the answer")
    return EmptyReplyError("the answer is empty", usage)


def _count(value: Any) -> int:
    if isinstance(value, int):
        return max(0, value)
    return int(value) if isinstance(value, float) and math.isfinite(value) and value > 0 else 0


def _logprobs(given: Any) -> tuple[float, ...] | None:
    if given is None:
        return None
    try:
        return tuple(float(token["logprob"]) for token in given["content"])
    except (KeyError, OverflowError, TypeError, ValueError):
        return None
