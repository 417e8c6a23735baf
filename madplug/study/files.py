"""The files beside a study's records. Somebody else may have made the directory, so links in it are not followed and
nothing but regular files is opened: a link could lead to any file of the user, and a pipe would wait for ever.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import TextIO

_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def _open(path: Path, flags: int) -> int:
    """A file descriptor of a regular file. Raises `OSError` for anything else."""
    if path.is_symlink():  # where the system has no flag for it
        raise OSError(errno.ELOOP, f"'{path.name}' is a symbolic link, which is not followed", str(path))
    handle = os.open(path, flags | _SAFE, 0o666)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, f"'{path.name}' is not a regular file", str(path))
    return handle


def read_text(path: Path) -> str:
    """The text of a file. Raises `OSError` and `UnicodeDecodeError`."""
    with open(_open(path, os.O_RDONLY), encoding="utf-8") as file:
        return file.read()


def open_to_append(path: Path) -> TextIO:
    """Open a file to append lines to it. Raises `OSError`."""
    return open(_open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "a", encoding="utf-8", buffering=1)


def write_whole(path: Path, text: str) -> None:
    """Write all or nothing: into a new temporary file, which is then renamed. Raises `OSError`."""
    beside = path.with_name(path.name + ".part")
    beside.unlink(missing_ok=True)
    with open(_open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w", encoding="utf-8") as file:
        file.write(text)
    beside.replace(path)
