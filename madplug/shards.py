"""Parts of a study that are run apart: each has its share of the samples, with every cell and repeat of them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from madplug.config import ResolvedStudy
from madplug.context import Sampled
from madplug.errors import UserError
from madplug.records import Caller, Sample
from madplug.rows import plain, to_json
from madplug.store import CallRow, Recorder, open_study
from madplug.store.merge import facts_of
from madplug.study.compatibility import conflicts
from madplug.study.jobs import samples_of
from madplug.study.setup import CellSetup
from madplug.study.survey import check_rows

FACT = "shard"
KEPT = ("kept.", "trained.")
"""How the names of facts begin that components made in `prepare`."""


@dataclass(frozen=True)
class Shard:
    """One of several parts. A sample is always in the same one, whatever the order of the data."""

    number: int
    """From 1; 0 for the part without samples, in which components are only prepared."""
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """The shard written as `3/16`."""
        found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
        number, of = map(int, found.groups()) if found else (0, 0)
        if not 1 <= number <= of:
            raise UserError(f"--shard {text}: expected I/N with I from 1 to N, such as 3/16")
        return cls(number, of)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def suffix(self) -> str:
        """What is added to the name of the study's directory."""
        return f".{self.number}-of-{self.of}" if self.number else ".prepared"

    def has(self, sample: Sample) -> bool:
        """Whether a sample is in this part; one that is presented twice is in one part with its pair."""
        name = sample.metadata.get("pair", sample.id)
        digest = blake2b(str(name).encode("utf-8", "replace"), digest_size=8).digest()
        return self.number > 0 and int.from_bytes(digest, "big") % self.of == self.number - 1

    async def samples(self, setup: CellSetup, repeat: int) -> AsyncIterator[Sampled]:
        """The samples of a cell that are in this part."""
        if self.number == 0:
            return
        async for sample, references in samples_of(setup, repeat):
            if self.has(sample):
                yield sample, references

    def planned(self, resolved: ResolvedStudy) -> int | None:
        """How many debates this part has, or None if an extension chooses samples. Reads and checks every sample."""
        counts: dict[int, int] = {}
        for cell in resolved.plan.cells:
            if cell.dataset is not None and id(cell.dataset) not in counts:
                check_rows(cell.dataset)
                counts[id(cell.dataset)] = sum(self.has(row[0]) for row in cell.dataset.samples())
        if any(hasattr(e, "madplug_samples") for cell in resolved.plan.cells for e in cell.extensions):
            return None if self.number else 0
        return sum(counts[id(cell.dataset)] for cell in resolved.plan.cells if cell.dataset) * resolved.plan.repeats

    async def begin(self, resolved: ResolvedStudy, recorder: Recorder, prepared: Path | None) -> None:
        """Record which part this is, and what components prepared elsewhere."""
        if self.number:
            await recorder.keep_fact(FACT, {"number": self.number, "of": self.of})
        if prepared is not None:
            await copy_prepared(resolved, recorder, prepared)


def check_shard(shard: Shard | None, recorder: Recorder, folder: Path) -> None:
    """Refuse a directory that has another part of the study in it, or all of it."""
    has, begun = recorder.fact(FACT), recorder.fact("identity") is not None
    if has is not None and not (isinstance(has, dict) and {"number", "of"} <= has.keys()):
        raise UserError(f"{folder}: study.db: the record of the fact '{FACT}' cannot be read: it does not say which "
                        "shard it is")
    before = f"shard {has['number']}/{has['of']}" if has else "the whole study"
    now = f"shard {shard}" if shard is not None and shard.number else "the whole study"
    if begun and before != now:
        raise UserError(f"{folder}: contains {before} and not {now}; choose another directory with --output")


async def copy_prepared(resolved: ResolvedStudy, recorder: Recorder, folder: Path) -> None:
    """Copy what components made in `prepare`, and the calls they made for it. Raises `UserError` for another study."""
    with open_study(folder) as study:
        if found := conflicts(study.fact("identity") or {}, plain(resolved.identity)):
            raise UserError(f"--prepared {folder}: was made for other settings: {'; '.join(found)}")
        for name, value in facts_of(folder).items():
            if name.startswith(KEPT):
                await recorder.keep_fact(name, value)
        for row in study.calls():
            if row["sample"] == "" and (call := study.call(row["key"])) is not None:
                await recorder.keep_call(_request(row), call)


def _request(row: Mapping[str, Any]) -> CallRow:
    """The request of an exported call that was made in `prepare`."""
    caller = Caller(row["cell"], row["repeat"], "", row["agent"], row["purpose"], round=row["round"], nth=row["nth"])
    return CallRow(bytes.fromhex(row["key"]), caller, row["model"], to_json(row["request"]))
