"""A study's records: `open_study` reads a directory, `open_recorder` writes to one, `MemoryStore` needs none.

Rows are made in `recorder`, committed in `writer`, and read in `reading`; `layout` has their tables.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from madplug._lazy import lazy_names
from madplug.errors import UserError

if TYPE_CHECKING:
    from madplug.records import DebateId
    from madplug.store.base import (
        EDITED,
        Call,
        CallFigures,
        CallRow,
        CellOverview,
        Changes,
        DebateProgress,
        Outcome,
        Totals,
    )
    from madplug.store.encode import sample_digest
    from madplug.store.layout import find_studies, has_study
    from madplug.store.lock import StudyLock, is_running
    from madplug.store.reading import Reader
    from madplug.store.recorder import MemoryStore, Recorder
    from madplug.store.scope import SCOPE, Scope

__all__ = [
    "EDITED", "SCOPE", "Call", "CallFigures", "CallRow", "CellOverview", "Changes", "DebateId", "DebateProgress",
    "MemoryStore", "Outcome", "Reader", "Recorder", "Scope", "StudyLock", "Totals", "find_studies",
    "has_study", "is_running", "open_recorder", "open_study", "sample_digest",
]

# Each is imported when it is first used: a plugin that can open a study need not import what that takes.
if not TYPE_CHECKING:  # so that a type checker knows a name that does not exist
    __getattr__, __dir__ = lazy_names(globals())


def open_study(folder: Path | str, *, everything: bool = False) -> Reader:
    """Open a study's directory for reading, also while it runs; use the reader in a `with` block.

    everything: also the debates of cells, repeats and samples that the latest run file no longer has. The directory
    need not be trusted: nothing in it is executed, and nothing is written but SQLite's own `-wal` and `-shm`. Raises
    `UserError` if there is no study in it, or none that this version can read.
    """
    from madplug.store.layout import open_for_reading
    from madplug.store.reading import Reader

    folder = Path(folder)
    return Reader(folder, open_for_reading(folder), everything=everything)


def open_recorder(folder: Path | str) -> Recorder:
    """Open a study's directory for writing; it is created if it does not exist.

    Raises `UserError` if it cannot be used, or if another process is running the study.
    """
    from madplug.store.layout import make_folder, open_for_writing
    from madplug.store.lock import StudyLock
    from madplug.store.recorder import Recorder
    from madplug.store.writer import DiskWriter

    folder = Path(folder)
    try:
        make_folder(folder)
        lock = StudyLock(folder)
    except OSError as error:
        raise UserError(f"{folder}: cannot be used: {error}; choose another directory with --output") from None
    try:
        return Recorder(folder, open_for_writing(folder), lambda: DiskWriter(folder), lock)
    except BaseException:  # also an interrupt: nobody else would release it
        lock.release()
        raise
