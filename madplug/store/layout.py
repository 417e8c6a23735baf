"""The tables of `study.db`, and how the file is opened: for writing by one process, for reading by any number."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from madplug.errors import UserError, listed, nearest

NAME = "study.db"
VERSION = 6
_APPLICATION = 0x6D616470  # "madp", in the header of the file
_BESIDE = ("-wal", "-shm", "-journal")
"""The endings of the files that SQLite keeps beside a database."""
_TABLES = {
    "facts": "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "problems": "CREATE TABLE problems (at REAL NOT NULL, text TEXT NOT NULL)",
    # Only numbers, so that adding up millions of calls reads no text; that is in `contents`, under the same number.
    "calls": "CREATE TABLE calls (number INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, cell TEXT, repeat INTEGER,"
             " sample TEXT, agent INTEGER, purpose TEXT, round INTEGER, nth INTEGER, model TEXT,"
             " prompt INTEGER NOT NULL, completion INTEGER NOT NULL, cached INTEGER NOT NULL,"
             " reasoning INTEGER NOT NULL, cost_usd REAL, retries INTEGER NOT NULL, seconds REAL NOT NULL,"
             " at REAL NOT NULL)",
    # `request` is compressed; `base` is the number of the request that is its dictionary.
    "contents": "CREATE TABLE contents (number INTEGER PRIMARY KEY, base INTEGER, raw TEXT, logprobs TEXT,"
                " text TEXT NOT NULL, request BLOB NOT NULL)",
    # `outcome` is NULL while a debate runs; `decided` is 2 if agents failed in a debate that has an answer.
    "debates": "CREATE TABLE debates (number INTEGER PRIMARY KEY, cell TEXT NOT NULL,"
               " repeat INTEGER NOT NULL, sample TEXT NOT NULL, digest TEXT NOT NULL, outcome TEXT, error TEXT,"
               " decided INTEGER, agreed INTEGER, rounds INTEGER, messages INTEGER, calls INTEGER, retries INTEGER,"
               " prompt INTEGER, completion INTEGER, cached INTEGER, cost_usd REAL, seconds REAL, metrics TEXT,"
               " opening TEXT NOT NULL, agents TEXT, record TEXT, UNIQUE (cell, repeat, sample))",
    # A long `record` is compressed; `reply` is the number of the call whose text is its dictionary.
    "messages": "CREATE TABLE messages (debate INTEGER, id INTEGER, reply INTEGER, record NOT NULL,"
                " UNIQUE (debate, id))",
    # Which debates changed, in order, for `Reader.since`: cheaper to write than an index of what changed.
    "changes": "CREATE TABLE changes (tick INTEGER PRIMARY KEY, debate INTEGER NOT NULL)",
}


def create_tables(db: sqlite3.Connection) -> None:
    """Make the tables of an empty study."""
    db.executescript(f"BEGIN; {';'.join(_TABLES.values())}; PRAGMA application_id={_APPLICATION};"
                     f" PRAGMA user_version={VERSION}; COMMIT;")


def has_study(folder: Path) -> bool:
    """Whether there are records of a study in a directory. Raises `OSError` if that cannot be told."""
    return (folder / NAME).is_file()


def find_studies(folders: Iterable[Path]) -> list[Path]:
    """These directories, in place of one that has no study the directories in it that have one."""
    found: list[Path] = []
    for folder in folders:
        below: list[Path] = []
        with suppress(OSError):
            below = [] if has_study(folder) else [path for path in sorted(folder.iterdir()) if has_study(path)]
        found += below or [folder]
    return found


def make_folder(folder: Path) -> None:
    """Create a directory durably (fsync its parents); SQLite does the same for the files in it."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        _sync_folder(path.parent)


