"""Requests to one address over a pool of kept connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any, NamedTuple

from madplug import AccessError, ModelError, TransientError, UnreachableError
from madplug_openai.bodies import MEGABYTE, too_large
from madplug_openai.keys import presentable
from madplug_openai.network import CONNECT_WITHIN, IDLE, proxy_for

_LINE = 32 * MEGABYTE
"""Bytes of a line that are buffered."""


class Reply(NamedTuple):
    """A reply as it was received: an error's body only as far as it is wanted."""

    status: int
    headers: Mapping[str, str]
    """By their names in any case."""
    body: bytes

    @property
    def good(self) -> bool:
        """Whether the status means success."""
        return 200 <= self.status < 300


class Client:
    """A pool of connections to one address.

    timeout: seconds for a whole exchange. limits: the most bytes of an unpacked body, of a success and of an error.
    """

    def __init__(self, url: str, headers: Mapping[str, str], *, timeout: float, limits: tuple[int, int],
                 keys: Iterable[str] = (), base: str = "") -> None:
        import ssl

        import aiohttp

        self._url = url
        self._base = base
        self._limits = limits
        self._timeout = timeout
        self._keys = tuple(keys)
        # The host's slots are the limit of connections. aiohttp unpacks gzip in portions, so that a body is never
        # larger in memory than its limit and a portion, and gives up on one of thousands of members.
        # Its default context for TLS is made when it is imported, before SSL_CERT_FILE may be set.
        context = ssl.create_default_context() if url.startswith("https:") else True
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE, ssl=context), headers=headers,
            timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=min(CONNECT_WITHIN, timeout)),
            cookie_jar=aiohttp.DummyCookieJar(), proxy=proxy_for(url))

    async def post(self, body: bytes, arrived: Callable[[bytes], None] | None = None) -> Reply:
        """Send a request; the reply, whatever its status. Raises `ModelError`.

        arrived: called with the bytes of the body as they arrive, which are then asked for unpacked.
        """
        data = body if len(body) < MEGABYTE else BytesIO(body)  # sent in portions
        headers = None if arrived is None else {"Accept-Encoding": "identity"}
        async with self._sent("POST", self._url, data=data, headers=headers) as response:
            return await self._received(response, arrived)

    async def call(self, method: str, path: str, data: Any = None, headers: Mapping[str, str] | None = None) -> Reply:
        """The same for another path of the endpoint, with any method; sending may take as long as it does."""
        async with self._sent(method, self._base + path, data=data, headers=headers, timeout=self._patient()) as reply:
            return await self._received(reply, None)

    async def lines(self, path: str) -> AsyncIterator[bytes]:
        """The lines of a file of any length. Raises `ModelError`, also in the middle."""
        async with self._sent("GET", self._base + path, timeout=self._patient(), read_bufsize=_LINE) as response:
            if response.status == 404:
                return  # it was deleted, or kept for as long as the endpoint keeps files
            if response.status != 200:
                raise TransientError(f"a file could not be read: HTTP {response.status}")
            async for line in response.content:
                yield line

    def _patient(self) -> Any:
        import aiohttp

        return aiohttp.ClientTimeout(sock_connect=min(CONNECT_WITHIN, self._timeout), sock_read=self._timeout)

    @asynccontextmanager
    async def _sent(self, method: str, url: str, **given: Any) -> AsyncIterator[Any]:
        """The response to a request, with every failure as a `ModelError`."""
        response = None
        try:
            async with self._session.request(method, url, allow_redirects=False, **given) as response:
                yield response
        except asyncio.TimeoutError as error:
            raise _late(error, self._timeout) from None
        except Exception as error:
            raise _broken(error, response is not None, self._keys) or error from None

    async def _received(self, response: Any, arrived: Callable[[bytes], None] | None) -> Reply:
        """The reply, with its body as far as it is wanted."""
        reply = Reply(response.status, response.headers, b"")
        most = self._limits[0 if reply.good else 1]
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if arrived is not None:
                arrived(chunk)
            if len(body) > most:
                response.close()
                if reply.good:
                    raise too_large(most)
                break
        return reply._replace(body=bytes(body[:most]))

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()


def _late(error: asyncio.TimeoutError, seconds: float) -> TransientError:
    """The error of an exchange, or of a connection, that took too long."""
    from aiohttp import ServerTimeoutError

    if isinstance(error, ServerTimeoutError):
        return UnreachableError("the endpoint could not be reached: it did not accept the connection in time")
    return TransientError(f"no answer within {seconds:g} s")


def _broken(error: Exception, answering: bool, keys: Iterable[str]) -> ModelError | None:
    """What an error of aiohttp means, or None for another one. answering: whether the reply had begun."""
    import aiohttp

    if not isinstance(error, aiohttp.ClientError | OSError):
        return None
    said = presentable(str(error) or type(error).__name__, keys)
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.InvalidURL):
        return AccessError(f"the connection failed: {said}")
    if answering or isinstance(error, aiohttp.ClientPayloadError):
        return TransientError(f"the connection broke in the middle of the reply: {said}")
    if isinstance(error, aiohttp.ClientResponseError) and not isinstance(error, aiohttp.ClientHttpProxyError):
        first = error.message.partition("\n")[0]  # after it come the bytes as they were sent
        return TransientError(f"the reply is not HTTP: {presentable(first, keys)}")
    return UnreachableError(f"the connection failed: {said}")
