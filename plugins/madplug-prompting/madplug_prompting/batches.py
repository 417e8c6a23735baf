"""What a model may offer beside single requests: batches, which a provider answers later and for less."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from madplug import Completion, Model, ModelError, Request


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """What a provider says about a batch."""

    ended: bool
    """Whether there will be no further results: it is complete, failed, expired, was cancelled, or is not there."""
    state: str
    """The provider's own word for it."""
    answered: int = 0
    """Requests that have been answered so far, if the provider says so."""
    expires: float | None = None
    """When the provider gives up on what is not answered by then, in seconds since 1970."""
    crowded: bool = False
    """Whether it was refused because too much is waiting: a smaller one, or a later one, may be taken."""


class BatchSupport(Protocol):
    """A provider's batch interface, as a model offers it by its property `batches`.

    Every method raises the errors of `Model.complete`. A batch is known by the provider's id for it, and by a tag that
    is given to it when it is submitted.
    """

    most_requests: int
    """The most requests in a batch."""
    most_bytes: int
    """The most bytes of a batch, encoded."""
    price: float
    """What an answer costs, as a share of its price outside of a batch."""
    note: str
    """What is otherwise than with single requests, for `madplug check`; empty if there is nothing to say."""

    def encode(self, id: str, request: Request) -> bytes:
        """A request as it is submitted. id: 32 hexadecimal digits, under which its result is found."""

    async def submit(self, requests: Sequence[bytes], tag: str) -> str:
        """Submit encoded requests as a batch that `find` finds by this tag; returns the provider's id."""

    async def find(self, tag: str) -> str | None:
        """The id of the batch that was submitted with this tag, or None if there is none."""

    async def poll(self, batch: str) -> BatchStatus:
        """How far a batch is."""

    def fetch(self, batch: str) -> AsyncIterator[tuple[str, Completion | ModelError]]:
        """What became of the requests of a batch that has ended, by their ids, in any order.

        A request without a result is made again, and so is one with a `TransientError`.
        """

    async def cancel(self, batch: str) -> None:
        """Ask the provider to stop working on a batch; it ends some time later, with what was answered by then."""


def batches_of(model: Model) -> BatchSupport | None:
    """The provider's batch interface, once the model is open, or None if the model offers none."""
    support: BatchSupport | None = getattr(model, "batches", None)
    return support