def open_for_writing(folder: Path) -> sqlite3.Connection:
    """Open the study in a directory, or create one. Raises `UserError` if it cannot be used."""
    path = folder / NAME
    db = None
    try:
        db = sqlite3.connect(path, isolation_level=None)
        _distrust(db)
        if not _check(db, folder):
            db.execute("PRAGMA journal_mode=WAL")
            create_tables(db)
        return db
    except (*_UNREADABLE, OSError, UserError) as error:
        if db:
            db.close()
        if isinstance(error, UserError):
            raise
        raise UserError(f"{folder}: cannot be used: {error}; choose another directory with --output") from None


_UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
"""What damage raises: SQLite's own errors, and names in the schema that are not text."""


def open_for_reading(folder: Path) -> sqlite3.Connection:
    """Open the study in a directory, which may be untrusted, may be running, and may be on a read-only disk."""
    path = folder / NAME
    try:
        if not path.is_file():
            inside, others = ([p.parent.name for p in sorted(f.glob(f"*/{NAME}"))] for f in (folder, folder.parent))
            near = f"; name one of the studies in it: {listed(inside)}" if inside else nearest(folder.name, others)
            raise UserError(f"{folder}: no study here (there is no {NAME}){near}")
    except OSError as error:  # a directory of somebody else, a name that is too long
        raise UserError(f"{str(folder)!r:.200}: cannot be read: {error.strerror}") from None
    for ending in _BESIDE:  # SQLite would wait for whoever writes into a pipe
        beside = path.resolve().with_name(NAME + ending)
        if os.path.lexists(beside) and not stat.S_ISREG(beside.lstat().st_mode):
            raise UserError(f"{folder}: {NAME} cannot be read: {beside.name} is not a regular file")
    wal = path.with_name(NAME + "-wal")
    more = ""
    while True:
        try:
            return _open_reading(path, more)
        except _UNREADABLE as error:
            # A write-ahead file cannot be created on a read-only disk; if there is none, nothing is missed.
            read_only = any(text in str(error) for text in ("unable to open", "readonly"))
            if more or not read_only or (wal.exists() and wal.stat().st_size):
                raise UserError(f"{folder}: {NAME} cannot be read: {error}" + (
                    "; copy the directory to a disk that can be written to" if read_only else "")) from None
            more = "&immutable=1"


def _open_reading(path: Path, more: str) -> sqlite3.Connection:
    db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro{more}", uri=True, isolation_level=None, timeout=30)
    try:
        db.execute("PRAGMA query_only=ON")
        _distrust(db)
        if not _check(db, path.parent):
            raise UserError(f"{path.parent}: no study here yet ({NAME} is empty)")
    except BaseException:  # also an interrupt: nobody else would close it
        db.close()
        raise
    return db


def _distrust(db: sqlite3.Connection) -> None:
    """The file may be untrusted: nothing in its schema is executed, and damage is an error instead of nonsense."""
    for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0"):
        db.execute(f"PRAGMA {pragma}").fetchall()


def _check(db: sqlite3.Connection, folder: Path) -> bool:
    """Whether it contains a study; raises `UserError` for another layout, or a file that madplug did not make."""
    version = db.execute("PRAGMA user_version").fetchone()[0]
    found = {(name, table): (kind, sql) for kind, name, table, sql in
             db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")}
    if not found and version == 0:
        return False
    if version > VERSION:
        raise UserError(f"{folder}: made by a newer madplug (layout {version}, this one knows {VERSION}); "
                        "upgrade madplug to use it")
    if 0 < version < VERSION:
        raise UserError(f"{folder}: made by an older madplug (layout {version}, this one knows {VERSION}); use that "
                        "one, or run the study again in another directory")
    if version != VERSION or db.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
        raise UserError(f"{folder}: {NAME} is not a study of madplug")
    wrong = [name for name in _TABLES if found.get((name, name), ("", ""))[1] != _TABLES[name]]
    wrong += [name for (name, table), (kind, sql) in found.items()
              if table in _TABLES and name not in _TABLES and (sql or kind == "trigger")]
    if wrong:
        raise UserError(f"{folder}: {NAME} is not as madplug made it: '{wrong[0]}' is missing, changed or added")
    return True


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # not every system lets a directory be opened
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
