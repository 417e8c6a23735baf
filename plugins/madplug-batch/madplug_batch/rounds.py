"""`batch.rounds`: one batch for each round of all debates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from pydantic import Field

from madplug import (
    Caller,
    CellFacts,
    Completion,
    Executor,
    Model,
    Options,
    Request,
    Style,
    TurnOrder,
    Visibility,
)
from madplug_prompting.batches import batches_of

if TYPE_CHECKING:
    from madplug import Cell, Jobs, RunDriver
    from madplug.study import StudyDriver
    from madplug_batch.collector import Collector


class RoundsOptions(Options):
    """Options of `batch.rounds`."""

    requests: int = Field(default=50_000, ge=1, le=1_000_000, description=(
        "the most requests that wait for each model at the same time"))
    poll: float = Field(default=30.0, gt=0, le=3600, description=(
        "seconds until a batch is looked at again; grows up to ten times as long"))
    patience: float = Field(default=5.0, ge=0, le=3600, description=(
        "seconds that a batch waits for debates that have no request in it, because they wait for another debate's or "
        "for a service"))
    max_steps: int = Field(default=12, ge=1, description=(
        "the most batches of a debate that follow one another, each of which may take a day"))
    detach: bool = Field(default=False, description=(
        "stop as soon as everything that can be asked is with the provider; a later run goes on"))
    live_below: int = Field(default=0, ge=0, le=1_000_000, description=(
        "fewer requests than this are not worth the wait of a batch: they are sent one by one, at the full price"))


def steps(facts: CellFacts) -> int:
    """About how many batches the debates of a cell take, one after the other."""
    cell = cast("Cell", facts)
    plan, speaking = cell.plan, (TurnOrder, Style, Visibility)
    waves = sum(cell.turns.steps(plan.agents, n) for n in range(1, plan.rounds + 1))
    others = sum(component.calls(plan) > 0 for component in cell.components() if not isinstance(component, speaking))
    return waves * plan.per_turn + others


class Rounds(Executor):
    """Sends the requests of all debates together, as batches, which providers answer within a day for half the price.

    A batch is sent when no open debate can go on without a reply, so that one round of all debates is one batch. This
    is for every model that has a batch interface, such as `openai.chat`; other models are asked as usual. What was
    sent is stored with the study before it is sent: a run that was interrupted or killed, also in a directory that was
    moved since, goes on with the batches that are under way and pays for nothing twice.
    """

    name = "rounds"
    Options = RoundsOptions
    _collector: Collector | None = None

    def check(self, cell: CellFacts) -> Iterable[str]:
        """Not more steps than the user has thought of."""
        found = steps(cell)
        if found > self.options.max_steps:
            yield (f"the debates of cell '{cell.slug}' take up to {found} batches one after the other, each of which "
                   f"may take a day; set execution.max_steps = {found} if that is meant, or let agents speak at the "
                   "same time")

    def notes(self, cells: Sequence[CellFacts], models: Mapping[str, Model]) -> Iterable[str]:
        """How many batches follow one another, and what is otherwise in batches."""
        yield from (f"model '{name}': {support.note}" for name, model in models.items()
                    if (support := batches_of(model)) is not None and support.note)
        for cell in cells:
            found = steps(cell)
            yield (f"cell '{cell.slug}': up to {found} {'batch' if found == 1 else 'batches'} one after the other, "
                   "each answered within a day")

    async def begin(self, driver: RunDriver) -> None:
        """Find the batches under way, and make room for many requests."""
        from madplug_batch.collector import Collector

        driver = cast("StudyDriver", driver)
        batched = [name for name, model in driver.models.items() if batches_of(model) is not None]
        if not batched:
            driver.warn("batch.rounds: no model has a batch interface, so every request is sent by itself")
        for name in batched:
            driver.widen(name, self.options.requests)
        self._collector = Collector(self.options, driver)
        await self._collector.open()

    async def answer(self, model: Model, request: Request, caller: Caller, key: str) -> Completion:
        """Put a request into the next batch, if the model has batches."""
        if self._collector is None or batches_of(model) is None:
            return await model.complete(request)
        return await self._collector.answer(model, request, caller, key)

    async def run(self, jobs: Jobs, driver: RunDriver) -> None:
        """Run the debates in this process."""
        assert self._collector is not None
        try:
            await jobs.run()
        finally:
            await self._collector.close()
