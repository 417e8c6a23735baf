"""litellm, imported once, without downloads, banners, its own retries or its own limits."""

from __future__ import annotations

import logging
import os
import warnings
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from madplug import TransientError
from madplug_openai.bodies import too_large

_PORTION = 1 << 16
_WINDOW = 4096
_ENCODINGS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""Those that are unpacked to be measured, with what zlib calls them."""


def load(connections: int) -> Any:
    """The library, set up for this many open connections."""
    # Read while it is imported: its map of prices is not fetched, and no .env file is loaded.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    import litellm
    from litellm.llms.custom_httpx import http_handler

    # Of its own types, to its own developers; raised when a call first needs them.
    warnings.filterwarnings("ignore", message=r"(?s)Item '.*' on TypedDict class", category=UserWarning)
    warnings.filterwarnings("ignore", message=r"Accessing the 'model_\w+' attribute on the instance is deprecated")
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.num_retries = 0
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    for name in ("AIOHTTP_CONNECTOR_LIMIT", "AIOHTTP_CONNECTOR_LIMIT_PER_HOST"):
        setattr(http_handler, name, max(connections, getattr(http_handler, name, 0)))
    return litellm


async def unload(litellm: Any) -> None:
    """Close every client that litellm keeps for later: it belongs to the loop that now ends."""
    from litellm.llms.custom_httpx import async_client_cleanup

    close_all: Callable[[], Awaitable[None]] = async_client_cleanup.close_litellm_async_clients
    await close_all()
    litellm.in_memory_llm_clients_cache.flush_cache()


def response_class(most: int) -> Any:
    """The class of aiohttp's replies for a session of which no reply may have more bytes than this, unpacked.

    An encoding other than gzip and deflate is counted as it comes.
    """
    import aiohttp

    class Counted:
        """The body of a reply, counted as it is read; everything else is the body's own."""

        def __init__(self, body: Any, encoding: str) -> None:
            self._body = body
            self._unpacked = _Unpacked(encoding) if encoding in _ENCODINGS else None
            self._read = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self._body, name)

        async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
            async for chunk in self._body.iter_chunked(size):
                self._count(chunk)
                yield chunk

        async def read(self, size: int = -1) -> bytes:
            parts: list[bytes] = []
            while (size < 0 or not parts) and (part := await self._body.read(_PORTION if size < 0 else size)):
                self._count(part)
                parts.append(part)
            return b"".join(parts)

        def _count(self, part: bytes) -> None:
            for size in self._unpacked.sizes(part) if self._unpacked else (len(part),):
                self._read += size
                if self._read > most:
                    raise too_large(most)

    class Response(aiohttp.ClientResponse):
        async def start(self, connection: Any) -> Any:
            await super().start(connection)
            self.content: Any = Counted(self.content, self.headers.get("Content-Encoding", "").strip().lower())
            return self

    return Response


class _Unpacked:
    """Measures what a stream of bytes unpacks to, in small portions, so that a bomb is noticed in time."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._stream: Any = None

    def sizes(self, data: bytes) -> Iterator[int]:
        """How many bytes there are in each portion. Raises `TransientError` for what cannot be unpacked."""
        # A member of gzip leaves what follows it as a copy: in a window, many small members take linear time.
        for start in range(0, len(data), _WINDOW):
            window = data[start:start + _WINDOW]
            while window:
                yield len(self._unpack(window))
                window = self._stream.unconsumed_tail or self._stream.unused_data

    def _unpack(self, data: bytes) -> bytes:
        if self._stream is None or self._stream.eof:  # a second member may follow the first
            raw = self._encoding == "deflate" and data[0] & 0x0F != 8  # some servers leave its header out
            self._stream = zlib.decompressobj(-15 if raw else _ENCODINGS[self._encoding])
        try:
            unpacked: bytes = self._stream.decompress(data, _PORTION)
            return unpacked
        except zlib.error as error:
            raise TransientError(f"the reply cannot be unpacked: {error}") from None


def chain(error: BaseException) -> Iterator[BaseException]:
    """An error and those it came of."""
    below: BaseException | None = error
    seen: set[int] = set()
    while below is not None and id(below) not in seen:
        seen.add(id(below))
        yield below
        below = below.__cause__ or below.__context__


def never_reached(error: BaseException) -> bool:
    """Whether an error of litellm comes of an endpoint that could not be reached or did not begin to reply.

    litellm says the same of this as of many other failures; the clients below it do not.
    """
    import aiohttp
    import httpx

    for below in chain(error):
        if isinstance(below, aiohttp.ClientPayloadError | httpx.ReadTimeout):
            return False
        if isinstance(below, httpx.ConnectError | httpx.ConnectTimeout | httpx.RemoteProtocolError
                      | aiohttp.ClientConnectorError | aiohttp.ServerDisconnectedError | aiohttp.ConnectionTimeoutError
                      | ConnectionResetError | ConnectionRefusedError):
            return True
    return False
