"""Plain HTTP/1.1 over kept connections: one request, one reply, nothing else.

This client is on the path of every call. It parses with httptools and has no other features; what it cannot do
(`network.is_plain`) is done by the client in `general`.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from madplug import AccessError, ModelError, TransientError, UnreachableError
from madplug_openai.bodies import Reply, too_large
from madplug_openai.keys import presentable
from madplug_openai.network import CONNECT_WITHIN, IDLE, Addresses, late, not_accepted

MOST_OF_A_HEAD = 65_536
"""Bytes of a reply before its body, interim replies included."""

_ENDS = frozenset((b"content-length", b"transfer-encoding"))
"""The headers that say where a body ends."""
_WANTED = frozenset((b"content-encoding", b"retry-after", b"retry-after-ms"))


class WireClient:
    """A pool of connections to one address.

    timeout: seconds for a whole exchange. limits: the most bytes of a body, of a success and of an error.
    """

    def __init__(self, url: str, headers: Mapping[str, str], *, timeout: float, limits: tuple[int, int],
                 keys: Iterable[str] = ()) -> None:
        parts = urlsplit(url)
        self.limits = limits
        self.keys = tuple(keys)
        self.timeout = timeout
        self.idle: dict[_Connection, float] = {}
        """Connections without a request, each with the time since which, the longest idle first."""
        self.busy: set[_Connection] = set()
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._secure = parts.scheme == "https"
        self._tls: Any = None
        lines = "".join(f"{name}: {value}\r\n" for name, value in {"Host": parts.netloc, **headers}.items())
        self._head = f"POST {parts.path} HTTP/1.1\r\n{lines}Content-Length: ".encode("latin-1")
        self._addresses = Addresses(self._host, self._port)
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    async def post(self, body: bytes) -> Reply:
        """Send a request; the reply, whatever its status. Raises `ModelError`."""
        deadline = self._loop.time() + self.timeout
        connection = self._idle_connection() or await self._connect()
        self._watch(connection, deadline)
        try:
            return await connection.ask(b"%b%d\r\n\r\n%b" % (self._head, len(body), body))
        except asyncio.CancelledError:
            connection.drop()
            raise

    async def close(self) -> None:
        """Close every connection."""
        if self._timer is not None:
            self._timer.cancel()
        for connection in (*self.idle, *self.busy):
            connection.drop()
        await asyncio.sleep(0)  # so that the transports are closed when the loop is

    def _idle_connection(self) -> _Connection | None:
        """The connection used last, if it is still good."""
        while self.idle:
            connection, since = self.idle.popitem()
            if self._loop.time() - since < IDLE and not connection.has_news():
                return connection
            connection.drop()
        return None

    async def _connect(self) -> _Connection:
        within = min(CONNECT_WITHIN, self.timeout)
        try:
            return await asyncio.wait_for(self._open_connection(), within)
        except (asyncio.TimeoutError, TimeoutError):
            raise not_accepted() from None
        except (OSError, UnicodeError) as error:
            said = presentable(str(error) or type(error).__name__, self.keys)
            kind = AccessError if _is_untrusted(error) else UnreachableError
            raise kind(f"the connection failed: {said}") from None

    async def _open_connection(self) -> _Connection:
        from aiohappyeyeballs import start_connection

        if self._secure and self._tls is None:
            import ssl

            self._tls = ssl.create_default_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        raw = await start_connection(await self._addresses.look_up(), happy_eyeballs_delay=0.25)
        try:
            _, connection = await self._loop.create_connection(
                lambda: _Connection(self), sock=raw, ssl=self._tls,
                server_hostname=self._host if self._secure else None)
        except BaseException:
            raw.close()
            raise
        return connection

    def _watch(self, connection: _Connection, deadline: float) -> None:
        """Give up the exchange at its deadline. One timer serves all: most exchanges end long before theirs."""
        connection.deadline = deadline
        self.busy.add(connection)
        if self._timer is None or deadline < self._timer.when():
            self._set_timer(deadline)

    def _set_timer(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._end_late)

    def _end_late(self) -> None:
        self._timer = None
        now = self._loop.time()
        for connection in [c for c in self.busy if c.deadline <= now]:
            connection.fail(late(self.timeout))
        if self.busy:
            self._set_timer(min(c.deadline for c in self.busy))


class _Connection(asyncio.Protocol):
    """One connection, which has at most one request at a time."""

    def __init__(self, client: WireClient) -> None:
        self.deadline = 0.0
        self._client = client
        self._transport: Any = None
        self._news: Any = None
        self._answer: asyncio.Future[Reply] | None = None
        self._parser = HttpResponseParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        if hasattr(select, "poll") and transport.get_extra_info("ssl_object") is None:
            self._news = select.poll()
            self._news.register(transport.get_extra_info("socket"), select.POLLIN)

    def has_news(self) -> bool:
        """Whether something arrived, if only the end, before anything was asked."""
        return self._transport.is_closing() or (self._news is not None and bool(self._news.poll(0)))

    def ask(self, data: bytes) -> asyncio.Future[Reply]:
        """Send a request; its reply. Raises `UnreachableError` if the connection was closed just after it was made."""
        if self._transport.is_closing():  # nothing would be said of it once more
            self.drop()
            raise UnreachableError("the connection failed: it was closed")
        self._began = self._complete = self._spoiled = False
        self._head_bytes = 0
        self.on_message_begin()
        self._answer = self._client._loop.create_future()
        self._transport.write(data)
        return self._answer

    def fail(self, error: ModelError) -> None:
        """End the exchange with an error."""
        answer = self._answer
        self.drop()
        if answer is not None and not answer.done():
            answer.set_exception(error)

    def drop(self) -> None:
        """Close the connection, and forget the exchange."""
        self._answer = None
        self._client.busy.discard(self)
        self._client.idle.pop(self, None)
        self._transport.abort()

    def _end(self, *, keep: bool) -> None:
        """The reply is complete."""
        answer = self._answer
        reply = Reply(self._status, self._headers, bytes(self._body))
        if keep:
            self._answer = None
            self._client.busy.discard(self)
            self._client.idle[self] = self._client._loop.time()
        else:
            self.drop()
        if answer is not None and not answer.done():
            answer.set_result(reply)

    # What arrives

    def data_received(self, data: bytes) -> None:
        if self._answer is None:  # nothing was asked
            self.drop()
            return
        self._began = True
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            self._spoiled = True
        except HttpParserError as error:
            self._spoiled = True
            if not self._complete:
                self._fail_unless_ended(error.__context__ or error)
                return
        if self._complete:
            self._end(keep=not self._spoiled)
        elif not self._in_body:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_OF_A_HEAD:
                self.fail(TransientError("the reply is not HTTP: its head has no end"))

    def _fail_unless_ended(self, error: BaseException) -> None:
        if isinstance(error, _Enough):
            if self._is_good():
                self.fail(too_large(self._client.limits[0]))
            else:
                self._end(keep=False)
            return
        said = presentable(str(error) or type(error).__name__, self._client.keys)
        self.fail(TransientError(f"the reply is not HTTP: {said}"))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is None:
            self.drop()
        elif exc is None and self._in_body and self._until_closed:
            self._end(keep=False)
        else:
            said = presentable(str(exc or "it was closed"), self._client.keys)
            self.fail(TransientError(f"the connection broke in the middle of the reply: {said}") if self._began
                      else UnreachableError(f"the connection failed: {said}"))

    # What the parser finds

    def on_message_begin(self) -> None:
        if self._complete:
            self._spoiled = True  # another reply, which nothing asked for
            return
        self._status = 0
        self._headers: dict[str, str] = {}
        self._body: bytes | bytearray = b""
        self._room = 0
        self._in_body = False
        self._until_closed = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._complete:
            return
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > MOST_OF_A_HEAD:
            raise ValueError("its head has no end")
        if self._in_body:  # a trailer says nothing about how to read the body
            return
        name = name.lower()
        if name in _ENDS:
            self._until_closed = False
        elif name in _WANTED:
            self._headers[name.decode()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._complete:
            return
        self._status = self._parser.get_status_code()
        self._in_body = self._status >= 200
        self._room = self._client.limits[0 if self._is_good() else 1]

    def on_body(self, data: bytes) -> None:
        if self._complete:
            return
        part = data[:self._room]
        if not self._body:
            self._body = part
        elif type(self._body) is bytearray:
            self._body += part
        else:  # one piece of memory, because a body can come in chunks of a byte
            self._body = bytearray(self._body + part)
        self._room -= len(data)
        if self._room < 0:
            raise _Enough

    def on_message_complete(self) -> None:
        if self._status >= 200 or self._status == 101:
            self._complete = True
            self._spoiled = not self._parser.should_keep_alive()

    def _is_good(self) -> bool:
        return 200 <= self._status < 300


class _Enough(Exception):
    """The body has more bytes than are wanted."""


def _is_untrusted(error: BaseException) -> bool:
    import ssl

    return isinstance(error, ssl.SSLCertVerificationError)
