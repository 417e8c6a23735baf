"""A small OpenAI-compatible endpoint that answers immediately, late or wrongly: for tests and benchmarks.

    with running_endpoint(latency_ms=50, faults=["429", "reset"]) as endpoint:
        endpoint.url                            # base_url of a model
        endpoint.stats()["max_in_flight"]

    python -m madplug_testing.endpoint --port 0 --port-file port.txt --latency-ms 50 --rate 429=0.02

Replies are made from a hash of the request's body, so the same request gets the same answer in every run, and
faults follow a script or the same hash. `POST /config`, `POST /reset` and `GET /stats` work on a running one.

Faults: any status (`429`, `500`, `401`, ...), and those of `madplug_testing.faults`: `quota` and `context` (a 429
and a 400 for which a retry does not help), `reset`, `hang`, `malformed`, `closed_in_body`, `gzip_bomb`, ...
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast
from urllib.request import ProxyHandler, Request, build_opener

from madplug_testing.batches import Batches
from madplug_testing.faults import Steps, completion, error, http, steps, streamed

Events = Sequence[Mapping[str, Any] | str | float]
Replies = Callable[[dict[str, Any]], "str | Mapping[str, Any] | bytes | Events"]
"""Makes the reply to a request's body: a text, a whole response, the bytes of one, or events that are streamed.

A number among events is a pause in seconds.
"""
Seen = tuple[dict[str, str], dict[str, Any]]


@dataclass(frozen=True)
class Settings:
    """How the endpoint behaves."""

    latency_ms: float = 0.0
    jitter: float = 0.0
    """The largest extra delay of a reply, as a share of `latency_ms`; determined by the request's hash."""
    text: str = "Of the options, {letter} holds in case {hash}. Final Solution: {letter}"
    """Placeholders: `{letter}` A to D, `{number}` 0 to 99, `{hash}`."""
    cap: int = 0
    """More requests than this at the same time are answered with 429; 0 for no limit."""
    per_minute: int = 0
    """More requests than this in any 60 seconds are answered with 429; 0 for no limit."""
    gather: int = 0
    """No request is answered before this many are waiting, to test that so many are sent at the same time."""
    faults: Sequence[str | None] = ()
    """The faults of the first requests, in order; None for no fault."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """Probability of each fault, for requests after the script."""
    by: str = "arrival"
    """`arrival`: faults follow the order of all requests; `body`: the attempts at the same request."""
    retry_after: str = "0.05"
    location: str = "http://127.0.0.1:9/v1/chat/completions"
    """Where redirects lead."""
    headers: str = ""
    """Further header lines of a status, each with its line end."""
    share: float = 1.0
    """The share of the requests that faults strike at all, chosen by the requests' hashes."""
    seed: int = 0
    ledger: str = ""
    """A file to which the hash of every request that was answered is added, a line each: it outlives the process."""
    keep: int = 0
    """How many of the last requests are kept in `Endpoint.seen`, with headers and bodies."""


