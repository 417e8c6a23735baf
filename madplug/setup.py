"""What a component gets in `prepare`, before the first debate of its cell."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from madplug.cell import Cell
from madplug.checks import check_iterable, method_name, type_error
from madplug.components import AnswerFormat, Service
from madplug.debate import Debate, gather_all, maybe_await
from madplug.errors import ComponentError
from madplug.gateway import Gateway
from madplug.records import Completion, Sample
from madplug.rows import plain
from madplug.store import Store

T = TypeVar("T")
Sampled = tuple[Sample, tuple[str, ...]]


class Setup:
    """What a component gets in `prepare`: the cell, its samples, its models, and a place to keep what was made."""

    def __init__(self, cell: Cell, gateway: Gateway, store: Store, seed: int) -> None:
        self.cell = cell
        self.seed = seed
        self._store = store
        self._desk = Debate(cell, Sample("", ""), road=gateway, repeat=-1, seed=seed, order=-1)
        self.read: dict[str, int] = {}
        """Samples read by components with their references, by split: training use."""

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models that agents use."""
        return self.cell.models

    def service(self, name: str) -> Service:
        """The service of this name in the run file."""
        return self.cell.services[name]

    @property
    def answers(self) -> AnswerFormat:
        """What counts as an answer, and when two answers are the same."""
        return self.cell.answers

    @property
    def spent(self) -> Any:
        """What preparing has used."""
        return self._desk.spent

    async def ask(self, messages: str | Sequence[Mapping[str, Any]], *, purpose: str, model: str | None = None,
                  form: Mapping[str, Any] | None = None, params: Mapping[str, Any] | None = None) -> Completion:
        """Ask a model, as `Debate.ask`."""
        return await self._desk.ask(messages, purpose=purpose, model=model, form=form, params=params)

    async def ask_all(self, asks: Iterable[Awaitable[T]]) -> list[T]:
        """Await several asks concurrently; their results in order."""
        return await gather_all(asks)

    def samples(self, split: str | None = None) -> Iterator[tuple[Sample, tuple[str, ...]]]:
        """The data set's samples with their references, streamed. Reading another split is recorded."""
        if self.cell.dataset is None:
            raise ComponentError("this study has no data set")
        method = method_name(self.cell.dataset, "samples")
        for row in check_iterable(self.cell.dataset.samples(split), f"{method} returned"):
            if split is not None:
                self.read[split] = self.read.get(split, 0) + 1
            yield sampled(row, f"{method} gave")

    async def keep(self, name: str, value: Callable[[], Awaitable[T] | T] | T) -> T:
        """A value that is made once and stored with the study: what is kept under `name`, or `value` from now on.

        name: all cells share it, so it says whatever the value depends on: a digest of options, a model.
        value: something JSON can hold, or a function (plain or async) that makes it.
        """
        kept = self._store.fact(f"kept.{name}")
        if kept is None:
            kept = plain(await maybe_await(value() if callable(value) else value))  # as it will be read back
            await self._store.keep_fact(f"kept.{name}", kept)
        return kept  # type: ignore[no-any-return]


def sampled(row: Any, given: str) -> Sampled:
    """A row of a data set, if it is a sample with its references."""
    match row:
        case (Sample() as sample, list() | tuple() as references) if all(isinstance(r, str) for r in references):
            return sample, tuple(references)
    raise type_error(given, row, "a Sample and a tuple of references as text")


