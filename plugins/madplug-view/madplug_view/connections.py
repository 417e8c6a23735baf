"""How long a connection may be without a request."""

from __future__ import annotations

import asyncio

from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

IDLE = 20.0
"""Seconds between two looks at a connection."""


class Patience(H11Protocol):
    """Closes a connection on which no request is being answered whenever it looks: one that sends none, or half a one.

    Uvicorn itself gives up only those that send nothing at all after an answer.
    """

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(IDLE, self._look)

    def _look(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        elif not self.transport.is_closing():
            self.loop.call_later(IDLE, self._look)
