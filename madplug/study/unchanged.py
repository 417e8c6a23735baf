"""Which data need not be read again: they are as they were when every debate on them was on record.

The study's record has, by cell, a stamp of the data and the number of its samples. It is written at the end of a run
that leaves nothing to do, and removed before a run that reads the data, so that it never outlives a change.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from madplug.components import Dataset
from madplug.debate.cell import Cell
from madplug.rows import to_json
from madplug.store import Recorder
from madplug.study.survey import chooses_samples

FACT = "unchanged"


class Unchanged:
    """The cells of a run whose data are known to be as they were."""

    def __init__(self, cells: Sequence[Cell], repeats: int, recorder: Recorder) -> None:
        self._repeats = repeats
        self._recorder = recorder
        self._datasets = {cell.slug: cell.dataset for cell in cells if cell.dataset and not chooses_samples(cell)}
        self._stamps = self._stamped()
        fact = recorder.fact(FACT)
        before = fact if isinstance(fact, dict) else {}
        counts = recorder.done_counts() if before else {}
        self._known = {slug: before[slug] for slug, stamp in self._stamps.items() if stamp and slug in before
                       and all(before[slug] == [stamp, counts.get((slug, n))] for n in range(repeats))}

    @property
    def cells(self) -> Collection[str]:
        """The cells of which nothing is left, so that their data need not be read."""
        return self._known.keys()

    async def begin(self) -> None:
        """Before the first debate: remove what may not be true once a debate has been run."""
        await self._keep(self._known)

    async def conclude(self) -> None:
        """After a run that has read all the data, and has left out no debate on record."""
        counts, failed = self._recorder.done_counts(), {id.cell for id in self._recorder.failed()}
        ended = {slug: {counts.get((slug, n), 0) for n in range(self._repeats)} for slug in self._stamps}
        await self._keep({slug: [stamp, *ended[slug]] for slug, stamp in self._stamped().items()
                          if stamp and stamp == self._stamps[slug] and slug not in failed and len(ended[slug]) == 1})

    async def _keep(self, known: Mapping[str, Any]) -> None:
        if known != (self._recorder.fact(FACT) or {}):
            await self._recorder.keep_fact(FACT, known)

    def _stamped(self) -> dict[str, str]:
        made = {id(dataset): stamp(dataset) for dataset in self._datasets.values()}
        return {slug: made[id(dataset)] for slug, dataset in self._datasets.items()}


def stamp(dataset: Dataset) -> str:
    """What identifies the samples of a data set without reading them, or "" if nothing does.

    It covers the data's fingerprint, every option and the source files that read them. Images may come from files that
    the fingerprint does not cover.
    """
    if dataset.has_images:
        return ""
    try:
        fingerprint, code = dataset.fingerprint(), _sources(type(dataset), type(dataset.options))
    except Exception:  # the pass over the data will say what is wrong with them
        return ""
    if not fingerprint or not code:
        return ""
    content = to_json([fingerprint, dataset.to_table(), code])
    return blake2b(content.encode(), digest_size=16).hexdigest()


def _sources(*kinds: type) -> list[tuple[str, int, int]]:
    """Each source file of the packages that classes and their bases come from, with its size and time of change.

    Empty if some of it is in no file.
    """
    files: set[Path] = set()
    for name in {base.__module__ for kind in kinds for base in kind.__mro__}:
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names and top != "__main__":
            continue
        own, package = (getattr(sys.modules.get(one), "__file__", None) for one in (name, top))
        if own is None:
            return []
        if package is not None and Path(package).name == "__init__.py":
            files.update(Path(package).parent.rglob("*.py"))
        files.add(Path(own))
    return [(str(path), state.st_size, state.st_mtime_ns) for path in sorted(files) if (state := path.stat())]
