"""The driver's side: a connection to the cluster, and actors with the bytes to and from them.

Ray is asked for as little as possible: to place actors, to call their methods in order, and to say when one is gone. It
restarts none and retries nothing, because it cannot know which calls of a debate are on record; the pool does.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError

from madplug import StudyError
from madplug_ray.worker import RayWorker
from madplug_workers import WorkerLost

PATIENCE = 30.0
"""Seconds that a cluster has to accept a connection."""
CONCURRENCY = 100
"""Methods of an actor that may run at the same time: one waits for what the worker sends, one delivers."""


@asynccontextmanager
async def connected(address: str) -> AsyncIterator[None]:
    """Be connected to a cluster. Raises `StudyError` if there is none at the address."""
    if ray.is_initialized():  # by the program that runs the study
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        await _check_listening(address)
        await asyncio.to_thread(ray.init, address, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # a node that does not start in time raises just that
        why = str(error) or f"it did not answer within {PATIENCE:g} s"
        if address == "local":
            raise StudyError(f"ray.cluster: Ray could not be started here: {why}") from None
        raise StudyError(f"ray.cluster: no cluster at address '{address}': {why}; start one with `ray start --head`, "
                         "or use address = \"local\"") from None
    with suppress(ValueError):  # not outside the main thread
        signal.signal(signal.SIGTERM, before)
    try:
        yield
    finally:
        await asyncio.to_thread(ray.shutdown)


async def _check_listening(address: str) -> None:
    """Raises `OSError` if nothing can be connected to at host:port: Ray would try for minutes, and end the process."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdigit() and "/" not in host:
        _, writer = await asyncio.wait_for(asyncio.open_connection(host.strip("[]"), int(port)), PATIENCE)
        writer.close()


class Actors:
    """Starts workers as actors."""

    def __init__(self, cpus: float, resources: Mapping[str, float]) -> None:
        others = {name: amount for name, amount in resources.items() if name != "GPU"}
        self._wanted = {"CPU": cpus, **resources}
        cluster: Any = ray  # its own types are incomplete
        self._make = cluster.remote(RayWorker).options(
            num_cpus=cpus, num_gpus=resources.get("GPU", 0), resources=others, scheduling_strategy="SPREAD",
            max_restarts=0, max_task_retries=0, max_concurrency=CONCURRENCY)

    def most(self) -> int:
        """For how many workers the cluster has room now, at least one."""
        there: Mapping[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call, unused-ignore]
        return max(1, min((int(there.get(name, 0) // n) for name, n in self._wanted.items() if n), default=1))

    async def start(self, number: int, receive: Callable[[bytes], None], lost: Callable[[str], None]) -> Actor:
        """Start an actor, and wait until it is placed."""
        handle: Any = self._make.remote()
        try:
            await handle.begin.remote()
        except asyncio.CancelledError:
            ray.kill(handle)
            raise
        except RayActorError as error:  # with its node, or because this distribution is missing there
            reason = f"was lost ({_reason(error)})"
            lost(reason)
            raise WorkerLost(reason) from None
        return Actor(handle, receive, lost)


class Actor:
    """One actor, and the bytes to and from it."""

    def __init__(self, handle: Any, receive: Callable[[bytes], None], lost: Callable[[str], None]) -> None:
        self._handle = handle
        self._receive = receive
        self._lost: Callable[[str], None] | None = lost
        self._out: list[bytes] = []
        self._delivering: asyncio.Task[None] | None = None
        self._collecting = asyncio.ensure_future(self._collect())

    def send(self, data: bytes) -> None:
        """Send a batch, after those before it."""
        self._out.append(data)
        if self._delivering is None:
            self._delivering = asyncio.ensure_future(self._deliver())

    async def _deliver(self) -> None:
        try:
            while self._out:
                batches, self._out = self._out, []
                await self._handle.deliver.remote(batches)
        except RayError as error:
            self._report(error)
        else:
            self._delivering = None

    async def _collect(self) -> None:
        """Receive what the worker sends, one call after the other, so that it arrives once and in order."""
        try:
            while True:
                for data in await self._handle.collect.remote():
                    self._receive(data)
        except RayError as error:
            self._report(error)
        except Exception as error:  # what the actor sends from here on could not be understood either
            self._report(error)
            with suppress(RayError, ValueError):
                ray.kill(self._handle)

    def _report(self, error: Exception) -> None:
        """The actor is gone; said once."""
        lost, self._lost = self._lost, None
        if lost is not None:
            lost(f"was lost ({_reason(error)})")

    async def end(self) -> None:
        """The worker has closed what it had opened."""
        self.kill()

    def kill(self) -> None:
        """End the actor at once."""
        self._lost = None
        self._collecting.cancel()
        if self._delivering is not None:
            self._delivering.cancel()
        with suppress(RayError, ValueError):
            ray.kill(self._handle)


def _reason(error: Exception) -> str:
    """An error of Ray in one line."""
    if isinstance(error, RayActorError):
        found = [line.strip() for line in str(error).splitlines() if line.strip()]
        return next((line for line in reversed(found) if "Error" in line or "died" in line), found[-1])[:300]
    return " ".join(str(error).split())[:300]
