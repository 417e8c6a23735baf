"""Committing writes in batches."""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Optional

from typing_extensions import override

from madplug.errors import ComponentError, StudyError
from madplug.store.layout import NAME

LINGER = 0.25
"""Seconds that rows without a waiter may stay uncommitted, so that they share the commit of the next call."""
BUSY = 30.0
"""Seconds to wait for another program that has locked the file."""
Row = Sequence[Any]
_REFUSED = (sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError, sqlite3.DataError, OverflowError,
            ValueError)
"""What SQLite raises for a value that it cannot store; any other error means that it cannot write at all."""


class Write(NamedTuple):
    """Rows and statements that are committed together or not at all."""

    name: object
    """What they belong to, for an error: its text is put together only then."""
    rows: Sequence[tuple[str, Row]] = ()
    """Each with its INSERT; they may be inserted before the statements of earlier writes."""
    statements: Sequence[tuple[str, Row]] = ()


_Waiting = asyncio.Future[None]
_Item = tuple[Write, Optional[_Waiting]]  # noqa: UP045 - evaluated on Python 3.10


class Writer:
    """Commits each write at once, on this thread: for a database in memory.

    A failure to write is final: what was queued after it is refused, so that the record has no gaps.
    """

    def __init__(self, db: sqlite3.Connection, folder: Path) -> None:
        self._db = db
        self._folder = folder
        self._error: StudyError | None = None

    def write(self, write: Write) -> _Waiting:
        """Queue a write; the future is done when it is durable."""
        waiting = asyncio.get_running_loop().create_future()
        self._put((write, waiting))
        return waiting

    def queue(self, write: Write) -> None:
        """Queue a write without waiting. Raises `StudyError` if an earlier one failed."""
        if self._error is not None:
            raise self._error
        self._put((write, None))

    def stop(self) -> None:
        """Commit what is queued, and end."""

    def _put(self, item: _Item) -> None:
        _wake(self._commit([item]))

    def _check(self) -> None:
        """Raise `StudyError` if what was just committed is not where a later run will look for it."""

    def _commit(self, batch: Sequence[_Item]) -> list[tuple[_Waiting, Exception | None]]:
        """Commit a batch; return its waiters, each with the error to raise there, if any."""
        refused: dict[int, Exception] = {}
        try:
            if self._error is None:
                try:
                    self._commit_all([write for write, _ in batch])
                except _REFUSED:
                    self._db.execute("ROLLBACK")
                    refused = self._commit_each(batch)
                self._check()
        except Exception as error:  # whatever it is, the waiters must be woken
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            self._error = error if isinstance(error, StudyError) else StudyError(
                f"{self._folder}: cannot write: {error}; everything before this is saved; make room and run the "
                "same command to resume")
        return [(waiting, self._error or refused.get(i)) for i, (_, waiting) in enumerate(batch) if waiting is not None]

    def _commit_all(self, writes: Sequence[Write]) -> None:
        """Commit all writes at once, which nearly always works."""
        self._db.execute("BEGIN IMMEDIATE")
        self._insert([row for write in writes for row in write.rows])
        for write in writes:
            for sql, values in write.statements:
                self._db.execute(sql, values)
        self._db.execute("COMMIT")

    def _insert(self, rows: Iterable[tuple[str, Row]]) -> None:
        by_insert: dict[str, list[Row]] = {}
        for sql, row in rows:
            by_insert.setdefault(sql, []).append(row)
        for sql, found in by_insert.items():
            self._db.executemany(sql, found)

    def _commit_each(self, batch: Sequence[_Item]) -> dict[int, Exception]:
        """Commit the writes one by one; return the errors of those that are refused, by position in the batch."""
        refused: dict[int, Exception] = {}
        self._db.execute("BEGIN IMMEDIATE")
        for i, (write, waiting) in enumerate(batch):
            self._db.execute("SAVEPOINT one")
            try:
                self._insert(write.rows)
                for sql, values in write.statements:
                    self._db.execute(sql, values)
            except _REFUSED as error:
                if waiting is None:
                    raise
                refused[i] = ComponentError(f"{write.name} cannot be recorded: {error}")
                self._db.execute("ROLLBACK TO one")
            self._db.execute("RELEASE one")
        self._db.execute("COMMIT")
        return refused


class DiskWriter(Writer):
    """Commits what is queued on a thread, everything that was queued during its last commit as one transaction."""

    def __init__(self, folder: Path) -> None:
        path = folder / NAME
        super().__init__(sqlite3.connect(path, isolation_level=None, timeout=BUSY, check_same_thread=False), folder)
        self._queue: queue.SimpleQueue[list[_Item] | None] = queue.SimpleQueue()
        self._gathered: list[_Item] = []
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
    def _put(self, item: _Item) -> None:
        self._gathered.append(item)
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
            if told := self._commit(batch) if batch else None:
                with suppress(RuntimeError):  # the loop is closed, so nothing is waiting any more
                    told[0][0].get_loop().call_soon_threadsafe(_wake, told)
        self._db.close()

    def _next(self) -> tuple[list[_Item], bool]:
        """What to commit now, and whether more may come."""
        batch: list[_Item] = []
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


def _wake(told: Sequence[tuple[asyncio.Future[None], Exception | None]]) -> None:
    for waiting, error in told:
        if not waiting.done():
            waiting.set_exception(error) if error else waiting.set_result(None)
