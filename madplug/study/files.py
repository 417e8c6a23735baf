"""The text files beside a study's records."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def read_text(path: Path) -> str:
    """The text of a regular file. Raises `OSError` and `UnicodeDecodeError`.

    The directory may be anyone's: a link could lead to any file of the user, and a pipe would wait for ever.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with open(handle, encoding="utf-8") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, f"'{path.name}' is not a regular file", str(path))
        return file.read()


def write_whole(path: Path, text: str) -> None:
    """Write all or nothing. Raises `OSError`."""
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to, whose file then takes the place of the other one; if something fails, it is removed."""
    beside = path.with_name(path.name + ".part")
    try:
        yield beside
        beside.replace(path)
    except BaseException:  # also an interrupt: no half of a file is left
        beside.unlink(missing_ok=True)
        raise
