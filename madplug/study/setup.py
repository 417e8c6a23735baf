"""The setup of a cell: what its components are prepared with before the first debate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import override

from madplug.component import code_of, identity_of, names_of
from madplug.context import Sampled, Setup
from madplug.debate.checks import check_iterable, check_sample, method_name, type_error
from madplug.errors import ComponentError
from madplug.records import Completion, Form, Sample
from madplug.rows import to_json

if TYPE_CHECKING:  # plugins import this module; what a study runs with is imported once one runs
    from madplug.calls.driver import Driver
    from madplug.debate.cell import Cell
    from madplug.debate.state import ModelClient

T = TypeVar("T")


class CellSetup(Setup):
    """What the components of a cell are prepared with; it asks models through a debate without a question."""

    def __init__(self, cell: Cell, client: ModelClient, driver: Driver, seed: int) -> None:
        from madplug.debate.state import DebateState

        self._state = DebateState(cell, Sample("", ""), client=client, emit=driver.tell, repeat=-1, seed=seed,
                                  order=-1)
        self.cell: Cell = cell
        self.seed, self.spent = seed, self._state.spent
        self.training_use: dict[str, int] = {}
        """How many samples components have read with their references, by split."""

    @cached_property
    def metric_digests(self) -> Mapping[str, str]:
        """A digest of each metric's options, of its code, and of the models and services it names, by the name of its
        scores."""
        content = {name: [metric.to_table(volatile=False), metric.content or code_of(type(metric).__module__),
                          *map(self.model_identity, names_of(metric, "model")),
                          *(identity_of(self.cell.services[service]) for service in names_of(metric, "service"))]
                   for name, metric in self.cell.metrics.items()}
        return {name: blake2b(to_json(value).encode(), digest_size=8).hexdigest() for name, value in content.items()}

    @override
    def model_identity(self, name: str | None = None) -> str:
        chosen = name or next(iter(self.models), "")
        return self._state.client.identity(self.cell.slug, chosen) if chosen else ""

    @override
    async def ask(self, messages: str | Sequence[Mapping[str, Any]], *, purpose: str, model: str | None = None,
                  form: Form | None = None, params: Mapping[str, Any] | None = None) -> Completion:
        return await self._state.ask(messages, purpose=purpose, model=model, form=form, params=params)

    @override
    def samples(self, split: str | None = None) -> Iterator[Sampled]:
        if self.cell.dataset is None:
            raise ComponentError("this cell has no data set")
        method = method_name(self.cell.dataset, "samples")
        for row in check_iterable(self.cell.dataset.samples(split), f"{method} returned"):
            if split is not None:
                self.training_use[split] = self.training_use.get(split, 0) + 1
            yield sampled(row, f"{method} gave")

    @override
    async def keep(self, name: str, value: Callable[[], Awaitable[T] | T] | T) -> T:
        return await self._state.client.keep(name, value)


def sampled(row: Any, given: str) -> Sampled:
    """The row of a data set, if it is a sample with its references."""
    match row:
        case (Sample() as sample, list() | tuple() as references) if all(isinstance(r, str) for r in references):
            return check_sample(sample, given), tuple(references)
    raise type_error(given, row, "a Sample and a tuple of references as text")
