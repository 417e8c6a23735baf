"""The page of one person: what waits for an answer, and the server that shows it and takes answers.

An answer is acknowledged only once it is on record. Until then the browser has it, and sends it again if the study was
killed meanwhile and asks the same again.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as Asked
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from madplug import Request, plain, to_json
from madplug_view.command import in_address
from madplug_view.connections import Patience
from madplug_view.guard import Guard, host_names
from madplug_view.listening import Listening
from madplug_view.server import page_file, page_files

PAGE = Path(__file__).parent / "page"
LONGEST = 1_000_000
"""Bytes of an answer."""
_LITERAL = r"(?:[^\\()\[\]{}|*+?.^$]|\\\W)*"
_LAST_LINE = re.compile(rf"(?P<before>{_LITERAL})\((?P<choices>{_LITERAL}(?:\|{_LITERAL})+)\)(?P<after>{_LITERAL})")


@dataclass
class Waiting:
    """A request that a person is to answer."""

    request: Request
    answer: asyncio.Future[str]
    kept: asyncio.Event = field(default_factory=asyncio.Event)


class Desk:
    """A person's page while a study runs; made on the event loop, which then serves it."""

    def __init__(self, person: str, host: str, port: int, token: str) -> None:
        self._person = person
        self._asked: dict[str, Waiting] = {}
        self._kept: set[str] = set()
        listener = Listening(host, port)
        port = listener.getsockname()[1]
        self.address = f"http://{in_address(host)}:{port}/?token={token}"
        app: Any = Guard(self._application(), token, port, host_names(host), writes="/answer")
        self._server = _Server(uvicorn.Config(
            app, log_level="error", access_log=False, server_header=False, lifespan="off",
            timeout_graceful_shutdown=2, ws="none", http=Patience))
        self._serving = asyncio.ensure_future(self._server.serve(sockets=[listener]))

    async def answer(self, request: Request) -> str:
        """The person's answer to a request."""
        id = id_of(request)
        waiting = self._asked[id] = Waiting(request, asyncio.get_running_loop().create_future())
        try:
            return await waiting.answer
        except asyncio.CancelledError:
            del self._asked[id]
            raise

    def kept(self, request: Request) -> None:
        """The answer to a request is on record."""
        id = id_of(request)
        self._kept.add(id)
        self._asked.pop(id).kept.set()

    async def close(self) -> None:
        """Stop serving, once what is being acknowledged is."""
        self._server.should_exit = True
        await self._serving

    # What the page asks for

    def _application(self) -> Starlette:
        files = page_files() | {"/": PAGE / "index.html"} | {f"/{file.name}": file for file in PAGE.iterdir()}
        return Starlette(routes=[
            *(Route(path, page_file(file)) for path, file in files.items()),
            Route("/api/requests", self._list), Route("/api/requests/{id}", self._one),
            Route("/api/requests/{id}/answer", self._take, methods=["PUT"])])

    async def _list(self, asked: Asked) -> Response:
        """What waits, the oldest first."""
        waiting = [id for id, found in self._asked.items() if not found.answer.done()]
        return JSONResponse({"person": self._person, "waiting": waiting})

    async def _one(self, asked: Asked) -> Response:
        """A request as a model would get it."""
        found = self._asked.get(asked.path_params["id"])
        if found is None:
            return _refuse(404, "this request does not wait for an answer")
        request = found.request
        return Response(to_json({"messages": plain(request.messages), "form": plain(request.form),
                                 "lines": list(last_lines(request))}), media_type="application/json")

    async def _take(self, asked: Asked) -> Response:
        """An answer; the reply comes when it is on record."""
        id = asked.path_params["id"]
        if id in self._kept:
            return JSONResponse({"kept": True})
        found = self._asked.get(id)
        if found is None:
            return _refuse(404, "this request does not wait for an answer")
        text = await _text(asked)
        if text is None:
            return _refuse(400, f'an answer is {{"text": ...}}, not empty, of at most {LONGEST:,} bytes')
        if not found.answer.done():
            found.answer.set_result(text)
        await found.kept.wait()
        return JSONResponse({"kept": True})


class _Server(uvicorn.Server):
    """A server inside a program that has its own handlers of signals."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them as they are."""
        yield


async def _text(asked: Asked) -> str | None:
    """The text of an answer, or None if there is none."""
    body = b""
    async for part in asked.stream():
        body += part
        if len(body) > LONGEST:
            return None
    try:
        text = json.loads(body)["text"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return text if isinstance(text, str) and text.strip() else None


def _refuse(status: int, why: str) -> Response:
    return JSONResponse({"error": why}, status)


def id_of(request: Request) -> str:
    """Identifies a request in its study, whenever that is resumed: its seed tells its call from others."""
    text = to_json([request.seed, request.agent, request.messages])
    return blake2b(text.encode(), digest_size=12).hexdigest()


def last_lines(request: Request) -> Iterator[str]:
    """The last lines between which the form of a reply lets one choose: `Final answer: (A)`, `Final answer: (B)`."""
    pattern = str((request.form or {}).get("regex", ""))
    last = re.split(r"\\n\)\?|\\n|\n", pattern)[-1]
    if "(" not in last and "|" in last:
        last = f"({last})"
    found = _LAST_LINE.fullmatch(last.replace(r"\(", "\0").replace(r"\)", "\1"))
    for choice in found["choices"].split("|") if found else ():
        line = f"{found['before']}{choice}{found['after']}" if found else ""
        yield re.sub(r"\\(\W)", r"\1", line).replace("\0", "(").replace("\1", ")")
