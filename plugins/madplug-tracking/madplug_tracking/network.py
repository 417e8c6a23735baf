"""Records on their way to a receiver that may be slow, gone for a while, or gone for good."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Condition, Thread
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from madplug import MadplugError, Observer, Options, StudyError, Volatile, message_of, redact

if TYPE_CHECKING:
    from madplug import Run

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds between two attempts at a delivery: twice as many after each, up to the most."""


class RejectedError(MadplugError):
    """The receiver will never take these records; another attempt would not help."""


class NetworkOptions(Options):
    """Options of every observer that reports over a network."""

    queue: Annotated[int, Volatile] = Field(default=10_000, ge=1, description=(
        "the most records that wait to be delivered; further ones are not delivered"))
    patience: Annotated[float, Volatile] = Field(default=25.0, ge=0, le=28, description=(
        "seconds in which what still waits may be delivered after the study has ended; an observer has 30"))


@dataclass
class Ledger:
    """What became of the records so far."""

    taken: int = 0
    """All of them."""
    delivered: int = 0
    rejected: int = 0
    """Those that the receiver will never take."""
    dropped: int = 0
    """Those for which there was no room in the queue."""
    error: str = ""
    """Why the latest attempt failed."""

    @property
    def missing(self) -> int:
        """How many were not delivered, or not yet."""
        return self.taken - self.delivered


class NetworkObserver(Observer):
    """An observer that hands its records to a receiver over a network.

    A subclass calls `put` with a record in the methods of its events, and delivers records in `send`, which runs in a
    thread of its own. A delivery that fails is attempted again, with growing pauses, for as long as the study runs and
    `patience` afterwards: a receiver that is back takes what has waited for it, in order. What was not delivered
    is counted, and a problem of the study.
    """

    Options = NetworkOptions
    batch: ClassVar[int] = 100
    """The most records that `send` gets at once."""
    _thread: Thread | None = None

    @abstractmethod
    def send(self, records: Sequence[Any]) -> None:
        """Deliver records, and return when the receiver has them.

        It may block; set a limit of seconds for each request. Raises `RejectedError` where another attempt would not
        help, and any other error where it might.
        """

    def open(self, run: Run) -> Any:
        """Start delivering. A subclass with an `open` of its own calls this one."""
        self.ledger = Ledger()
        self._records: deque[Any] = deque()
        self._changed = Condition()
        self._closing = self._given_up = False
        # A daemon, so that a receiver that never answers does not keep the program from ending.
        self._thread = Thread(target=self._deliver_all, name=f"observer {self.full_name}", daemon=True)
        self._thread.start()

    def put(self, record: Any) -> None:
        """Have a record delivered; it is counted as dropped if too many wait already."""
        with self._changed:
            self.ledger.taken += 1
            if len(self._records) >= self.options.queue:
                self.ledger.dropped += 1
                return
            self._records.append(record)
            self._changed.notify()

    async def close(self) -> None:
        """Wait for what is left. Raises `StudyError` if records were not delivered."""
        from asyncio import sleep

        if self._thread is None:  # it was never open
            return
        deadline = time.monotonic() + self.options.patience
        with self._changed:
            self._closing = True
            self._changed.notify()
        try:
            while self._thread.is_alive() and time.monotonic() < deadline:  # noqa: ASYNC110 - a thread sets no event
                await sleep(0.01)
        finally:  # also if the host has less time than `patience`
            self._give_up()

    def _give_up(self) -> None:
        with self._changed:
            self._given_up = True
            self._changed.notify()
            if self.ledger.missing:
                raise StudyError(describe(self.ledger))

    def _deliver_all(self) -> None:
        """Deliver batch after batch, until nothing is left after the end."""
        while batch := self._next_batch():
            pause = FIRST_PAUSE
            while not self._deliver(batch):
                with self._changed:
                    self._changed.wait_for(lambda: self._given_up, pause)
                    if self._given_up:
                        return
                pause = min(2 * pause, LONGEST_PAUSE)

    def _next_batch(self) -> list[Any]:
        with self._changed:
            self._changed.wait_for(lambda: self._records or self._closing or self._given_up)
            if self._given_up:
                return []
            return [self._records.popleft() for _ in range(min(self.batch, len(self._records)))]

    def _deliver(self, batch: Sequence[Any]) -> bool:
        """One attempt; whether no other is needed."""
        try:
            self.send(batch)
        except RejectedError as error:
            with self._changed:
                self.ledger.rejected += len(batch)
                self.ledger.error = str(error)
            return True
        except Exception as error:
            with self._changed:
                self.ledger.error = message_of(error, 300)
            return False
        with self._changed:
            self.ledger.delivered += len(batch)
        return True


def describe(ledger: Ledger) -> str:
    """How many records were not delivered, and why, without secrets."""
    left = ledger.missing - ledger.rejected - ledger.dropped
    why = [f"{left} without success in time" if left else "",
           f"{ledger.rejected} rejected" if ledger.rejected else "",
           f"{ledger.dropped} beyond the queue" if ledger.dropped else ""]
    said = f"; the last error: {redact(ledger.error)}" if ledger.error else ""
    return f"{ledger.missing} of {ledger.taken} records were not delivered: {', '.join(filter(None, why))}{said}"
