"""Rows through the library `datasets`: from the hub, from its cache, or from a local file."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from madplug import UserError
from madplug_datasets.reach import commit, gated, is_commit, unreachable
from madplug_files.columns import nearest, problem

KINDS = {".jsonl": "json", ".ndjson": "json", ".json": "json", ".csv": "csv", ".tsv": "csv",
         ".parquet": "parquet", ".pq": "parquet"}


@dataclass(frozen=True)
class Where:
    """What to load."""

    id: str | None
    config: str | None
    split: str
    revision: str | None
    files: tuple[str, ...]
    streaming: bool
    path: Path | None

    def __str__(self) -> str:
        return str(self.path) if self.path else f"{self.id}, {self.split}"


class Rows:
    """The rows of one split, by position from 0."""

    def __init__(self, data: Any, version: str) -> None:
        self._data = data
        self.version = version
        """The commit they are from; empty for a local file."""

    @property
    def columns(self) -> Mapping[str, Any]:
        """The columns there are, as the keys."""
        features = self._data.features
        return dict(features) if features else next((row for _, row in self), {})

    def __iter__(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        return iter(enumerate(self._data))

    def count(self) -> int:
        """How many there are: known, or counted."""
        if hasattr(self._data, "__len__"):
            return len(self._data)
        splits = self._data.info.splits or {}
        known = splits.get(str(self._data.split)) if self.version else None
        return (known.num_examples if known else 0) or sum(1 for _ in self)

    def at(self, positions: Sequence[int]) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """These rows, in this order. Of a stream, they are held until the last one has come."""
        if hasattr(self._data, "__len__"):  # a stream has positions in name only
            yield from ((i, self._data[i]) for i in positions)
            return
        wanted, last = set(positions), max(positions, default=-1)
        held: dict[int, Mapping[str, Any]] = {}
        for i, row in self if positions else ():
            if i in wanted:
                held[i] = row
            if i == last:
                break
        yield from ((i, held[i]) for i in positions)


def load(where: Where) -> Rows:
    """The rows; loaded once in a process, as long as nothing changes."""
    if where.path is None:
        return _from_hub(where)
    try:
        state = where.path.stat()
    except OSError:
        beside = sorted(p.name for p in where.path.parent.glob("*") if p.suffix in KINDS)
        raise problem(str(where.path), f"there is no such file{nearest(where.path.name, beside)}") from None
    return _from_file(where, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=16)
def _from_file(where: Where, changed: int, size: int) -> Rows:
    path = where.path
    assert path is not None
    kind = KINDS.get(path.suffix.lower())
    if kind is None or not size:
        what = f"has the ending '{path.suffix}'; expected {', '.join(KINDS)}" if size else "holds no rows"
        raise problem(str(path), what)
    more = {"delimiter": "\t"} if path.suffix.lower() == ".tsv" else {}
    with _quiet() as datasets, _explained(where):
        data = datasets.load_dataset(kind, data_files=str(path), split="train", streaming=where.streaming, **more)
        return Rows(_undecoded(data, datasets), "")


@lru_cache(maxsize=16)
def _from_hub(where: Where) -> Rows:
    assert where.id is not None
    sha = commit(where.id, where.revision)
    if sha is None and where.streaming:
        raise problem("dataset.streaming", f"the hub is out of reach, and '{where.id}' can only be streamed from it")
    if sha is None:
        return _from_cache(where)
    with _quiet() as datasets, _explained(where):
        more = {"data_files": {where.split: list(where.files)}} if where.files else {}
        data = datasets.load_dataset(where.id, where.config, split=where.split, revision=sha,
                                     streaming=where.streaming, **more)
        return Rows(_undecoded(data, datasets), sha)


def _from_cache(where: Where) -> Rows:
    """What an earlier study downloaded; never of another commit than the one that is asked for."""
    assert where.id is not None
    with _quiet() as datasets, _offline(datasets):
        try:
            # The cache tells commits apart only when the builder is made by hand: by name it takes the latest.
            builder = datasets.load_dataset_builder(where.id, where.config)
        except (OSError, ValueError):
            raise unreachable(where.id) from None
        found = str(builder.hash)
        if is_commit(where.revision) and found != where.revision:
            raise problem("dataset.revision", f"the hub is out of reach, and the cache has '{where.id}' at {found}, "
                                              f"not at {where.revision}")
        with _explained(where):
            return Rows(_undecoded(builder.as_dataset(where.split), datasets), found)


@contextmanager
def _explained(where: Where) -> Iterator[None]:
    """Turns the library's errors into what to do about them."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise explain(where, error) from error


def explain(where: Where, error: Exception) -> UserError:
    """What an error of the library means for the run file."""
    text = " ".join(str(error.__cause__ or error).split())
    if "gated dataset" in str(error) and where.id:
        return gated(where.id)
    if "scripts are no longer supported" in text:
        return problem("dataset.id", f"'{where.id}' is a program that makes the data, which is not run; its converted "
                                     "rows may be under revision = \"refs/convert/parquet\"")
    for option, wanted in (("config", where.config), ("split", where.split)):
        words = {"config": ("BuilderConfig", "Config name is missing"), "split": ("Unknown split", "Bad split")}
        if any(word in text for word in words[option]):
            there = re.findall(r"'([^']+)'", text.partition("[")[2])
            known = f" (it has {', '.join(there)})" if there else ""
            return problem(f"dataset.{option}", f"'{where.id}' has no {option} '{wanted}'"
                           f"{nearest(wanted or '', there)}{known}" if wanted
                           else f"'{where.id}' has several configs; name one{known}")
    return problem(str(where), f"cannot be read: {text:.300}")


@contextmanager
def _quiet() -> Iterator[Any]:
    """The library, without progress bars where nobody watches them."""
    import datasets

    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    datasets.logging.set_verbosity_error()
    yield datasets


@contextmanager
def _offline(datasets: Any) -> Iterator[None]:
    """Keeps the library from trying the hub again and again, once it is known to be out of reach."""
    before = datasets.config.HF_HUB_OFFLINE
    datasets.config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        datasets.config.HF_HUB_OFFLINE = before


def _undecoded(data: Any, datasets: Any) -> Any:
    """The rows with images as the bytes they are stored as."""
    for name, feature in (data.features or {}).items():
        if isinstance(feature, datasets.Image):
            data = data.cast_column(name, datasets.Image(decode=False))
    return data
