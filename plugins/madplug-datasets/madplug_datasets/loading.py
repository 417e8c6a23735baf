"""Rows from the hub or its cache, through the library `datasets`, or from a local file in the hub's columns."""

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
from madplug_files.problems import Report, nearest, problem, refuse
from madplug_files.readers import Numbered, Rows, source


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


class HubRows(Rows):
    """The rows of a data set that the library has loaded, or streams."""

    def __init__(self, data: Any, version: str, where: Where) -> None:
        self._data = data
        self.version = version
        self._where = where

    @property
    def columns(self) -> Mapping[str, Any]:
        """As the data set declares them, else as the first row has them."""
        features = self._data.features
        return dict(features) if features else next((row for _, _, row in self.rows()), {})

    def rows(self, report: Report = refuse) -> Iterator[Numbered]:
        """As they come."""
        with _explained(self._where):
            for i, row in enumerate(self._data):
                yield self._numbered(i, row)

    def count(self) -> int:
        """How many there are: known, or counted."""
        if hasattr(self._data, "__len__"):
            return len(self._data)
        splits = self._data.info.splits or {}
        known = splits.get(str(self._data.split))
        return (known.num_examples if known else 0) or sum(1 for _ in self.rows())

    def at(self, order: Sequence[int], report: Report = refuse) -> Iterator[Numbered]:
        """Those of a stream are kept in memory until the last one has been read."""
        if hasattr(self._data, "__len__"):  # a stream has positions in name only
            with _explained(self._where):
                for i in order:
                    yield self._numbered(i, self._data[i])
            return
        wanted, last = set(order), max(order, default=-1)
        found: dict[int, Numbered] = {}
        for numbered in self.rows() if len(order) else ():
            if (i := numbered[0] - 1) in wanted:
                found[i] = numbered
            if i == last:
                break
        yield from (found[i] for i in order)

    def _numbered(self, i: int, row: Mapping[str, Any]) -> Numbered:
        return i + 1, f"{self._where}: row {i + 1}", row


def load(where: Where) -> Rows:
    """The rows; those of the hub are loaded once in a process.

    A local file is read without the library, which would take texts that look like dates for dates.
    """
    return _from_hub(where) if where.path is None else source(where.path)


@lru_cache(maxsize=16)
def _from_hub(where: Where) -> HubRows:
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
        return HubRows(_undecoded(data, datasets), sha, where)


def _from_cache(where: Where) -> HubRows:
    """What was downloaded earlier; never another commit than the requested one."""
    assert where.id is not None
    with _quiet() as datasets, _offline(datasets):
        try:
            # `load_dataset` would take the latest cached commit; the builder says which one it is.
            builder = datasets.load_dataset_builder(where.id, where.config)
        except (OSError, ValueError):
            raise unreachable(where.id) from None
        found = str(builder.hash)
        if is_commit(where.revision) and found != where.revision:
            raise problem("dataset.revision", f"the hub is out of reach, and the cache has '{where.id}' at {found}, "
                                              f"not at {where.revision}")
        with _explained(where):
            return HubRows(_undecoded(builder.as_dataset(where.split), datasets), found, where)


@contextmanager
def _explained(where: Where) -> Iterator[None]:
    """Turn the library's errors into a `UserError` that says what to do."""
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
    """The library, without progress bars unless standard error is a terminal."""
    import datasets

    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    datasets.logging.set_verbosity_error()
    yield datasets


@contextmanager
def _offline(datasets: Any) -> Iterator[None]:
    """Keep the library from retrying a hub that is known to be out of reach."""
    before = datasets.config.HF_HUB_OFFLINE
    datasets.config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        datasets.config.HF_HUB_OFFLINE = before


def _undecoded(data: Any, datasets: Any) -> Any:
    """The data set with its images left as stored bytes."""
    for name, feature in (data.features or {}).items():
        if isinstance(feature, datasets.Image):
            data = data.cast_column(name, datasets.Image(decode=False))
    return data
