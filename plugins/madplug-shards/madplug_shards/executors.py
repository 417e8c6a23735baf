"""Executors that run a part of a study: some of its samples, or only what components prepare."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pydantic import Field, model_validator

from madplug import Caller, Executor, Nested, Options, RunPath, Sample, UserError, count, to_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Mapping, Sequence

    from madplug import CellFacts, Completion, Jobs, Model, Request, RunDriver
    from madplug.study import StudyDriver

PREPARED = ("kept.", "trained.")
"""How the names of facts begin that components made in `prepare`."""


class PartOptions(Options):
    """Options of `shards.part`."""

    part: int = Field(ge=1, description="which shard this is, from 1")
    of: int = Field(ge=1, le=999_999, description="how many shards the study is divided into")
    prepared: RunPath | None = Field(default=None, description="a directory in which components were prepared")
    execution: Nested[Executor] | None = Field(default=None, description="where the debates run; by default in the "
                                               "process that was started")

    @model_validator(mode="after")
    def _is_one_of_them(self) -> PartOptions:
        if self.part > self.of:
            raise ValueError(f"there are only {count(self.of, 'shard')}, and this is number {self.part}")
        return self


class Part(Executor):
    """Runs one shard of a study: some of the samples, with every cell and repeat of them.

    A sample is always in the same shard, whatever the order of the data, and one that is presented twice is in one
    shard with its pair. Every shard needs a directory of its own; `madplug merge` makes one study of all of them. What
    components made and asked in `prepare` is taken from `prepared`, if it is given.
    """

    name = "part"

    Options = PartOptions

    @property
    def part(self) -> str:
        """Which shard this is."""
        return f"{self.options.part}-of-{self.options.of}"

    def includes(self, sample: Sample) -> bool:
        """Whether a sample is in this shard."""
        name = sample.metadata.get("pair", sample.id)
        digest = blake2b(str(name).encode("utf-8", "replace"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.options.of == self.options.part - 1

    def check(self, cell: CellFacts) -> Iterable[str]:
        """What the executor in `execution` finds."""
        return () if self.options.execution is None else self.options.execution.check(cell)

    def notes(self, cells: Sequence[CellFacts], models: Mapping[str, Model]) -> Iterable[str]:
        """What the executor in `execution` has to say."""
        return () if self.options.execution is None else self.options.execution.notes(cells, models)

    async def begin(self, driver: RunDriver) -> None:
        """Take over what components prepared elsewhere."""
        if self.options.prepared is not None:
            await copy_prepared(cast("StudyDriver", driver), self.options.prepared)
        if self.options.execution is not None:
            await self.options.execution.begin(driver)

    def answer(self, model: Model, request: Request, caller: Caller, key: str) -> Completion | Awaitable[Completion]:
        """Have a request answered as the executor in `execution` does."""
        inner = self.options.execution
        return model.complete(request) if inner is None else inner.answer(model, request, caller, key)

    async def run(self, jobs: Jobs, driver: RunDriver) -> None:
        """Run the debates of this shard."""
        await (jobs.run() if self.options.execution is None else self.options.execution.run(jobs, driver))


class Preparation(Executor):
    """Prepares the components of a study and runs no debate.

    Some components ask models or read data before the first debate (a calibration, say). Shards that name the study's
    directory as `prepared` use what was made there, so that it is paid for once and the same in all of them.
    """

    name = "preparation"

    @property
    def part(self) -> str:
        """No debate is in this part."""
        return "prepared"

    def includes(self, sample: Sample) -> bool:
        """No debate is in this part."""
        return False

    async def run(self, jobs: Jobs, driver: RunDriver) -> None:
        """Run nothing: the components are prepared by now."""


async def copy_prepared(driver: StudyDriver, folder: Path) -> None:
    """Copy what components made in `prepare`, and the calls they made for it. Raises `UserError` for another study."""
    from madplug.store import CallRow, open_study
    from madplug.study import conflicts
    from madplug_shards.copying import facts_of

    recorder = driver.recorder
    with open_study(folder) as study:
        if found := conflicts(study.fact("identity") or {}, recorder.fact("identity")):
            raise UserError(f"prepared: {folder} was made for other settings: {'; '.join(found)}")
        for name, value in facts_of(folder).items():
            if name.startswith(PREPARED):
                await recorder.keep_fact(name, value)
        for row in study.calls():
            call = study.call(row["key"]) if row["sample"] == "" else None
            if call is not None and recorder.call(row["key"]) is None:
                caller = Caller(row["cell"], row["repeat"], "", row["agent"], row["purpose"], round=row["round"],
                                nth=row["nth"])
                await recorder.keep_call(CallRow(bytes.fromhex(row["key"]), caller, row["model"],
                                                 to_json(row["request"])), call)
