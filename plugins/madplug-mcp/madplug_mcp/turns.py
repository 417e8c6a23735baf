"""What the model of the client is asked: turns, which the client takes by a tool."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from typing import Any

from madplug import Observer, Request, UserError, plain, to_json

NAME = "client"
SLOT: Mapping[str, Any] = {"use": "mcp.client", "price": {"prompt": 0.0, "completion": 0.0}}
"""The slot of the seat: it costs the server nothing."""


class Turns:
    """What waits for the client in one debate."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[Request, asyncio.Future[str]]] = {}
        self._opened = asyncio.Event()

    async def take(self, request: Request) -> str:
        """The client's answer to a request."""
        id = blake2b(to_json([request.seed, request.messages]).encode(), digest_size=6).hexdigest()
        self._open[id] = request, asyncio.get_running_loop().create_future()
        self._opened.set()
        try:
            return await self._open[id][1]
        finally:
            del self._open[id]
            if not self._open:
                self._opened.clear()

    async def opened(self) -> None:
        """Wait until something waits for the client."""
        await self._opened.wait()

    def first(self) -> dict[str, Any] | None:
        """What has waited longest: the turn, and the messages of a model."""
        waiting = ((id, request) for id, (request, answer) in self._open.items() if not answer.done())
        return next(({"turn": id, "messages": plain(request.messages)} for id, request in waiting), None)

    def answer(self, turn: str, text: str) -> None:
        """Give an answer. Raises `UserError` if the turn does not wait for one."""
        if turn not in self._open or self._open[turn][1].done():
            raise UserError(f"the turn '{turn}' does not wait for an answer; call `result` to see what does")
        self._open[turn][1].set_result(text)


current: ContextVar[Turns | None] = ContextVar("madplug_mcp_turns", default=None)
"""The turns of the debate that runs in this task."""


class ClientSeats:
    """The turns of all debates of a server."""

    def __init__(self) -> None:
        self._of: dict[str, Turns] = {}

    def of(self, debate: str) -> Turns:
        """The turns of a debate."""
        return self._of.setdefault(debate, Turns())

    @contextmanager
    def around(self, debate: str) -> Iterator[Sequence[Observer]]:
        """While a debate runs, its requests to the client are turns of it."""
        token = current.set(self.of(debate))
        try:
            yield ()
        finally:
            current.reset(token)
