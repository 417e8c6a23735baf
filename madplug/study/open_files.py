"""Check and raise the limit of open files."""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack

from madplug.errors import UserError

NEEDED = 24
"""Files that a study has open at the most, besides a model's connections: records, lock, log, event loop, imports."""
USUAL = 1024
"""The limit that most systems start with."""


def check_open_files(more: int = 0) -> None:
    """Raise this process's limit of open files if it is too low for a study, or raise `UserError` if that fails.

    more: files that this study opens besides those of any other.
    """
    number = NEEDED + more
    if _can_open(number):
        return
    limit = _raised(number + USUAL)
    if not _can_open(number):
        at_most = f": this process may have {limit} open" if limit is not None else ""
        raise UserError(f"too few files can be opened for a study{at_most}, and {number} more are needed; raise the "
                        f"limit, as with `ulimit -n {USUAL}`")


def discard(number: int) -> None:
    """Have what is written to an open file go nowhere, also what is still in a buffer and written at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def _can_open(number: int) -> bool:
    """Whether this many more files can be open at the same time."""
    with ExitStack() as stack:
        try:
            for _ in range(number):
                stack.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            return False
    return True


def _raised(wanted: int) -> int | None:
    """Raise the limit as far as is wanted and allowed. Returns what it is then, or None if there is none."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:  # it is the system that has no more
        return None
    highest = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if highest > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))
    return max(soft, highest)
