"""Every error, as one tree.

    MadplugError                 every error that madplug raises on purpose
      UserError                  the run file, the command line or a study's directory is wrong (exit 2)
      StudyError                 the study cannot go on: disk full, directory in use (exit 1)
      StudyStopped               no further model call is started: a limit, an interrupt, or an unusable model
      ComponentError             a component broke its contract; names the component and what was expected
      ModelError                 a model did not answer; another attempt would not help
        TransientError           ... but the same request may succeed later
          OverloadedError        ... once it gets fewer requests at a time
          UnreachableError       ... once the endpoint can be reached again; uses up no attempt
          EmptyReplyError        ... it answered, with no text; after a few attempts that counts as the answer
        RefusedError             ... because the endpoint refuses it: length, content, parameters
          AccessError            ... and whatever else it is asked: key, address, model, quota
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from madplug.records import Usage


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
    """A mistake in what the user wrote; carries every problem that was found, not only the first."""

    def __init__(self, problems: Iterable[Problem] | str) -> None:
        self.problems = (Problem("", problems),) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class StudyError(MadplugError):
    """The study cannot continue; what was recorded so far is kept."""


class StudyStopped(MadplugError):
    """No further model call is started. Everything so far is kept, and a later run resumes the study."""


class ComponentError(MadplugError):
    """A component broke its contract."""


class ModelError(MadplugError):
    """A model did not answer, and another attempt would not help.

    usage: what the endpoint bills for a reply that is no answer, or None if there was no such reply.
    """

    def __init__(self, message: str, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.usage = usage
        self.billed: tuple[tuple[str, Usage], ...] = ()
        """What each paid reply to this request used, after its key; set by the host."""


class TransientError(ModelError):
    """A model did not answer this time. `retry_after` is the wait in seconds the endpoint asked for."""

    def __init__(self, message: str, usage: Usage | None = None, *, retry_after: float | None = None) -> None:
        super().__init__(message, usage)
        self.retry_after = retry_after


class OverloadedError(TransientError):
    """The endpoint turns requests away because there are too many (status 429).

    With the option `start_in_flight`, a model then gets fewer at a time.
    """


class UnreachableError(TransientError):
    """The endpoint could not be reached: no connection, no such host. Every call of the model waits until it can be."""


class EmptyReplyError(TransientError):
    """The endpoint answered with no text, which counts as paid; without `usage`, it is estimated.

    After a few attempts (the model option `empty_attempts`) the empty text is the answer: the agent is silent.
    """


class RefusedError(ModelError):
    """The endpoint refuses this request: its length, its content, a parameter. Another request may be answered."""


class AccessError(RefusedError):
    """The endpoint refuses every request: a wrong key, address or model name, or an exhausted quota."""


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'X'?` for the known name closest to `name`, or an empty string."""
    known = list(known)
    alike = [k for k in known if k.rpartition(".")[2] == name.rpartition(".")[2]]  # of another plugin
    found = [k for k in known if k.lower() == name.lower()] or (alike if len(alike) == 1 else [])
    found = found or get_close_matches(name, known, n=1, cutoff=0.6)
    if not found:  # a full name whose last part was mistyped less than its first
        tails = {k.rpartition(".")[2]: k for k in known}
        found = [tails[t] for t in get_close_matches(name.rpartition(".")[2], tails, n=1, cutoff=0.75)]
    found = found or [k for k in known if k.startswith(f"{name}.")]  # a plugin's name alone
    return f"; did you mean '{found[0]}'?" if found else ""


def nearest_file(path: Path, ending: str) -> str:
    """`; did you mean 'X'?` for the file beside `path` that is called nearly so, or else what files there are."""
    there = {file.stem: file.name for file in sorted(path.parent.glob(f"*{ending}"))}
    if near := get_close_matches(path.stem, there, n=1):
        return f"; did you mean '{there[near[0]]}'?"
    return f"; its folder has {listed(there.values(), 5)}" if there else ""


def nearest_or_all(name: str, known: Iterable[str], most: int = 12) -> str:
    """`; did you mean 'X'?`, or all known names if none is close: `; choose from a, b`."""
    known = list(known)
    if near := nearest(name, known):
        return near
    shown = listed(known, most)
    return f"; choose from {shown}" if len(known) > 1 else f"; there is only {shown}" if known else "; there are none"


def listed(names: Iterable[str], most: int = 12, near: str = "") -> str:
    """Names in a line: all, or of many the first ones, or those closest to `near`, and how many more there are."""
    names = list(names)
    if len(names) <= most:
        return ", ".join(names)
    if near:
        names = list(dict.fromkeys([*get_close_matches(near, names, n=most, cutoff=0.0), *names]))
    return f"{', '.join(names[:most])} and {len(names) - most:,} more"


def message_of(error: BaseException, most: int | None = None) -> str:
    """The text of an error in one line, after its type; the type alone if it has no text.

    most: characters of the text that are kept; by default all.
    """
    text = " ".join(error_text(error).split())[:most]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def error_text(error: BaseException) -> str:
    """The text of an error, even if its `__str__` fails."""
    try:
        return str(error)
    except BaseException as worse:
        return f"(its text is not available: {type(worse).__name__})"
