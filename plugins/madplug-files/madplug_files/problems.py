"""What is wrong with a file, collected row by row and raised at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import TypeVar

from madplug import Problem, UserError

T = TypeVar("T")
Report = Callable[[UserError], None]
"""Takes the error of one row; raises it, keeps it, or ignores it."""
MOST = 20
"""A file with this many problems is not read further."""


def problem(place: str, message: str) -> UserError:
    """An error with its place."""
    return UserError([Problem(place, message)])


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'X'?`, or an empty string. Upper and lower case are alike."""
    found = get_close_matches(name.lower(), by_lower := {k.lower(): k for k in known}, n=1)
    return f"; did you mean '{by_lower[found[0]]}'?" if found else ""


def refuse(error: UserError) -> None:
    """The report that raises the error of the first bad row."""
    raise error


def ignore(error: UserError) -> None:
    """The report of a pass whose problems another pass reports."""


class Problems:
    """The problems of one pass over rows, each once. With `MOST` of them the pass ends."""

    def __init__(self) -> None:
        self._found: dict[Problem, None] = {}

    def add(self, error: UserError) -> None:
        """Keep the problems of an error. Raises `UserError` with all problems when there are `MOST`."""
        self._found |= dict.fromkeys(error.problems)
        if len(self._found) >= MOST:
            raise UserError([*list(self._found)[:MOST], Problem("", f"reading stopped after {MOST} problems")])

    def attempt(self, function: Callable[..., T], *arguments: object) -> T | None:
        """What a function returns, or None if it raises a `UserError`, which is kept."""
        try:
            return function(*arguments)
        except UserError as error:
            self.add(error)
            return None

    def finish(self) -> None:
        """End the pass. Raises `UserError` with all problems, if there are any."""
        if self._found:
            raise UserError(self._found)


def other_mark(header: Iterable[str]) -> str | None:
    """What seems to separate the columns of a header that was read as one column."""
    names = list(header)
    return next((mark for mark in ";|" if len(names) == 1 and mark in names[0]), None)
