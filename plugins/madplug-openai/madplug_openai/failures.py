"""What an endpoint's failure means: worth another try, or refused for good."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

from madplug import AccessError, ModelError, OverloadedError, RefusedError, TransientError
from madplug_openai.keys import presentable

_PASSING = {408, 409, 425, 429}
_NO_ACCESS = {401, 402, 403, 404, 405, 407, 410}
_NO_MONEY = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance",
             "insufficient_user_quota", "quota_exceeded", "account_deactivated"}
_NO_KEY = {"invalid_api_key", "API_KEY_INVALID", "model_not_found"}
_CONTENT = {"content_filter", "content_policy_violation", "moderation_blocked", "invalid_prompt"}
_MOST = 20_000
"""Characters of an error that are looked at."""
_TAG = re.compile(r"<[^<>]*>")
_HIDDEN = re.compile(r"(?i)<(/?)(?:script|style)\b[^<>]*>")


def failure(status: int, reply: Any, text: str, headers: Mapping[str, str],
            keys: Iterable[str] = ()) -> ModelError:
    """The error to raise for a status: from the reply if it is JSON, else from its text.

    What concerns one request (its content, its length) is a `RefusedError`; what would befall every request (the
    key, the address, the model, the account) is an `AccessError`; what may pass is a `TransientError`, and a 429 the
    `OverloadedError` among them.
    """
    message, codes = _told(reply)
    shown = presentable(message or _without_tags(text[:_MOST]), keys)
    said = f"{_status(status)}: {shown}" if shown else _status(status)
    if status == 404 and not message:
        said += " (is base_url right? Most end in /v1)"
    if codes & _CONTENT:
        return RefusedError(said)
    if codes & (_NO_MONEY | _NO_KEY) or status in _NO_ACCESS or 300 <= status < 400:
        return AccessError(said)
    if status == 429:
        return OverloadedError(said, retry_after=retry_after(headers))
    if status in _PASSING or status >= 500 or status < 200:
        return TransientError(said, retry_after=retry_after(headers))
    return RefusedError(said)


def _without_tags(text: str) -> str:
    """The words of a page. Its time grows with the text and no faster, whatever the text is."""
    parts = _HIDDEN.split(text)
    shown = [part for i, part in enumerate(parts[::2]) if i == 0 or parts[2 * i - 1] == "/"]
    return _TAG.sub(" ", " ".join(shown))


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """The wait in seconds that an endpoint asks for, given as milliseconds, seconds or a date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            seconds = _until(value, time.time() if now is None else now)
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    return None


def _until(date: str, now: float) -> float:
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return math.nan


def _status(status: int) -> str:
    from http import HTTPStatus

    try:
        return f"HTTP {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP {status}"


def _told(reply: Any) -> tuple[str, set[str]]:
    """An error's message and codes, in the shapes that OpenAI, vLLM, llama.cpp and FastAPI give it."""
    if not isinstance(reply, Mapping):
        return "", set()
    error = reply.get("error", reply)
    if not isinstance(error, Mapping):
        return _brief(error), set()
    message = next((error[k] for k in ("message", "detail", "error") if error.get(k)), "")
    inner = error.get("innererror")
    codes = [error.get("code"), error.get("type"), inner.get("code") if isinstance(inner, Mapping) else None]
    details = error.get("metadata")
    if isinstance(details, Mapping) and ("flagged_input" in details or "reasons" in details):
        codes.append("content_filter")
    return _brief(message), {_CODES.get(code, code) for code in codes if isinstance(code, str)}


_CODES = {"ResponsibleAIPolicyViolation": "content_filter"}


def _brief(value: Any) -> str:
    """The beginning of a value as text."""
    try:
        return (value if isinstance(value, str) else str(value))[:_MOST]
    except (RecursionError, ValueError):
        return type(value).__name__
