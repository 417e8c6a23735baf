"""Reading what a model said: a JSON object, whether it agrees, a confidence. All in time proportional to the text."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from typing import Any, Literal

AgreementRule = Literal["tag", "legacy"]

_TAG = re.compile(r"\[\s*(agree|disagree)\s*\]")
_NEGATED = r"(?:\bnot|n't|n’t|\bnever|\bcannot)\s{1,9}(?:\w{1,20}\s{1,9}){0,2}agree\b"
_DISAGREES = re.compile(rf"\bdisagree|{_NEGATED}")
_AGREES = re.compile(r"\bagree\b")
_OPENING = re.compile(r"[{\[]")
# A string is matched as a whole, so that a comma in it is left alone; one that is never closed reaches to the end.
_STRING_OR_STRAY_COMMA = re.compile(r'("(?:[^"\\]|\\.)*"?)|,(?=\s{0,99}[}\]])', re.DOTALL)
_READ_AT_MOST = 100_000
_REPAIR_AT_MOST = 20_000
_DEEPEST = 300


def read_agreement(text: str, how: AgreementRule = "tag") -> tuple[bool, bool]:
    """Whether a reply agrees, and whether that could not be read (it then counts as no agreement).

    `tag`: the last `[AGREE]` or `[DISAGREE]` wins; without a tag, the words `agree` and `disagree` do, and a
    negated `agree` is a disagreement. `legacy`: agrees if "agree" occurs anywhere and "disagree" nowhere.
    """
    text = unicodedata.normalize("NFKC", text).lower()
    if how == "legacy":
        disagrees = "disagree" in text
        return "agree" in text and not disagrees, "agree" not in text
    tags = _TAG.findall(text)
    if tags:
        return tags[-1] == "agree", False
    disagrees = _DISAGREES.search(text) is not None
    agrees = _AGREES.search(text) is not None
    return agrees and not disagrees, not (agrees or disagrees)


def read_json(text: str) -> dict[str, Any] | None:
    """The JSON object in a reply: the last whole one, else the first broken one repaired, else None.

    A comma before a closing bracket does no harm. Of a list of objects it is the first.
    """
    text = text[-_READ_AT_MOST:] if "{" in text[-_READ_AT_MOST:] else text[:_READ_AT_MOST]
    if "{" not in text:
        return None
    # Without this, a comma at the end of an object would leave only the last whole object inside it.
    text = _STRING_OR_STRAY_COMMA.sub(lambda m: m[1] or "", text)
    found = _whole_objects(text)
    return found[-1] if found else _repaired(text)


def read_share(value: object) -> float | None:
    """A confidence between 0 and 1: from 0.8, "0.8", "80 %" or 80, which are the same; else None."""
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{0,9})?)\s*(%?)\s*", value)
        number = float(match[1]) / (100 if match[2] else 1) if match else None
    else:
        number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    if number is None or not math.isfinite(number):
        return None
    number = number / 100 if 1 < number <= 100 else number
    return number if 0 <= number <= 1 else None


def _whole_objects(text: str) -> list[dict[str, Any]]:
    decoder, found, end = json.JSONDecoder(strict=False), [], 0
    for _ in range(100):  # enough for any honest reply, and a bound on a hostile one
        start = _OPENING.search(text, end)
        if start is None:
            break
        try:
            value, end = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            end = start.end()
        else:
            found += [value] if (value := _one(value)) else []
    return found


def _one(value: object) -> dict[str, Any] | None:
    if isinstance(value, list):
        value = next((v for v in value if isinstance(v, dict)), None)
    return value if isinstance(value, dict) and value else None


def _repaired(text: str) -> dict[str, Any] | None:
    start = text.find("{")
    broken = text[start:start + _REPAIR_AT_MOST]
    if not 0 < broken.count("{") + broken.count("[") <= _DEEPEST:  # deeper nesting takes seconds to repair
        return None
    from json_repair import loads

    try:
        value = loads(broken, skip_json_loads=True)
    except (ValueError, RecursionError, IndexError):
        return None
    return _one(value)
