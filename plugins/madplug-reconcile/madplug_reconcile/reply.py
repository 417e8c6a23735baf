"""What a reply at the table looks like, and how it is read."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from madplug import Reply
from madplug_prompting.prompts import as_text
from madplug_prompting.replies import read_json, spoken

SCHEMA: Mapping[str, Any] = {
    "type": "object", "additionalProperties": False, "required": ["reasoning", "answer", "confidence"],
    "properties": {"reasoning": {"type": "string"}, "answer": {"type": "string"},
                   "confidence": {"type": "number", "minimum": 0, "maximum": 1}}}


def read(text: str) -> Reply:
    """A reply as it is recorded: reasoning, answer and confidence as text."""
    found = read_json(text)
    if found is None or "answer" not in found:
        # What looks like an object has a confidence in it, which is a number that could be taken for the answer.
        return Reply(spoken(text), "" if "{" in text else None, data={"reconcile": {"unparsed": True}})
    answer, confidence = as_text(found["answer"]), share(found.get("confidence"))
    lines = [as_text(found.get("reasoning")), f"Answer: {answer or '(none)'}",
             "" if confidence is None else f"Confidence: {confidence:g}"]
    return Reply("\n".join(line for line in lines if line), answer, confidence=confidence,
                 data={} if confidence is not None else {"reconcile": {"no_confidence": True, "unparsed": True}})


def share(value: object) -> float | None:
    """A confidence between 0 and 1: "85%", 85 and 0.85 are the same, 1.2 is 1; None for no number."""
    percent = False
    if isinstance(value, str):
        found = re.search(r"-?\d{1,9}(?:\.\d{1,9})?(\s?%)?|-?\.\d{1,9}(\s?%)?", value)
        if found is None:
            return None
        percent, value = "%" in found[0], float(found[0].rstrip(" %"))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    if not math.isfinite(number):
        return None
    return min(1.0, max(0.0, number / 100 if percent or number >= 2 else number))
