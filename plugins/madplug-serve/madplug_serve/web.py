"""The endpoint: routes, authorisation, and replies whole or streamed."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from aiohttp import web

from madplug import DebateId, DebateResult, nearest
from madplug_serve.conversation import Asked, RequestError, parse_request
from madplug_serve.debates import Debates, gather_or_cancel
from madplug_serve.replies import ReplyWriter, reasoning_part, sse

LARGEST = 32 * 2**20
"""Bytes of a request's body: conversations can contain images."""
SENDING = 60.0
"""Seconds in which a body has to be sent."""
HEARTBEAT = 15.0
"""Seconds without a message after which a stream sends a comment, so that no proxy takes it for dead."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Api:
    """The routes of the endpoint.

    models: the cells that are served. key: what a client has to send as its API key, or None. hosts: without a key, the
    names by which the server may be addressed. template: see `ReplyWriter`. timeout: seconds for one request, or None.
    """

    def __init__(self, debates: Debates, models: Sequence[str], *, key: str | None, hosts: Sequence[str] = (),
                 template: str = "{answer}", timeout: float | None = None) -> None:
        self._debates = debates
        self._models = list(models)
        self._key = key
        self._hosts = {host.lower() for host in hosts}
        self._template = template
        self._timeout = timeout

    def application(self) -> web.Application:
        """The web application."""
        app = web.Application(middlewares=[self._guard], client_max_size=LARGEST)
        app.router.add_get("/v1/models", self.models)
        app.router.add_get("/v1/models/{model:.+}", self.model)
        app.router.add_post("/v1/chat/completions", self.complete)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            self._authorise(request)
            return await handler(request)
        except RequestError as error:
            return _error(error)
        except web.HTTPRequestEntityTooLarge:
            return _error(RequestError(413, f"the body is larger than {LARGEST:,} bytes", "too_large"))
        except web.RequestPayloadError:
            return _error(RequestError(400, "the body is not what its Content-Encoding says", "invalid_request"))
        except web.HTTPException as error:
            return _error(RequestError(error.status, f"{request.method} {request.path}: {error.reason}; the endpoint "
                                       "has /v1/models and /v1/chat/completions", "not_found"))

    def _authorise(self, request: web.Request) -> None:
        """Check the key; without one, that no web page of another origin has sent the request."""
        if self._key is None:
            name = request.host.rpartition(":")[0] if request.host.rpartition("]")[2].count(":") else request.host
            if name.strip("[]").lower() not in self._hosts:
                raise RequestError(403, "the server is addressed by a name that is not its own", "wrong_host")
            origin = request.headers.get("Origin")  # programs send none, or one that is no site's, as `app://notes`
            if origin is not None and (origin == "null" or origin.startswith("http")) \
                    and origin != f"{request.scheme}://{request.host}":
                raise RequestError(403, "pages of other sites are refused", "wrong_origin")
            if request.method == "POST" and request.content_type != "application/json":
                raise RequestError(415, "the body has to be sent as application/json", "wrong_type")
            return
        kind, _, given = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(_bytes(given.strip()), _bytes(self._key)):
            raise RequestError(401, "the API key is missing or wrong; it is that of MADPLUG_SERVE_KEY, or else the one "
                               "that `madplug serve` shows", "invalid_api_key")

    async def models(self, request: web.Request) -> web.Response:
        """The cells."""
        return web.json_response({"object": "list", "data": list(map(_model, self._models))})

    async def model(self, request: web.Request) -> web.Response:
        """One cell."""
        self._check_model(request.match_info["model"])
        return web.json_response(_model(request.match_info["model"]))

    def _check_model(self, name: str) -> None:
        if name not in self._models:
            raise RequestError(404, f"there is no model '{name:.100}'{nearest(name[:100], self._models)}; /v1/models "
                               "lists them", "model_not_found", "model")

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """Run the debates of a request."""
        asked = parse_request(await self._body(request))
        self._check_model(asked.model)
        self._debates.check_fits(asked)
        ids = self._debates.allot(asked, asked.model)
        writer = ReplyWriter(f"{asked.model}-{ids[0].sample}", asked.model, self._template, asked.ignored)
        if asked.stream:
            return await self._stream(request, asked, ids, writer)
        results = await self._in_time(gather_or_cancel(self._debates.debate(id, asked) for id in ids))
        return web.json_response(writer.whole(results))

    async def _body(self, request: web.Request) -> bytes:
        """The body of a request, unless it takes too long or the server is stopped meanwhile."""
        reading = asyncio.ensure_future(request.read())
        closed = asyncio.ensure_future(self._debates.closed.wait())
        try:
            await asyncio.wait([reading, closed], timeout=SENDING, return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                return reading.result()
        finally:
            reading.cancel()
            closed.cancel()
        if self._debates.closed.is_set():
            self._debates.check_open()
        raise RequestError(408, f"the body was not sent within {SENDING:g} s", "timeout")

    async def _in_time(self, results: Awaitable[list[DebateResult]]) -> list[DebateResult]:
        try:
            return await asyncio.wait_for(results, self._timeout)
        except (asyncio.TimeoutError, TimeoutError):
            raise RequestError(504, f"the debate did not end within {self._timeout:g} s; ask again to go on with it",
                               "timeout") from None

    async def _stream(self, request: web.Request, asked: Asked, ids: Sequence[DebateId],
                      writer: ReplyWriter) -> web.StreamResponse:
        """The debate as reasoning, message by message, and then the answer."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        await response.prepare(request)
        try:
            results = await self._in_time(gather_or_cancel(
                self._stream_one(response, asked, id, i, writer) for i, id in enumerate(ids)))
            if asked.usage:
                await response.write(writer.usage(results))
            await response.write(b"data: [DONE]\n\n")
        except RequestError as error:
            await response.write(sse(error.body()))
        return response

    async def _stream_one(self, response: web.StreamResponse, asked: Asked, id: DebateId, index: int,
                          writer: ReplyWriter) -> DebateResult:
        await response.write(writer.chunk(index, role="assistant", content=""))
        told: set[tuple[int, bool]] = set()
        with self._debates.relay.stream(id) as messages:
            debate = asyncio.ensure_future(self._debates.debate(id, asked))
            try:
                while not debate.done():
                    waiting = asyncio.ensure_future(messages.get())
                    await asyncio.wait([waiting, debate], timeout=HEARTBEAT, return_when=asyncio.FIRST_COMPLETED)
                    if not waiting.done():
                        waiting.cancel()
                        await response.write(b": waiting for the agents\n\n")
                        continue
                    event = waiting.result()
                    told.add((event.message.id, event.message.retracted))
                    await response.write(writer.chunk(
                        index, reasoning_content=reasoning_part(event.message, event.agent)))
                result = debate.result()
            finally:
                debate.cancel()
                await asyncio.gather(debate, return_exceptions=True)
        for message in result.messages:  # those that the relay has not received yet
            if (message.id, message.retracted) not in told:
                agent = None if message.agent is None else result.agents[message.agent]
                await response.write(writer.chunk(index, reasoning_content=reasoning_part(message, agent)))
        await response.write(writer.last(index, result))
        return result


def _bytes(text: str) -> bytes:
    """A header as it was sent: it need not be UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "madplug"}


def _error(error: RequestError) -> web.Response:
    headers: Mapping[str, str] = {} if error.retry else {"x-should-retry": "false"}
    return web.Response(status=error.status, text=json.dumps(error.body()), content_type="application/json",
                        headers=headers)
