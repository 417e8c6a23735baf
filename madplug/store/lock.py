"""The lock that lets only one process at a time write to a study."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path

from madplug.errors import UserError

NAME = "study.lock"
_ASKED = 0.05
"""Seconds after which the lock is tried once more: `is_running` has it for a moment."""


class StudyLock:
    """An exclusive lock on a study's directory; the system releases it however the process ends.

    Two locks, because neither works everywhere: one on the directory itself, which cannot be removed by mistake and
    moves with it, and one in `study.lock` for systems that cannot lock directories (Windows, some network disks).
    """

    def __init__(self, folder: Path) -> None:
        self._handle: int | None = None
        self._file: sqlite3.Connection | None = None
        try:
            self._lock_folder(folder)
            self._lock_file(folder)
        except BaseException:  # also an interrupt: nobody else would release it
            self.release()
            raise

    def release(self) -> None:
        """Let another process write."""
        if self._file is not None:
            self._file.close()
        if self._handle is not None:
            os.close(self._handle)
        self._file = self._handle = None

    def _lock_folder(self, folder: Path) -> None:
        try:
            import fcntl
        except ImportError:  # Windows, where a locked file cannot be removed either
            return
        self._handle = os.open(folder, os.O_RDONLY)
        os.register_at_fork(after_in_child=self._forget)
        try:
            with suppress(BlockingIOError):
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(_ASKED)
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _refusal(folder) from None
        except OSError:  # this file system does not lock directories
            return

    def _forget(self) -> None:
        """A forked child must not hold on to the lock when its parent ends."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _lock_file(self, folder: Path) -> None:
        try:
            self._file = sqlite3.connect(folder / NAME, timeout=0, isolation_level=None)
            self._file.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            if "locked" in str(error):
                raise _refusal(folder) from None
            raise UserError(f"{folder}: cannot be used: {NAME}: {error}; remove it if no process runs this study, or "
                            "choose another directory with --output") from None


def is_running(folder: Path) -> bool | None:
    """Whether a process is writing to a study; None where the system cannot tell."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(handle)


def _refusal(folder: Path) -> UserError:
    return UserError(f"{folder}: another process is running this study; wait for it, or stop it")
