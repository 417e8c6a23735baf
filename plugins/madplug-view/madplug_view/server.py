"""The server: static pages, and studies as JSON. Nothing is written here but the reader's notes on debates."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from madplug import UserError, to_json
from madplug.store import DebateId, find_studies, is_running, open_study
from madplug_view.notes import read_notes
from madplug_view.studies import FIELDS, Search, Study, open_studies

PAGE_FOLDER = Path(__file__).parent / "page"
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
POLL = 0.5
"""Seconds between two looks at a study that is followed."""
SILENCE = 15.0
"""Seconds after which a sign of life is sent."""
MOST_BYTES = 200_000
"""Of a note that is sent."""
MOST_NAMED = 200
"""Changed debates that one event names; if there are more, it says so."""


class Answer(JSONResponse):
    """A value as JSON, records included."""

    def render(self, content: Any) -> bytes:
        """The text of the answer."""
        return to_json(content).encode()


def application(studies: Sequence[Study], folders: Sequence[Path] = (), more: Sequence[Route] = (),
                lifespan: Any = None) -> Starlette:
    """The pages and the data of some studies. Nothing outside their directories can be asked for.

    folders: where they were found; studies that begin there later are added. more, lifespan: of further pages; those
    whose path ends with a slash are linked to, by their names.
    """
    api = Api(studies, folders)
    files = [Route(path, page_file(file)) for path, file in page_files().items()]
    return Starlette(routes=[
        Route("/", page_file(PAGE_FOLDER / "index.html")), *files, *more,
        Route("/api/pages", lambda _: Answer({r.name: r.path for r in more if r.path.endswith("/")})),
        Route("/api/studies", api.studies), Route("/api/studies/list", api.list),
        Route("/api/studies/{number}", api.overview),
        Route("/api/studies/{number}/counts", api.counts),
        Route("/api/studies/{number}/note", api.note, methods=["GET", "PUT"]),
        Route("/api/studies/{number}/page", api.page), Route("/api/studies/{number}/debate", api.debate),
        Route("/api/studies/{number}/calls", api.calls), Route("/api/studies/{number}/text", api.text),
        Route("/api/studies/{number}/contrast", api.contrast), Route("/api/studies/{number}/test", api.test),
        Route("/api/studies/{number}/charts", api.charts),
        Route("/api/studies/{number}/charts/{name}.svg", api.chart),
        Route("/api/studies/{number}/events", api.events)], lifespan=lifespan,
        exception_handlers={UserError: refuse, HTTPException: refuse})


def page_files(folder: Path = PAGE_FOLDER) -> dict[str, Path]:
    """The files of the pages by their paths on the server; a path that is not here is not served."""
    return {f"/{file.relative_to(folder).as_posix()}": file for file in sorted(folder.rglob("*"))
            if file.suffix in KINDS}


def page_file(file: Path) -> Callable[[Request], Any]:
    """Answers with one file."""
    async def answer(request: Request) -> Response:
        return FileResponse(file, media_type=KINDS[file.suffix])

    return answer


async def refuse(request: Request, error: Exception) -> Response:
    """A mistake in an address as a message."""
    if isinstance(error, HTTPException):
        return JSONResponse({"error": error.detail}, error.status_code)
    return JSONResponse({"error": str(error)}, 404)


class Api:
    """The studies as JSON."""

    def __init__(self, studies: Sequence[Study], folders: Sequence[Path] = ()) -> None:
        self._studies = list(studies)
        self._folders = folders

    def _look(self) -> None:
        """Add the studies that have begun since; what cannot be read is looked at again the next time."""
        known = {study.folder for study in self._studies}
        new = [folder for folder in find_studies(self._folders) if Path(os.path.realpath(folder)) not in known]
        with suppress(UserError):
            self._studies += open_studies(new, [study.name for study in self._studies])

    async def studies(self, request: Request) -> Response:
        """Their names, in order."""
        await run_in_threadpool(self._look)
        return Answer([study.name for study in self._studies])

    async def list(self, request: Request) -> Response:
        """The studies with their facts, in order."""
        return Answer(await run_in_threadpool(lambda: [study.listed() for study in self._studies]))

    async def overview(self, request: Request) -> Response:
        """A study's cells."""
        return await self._answer(request, lambda study, q: study.overview(q.get("metric")))

    async def page(self, request: Request) -> Response:
        """Rows of a cell."""
        return await self._answer(request, lambda study, q: study.page(self._search(q)))

    async def counts(self, request: Request) -> Response:
        """How many debates each further filter would leave."""
        return await self._answer(request, lambda study, q: study.counts(self._search(q)))

    async def note(self, request: Request) -> Response:
        """The reader's note on a debate; PUT replaces it."""
        study, id = self._study(request), id_of(request.query_params)
        if request.method != "PUT":
            return Answer(await run_in_threadpool(lambda: read_notes(study.folder).get(id)))
        body = await request.body()
        try:
            note = json.loads(body[:MOST_BYTES])
            tags_are_texts = all(isinstance(tag, str) for tag in note.get("tags") or ())
        except (ValueError, AttributeError, TypeError, RecursionError):
            tags_are_texts = False
        if not tags_are_texts:
            raise UserError("a note is a table with `text` and `tags`")
        return Answer(await run_in_threadpool(study.keep_note, id, note))

    async def debate(self, request: Request) -> Response:
        """A debate."""
        return await self._answer(request, lambda study, q: study.debate(id_of(q)))

    async def calls(self, request: Request) -> Response:
        """What was sent and replied."""
        return await self._answer(request, lambda study, q: study.calls(required(q, "keys").split(",")[:200]))

    async def text(self, request: Request) -> Response:
        """A part of a long message."""
        return await self._answer(request, lambda study, q: study.text(
            id_of(q), number(q, "message"), max(0, number(q, "offset"))))

    async def contrast(self, request: Request) -> Response:
        """The four-fold table of two cells."""
        return await self._answer(request, lambda study, q: study.contrast(*self._two(q)))

    async def test(self, request: Request) -> Response:
        """The paired test of two cells."""
        return await self._answer(request, lambda study, q: study.test(*self._two(q)))

    def _two(self, q: Mapping[str, str]) -> tuple[str, str, str | None, Study | None]:
        """The cells and the metric that are compared, and the study of the second cell if it is another one."""
        return required(q, "first"), required(q, "second"), q.get("metric"), self._other(q)

    async def charts(self, request: Request) -> Response:
        """The charts there are; they are drawn first, which may take a while."""
        return await self._answer(request, lambda study, q: [
            {name: chart[name] for name in ("name", "title", "caption")} for chart in study.charts()])

    async def chart(self, request: Request) -> Response:
        """One chart as a picture."""
        svg = await run_in_threadpool(self._study(request).chart, request.path_params["name"])
        return Response(svg, media_type="image/svg+xml")

    async def events(self, request: Request) -> Response:
        """What is recorded from now on, whichever process writes it."""
        study = self._study(request)
        return StreamingResponse(follow(study, request), media_type="text/event-stream")

    async def _answer(self, request: Request, ask: Callable[[Study, Mapping[str, str]], Any]) -> Response:
        study = self._study(request)
        return Answer(await run_in_threadpool(ask, study, request.query_params))

    def _study(self, request: Request) -> Study:
        return self._nth(number(request.path_params, "number"))

    def _other(self, query: Mapping[str, str]) -> Study | None:
        """The study that another cell is of, if the address names one."""
        return self._nth(number(query, "with")) if query.get("with") else None

    def _search(self, query: Mapping[str, str]) -> Search:
        return replace(search_of(query), study=self._other(query))

    def _nth(self, nth: int) -> Study:
        if nth >= len(self._studies):
            raise UserError(f"there is no study {nth}")
        return self._studies[nth]


