"""Several samples in one request: requests that differ in nothing but their seeds are sent as one, with `n`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from madplug import Completion, ModelError, Request
from madplug_openai.bodies import parse, text_of
from madplug_openai.chat import Chat, encode

if TYPE_CHECKING:
    from madplug_openai.client import Client

GATHER = 0.02
"""Seconds that a request waits for others like it; what a debate asks at the same time comes sooner."""
Waiting = list[tuple[Request, "asyncio.Future[Completion]"]]


class Samples:
    """The requests that wait for others like them. most: samples in one request."""

    def __init__(self, chat: Chat, client: Client, most: int) -> None:
        self._chat, self._client, self._most = chat, client, most
        self._waiting: dict[bytes, Waiting] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ignored = False
        """Whether the endpoint has given fewer samples than it was asked for."""

    async def complete(self, request: Request) -> Completion:
        """One of the samples that a request for several gives, with its share of the usage."""
        loop = asyncio.get_running_loop()
        alike = encode({**self._chat.body(request), "seed": None})
        if alike not in self._waiting:
            self._waiting[alike] = []
            loop.call_later(GATHER, self._send, alike, self._waiting[alike])
        waiting = self._waiting[alike]
        answered: asyncio.Future[Completion] = loop.create_future()
        waiting.append((request, answered))
        if len(waiting) == self._most:
            self._send(alike, waiting)
        return await answered

    def _send(self, alike: bytes, waiting: Waiting) -> None:
        if self._waiting.get(alike) is waiting:
            del self._waiting[alike]
            task = asyncio.ensure_future(self._answer(waiting))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, waiting: Waiting) -> None:
        outcomes: Sequence[Completion | BaseException]
        try:
            outcomes = await self._outcomes([request for request, _ in waiting])
        except Exception as error:
            outcomes = [error] * len(waiting)
        for (_, answered), outcome in zip(waiting, outcomes, strict=True):
            if answered.done():  # its debate was given up
                continue
            if isinstance(outcome, BaseException):
                answered.set_exception(outcome)
            else:
                answered.set_result(outcome)

    async def _outcomes(self, requests: Sequence[Request]) -> list[Completion | BaseException]:
        if len(requests) == 1 or self._ignored:
            return await asyncio.gather(*map(self._chat.ask, requests), return_exceptions=True)
        reply = await self._client.post(encode({**self._chat.body(requests[0]), "n": len(requests)}))
        whole = parse(text_of(reply.body)) if reply.good else None
        if not isinstance(whole, Mapping) or not isinstance(whole.get("choices"), list) or not whole["choices"]:
            return [self._chat.read(*reply)] * len(requests)  # raises what is wrong
        found = [self._read(request, part(whole, number, len(requests)))
                 for number, request in enumerate(requests[:len(whole["choices"])])]
        return [*found, *await self._ask_others(requests, len(found))]

    def _read(self, request: Request, reply: Mapping[str, Any]) -> Completion | BaseException:
        try:
            return self._chat.read(200, {}, orjson.dumps(reply), tools="tools" in request.params)
        except ModelError as error:
            return error

    async def _ask_others(self, requests: Sequence[Request], answered: int) -> list[Completion | BaseException]:
        """Those that an endpoint has left out, one by one; it will not be asked for several again."""
        if answered == len(requests):
            return []
        if not self._ignored:
            logging.getLogger(__name__).warning(
                "model '%s': the endpoint gave %d of %d samples (`n`), so that samples_per_request saves nothing",
                self._chat.options.model, answered, len(requests))
        self._ignored = True
        return await self._outcomes(requests[answered:])


def part(reply: Mapping[str, Any], number: int, of: int) -> dict[str, Any]:
    """The reply that has one of the choices alone, and an equal share of the usage."""
    choices = reply["choices"]
    shares = min(of, len(choices))
    usage = {**_share(reply.get("usage") or {}, number, shares, 2), "samples": shares}
    return {**reply, "choices": [choices[number]], "usage": usage}


def _share(value: Any, number: int, of: int, levels: int) -> Any:
    """A share of every number in an account, so that the shares add up; details of details are left out."""
    if isinstance(value, Mapping):
        return {name: _share(inner, number, of, levels - 1) for name, inner in value.items()} if levels else {}
    if isinstance(value, float):
        return value / of
    return value // of + (number < value % of) if type(value) is int else value
