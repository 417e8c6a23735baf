"""Long texts are cut where a page would choke on them; what was cut can be asked for."""

from __future__ import annotations

import json
from typing import Any

from madplug import pictures_in, plain

LONG = 20_000
"""Characters of a text that a page shows at once."""


END = 2_000
"""Characters of its end that a page shows of a longer text."""


def cut(text: str, most: int) -> str:
    """A text, or its beginning and how much there is."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def cut_texts(debate: dict[str, Any]) -> dict[str, Any]:
    """An outline as JSON whose messages are cut, each with the length of its text."""
    for message in debate["messages"]:
        message["length"] = len(message["content"])
        message["end"] = message["content"][-END:] if message["length"] > LONG else ""
        message["content"] = message["content"][:LONG]
        message["answer"] = None if message["answer"] is None else cut(message["answer"], LONG)
        message["received"] = {id: cut(text, LONG) for id, text in message["received"].items()}
        message["data"] = as_text(message["data"])
    sample = debate["sample"]
    sample["context"] = [cut(text, 10 * LONG) for text in sample["context"]]
    sample["question"] = cut(sample["question"], 10 * LONG)
    sample["images"] = [cut(image, 200) for image in sample["images"]]
    del sample["metadata"]
    debate["pictures"], debate["marks"] = pictures(debate["notes"]), marks(debate["notes"])
    debate["notes"] = as_text(debate["notes"])
    return debate


def pictures(notes: dict[str, Any]) -> list[dict[str, Any]]:
    """The pictures that plugins noted; none if one is not as it should be, which their notes show as text."""
    try:
        return [{**plain(picture), "plugin": name} for name, picture in pictures_in(notes)]
    except ValueError:
        return []


def marks(notes: dict[str, Any]) -> dict[str, str]:
    """By tag, whether what stands between `<tag>` and `</tag>` in a message is right or wrong, as plugins noted it."""
    found = [table.get("marks") for table in notes.values() if isinstance(table, dict)]
    return {tag: tone for table in found if isinstance(table, dict) for tag, tone in table.items()
            if tone in ("right", "wrong")}


def as_text(table: dict[str, Any]) -> str:
    """What plugins noted, as text; empty if that is nothing."""
    return cut(json.dumps(table, indent=1, ensure_ascii=False), LONG) if table else ""
