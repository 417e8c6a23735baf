"""The worker, as an actor."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from madplug_workers import WorkerEnd


class RayWorker:
    """Runs the debates of one driver. Makes nothing before its first method is called, on the actor's event loop."""

    _end: WorkerEnd

    async def begin(self) -> None:
        """Make the worker's end of the protocol."""
        from madplug_workers import WorkerEnd

        self._out: list[bytes] = []
        self._sent = asyncio.Event()
        self._end = WorkerEnd(self._send)

    def _send(self, data: bytes) -> None:
        self._out.append(data)
        self._sent.set()

    async def deliver(self, batches: list[bytes]) -> None:
        """Take what the driver sends."""
        for data in batches:
            self._end.receive(data)

    async def collect(self) -> list[bytes]:
        """What the worker has sent since the last call; waits for it."""
        await self._sent.wait()
        self._sent.clear()
        out, self._out = self._out, []
        return out
