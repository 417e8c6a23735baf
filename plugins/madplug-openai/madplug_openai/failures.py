"""What an endpoint's failure means: worth another try, or refused for good."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from madplug import ModelError, RefusedError, TransientError
from madplug_openai.keys import presentable, redacted

_PASSING = {408, 409, 425, 429}
_NO_MONEY = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance"}
_TAGS = re.compile(r"(?s)<(script|style)\b.*?</\1>|<[^>]*>")


def failure(status: int, reply: Any, text: str, headers: Mapping[str, str],
            keys: Iterable[str] = ()) -> ModelError:
    """The error to raise for a status: from the reply if it is JSON, else from its text."""
    message, codes = _told(reply)
    told = presentable(message or _TAGS.sub(" ", redacted(text, keys)[:20_000]), keys)
    said = f"{_status(status)}: {told}" if told else _status(status)
    if (status in _PASSING or status >= 500) and not codes & _NO_MONEY:
        return TransientError(said, retry_after=retry_after(headers))
    return RefusedError(said)


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
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return math.nan


def _status(status: int) -> str:
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
        return str(error), set()
    message = next((error[k] for k in ("message", "detail", "error") if error.get(k)), "")
    return str(message), {str(error.get(k)) for k in ("code", "type")}
