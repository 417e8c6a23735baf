"""What a component gets in `prepare`, before the first debate of its cell."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar, overload

from madplug.aio import gather_all, maybe_await
from madplug.components import AnswerFormat
from madplug.context import Debate, find_service
from madplug.debate.checks import check_iterable, check_sample, method_name, type_error
from madplug.debate.composition import component_to_table, identity_of, names_of
from madplug.errors import ComponentError
from madplug.records import Completion, Sample
from madplug.rows import plain, to_json

if TYPE_CHECKING:  # plugins import this module; what a study runs with is imported once one runs
    from madplug.calls.driver import Driver
    from madplug.debate.cell import Cell
    from madplug.debate.state import ModelClient, Spending

T = TypeVar("T")
Sampled = tuple[Sample, tuple[str, ...]]


class Setup:
    """The argument of `Component.prepare`: the cell, its samples, its models, and values stored with the study."""

    def __init__(self, cell: Cell, client: ModelClient, driver: Driver, seed: int) -> None:
        from madplug.debate.state import DebateState

        self._state = DebateState(cell, Sample("", ""), client=client, emit=driver.tell, repeat=-1, seed=seed,
                                  order=-1)
        self._debate = Debate(self._state)
        self._driver = driver
        self._read: dict[str, int] = {}

    @property
    def cell(self) -> Cell:
        """The configuration that is being prepared."""
        return self._state.cell

    @property
    def seed(self) -> int:
        """The study's seed."""
        return self._state.seed

    @property
    def training_use(self) -> Mapping[str, int]:
        """How many samples components have read with their references, by split."""
        return self._read

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models that agents use."""
        return self.cell.models

    @overload
    def service(self, name: str) -> Any: ...

    @overload
    def service(self, name: str, protocol: Callable[..., T]) -> T: ...  # type[T] takes no protocol

    def service(self, name: str, protocol: Any = None) -> Any:
        """The service of this name in the run file, as `Debate.service`."""
        return find_service(self.cell.services, name, protocol)

    @property
    def answers(self) -> AnswerFormat:
        """What counts as an answer, and when two answers are the same."""
        return self.cell.answers

    @cached_property
    def metric_digests(self) -> Mapping[str, str]:
        """A digest of each metric's options and of the models and services they name, by the name of its scores."""
        content = {name: [component_to_table(metric, volatile=False), metric.content,
                          *map(self.model_identity, names_of(metric, "model")),
                          *(identity_of(self.cell.services[service]) for service in names_of(metric, "service"))]
                   for name, metric in self.cell.metrics.items()}
        return {name: blake2b(to_json(value).encode(), digest_size=8).hexdigest() for name, value in content.items()}

    def model_identity(self, name: str | None = None) -> str:
        """What a model of this cell is, whatever the run file calls it; for the names of values that depend on it.

        Its options that are not volatile, and its code if it is in a local file. name: by default the first agent's.
        """
        chosen = name or next(iter(self.models), "")
        return self._state.client.identity(self.cell.slug, chosen) if chosen else ""

    @property
    def spent(self) -> Spending:
        """Calls, tokens and cost (US dollars) of preparing this cell so far."""
        return self._state.spent

    async def ask(self, messages: str | Sequence[Mapping[str, Any]], *, purpose: str, model: str | None = None,
                  form: Mapping[str, Any] | None = None, params: Mapping[str, Any] | None = None) -> Completion:
        """Ask a model, as `Debate.ask`."""
        return await self._debate.ask(messages, purpose=purpose, model=model, form=form, params=params)

    async def ask_all(self, asks: Iterable[Awaitable[T]]) -> list[T]:
        """Await several asks concurrently and return their results in order."""
        return await gather_all(asks)

    def samples(self, split: str | None = None) -> Iterator[tuple[Sample, tuple[str, ...]]]:
        """The data set's samples with their references, streamed.

        split: another part of the data set. How many of its samples are read is recorded as training use.
        """
        if self.cell.dataset is None:
            raise ComponentError("this cell has no data set")
        method = method_name(self.cell.dataset, "samples")
        for row in check_iterable(self.cell.dataset.samples(split), f"{method} returned"):
            if split is not None:
                self._read[split] = self._read.get(split, 0) + 1
            yield sampled(row, f"{method} gave")

    async def keep(self, name: str, value: Callable[[], Awaitable[T] | T] | T) -> T:
        """A value that is made once and stored with the study: the one stored under `name`, or else `value`.

        name: shared by all cells, so it has to include whatever the value depends on: a digest of options, a model.
        value: a JSON value, or a function (plain or async) that makes one.
        """
        kept = await self._driver.recall(f"kept.{name}")
        if kept is None:
            kept = plain(await maybe_await(value() if callable(value) else value))  # as it will be read back
            await self._driver.remember(f"kept.{name}", kept)
        return kept  # type: ignore[no-any-return]


def sampled(row: Any, given: str) -> Sampled:
    """The row of a data set, if it is a sample with its references."""
    match row:
        case (Sample() as sample, list() | tuple() as references) if all(isinstance(r, str) for r in references):
            return check_sample(sample, given), tuple(references)
    raise type_error(given, row, "a Sample and a tuple of references as text")


