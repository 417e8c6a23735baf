"""Blind picking: the reader takes the best answer before he knows whose it is, and the picks add up to a table."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from madplug import UserError
from madplug.study import interval, write_whole

FILE = "picks.json"


class Picks:
    """The picks, in a file beside the debates: by a debate's id None until one is made, then the seat among which."""

    def __init__(self, base: Path) -> None:
        self._path = base / FILE
        self._made: dict[str, dict[str, Any] | None] = {}
        if self._path.exists():
            try:
                self._made = json.loads(self._path.read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                raise UserError(f"{self._path}: cannot be read: {error}") from None

    def hide(self, id: str) -> None:
        """Keep the names of a debate from the reader until he picks."""
        self._made.setdefault(id, None)
        self._write()

    def hides(self, id: str) -> bool:
        """Whether the names are kept from the reader."""
        return id in self._made and self._made[id] is None

    def picked(self, id: str) -> str | None:
        """The seat whose answer was picked."""
        return (self._made.get(id) or {}).get("seat")

    def pick(self, id: str, seat: str | None, among: Sequence[str]) -> None:
        """Note the pick, once; without a seat, the names are shown and nothing counts."""
        if not self.hides(id):
            raise UserError("the names of this debate have been shown; a pick would not be blind")
        if seat is None:
            del self._made[id]
        else:
            self._made[id] = {"seat": seat, "among": list(among)}
        self._write()

    def table(self) -> list[dict[str, Any]]:
        """How often each seat was picked when it was shown, with a 95% interval (Wilson's); the most often first."""
        made = [pick for pick in self._made.values() if pick]
        rows = []
        for seat in sorted({name for pick in made for name in pick["among"]}):
            of, wins = sum(seat in pick["among"] for pick in made), sum(seat == pick["seat"] for pick in made)
            share = wins / of
            found, _ = interval(of, share, share * (1 - share) * of / max(of - 1, 1), debates=of, proportion=True)
            rows.append({"seat": seat, "wins": wins, "of": of, "mean": share, "ci95": found})
        return sorted(rows, key=lambda row: -row["mean"])

    def _write(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._path, json.dumps(self._made, indent=1))


def blind_order(id: str, seats: int) -> list[int]:
    """The order in which the seats of a debate are shown without names."""
    order = list(range(seats))
    random.Random(id).shuffle(order)
    return order
