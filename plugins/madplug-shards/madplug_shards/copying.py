"""Copying the records of several studies into one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from madplug import UserError
from madplug.store import open_recorder, open_study

NAME = "study.db"
_LAST = "SELECT (SELECT coalesce(max(number), 0) FROM debates), (SELECT coalesce(max(number), 0) FROM contents)"
"""The greatest number of a debate and of a call so far."""
_ENDED = "SELECT number FROM shard.debates WHERE outcome IS NOT NULL"
_COPIED = {"facts", "problems", "calls", "contents", "debates", "messages", "changes"}
"""The tables that are copied, each in its own way, but for facts, which are the caller's."""


def facts_of(folder: Path) -> dict[str, Any]:
    """Every fact of a study, by name."""
    with open_study(folder) as study:
        return {name: study.fact(name) for name, in [*study.rows("SELECT name FROM facts ORDER BY name")]}


def copy_records(folders: Sequence[Path], output: Path) -> None:
    """Copy the calls, and the debates that have ended, of some studies into a new one.

    A call that several of them have is copied once. Raises `UserError` if two of them have the same debate.
    """
    open_recorder(output).close()  # makes its tables
    with closing(sqlite3.connect(output / NAME, isolation_level=None, uri=True)) as db:
        tables = {name for name, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert tables == _COPIED, "a table of the store is not merged"
        for folder in folders:
            open_study(folder).close()  # checks what is in it
            _copy(db, folder)


def _copy(db: sqlite3.Connection, folder: Path) -> None:
    try:
        db.execute("ATTACH ? AS shard", (f"{(folder / NAME).resolve().as_uri()}?mode=ro",))
    except sqlite3.Error as error:
        raise UserError(f"{folder}: cannot be merged: {error}") from None
    try:
        offset, calls_before = db.execute(_LAST).fetchone()
        db.execute("BEGIN IMMEDIATE")
        _refuse_overlap(db, folder)
        calls = ", ".join(_columns(db, "calls")[1:])
        db.execute(f"INSERT OR IGNORE INTO calls (number, {calls}) SELECT number + ?, {calls} FROM shard.calls "
                   "ORDER BY number", (calls_before,))
        contents = ", ".join(_columns(db, "contents")[2:])
        db.execute(f"INSERT INTO contents (number, base, {contents}) SELECT number + ?, base + ?, {contents} "
                   "FROM shard.contents ORDER BY number", (calls_before, calls_before))
        debates = ", ".join(_columns(db, "debates")[1:])
        db.execute(f"INSERT INTO debates (number, {debates}) SELECT number + ?, {debates} FROM shard.debates "
                   "WHERE outcome IS NOT NULL ORDER BY number", (offset,))
        db.execute("INSERT INTO messages (debate, id, reply, record) SELECT debate + ?, id, reply + ?, record "
                   f"FROM shard.messages WHERE debate IN ({_ENDED}) ORDER BY debate, id", (offset, calls_before))
        db.execute(f"INSERT INTO changes (tick, debate) SELECT NULL, number + ? FROM ({_ENDED} ORDER BY number)",
                   (offset,))
        db.execute("INSERT INTO problems SELECT at, text FROM shard.problems")
        db.execute("COMMIT")
    except sqlite3.Error as error:
        raise UserError(f"{folder}: cannot be merged: {error}") from None
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")
        db.execute("DETACH shard")


def _columns(db: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in db.execute(f"PRAGMA main.table_info({table})")]


def _refuse_overlap(db: sqlite3.Connection, folder: Path) -> None:
    twice = db.execute("SELECT cell, repeat, sample FROM shard.debates NATURAL JOIN "
                       "(SELECT cell, repeat, sample FROM main.debates) WHERE outcome IS NOT NULL LIMIT 1").fetchone()
    if twice:
        raise UserError(f"{folder}: has a debate that another directory has too: cell '{twice[0]}', repeat {twice[1]}, "
                        f"sample '{twice[2]}'")
