"""A response in OpenAI's shape, read with the tolerance that other servers' responses need."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from madplug import Completion, EmptyReplyError, Usage, hide
from madplug_openai.keys import presentable

_MOST_LEVELS = 100
"""Levels of nesting in an account of the usage."""


class Shapeless(Exception):
    """The response has no choice with a message in it, or cannot be read for another reason, which it says."""


def completion_in(reply: Any, model: str, *, keys: Collection[str] = (), keep_reasoning: bool = True,
                  cost: float | None = None, tools: bool = False) -> Completion:
    """The completion in a response of `model`, without keys, wherever an endpoint repeats what it was sent.

    tools: whether the request offered tools; calls of them are then in `usage.raw["tool_calls"]`. Raises `Shapeless`,
    or `EmptyReplyError` where it has neither text nor such a call.
    """
    try:
        choice = reply["choices"][0]
        message = choice["message"]
        text = text_in(message.get("content")) or text_in(message.get("refusal"))
    except (AttributeError, IndexError, KeyError, TypeError):
        raise Shapeless("has no message") from None
    raw = _account(reply, model, choice)
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if reasoning and keep_reasoning:
        raw["reasoning"] = reasoning
    called = message.get("tool_calls") if tools else None
    if called:
        raw["tool_calls"] = called
    if keys or not _is_shallow(raw):
        raw, text = _hidden(raw, keys, _MOST_LEVELS), hide(text, keys, "[key]")
    if not text.strip() and not called:
        raise EmptyReplyError(_why_empty(message, raw["finish_reason"], reasoning, keys), _usage(raw, cost))
    return Completion(text, _usage(raw, cost), *_logprobs(choice.get("logprobs")))


def _account(reply: Mapping[str, Any], model: str, choice: Mapping[str, Any]) -> dict[str, Any]:
    """The endpoint's account of the usage, why the reply ended, and the model, if another one answered."""
    given = reply.get("usage")
    raw = dict(given) if type(given) is dict or isinstance(given, Mapping) else {}
    raw["finish_reason"] = choice.get("finish_reason")
    if reply.get("model") not in (None, model):
        raw["model"] = reply["model"]
    return raw


def billed_for(reply: Any) -> Usage | None:
    """What a reply that cannot be read has used, if it says so: it is paid all the same."""
    given = reply.get("usage") if isinstance(reply, Mapping) else None
    if not isinstance(given, Mapping) or not given:
        return None
    return Usage(_count(given.get("prompt_tokens")), _count(given.get("completion_tokens")))


def _is_shallow(raw: Mapping[str, Any]) -> bool:
    """Whether nothing is nested more than one level deep, as in nearly every account of a usage."""
    return not any(type(inner) in (dict, list) for value in raw.values() if type(value) in (dict, list)
                   for inner in (value.values() if type(value) is dict else value))


def _hidden(value: Any, keys: Collection[str], levels: int) -> Any:
    """A value without keys. Raises `Shapeless` if it has too many levels."""
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


def _why_empty(message: Mapping[str, Any], finish: Any, reasoning: Any, keys: Collection[str]) -> str:
    """Why an answer has no text, and what to do about it."""
    if finish == "length":
        return "the answer is empty: its tokens were used up before it began; raise max_tokens"
    if finish == "content_filter":
        return "the answer is empty: the endpoint's content filter withheld it"
    if message.get("tool_calls") or message.get("function_call"):
        return f"the answer is empty: the model called {presentable(_tools(message), keys)} instead; offer it no tools"
    if reasoning:
        return "the answer is empty: the model reasoned and then said nothing"
    return "the answer is empty"


def _tools(message: Mapping[str, Any]) -> str:
    """The tools that a message calls, by name."""
    calls = message.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
    named = [f.get("name") for f in (*functions, message.get("function_call")) if isinstance(f, Mapping)]
    names = ", ".join(dict.fromkeys(f"'{name[:40]}'" for name in named if isinstance(name, str) and name))
    return f"the tool {names}" if names else "a tool"


def _count(value: Any) -> int:
    if isinstance(value, int):
        return max(0, value)
    return int(value) if isinstance(value, float) and math.isfinite(value) and value > 0 else 0


def _logprobs(given: Any) -> tuple[tuple[float, ...] | None, tuple[dict[str, float], ...] | None]:
    """Those of the reply's tokens, and of the likeliest at each place; None for what is not there."""
    try:
        found = tuple(float(token["logprob"]) for token in given["content"])
        top = tuple({str(t["token"]): float(t["logprob"]) for t in token.get("top_logprobs") or ()}
                    for token in given["content"])
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        return None, None
    return found, top if any(top) else None
