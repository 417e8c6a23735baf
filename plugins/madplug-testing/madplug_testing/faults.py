"""The ways in which an endpoint can answer badly, as bytes on a connection.

A fault is a series of steps: bytes are sent, a number is a pause in seconds, `"close"`, `"reset"` and `"hold"` end it:
the connection is closed, reset, or kept open without another byte.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from http import HTTPStatus
from itertools import count, groupby, repeat
from typing import Any

Step = bytes | float | str
Steps = Iterator[Step]
BIG = 10_000_000
DRIP = 0.05
"""Seconds between two portions of what comes slowly."""


def completion(text: str | None, prompt: int = 1, logprobs: bool = False, top: int = 0, **more: Any) -> dict[str, Any]:
    """A response with one choice; `more` goes into its message. top: likeliest tokens that were asked for."""
    words = (text or "").split()
    choice: dict[str, Any] = {
        "index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text, **more}}
    if logprobs:
        tokens = [{"token": w, "logprob": -1 / (i + 2)} for i, w in enumerate(words)]
        choice["logprobs"] = {"content": [{**token, "top_logprobs": [token][:top]} for token in tokens]}
    usage = {"prompt_tokens": prompt, "completion_tokens": len(words), "total_tokens": prompt + len(words)}
    return {"id": "chatcmpl-0", "object": "chat.completion", "created": 0, "model": "fake",
            "choices": [choice], "usage": usage}


def error(message: str, code: str | int = "") -> bytes:
    """An error as OpenAI words it."""
    return json.dumps({"error": {"message": message, "type": "error", "code": code}}).encode()


def http(status: int, body: bytes, extra: str = "") -> bytes:
    """A whole response. extra: further header lines, each with its line end."""
    return _head(status, f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n{extra}") + body


def _head(status: int, lines: str) -> bytes:
    phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""
    return f"HTTP/1.1 {status} {phrase}\r\n{lines}\r\n".encode()


def steps(kind: str, good: bytes, headers: Mapping[str, str], retry_after: str = "0.05",
          location: str = "", more: str = "") -> Steps:
    """What is sent where a fault strikes.

    good: the body that would have been sent; headers: the request's; more: further header lines of a status.

    Raises `KeyError` for a fault that does not exist.
    """
    if kind.isdigit():
        return iter([_status(int(kind), headers, retry_after, location, more)])
    if kind in _BODIES:
        return iter([http(200, _BODIES[kind](good))])
    if kind in _EDITS:
        reply = json.loads(good)
        _EDITS[kind](reply)
        return iter([http(200, json.dumps(reply).encode())])
    return _EXCHANGES[kind](good)


def _status(status: int, headers: Mapping[str, str], retry_after: str, location: str, more: str) -> bytes:
    if status == 401:  # as real endpoints do, it repeats what it was sent
        sent = headers.get("authorization")
        return http(401, error(f"incorrect API key provided: {sent}", "invalid_api_key"))
    extra = f"Retry-After: {retry_after}\r\n" if retry_after and status in (429, 503) else ""
    if 300 <= status < 400:
        extra = f"Location: {location}\r\n"
    return http(status, error(f"the endpoint says {status}"), extra + more)


def streamed(events: Sequence[Mapping[str, Any] | str | float]) -> Steps:
    """A response of server-sent events, in portions that end anywhere.

    A text, such as `[DONE]`, is sent as it is; a number is a pause in seconds.
    """
    yield _head(200, "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n")
    for is_pause, some in groupby(events, lambda event: isinstance(event, float)):
        if is_pause:
            yield from some  # type: ignore[misc]
            continue
        lines = "".join(f"data: {e if isinstance(e, str) else json.dumps(e)}\n\n" for e in some).encode()
        for start in range(0, len(lines), 17):
            yield _chunks([lines[start:start + 17]])
    yield b"0\r\n\r\n"


# Replies whose bytes are wrong

def _text(good: bytes) -> str:
    return str(json.loads(good)["choices"][0]["message"]["content"])


def _with(good: bytes, text: str) -> bytes:
    """The reply with another text, which may hold escapes of JSON."""
    return good.replace(json.dumps(_text(good))[1:-1].encode(), text.encode())


def _deep(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


_BODIES: dict[str, Callable[[bytes], bytes]] = {
    "malformed": lambda good: good[:40], "no_choices": lambda good: b'{"id": "chatcmpl-0"}',
    "error_in_200": lambda good: error("the model is overloaded", 503),
    "filter_in_200": lambda good: error("the content was flagged", "content_filter"),
    "utf8": lambda good: _with(good, "A {here} B").replace(b"{here}", b"\xff\xfe\xc3("),
    "escapes": lambda good: _with(good, r"\u001b[2J\u0000\u202e\ud800 A"),
    "big": lambda good: _with(good, "x" * BIG), "huge": lambda good: _with(good, "x" * 2 * BIG),
    "many_values": lambda good: b'{"choices": [' + b"1," * (BIG // 4) + b"1]}",
    "blank": lambda good: b"", "html": lambda good: b"<html><body>gateway</body></html>",
    "json_array": lambda good: b"[]", "json_text": lambda good: b'"text"', "json_null": lambda good: b"null",
    "json_nan": lambda good: b"NaN", "deep": lambda good: _deep(100_000),
    "tags": lambda good: b"<" * 20_000, "two_values": lambda good: good + good,
    "byte_order_mark": lambda good: b"\xef\xbb\xbf" + good, "utf16": lambda good: good.decode().encode("utf-16"),
    "utf32": lambda good: good.decode().encode("utf-32"), "blanks": lambda good: b" \r\n\t" + good + b"\n" * 500,
    "duplicate_keys": lambda good: b'{"choices": [], "usage": null, ' + good[1:],
    "nan_usage": lambda good: good.replace(b'"prompt_tokens": ', b'"prompt_tokens": NaN, "x": '),
    "endless_usage": lambda good: good.replace(b'"prompt_tokens": ', b'"prompt_tokens": 1e999, "x": '),
    "deep_usage": lambda good: good.replace(b'"prompt_tokens": ', b'"x": %s, "prompt_tokens": ' % _deep(90)),
    "deeper_usage": lambda good: good.replace(b'"prompt_tokens": ', b'"x": %s, "prompt_tokens": ' % _deep(110)),
}


# Replies whose values are wrong

def _put(*path: Any) -> Callable[[dict[str, Any]], None]:
    """Sets the value at the end of a path to the last argument."""
    *steps, last, value = path

    def edit(reply: dict[str, Any]) -> None:
        place: Any = reply
        for step in steps:
            place = place[step]
        place[last] = value

    return edit


_MESSAGE = ("choices", 0, "message")
_EDITS: dict[str, Callable[[dict[str, Any]], None]] = {
    "empty": _put(*_MESSAGE, "content", ""), "null_content": _put(*_MESSAGE, "content", None),
    "number_content": _put(*_MESSAGE, "content", 5), "object_content": _put(*_MESSAGE, "content", {"text": "A"}),
    "list_content": _put(*_MESSAGE, "content", ["A", 1]), "true_content": _put(*_MESSAGE, "content", True),
    "null_message": _put(*_MESSAGE, None), "text_message": _put(*_MESSAGE, "A"),
    "null_choice": _put("choices", 0, None), "no_choice": _put("choices", []), "null_choices": _put("choices", None),
    "object_choices": _put("choices", {"0": {}}), "text_choices": _put("choices", "A"),
    "filtered": lambda reply: reply["choices"][0].update(finish_reason="content_filter", message={"content": ""}),
    "no_usage": lambda reply: reply.pop("usage"), "null_usage": _put("usage", None), "list_usage": _put("usage", [1]),
    "text_usage": _put("usage", "many"), "negative_usage": _put("usage", "prompt_tokens", -5),
    "huge_usage": _put("usage", "prompt_tokens", 10**400), "large_usage": _put("usage", "prompt_tokens", 2**70),
    "text_count": _put("usage", "prompt_tokens", "12"), "null_count": _put("usage", "prompt_tokens", None),
    "list_count": _put("usage", "completion_tokens", [3]),
    "half_characters": _put("usage", "\ud800", "\udfff"), "cached_text": _put("usage", "prompt_tokens_details", "x"),
    "cached_huge": _put("usage", "prompt_tokens_details", {"cached_tokens": 10**400}),
    "finish_list": _put("choices", 0, "finish_reason", ["stop"]),
    "finish_null": _put(*_MESSAGE[:2], "finish_reason", None),
    "model_object": _put("model", {"name": "fake"}), "id_null": _put("id", None),
    "reasoning_number": _put(*_MESSAGE, "reasoning_content", 7),
    "logprobs_text": _put("choices", 0, "logprobs", "none"),
    "logprobs_huge": _put("choices", 0, "logprobs", {"content": [{"logprob": 10**400}]}),
    "logprobs_null": _put("choices", 0, "logprobs", {"content": [{"logprob": None}]}),
    "more_choices": lambda reply: reply["choices"].append("another"),
    "unknown_fields": lambda reply: reply.update({f"field{i}": [i] for i in range(1000)}),
    "parts": lambda reply: reply["choices"][0]["message"].update(
        content=[{"type": "text", "text": reply["choices"][0]["message"]["content"]}, {"type": "image", "url": 1}]),
}


# Exchanges that go wrong

def _cut(data: bytes, end: str = "close") -> Steps:
    return iter([data, DRIP, end])


def _body(data: bytes, lines: str, *more: Step) -> Steps:
    return iter([_head(200, lines) + data, *more])


def _encoded(encoding: str, data: bytes) -> Steps:
    return iter([http(200, data, f"Content-Encoding: {encoding}\r\n")])


def _chunks(parts: Sequence[bytes]) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@lru_cache(maxsize=1)
def _bomb() -> bytes:
    """A gigabyte of blanks in a megabyte."""
    packer = zlib.compressobj(wbits=31)
    first, again = (packer.compress(b" " * BIG) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + 99 * again


def _endless(head: bytes, portion: bytes, pause: float = 0.0) -> Steps:
    yield head
    for part in repeat(portion):
        yield part
        if pause:
            yield pause


def _many_headers() -> Steps:
    yield b"HTTP/1.1 200 OK\r\n"
    for number in count():
        yield b"X-%d: y\r\n" % number


def _slowly(data: bytes, portions: int) -> Steps:
    size = len(data) // portions + 1
    for start in range(0, len(data), size):
        yield data[start:start + size]
        yield DRIP / 2


_CHUNKED = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
_EXCHANGES: dict[str, Callable[[bytes], Steps]] = {
    "quota": lambda good: iter([http(429, error("you exceeded your current quota", "insufficient_quota"))]),
    "context": lambda good: iter([http(400, error("the context length is 8192 tokens, got 9001",
                                                  "context_length_exceeded"))]),
    "filter": lambda good: iter([http(400, error("the prompt was flagged", "content_filter"))]),
    "flagged": lambda good: iter([http(403, json.dumps({"error": {
        "message": "the input was flagged", "code": 403, "metadata": {"reasons": ["x"]}}}).encode())]),
    "error_tags": lambda good: iter([http(500, b"<" * 20_000)]),
    "error_big": lambda good: iter([http(500, b"<script " * (BIG // 8))]),
    "error_list": lambda good: iter([http(500, b'{"error": {"message": [[1]], "code": [], "type": {}}}')]),
    "reset": lambda good: iter(["reset"]), "closed": lambda good: iter(["close"]), "hang": lambda good: iter(["hold"]),
    "reset_in_head": lambda good: _cut(http(200, good)[:30], "reset"),
    "closed_in_head": lambda good: _cut(http(200, good)[:30]),
    "reset_in_body": lambda good: _cut(http(200, good)[:-20], "reset"),
    "closed_in_body": lambda good: _cut(http(200, good)[:-20]),
    "hang_in_body": lambda good: _cut(http(200, good)[:-20], "hold"),
    "cut_chunks": lambda good: _body(_chunks([good[:50]]), _CHUNKED, DRIP, "close"),
    "bad_chunk": lambda good: _body(b"zz\r\n" + good, _CHUNKED),
    "negative_chunk": lambda good: _body(b"-5\r\n" + good, _CHUNKED),
    "cut_gzip": lambda good: _encoded("gzip", gzip.compress(good)[:-12]),
    "bad_gzip": lambda good: _encoded("gzip", b"\x1f\x8b\x08" + good),
    "not_gzip": lambda good: _encoded("gzip", good), "brotli": lambda good: _encoded("br", good),
    "bad_status": lambda good: iter([b"HTTP/1.1 OK 200\r\n\r\n" + good, "close"]),
    "bad_version": lambda good: iter([b"HTTP/9.9 200 OK\r\n\r\n" + good, "close"]),
    "http_0_9": lambda good: iter([good, "close"]), "noise": lambda good: iter([bytes(range(256)) * 8, "close"]),
    "http_2": lambda good: iter([b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + bytes(18), "close"]),
    "negative_length": lambda good: _body(good, "Content-Length: -1\r\n", "close"),
    "two_lengths": lambda good: _body(good, f"Content-Length: {len(good)}\r\nContent-Length: 3\r\n", "close"),
    "text_length": lambda good: _body(good, "Content-Length: all\r\n", "close"),
    "short_length": lambda good: _body(good, "Content-Length: 40\r\n"),
    "length_and_chunks": lambda good: _body(_chunks([good]) + b"0\r\n\r\n", _CHUNKED + "Content-Length: 5\r\n"),
    "long_header": lambda good: iter([_head(200, f"X: {'y' * 100_000}\r\nContent-Length: 0\r\n")]),
    "endless_headers": lambda good: _many_headers(),
    "endless_continue": lambda good: _endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n", DRIP),
    "slow_head": lambda good: _endless(b"HTTP/1.1 200 OK\r\nX: ", b"y", DRIP),
    "slow_body": lambda good: _endless(_head(200, "Content-Length: 100000\r\n"), b" ", DRIP),
    "switching": lambda good: iter([_head(101, "Upgrade: other\r\nConnection: upgrade\r\n"), "close"]),
    "no_content": lambda good: iter([_head(204, "")]),
    "gzip_bomb": lambda good: _encoded("gzip", _bomb()),
    "endless_chunks": lambda good: _endless(_head(200, _CHUNKED), _chunks([b" " * 60_000])),
    "endless_body": lambda good: _endless(_head(200, ""), b" " * 60_000),
    # What a client has to put up with
    "gzip": lambda good: _encoded("gzip", gzip.compress(good)),
    "gzip_members": lambda good: _encoded("gzip", gzip.compress(good[:30]) + gzip.compress(good[30:])),
    "deflate": lambda good: _encoded("deflate", zlib.compress(good)),
    "raw_deflate": lambda good: _encoded("deflate", _raw_deflate(good)),
    "gzip_chunks": lambda good: _body(_chunks([gzip.compress(good)]) + b"0\r\n\r\n",
                                      _CHUNKED + "Content-Encoding: gzip\r\n"),
    "chunks": lambda good: _body(_chunks([bytes([b]) for b in good]) + b"0\r\n\r\n", _CHUNKED),
    "until_closed": lambda good: _body(good, "Content-Type: application/json\r\n", "close"),
    "no_type": lambda good: _body(good, f"Content-Length: {len(good)}\r\n"),
    "wrong_type": lambda good: _body(good, "Content-Type: text/html; charset=utf-7\r\n"
                                       f"Content-Length: {len(good)}\r\n"),
    "continue": lambda good: iter([b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
                                   + http(200, good)]),
    "closed_after": lambda good: iter([http(200, good, "Connection: keep-alive\r\n"), "close"]),
    "reset_after": lambda good: iter([http(200, good, "Connection: keep-alive\r\n"), DRIP, "reset"]),
    "another_reply": lambda good: iter([http(200, good) + http(200, _with(good, "of another request: D"))]),
    "drip": lambda good: _slowly(http(200, good), 5),
    "cookies": lambda good: iter([http(200, good, "Set-Cookie: a=b; Path=/\r\n" * 20)]),
}
FAULTS: tuple[str, ...] = (*_BODIES, *_EDITS, *_EXCHANGES)
"""The names of all faults; a status is one too."""
