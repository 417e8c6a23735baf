"""A reply's bytes: unpacked, and no more of them than a limit, wherever they end."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from madplug import RefusedError, TransientError

MEGABYTE = 1_000_000
MOST_OF_AN_ERROR = 100_000
"""Bytes of an error that are read."""
MOST_VALUES = 1_000_000
"""Values in a reply: reading more of them would stop every other call for too long."""
_PORTION = 65_536
ACCEPTED = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""The encodings that are asked for, with what zlib calls them."""
ACCEPT_ENCODING = "gzip, deflate"


class Reply(NamedTuple):
    """A reply as it was received: an error's body only as far as it is wanted."""

    status: int
    headers: Mapping[str, str]
    """By their names in lower case."""
    body: bytes

    @property
    def good(self) -> bool:
        """Whether the status means success."""
        return 200 <= self.status < 300


def too_large(most: int) -> RefusedError:
    """The error of a reply with more bytes than the limit."""
    return RefusedError(f"the reply is larger than max_reply_mb, {most / MEGABYTE:g} MB")


async def unpack(reply: Reply, most: int) -> bytes:
    """The body of a reply without its encoding. most: bytes; of an error, the beginning is enough.

    Raises `RefusedError` for a success that has more, and `TransientError` for what cannot be unpacked.
    """
    from asyncio import sleep

    encoding = reply.headers.get("content-encoding", "").strip().lower()
    if encoding in ("", "identity"):
        return reply.body
    unpacker, unpacked = Unpacker(encoding), bytearray()
    for part in unpacker.parts(reply.body):
        unpacked += part
        if len(unpacked) > most:
            if reply.good:
                raise too_large(most)
            return bytes(unpacked[:most])
        if len(unpacked) % MEGABYTE < len(part):
            await sleep(0)  # other calls are waiting
    if len(reply.body) < most:
        unpacker.check_end()
    return bytes(unpacked)


class Unpacker:
    """Unpacks a stream of bytes in small portions, so that a bomb is noticed in time."""

    def __init__(self, encoding: str) -> None:
        if encoding not in ACCEPTED:
            raise TransientError(f"the reply is encoded as '{encoding[:20]}', which was not asked for")
        self._encoding = encoding
        self._stream: Any = None

    def parts(self, chunk: bytes) -> Iterator[bytes]:
        """What a chunk holds, in portions."""
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
        return -15 if raw else ACCEPTED[self._encoding]

    def check_end(self) -> None:
        """Raise `TransientError` for a stream that was cut."""
        if self._stream is not None and not self._stream.eof:
            raise TransientError("the reply cannot be unpacked: it is cut")


def text_of(body: bytes) -> str:
    """A body as text; JSON may be UTF-8, UTF-16 or UTF-32, with or without a byte order mark."""
    return body.decode(json.detect_encoding(body), "replace")


def parse_quickly(body: bytes) -> Any:
    """The JSON value in a body of the usual kind, or None if it needs a closer look."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def parse(text: str) -> Any:
    """The JSON value in a text, or None. Raises `RefusedError` for one that would take too long to read."""
    if len(text) > MOST_VALUES and sum(map(text.count, ",[{:")) > MOST_VALUES:
        raise RefusedError(f"the reply has more than {MOST_VALUES:,} values")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
