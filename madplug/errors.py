"""What can go wrong, as one tree.

    MadplugError                 every error that madplug raises on purpose
      UserError                  the run file, the command line or a study's directory is wrong (exit 2)
      StudyError                 the study cannot go on: disk full, directory in use (exit 1)
      StudyStopped               no further model call is started: a limit, an interrupt, or a hopeless model
      ComponentError             a component broke its contract; names the component and what was expected
      ModelError                 a model did not answer; not worth another try
        TransientError           ... but the same request may succeed later
        RefusedError             ... because the endpoint refuses it: key, address, length
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class MadplugError(Exception):
    """Every error that madplug raises on purpose."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing that is wrong: where, and what to do about it."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class UserError(MadplugError):
    """Something the user wrote is wrong; carries every problem that was found, not only the first."""

    def __init__(self, problems: Iterable[Problem] | str) -> None:
        self.problems = (Problem("", problems),) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class StudyError(MadplugError):
    """The study cannot go on; what was recorded so far is kept."""


class StudyStopped(MadplugError):
    """No further model call is started. Everything so far is kept, and a later run continues."""


class ComponentError(MadplugError):
    """A component broke its contract."""


class ModelError(MadplugError):
    """A model did not answer, and asking again would not help."""


class TransientError(ModelError):
    """A model did not answer this time. `retry_after` is the wait in seconds the endpoint asked for."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RefusedError(ModelError):
    """An endpoint refuses the request: a wrong key, a wrong address, a context that is too long."""


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'X'?` for the known name closest to `name`, or an empty string."""
    from difflib import get_close_matches

    known = list(known)
    found = get_close_matches(name, known, n=1, cutoff=0.6)
    if not found:  # a full name whose last part was mistyped less than its first
        tails = {k.rpartition(".")[2]: k for k in known}
        found = [tails[t] for t in get_close_matches(name.rpartition(".")[2], tails, n=1, cutoff=0.75)]
    return f"; did you mean '{found[0]}'?" if found else ""