async def follow(study: Study, request: Request) -> AsyncIterator[str]:
    """Server-sent events: which debates have changed; they end with the page that listens, or with the server."""
    ending: Callable[[], bool] = getattr(request.app.state, "ending", bool)
    cursor = await run_in_threadpool(_latest, study)
    silent, running = 0.0, is_running(study.folder)
    yield "retry: 1000\n\n"
    while not ending() and not await request.is_disconnected():
        await asyncio.sleep(POLL)
        silent += POLL
        try:
            changed, cursor = await run_in_threadpool(_since, study, cursor)
        except UserError as error:
            yield f"event: problem\ndata: {json.dumps(str(error))}\n\n"
            return
        before, running = running, is_running(study.folder)
        if changed or running != before:  # also when its process has ended, whatever the reason
            silent = 0.0
            told = {"debates": changed[:MOST_NAMED], "more": len(changed) > MOST_NAMED}
            yield f"event: change\ndata: {to_json(told)}\n\n"
        elif silent >= SILENCE:
            silent = 0.0
            yield ": still here\n\n"


def _latest(study: Study) -> str:
    with open_study(study.folder) as reader:
        return reader.latest()


def _since(study: Study, cursor: str | None) -> tuple[list[DebateId], str]:
    with open_study(study.folder) as reader:
        changes, cursor = reader.since(cursor)
        return list(changes.debates), cursor


def search_of(query: Mapping[str, str]) -> Search:
    """What a page of a cell is asked for."""
    chosen = query.get("field")
    if chosen is not None and chosen not in FIELDS:
        raise UserError(f"there is no field '{chosen}'; fields are {', '.join(FIELDS)}")
    return Search(query.get("cell", ""), names_in(query.get("cells")), query.get("order", "sample"),
                  query.get("descending") == "1", query.get("after"),
                  frozenset(filter(None, query.get("traits", "").split(","))), query.get("group", ""),
                  query.get("tag", ""), query.get("text", ""), query.get("other"), None, chosen, query.get("metric"))


def names_in(text: str | None) -> frozenset[str]:
    """Names as a list in JSON."""
    try:
        found = json.loads(text or "[]")
        return frozenset(map(str, found))
    except (ValueError, TypeError, RecursionError):
        raise UserError(f"{text!r:.40} is not a list of cells") from None


def id_of(query: Mapping[str, str]) -> DebateId:
    """The debate that is asked for."""
    return DebateId(required(query, "cell"), number(query, "repeat"), required(query, "sample"))


def required(query: Mapping[str, str], name: str) -> str:
    """A part of the address that must be there."""
    if name not in query:
        raise UserError(f"the address lacks '{name}'")
    return query[name]


def number(query: Mapping[str, str], name: str) -> int:
    """A whole number in the address."""
    text = required(query, name)
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise UserError(f"'{name}' is not a whole number")
    return int(text)
