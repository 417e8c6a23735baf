"""A reply's bytes: unpacked, and no more of them than a limit, wherever they end."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Iterator
from typing import Any

from madplug import RefusedError, TransientError

MEGABYTE = 1_000_000
MOST_OF_AN_ERROR = 100_000
"""Bytes of an error that are read."""
MOST_VALUES = 1_000_000
"""Values in a reply: reading more of them would stop every other call for too long."""
_PORTION = 65_536
_ACCEPTED = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""The encodings that are asked for, with what zlib calls them."""
ACCEPT_ENCODING = "gzip, deflate"


class TooLarge(Exception):
    """A reply has more bytes than the limit; `args[0]` is those up to it."""


async def read_body(response: Any, most: int) -> bytes:
    """The body of an aiohttp response that was not unpacked, unpacked. most: bytes, received as well as unpacked.

    Raises `TooLarge`, and `TransientError` for what cannot be unpacked.
    """
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    if encoding in ("", "identity") and (response.content_length or most + 1) <= most:
        whole: bytes = await response.read()
        return whole
    unpacker = _Unpacker(encoding)
    unpacked, received = bytearray(), 0
    async for chunk in response.content.iter_any():
        received += len(chunk)
        for part in unpacker.parts(chunk):
            unpacked += part
            if len(unpacked) > most:
                raise TooLarge(bytes(unpacked[:most]))
            if len(unpacked) % MEGABYTE < len(part):
                await asyncio.sleep(0)  # other calls are waiting
        if received > most:
            raise TooLarge(bytes(unpacked))
    unpacker.check_end()
    return bytes(unpacked)


class _Unpacker:
    """Unpacks a stream of bytes in small portions, so that a bomb is noticed in time."""

    def __init__(self, encoding: str) -> None:
        if encoding not in ("", "identity", *_ACCEPTED):
            raise TransientError(f"the reply is encoded as '{encoding[:20]}', which was not asked for")
        self._encoding = encoding
        self._stream: Any = None

    def parts(self, chunk: bytes) -> Iterator[bytes]:
        """What a chunk holds, in portions."""
        if self._encoding in ("", "identity"):
            yield chunk
            return
        while chunk:
            if self._stream is None or self._stream.eof:  # a second member may follow the first
                self._stream = zlib.decompressobj(self._window(chunk))
            try:
                yield self._stream.decompress(chunk, _PORTION)
            except zlib.error as error:
                raise TransientError(f"the reply cannot be unpacked: {error}") from None
            chunk = self._stream.unconsumed_tail or self._stream.unused_data

    def _window(self, chunk: bytes) -> int:
        """What zlib calls the encoding; some servers send deflate without its header."""
        raw = self._encoding == "deflate" and chunk[0] & 0x0F != 8
        return -15 if raw else _ACCEPTED[self._encoding]

    def check_end(self) -> None:
        """Raise `TransientError` for a stream that was cut."""
        if self._stream is not None and not self._stream.eof:
            raise TransientError("the reply cannot be unpacked: it is cut")


def text_of(body: bytes) -> str:
    """A body as text; JSON may be UTF-8, UTF-16 or UTF-32, with or without a byte order mark."""
    return body.decode(json.detect_encoding(body), "replace")


def parse(text: str) -> Any:
    """The JSON value in a text, or None. Raises `RefusedError` for one that would take too long to read."""
    if len(text) > MOST_VALUES and sum(map(text.count, ",[{:")) > MOST_VALUES:
        raise RefusedError(f"the reply has more than {MOST_VALUES:,} values")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
