"""Committing writes in batches."""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Optional

from typing_extensions import override

from madplug.errors import StudyError
from madplug.store.layout import NAME

LINGER = 0.25
"""Seconds that rows without a waiter may stay uncommitted, so that they share the commit of the next call."""
BUSY = 30.0
"""Seconds to wait for another program that has locked the file."""
Statement = tuple[str, Sequence[Any]]
"""SQL with its values."""
_Waiting = asyncio.Future[None]
_Write = tuple[Sequence[Statement], Optional[_Waiting]]  # noqa: UP045 - evaluated on Python 3.10


class Writer:
    """Commits each write at once, on this thread: for a database in memory.

    A failure to write is final: what was queued after it is refused, so that the record has no gaps.
    """

    def __init__(self, db: sqlite3.Connection, folder: Path) -> None:
        self._db = db
        self._folder = folder
        self._error: StudyError | None = None

    def write(self, *statements: Statement) -> _Waiting:
        """Queue statements that are committed together or not at all; the future is done when they are durable."""
        waiting = asyncio.get_running_loop().create_future()
        self._put((statements, waiting))
        return waiting

    def queue(self, *statements: Statement) -> None:
        """Queue statements without waiting. Raises `StudyError` if an earlier write failed."""
        if self._error is not None:
            raise self._error
        self._put((statements, None))

    def stop(self) -> None:
        """Commit what is queued, and end."""

    def _put(self, write: _Write) -> None:
        _wake(self._commit([write]), self._error)

    def _check(self) -> None:
        """Raise `StudyError` if what was just committed is not where a later run will look for it."""

    def _commit(self, batch: Sequence[_Write]) -> list[_Waiting]:
        """Commit a batch, and return what waits for it."""
        try:
            if self._error is None:
                self._db.execute("BEGIN IMMEDIATE")
                for statements, _ in batch:
                    for sql, values in statements:
                        self._db.execute(sql, values)
                self._db.execute("COMMIT")
                self._check()
        except Exception as error:  # whatever it is, those who wait must be woken
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            self._error = error if isinstance(error, StudyError) else StudyError(
                f"{self._folder}: cannot write: {error}; everything before this is saved; make room and run the "
                "same command to resume")
        return [waiting for _, waiting in batch if waiting is not None]


class DiskWriter(Writer):
    """Commits what is queued on a thread, everything that was queued during its last commit as one transaction."""

    def __init__(self, folder: Path) -> None:
        path = folder / NAME
        super().__init__(sqlite3.connect(path, isolation_level=None, timeout=BUSY, check_same_thread=False), folder)
        self._queue: queue.SimpleQueue[list[_Write] | None] = queue.SimpleQueue()
        self._gathered: list[_Write] = []
        self._db.execute("PRAGMA synchronous=FULL")
        self._files = {os.fspath(path): _identity(path)}
        if self._db.execute("PRAGMA journal_mode").fetchone()[0] == "wal":  # some network disks cannot
            self._files[f"{path}-wal"] = None
        self._thread = threading.Thread(target=self._run, name="madplug-store", daemon=True)
        self._thread.start()

    @override
    def stop(self) -> None:
        self._hand_over()
        self._queue.put(None)
        self._thread.join()

    @override
    def _put(self, write: _Write) -> None:
        self._gathered.append(write)
        if len(self._gathered) > 1:
            return
        try:  # one batch for everything that this step of the loop writes
            asyncio.get_running_loop().call_soon(self._hand_over)
        except RuntimeError:
            self._hand_over()

    def _hand_over(self) -> None:
        if self._gathered:
            gathered, self._gathered = self._gathered, []
            self._queue.put(gathered)

    def _run(self) -> None:
        going = True
        while going:
            batch, going = self._next()
            if batch and (waiting := self._commit(batch)):
                with suppress(RuntimeError):  # the loop is closed, so nothing is waiting any more
                    waiting[0].get_loop().call_soon_threadsafe(_wake, waiting, self._error)
        self._db.close()

    def _next(self) -> tuple[list[_Write], bool]:
        """What to commit now, and whether more may come."""
        batch: list[_Write] = []
        awaited = False
        while True:
            try:
                items = self._queue.get(timeout=LINGER if batch else None)
            except queue.Empty:
                return batch, True
            if items is None:
                return batch, False
            batch += items
            awaited = awaited or any(waiting for _, waiting in items)
            if awaited and self._queue.empty():
                return batch, True

    @override
    def _check(self) -> None:
        for path, opened in self._files.items():
            found = _identity(path)
            if opened is None:  # the write-ahead file is made with the first commit
                self._files[path] = found
            if found is None or found != (opened or found):
                raise StudyError(f"{path} was deleted, moved or replaced while the study was running; what was "
                                 "recorded since then is lost; put it back, or start again in another directory")


def _identity(path: str | Path) -> tuple[int, int] | None:
    """Identifies a file, so that a replacement with the same name is noticed."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _wake(waiting: Sequence[_Waiting], error: StudyError | None) -> None:
    for one in waiting:
        if not one.done():
            one.set_exception(error) if error else one.set_result(None)
