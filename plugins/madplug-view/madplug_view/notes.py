"""Notes and tags of the reader on debates: `notes.json` beside a study's records, which they never enter."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from madplug import DebateId, UserError
from madplug.study import read_text

NAME = "notes.json"
LONGEST = 20_000
"""Characters of a note."""
MOST_TAGS = 20
_WRITING = Lock()
Note = dict[str, Any]
"""`text` and `tags`."""


def read_notes(folder: Path) -> dict[DebateId, Note]:
    """The notes on the debates of a study. Raises `UserError` for a file that is not one of notes."""
    path = folder / NAME
    try:
        rows = json.loads(read_text(path))
        return {DebateId(str(row["cell"]), int(row["repeat"]), str(row["sample"])): _note(row) for row in rows}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read: {error}; move it away to write notes") from None


def words_of(note: Note | None) -> list[str]:
    """What the reader wrote, to be searched in."""
    return [note["text"], *note["tags"]] if note else []


def write_note(folder: Path, id: DebateId, note: Mapping[str, Any]) -> Note:
    """Replace the note on a debate; an empty one is removed. Returns it as it was written."""
    kept = _note(note)
    with _WRITING:
        notes = {**read_notes(folder), id: kept}
        rows = [{**of._asdict(), **found} for of, found in notes.items() if found["text"] or found["tags"]]
        try:
            # Under a new name, which nothing that lies in a study from elsewhere can have been made for.
            handle, beside = tempfile.mkstemp(dir=folder, prefix=f"{NAME}.")
            with open(handle, "w", encoding="utf-8") as file:
                json.dump(rows, file, indent=1, ensure_ascii=False)
            os.replace(beside, folder / NAME)
        except OSError as error:
            raise UserError(f"{folder / NAME}: cannot be written: {error.strerror}") from None
    return kept


def _note(row: Mapping[str, Any]) -> Note:
    tags = [" ".join(str(tag).split())[:60] for tag in row.get("tags") or ()]
    return {"text": str(row.get("text") or "").strip()[:LONGEST],
            "tags": list(dict.fromkeys(filter(None, tags)))[:MOST_TAGS]}
