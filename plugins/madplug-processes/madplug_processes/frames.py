"""Batches of bytes over a stream: each is preceded by its length, in eight bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

_LENGTH = 8


class FrameProtocol(asyncio.Protocol):
    """Sends and receives batches over a connected socket."""

    def __init__(self, receive: Callable[[bytes], None], disconnected: Callable[[], None]) -> None:
        self._receive = receive
        self._disconnected = disconnected
        self._parts: list[bytes] = []
        self._size = 0
        self._wanted = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is connected."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=1 << 26)

    def send(self, data: bytes) -> None:
        """Send a batch; ignored once the connection has ended."""
        if not self._transport.is_closing():
            self._transport.writelines((len(data).to_bytes(_LENGTH, "big"), data))

    def data_received(self, data: bytes) -> None:
        """Pass on every batch that is complete; parts are joined once, however many there are."""
        self._parts.append(data)
        self._size += len(data)
        while self._size >= max(self._wanted, _LENGTH):
            whole = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            end = _LENGTH + int.from_bytes(whole[:_LENGTH], "big")
            if self._size < end:
                self._parts, self._wanted = [whole], end
                return
            self._parts, self._size, self._wanted = [whole[end:]], self._size - end, 0
            self._receive(whole[_LENGTH:end])

    def connection_lost(self, exc: Exception | None) -> None:
        """The other end is gone."""
        self._disconnected()

    def abort(self) -> None:
        """End the connection at once."""
        self._transport.abort()

    def close(self) -> None:
        """End the connection once everything is sent."""
        self._transport.close()