class Endpoint:
    """The endpoint on the caller's event loop: `async with Endpoint() as endpoint`."""

    def __init__(self, replies: Replies | None = None, **settings: Any) -> None:
        self.settings = Settings(**settings)
        self.replies = replies
        self.url = ""
        self.batches = Batches(cast("Callable[[bytes, bytes], bytes]", self.reply), self.note)
        self.open: set[_Connection] = set()
        self.reset()

    def reset(self) -> None:
        """Forget all requests so far."""
        self.counts: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.tries: Counter[bytes] = Counter()
        self.answered: Counter[bytes] = Counter()
        self._arrived: deque[float] = deque()
        self.gathered: list[Callable[[], None]] = []
        self.seen: deque[Seen] = deque(maxlen=self.settings.keep)
        self.in_flight = self.max_in_flight = 0
        self._cpu = time.process_time()

    def configure(self, **changes: Any) -> None:
        """Change settings and forget all requests so far."""
        self.settings = replace(self.settings, **changes)
        self.reset()

    def stats(self) -> dict[str, Any]:
        """What happened since the start or the last reset."""
        return {
            "requests": self.counts["requests"], "ok": self.counts["ok"], "max_in_flight": self.max_in_flight,
            "connections": self.counts["connections"], "faults": dict(self.faults),
            "duplicates": self.counts["requests"] - len(self.tries),
            "answered_twice": self.counts["ok"] - len(self.answered),
            "cpu_s": time.process_time() - self._cpu,
        }

    async def start(self, port: int = 0) -> Endpoint:
        """Listen on a port of the loopback interface; 0 chooses a free one."""
        loop = asyncio.get_running_loop()
        made = loop.create_server(lambda: _Connection(self, loop), "127.0.0.1", port, backlog=4096)
        self._server = await made
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def stop(self) -> None:
        """Stop listening, and drop open connections."""
        self._server.close()
        for connection in list(self.open):
            connection.transport.abort()
        await asyncio.sleep(0)

    async def __aenter__(self) -> Endpoint:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def fault(self, digest: bytes, tried: int, arrived: int) -> str | None:
        """The fault of a request, or None."""
        s = self.settings
        if s.cap and self.in_flight > s.cap:
            return "429"
        if s.per_minute and self._exceeds(s.per_minute):
            return "429"
        if s.share < 1 and int.from_bytes(digest[4:8], "big") >= s.share * 2**32:
            return None
        turn = tried if s.by == "body" else arrived
        if turn < len(s.faults):
            return s.faults[turn]
        if not s.rates:
            return None
        lot = blake2b(b"%d %d" % (turn, s.seed), key=digest if s.by == "body" else b"", digest_size=4)
        drawn = int.from_bytes(lot.digest(), "big") / 2**32
        for kind, rate in s.rates.items():
            if drawn < rate:
                return kind
            drawn -= rate
        return None

    def _exceeds(self, per_minute: int) -> bool:
        """Whether a request that arrives now is one too many; only those that are not count later."""
        now = time.monotonic()
        while self._arrived and self._arrived[0] <= now - 60:
            self._arrived.popleft()
        if len(self._arrived) >= per_minute:
            return True
        self._arrived.append(now)
        return False

    def reply(self, body: bytes, digest: bytes) -> bytes | Events:
        """The body of the answer to a request, or the events to stream."""
        asked = json.loads(body) if self.replies or b'"logprobs"' in body else {}
        made = self.replies(asked) if self.replies else self._text(digest)
        if not isinstance(made, (str, Mapping)):
            return made
        return json.dumps(completion(made, len(body) // 4, bool(asked.get("logprobs")),
                                     asked.get("top_logprobs") or 0)
                          if isinstance(made, str) else made).encode()

    def note(self, digest: bytes) -> None:
        """Count an answer."""
        self.counts["ok"] += 1
        self.answered[digest] += 1
        if self.settings.ledger:
            with open(self.settings.ledger, "a", encoding="ascii") as file:
                file.write(digest.hex() + "\n")

    def _text(self, digest: bytes) -> str:
        text = self.settings.text.replace("{letter}", "ABCD"[digest[0] % 4])
        return text.replace("{number}", str(digest[1] % 100)).replace("{hash}", digest.hex()[:8])


class _Connection(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self, endpoint: Endpoint, loop: asyncio.AbstractEventLoop) -> None:
        self.endpoint, self.loop = endpoint, loop
        self.buffer = bytearray()
        self.waiting = False
        self.paused = False
        self.steps: Steps = iter(())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.endpoint.open.add(self)
        self.endpoint.counts["connections"] += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self.endpoint.open.discard(self)
        if self.waiting:
            self.waiting = False
            self.endpoint.in_flight -= 1

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self.play()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        first, *lines = self.buffer[:end].decode("latin-1").split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
        whole = end + 4 + int(headers.get("content-length", 0))
        if len(self.buffer) < whole:
            return
        body = bytes(self.buffer[end + 4:whole])
        del self.buffer[:whole]
        method, path = first.split(" ")[:2]
        if path.endswith("/chat/completions"):
            self.chat(headers, body)
        elif path.startswith(("/v1/files", "/v1/batches")):
            self.batch(method, path, body)
        else:
            self.transport.write(self.control(path.rpartition("/")[2], body))

    def batch(self, method: str, path: str, body: bytes) -> None:
        status, reply = self.endpoint.batches.serve(method, path, body)
        if status:
            self.transport.write(http(status, reply))
        else:
            self.transport.abort()

    def control(self, what: str, body: bytes) -> bytes:
        if what == "config":
            self.endpoint.configure(**json.loads(body))
        elif what == "reset":
            self.endpoint.reset()
        elif what != "stats":
            return http(404, error("no such path"))
        return http(200, json.dumps(self.endpoint.stats()).encode())

    def chat(self, headers: dict[str, str], body: bytes) -> None:
        e = self.endpoint
        digest = blake2b(body, digest_size=12).digest()
        tried, arrived = e.tries[digest], e.counts["requests"]
        e.tries[digest] += 1
        e.counts["requests"] += 1
        e.in_flight += 1
        e.max_in_flight = max(e.max_in_flight, e.in_flight)
        self.waiting = True
        if e.settings.keep:
            e.seen.append((headers, json.loads(body)))
        kind = e.fault(digest, tried, arrived)
        seconds = e.settings.latency_ms / 1000 * (1 + e.settings.jitter * digest[2] / 256)
        if e.settings.gather:
            e.gathered.append(lambda: self.answer(kind, headers, body, digest))
            if len(e.gathered) >= e.settings.gather:
                waiting, e.gathered = e.gathered, []
                for answer in waiting:
                    answer()
        elif kind is None or not kind.startswith("4"):
            self.loop.call_later(seconds, self.answer, kind, headers, body, digest)
        else:
            self.answer(kind, headers, body, digest)

    def answer(self, kind: str | None, headers: dict[str, str], body: bytes, digest: bytes) -> None:
        if kind is not None:
            self.endpoint.faults[kind] += 1
        if not self.waiting or kind == "hang":
            return
        self.waiting = False
        self.endpoint.in_flight -= 1
        good, settings = self.endpoint.reply(body, digest), self.endpoint.settings
        if kind is not None:
            whole = good if isinstance(good, bytes) else b""
            self.steps = steps(kind, whole, headers, settings.retry_after, settings.location,
                               settings.headers)
            self.play()
            return
        self.endpoint.note(digest)
        if isinstance(good, bytes):
            self.transport.write(http(200, good))
        else:
            self.steps = streamed(good)
            self.play()

    def play(self) -> None:
        """Take the next step of a fault."""
        if self.paused or self.transport.is_closing():
            return
        step = next(self.steps, "hold")
        if isinstance(step, bytes):
            self.transport.write(step)
            self.loop.call_soon(self.play)
        elif isinstance(step, float):
            self.loop.call_later(step, self.play)
        elif step == "close":
            self.transport.close()
        elif step == "reset":
            # A lingering time of zero makes the kernel send RST instead of FIN.
            raw = self.transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abort()


