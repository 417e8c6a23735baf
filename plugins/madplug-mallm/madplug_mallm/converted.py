"""What a conversion has found so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Table = dict[str, Any]


@dataclass
class Converted:
    """A run file, and what of the configuration it does not say."""

    table: Table
    notes: list[str] = field(default_factory=list)

    def note(self, setting: str, why: str) -> None:
        """Add a note, once."""
        text = f"{setting}: {why}"
        if text not in self.notes:
            self.notes.append(text)
