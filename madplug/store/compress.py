"""Compression of requests and messages, each with a text that it probably repeats as dictionary."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Optional

import zstandard

FRESH_EVERY = 128
"""Requests of a debate after which one is compressed with an early request instead of the previous one, so that reading
one takes few steps: at most so many, and one for each such request before."""
MESSAGE_FROM, REQUEST_FROM = 500, 1_000
"""Characters from which on the record of a message and a request are compressed: it takes 0.03 ms or more."""
_LONGEST = 200_000_000
"""Bytes that a text may have: a file that claims more was not written by a study."""
_IN_MEMORY = 64_000_000
"""Bytes of requests that a reader keeps: debates that ran at the same time take turns in the order of the calls."""

Stored = tuple[Optional[int], object]  # noqa: UP045 - evaluated on Python 3.10
"""The number of the request that is the dictionary, or None, and the compressed request."""


def pack(text: bytes, dictionary: bytes = b"") -> bytes:
    """Compress a text."""
    # Level 3 is the first that finds a long repetition everywhere in a dictionary.
    return zstandard.ZstdCompressor(level=3, dict_data=_raw(dictionary), write_checksum=True).compress(text)


def unpack(packed: object, dictionary: bytes = b"") -> bytes:
    """The text that was compressed, or left as it is. Raises `ValueError` or `TypeError` for anything else."""
    if isinstance(packed, str):
        return packed.encode()
    if not isinstance(packed, bytes):
        raise TypeError("what is compressed is not bytes")
    try:
        if zstandard.get_frame_parameters(packed).content_size > _LONGEST:
            raise ValueError("it is too long")
        return zstandard.ZstdDecompressor(dict_data=_raw(dictionary)).decompress(packed, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise ValueError(f"it cannot be decompressed: {error}") from None


def _raw(dictionary: bytes) -> zstandard.ZstdCompressionDict | None:
    return zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT) if dictionary else None


def pack_message(record: str, reply: str) -> str | bytes:
    """The record of a message as it is stored. reply: what it probably repeats."""
    return record if len(record) < MESSAGE_FROM else pack(record.encode(), reply.encode())


def unpack_message(stored: object, reply: object) -> str:
    """The record of a message. reply: the text of the call that it names, or None. Raises `ValueError`."""
    if not isinstance(reply, str | None):
        raise ValueError("its reply is not text")
    return unpack(stored, (reply or "").encode()).decode()


class RequestWriter:
    """Compresses the requests of a debate: each repeats most of the one before."""

    def __init__(self) -> None:
        self._count = 0
        self._fresh = self._latest = (0, b"")

    def pack(self, number: int, request: str) -> tuple[int | None, str | bytes]:
        """The number of an earlier request, if there is one, and the request compressed with it as dictionary."""
        if len(request) < REQUEST_FROM:
            return None, request
        text = request.encode()
        fresh = self._count % FRESH_EVERY == 0
        base, dictionary = self._fresh if fresh else self._latest
        self._count += 1
        if fresh:
            self._fresh = number, text
        if fresh or 2 * len(text) > len(self._latest[1]):  # a short question in between repeats nothing of the debate
            self._latest = number, text
        return base or None, pack(text, dictionary)


class RequestReader:
    """Reads compressed requests. load: finds one by its number; None if there is no such request."""

    def __init__(self, load: Callable[[int], Stored | None]) -> None:
        self._load = load
        self._known: OrderedDict[int, bytes] = OrderedDict()
        self._size = 0

    def read(self, number: int) -> bytes:
        """A request. Raises `ValueError` or `TypeError` if it, or one that it depends on, is missing or damaged."""
        if number in self._known:
            return self._known[number]
        base, packed = self._load(number) or (number, None)
        if base is not None and not (isinstance(base, int) and base < number):  # no circle ends
            raise ValueError("an earlier request that its request repeats is not there")
        text = unpack(packed, b"" if base is None else self.read(base))
        self._known[number] = text
        self._size += len(text)
        while self._size > _IN_MEMORY and len(self._known) > 1:
            self._size -= len(self._known.popitem(last=False)[1])
        return text