# Beside the program under test

@dataclass
class Running:
    """An endpoint in a thread or a process."""

    url: str
    endpoint: Endpoint | None = None
    """The endpoint itself, if it runs in this process."""

    def stats(self) -> dict[str, Any]:
        """What happened since the start or the last reset."""
        return self._call("stats")

    def configure(self, **changes: Any) -> None:
        """Change settings and forget all requests so far."""
        self._call("config", json.dumps(changes).encode())

    def reset(self) -> None:
        """Forget all requests so far."""
        self._call("reset", b"{}")

    @property
    def seen(self) -> list[Seen]:
        """Headers and bodies of the last `keep` requests, if the endpoint runs in this process."""
        return list(self.endpoint.seen) if self.endpoint else []

    def _call(self, what: str, body: bytes | None = None) -> dict[str, Any]:
        request = Request(f"{self.url}/{what}", data=body)
        with build_opener(ProxyHandler({})).open(request, timeout=30) as response:
            return cast("dict[str, Any]", json.load(response))


@contextlib.contextmanager
def running_endpoint(
        replies: Replies | None = None, *, process: bool = False, **settings: Any) -> Iterator[Running]:
    """An endpoint for the program under test: in a thread, or in a separate process for measuring."""
    with _in_process(settings) if process else _in_thread(Endpoint(replies, **settings)) as running:
        yield running


@contextlib.contextmanager
def _in_thread(endpoint: Endpoint) -> Iterator[Running]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(endpoint.start(), loop).result()
        yield Running(endpoint.url, endpoint)
    finally:
        asyncio.run_coroutine_threadsafe(endpoint.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextlib.contextmanager
def _in_process(settings: Mapping[str, Any]) -> Iterator[Running]:
    with tempfile.TemporaryDirectory() as folder:
        port_file = Path(folder) / "port"
        command = [sys.executable, "-m", "madplug_testing.endpoint", "--port-file", str(port_file)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            while not port_file.exists():
                if process.poll() is not None:
                    raise RuntimeError(f"the endpoint ended at once, with status {process.returncode}")
                time.sleep(0.01)
            running = Running(f"http://127.0.0.1:{port_file.read_text()}/v1")
            running.configure(**settings)
            yield running
        finally:
            process.terminate()
            process.wait()


async def serve(settings: Mapping[str, Any], port: int, port_file: Path | None) -> None:
    """Run until the process is terminated."""
    endpoint = await Endpoint(**settings).start(port)
    print(endpoint.url, flush=True)
    if port_file:
        beside = port_file.with_name(port_file.name + ".new")
        beside.write_text(endpoint.url.rpartition(":")[2].removesuffix("/v1"))
        beside.replace(port_file)
    await asyncio.Event().wait()


def main() -> None:
    """Run the endpoint from the command line."""
    parser = argparse.ArgumentParser(prog="python -m madplug_testing.endpoint", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0 (the default) takes a free one")
    parser.add_argument("--port-file", type=Path, help="where to write the port once it listens")
    parser.add_argument("--rate", action="append", default=[], metavar="FAULT=SHARE", help="may be repeated")
    parser.add_argument("--faults", default="", metavar="A,B,-", help="of the first requests; - for none")
    for name in ("latency_ms", "jitter", "text", "cap", "gather", "by", "retry_after", "location", "share", "seed",
                 "ledger"):
        default = getattr(Settings, name)
        parser.add_argument("--" + name.replace("_", "-"), type=type(default), default=default)
    given = vars(parser.parse_args())
    port, port_file = given.pop("port"), given.pop("port_file")
    given["rates"] = {kind: float(share) for kind, _, share in (r.partition("=") for r in given.pop("rate"))}
    given["faults"] = [None if f == "-" else f for f in given["faults"].split(",") if f]
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(given, port, port_file))


if __name__ == "__main__":
    main()
