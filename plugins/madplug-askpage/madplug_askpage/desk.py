"""The page's side of the server: questions are asked, followed, stopped, decided again, picked from and exported."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from madplug import MessageRecorded, Observer, UserError, to_json
from madplug import Request as Asking
from madplug.store import open_study
from madplug.study import Registry, Session
from madplug_ask import attachments
from madplug_ask.command import write
from madplug_ask.councils import FOLDER, Asked, chosen, estimate, offered, parsed_seats
from madplug_ask.debates import Debates
from madplug_ask.told import recorded
from madplug_askpage.picks import Picks, blind_order
from madplug_askpage.shown import RULES, shown
from madplug_prompting.streaming import listening_to
from madplug_redecide.deciding import Redecider, resolve_again, without_paying
from madplug_view.server import Answer, page_file, page_files

PAGE = Path(__file__).parent / "page"
MOST_BODY = 12_000_000
"""Bytes of a request."""
POLL, SILENCE = 0.25, 15.0
"""Seconds between two looks at a debate that is followed, and after which a sign of life is sent."""
MOST_LISTED = 200
__all__ = ["FOLDER", "Desk"]
Words = Annotated[str, StringConstraints(min_length=1, max_length=256_000)]


class File(BaseModel):
    """A text file, as the browser has read it."""

    name: str = Field(max_length=200)
    text: str


class Question(BaseModel):
    """What the form sends."""

    model_config = ConfigDict(extra="forbid")
    question: Words
    council: str | None = None
    seats: list[str] = []
    """Instead of a council: NAME=MODEL each."""
    only: list[str] = []
    """The seats of the council that are asked; none: all."""
    chair: str | None = None
    method: str | None = None
    choices: list[str] = []
    files: list[File] = []
    images: list[str] = []
    follow: str | None = None
    max_usd: float | None = Field(None, ge=0)
    blind: bool = False
    again: bool = False


class Drafts(Observer):
    """The replies of a debate that are being written."""

    name = "drafts"

    def __init__(self) -> None:
        super().__init__()
        self._replies: dict[tuple[int | None, str], list[str]] = {}

    def listen(self, request: Asking) -> Callable[[str], None]:
        """Take a reply down from its beginning."""
        pieces = self._replies[request.agent, request.purpose] = list[str]()
        return pieces.append

    def message_recorded(self, event: MessageRecorded) -> None:
        """What has become a message is no draft; this may be told when the next one is being written."""
        said = event.message
        for (agent, purpose), pieces in list(self._replies.items()):
            is_of = said.move == "review" if purpose == "review" else said.content in "".join(pieces)
            if agent == said.agent and is_of:
                del self._replies[agent, purpose]

    def texts(self) -> dict[tuple[int | None, str], str]:
        """What is being written, by agent and purpose."""
        return {key: "".join(pieces) for key, pieces in list(self._replies.items())}


class Desk:
    """The questions of a directory, and the addresses under which the page asks for them."""

    def __init__(self, base: Path) -> None:
        self.base = base.absolute()
        self._debates = Debates(self.base, around=self._listening)
        self._picks = Picks(self.base)
        self._drafts: dict[str, Drafts] = {}

    def routes(self) -> list[Route]:
        """The page, its files and what it asks for."""
        reads: dict[str, Callable[[Request], Any]] = {"councils": self._councils, "history": self._history,
                                                      "picks": self._table}
        of_one: dict[str, Callable[[str, Any], Awaitable[Any]]] = {
            "stop": self._stop, "resume": self._resume, "decide": self._decide, "pick": self._pick}
        return [
            Route("/ask/", page_file(PAGE / "index.html"), name="Ask a council"),
            *(Route(f"/ask{path}", page_file(file)) for path, file in page_files(PAGE).items()),
            *(Route(f"/ask/api/{name}", _get(answer)) for name, answer in reads.items()),
            Route("/ask/api/estimate", _post(self._estimate), methods=["POST"]),
            Route("/ask/api/ask", _post(self._ask), methods=["POST"]),
            *(Route(f"/ask/api/{{id}}/{name}", _post_one(answer), methods=["POST"]) for name, answer in of_one.items()),
            Route("/ask/api/{id}/events", self._events), Route("/ask/api/{id}/export.{kind}", self._export)]

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Debates that run when the server ends are interrupted; they go on when they are asked for again."""
        yield
        await self._debates.close()

    @contextmanager
    def _listening(self, id: str) -> Iterator[Sequence[Observer]]:
        drafts = self._drafts[id] = Drafts()
        with listening_to(drafts.listen):
            yield [drafts]
        del self._drafts[id]

    # Before anything is asked

    def _councils(self, request: Request) -> Any:
        registry = Registry()
        methods = {offer.name: offer.summary for offer in registry.of_plugin("council") if offer.kind == "paradigm"}
        return {"councils": offered(registry), "methods": methods}

    def _history(self, request: Request) -> Any:
        found = self._debates.history(request.query_params.get("query", ""), MOST_LISTED)
        for row in found:
            if self._picks.hides(row["debate"]):
                row["answer"] = ""
        return found

    def _table(self, request: Request) -> Any:
        return self._picks.table()

    async def _estimate(self, body: Any) -> Any:
        asked = self._asked(_read(body))
        found = await run_in_threadpool(lambda: estimate(asked.resolve()))
        return {"text": found.text, "seats": len(asked.council.seats)}

    def _asked(self, q: Question) -> Asked:
        council = chosen(self._debates.registry, q.council, parsed_seats(q.seats), q.chair, q.method, q.only)
        passages = [attachments.earlier(self._debates.folder(q.follow))] if q.follow else []
        passages += [attachments.sent_passage(file.name, file.text) for file in q.files]
        for image in q.images:
            attachments.check_image(image)
        return Asked(q.question, council, tuple(filter(None, q.choices)), tuple(passages), tuple(q.images),
                     max_usd=q.max_usd)

    # One question

    async def _ask(self, body: Any) -> Any:
        question = _read(body)
        id = self._debates.start(self._asked(question), again=question.again)
        if question.blind and not (self.base / id).exists():  # what is on record may have been read with names
            self._picks.hide(id)
        return {"id": id}

    async def _stop(self, id: str, body: Any) -> Any:
        await self._debates.stop(id)

    async def _resume(self, id: str, body: Any) -> Any:
        """body: whether to go on beyond the budget."""
        self._debates.resume(id, unlimited=bool(body))

    async def _pick(self, id: str, body: Any) -> Any:
        """body: the place of the answer that is picked, or None to see the names without a pick."""
        debate = self._debates.debate(id)
        state = shown(self._debates.folder(id), self._picks, runs=False)
        gave = [seat["id"] for seat in state["seats"] if seat["answer"]]
        if debate is None or (body is not None and body not in gave):
            raise UserError("there is no such answer to pick")
        order = blind_order(id, len(debate.agents))
        names = {place: debate.agents[order[place]].persona.name for place in gave}
        self._picks.pick(id, None if body is None else names[body], sorted(names.values()))

    async def _decide(self, id: str, body: Any) -> Any:
        """body: the name of a rule. What it would have decided; no call is made."""
        if body not in RULES:
            raise UserError(f"{body!r:.40} is no rule; rules are {', '.join(RULES)}")
        folder = self._debates.folder(id)
        with open_study(folder) as study, TemporaryDirectory() as output:
            resolved = resolve_again(folder, [{"debate": {"decision": RULES[body][1]}}], phases=False, yes=True)
            without_paying(resolved)
            resolved.reuse = (folder,)
            again = Redecider(study)
            with Session(resolved, Path(output)) as session:
                await session.run(runner=again.run, samples=again.samples)
            found = recorded(Path(output))
        decision = found.decision if found else None
        if decision is None:
            raise UserError(found.error if found and found.error else "this rule cannot decide this debate")
        return {"answer": decision.answer, "reason": decision.reason, "tie": decision.tie}

    async def _events(self, request: Request) -> Response:
        folder = self._debates.folder(request.path_params["id"])
        return StreamingResponse(self._follow(folder, request), media_type="text/event-stream")

    async def _follow(self, folder: Path, request: Request) -> AsyncIterator[str]:
        """Server-sent events: the debate whenever it has changed, and what is being written; until it has ended."""
        ending: Callable[[], bool] = getattr(request.app.state, "ending", bool)
        sent: dict[str, str] = {}
        silent = 0.0
        while not ending() and not await request.is_disconnected():
            runs = self._debates.runs(folder.name)
            now = {"state": await run_in_threadpool(self._state, folder, runs), "drafts": self._written(folder.name)}
            for event, value in now.items():
                if sent.get(event) != (text := to_json(value)):
                    sent[event], silent = text, 0.0
                    yield f"event: {event}\ndata: {text}\n\n"
            if not runs and now["state"]["status"] != "running":
                yield "event: end\ndata: {}\n\n"
                return
            silent += POLL
            if silent >= SILENCE:
                silent = 0.0
                yield ": \n\n"
            await asyncio.sleep(POLL)

    def _state(self, folder: Path, runs: bool) -> dict[str, Any]:
        try:
            state = shown(folder, self._picks, runs=runs)
        except UserError:
            if not runs:
                raise
            state = {"id": folder.name, "status": "running", "question": "", "seats": []}
        return {**state, "problem": self._debates.problems.get(folder.name),
                "limited": folder.name in self._debates.limited}

    def _written(self, id: str) -> dict[str, str]:
        """What is being written, by seat, or `chair`; of what has no names yet, opinions alone.

        A review begins before the opinion is known to be a message, and does not hide it until then.
        """
        texts = self._drafts[id].texts() if id in self._drafts else {}
        texts = dict(sorted(texts.items(), key=lambda draft: draft[0][1] != "review"))
        if not self._picks.hides(id):
            return {"chair" if agent is None else str(agent): text for (agent, _), text in texts.items()}
        debate = self._debates.debate(id)
        places = {agent: place for place, agent in enumerate(blind_order(id, len(debate.agents) if debate else 0))}
        return {str(places[agent]): text for (agent, purpose), text in texts.items()
                if agent in places and purpose in ("discuss", "ballot")}

    async def _export(self, request: Request) -> Response:
        kind, folder = request.path_params["kind"], self._debates.folder(request.path_params["id"])
        if kind not in ("md", "html"):
            raise UserError(f"'{kind}' is no kind of export; kinds are md and html")
        with TemporaryDirectory() as output:
            path = Path(output) / f"{folder.name}.{kind}"
            await run_in_threadpool(write, folder, path)
            text = path.read_text(encoding="utf-8")
        return Response(text, media_type="application/octet-stream",
                        headers={"content-disposition": f'attachment; filename="{path.name}"'})


def _read(body: Any) -> Question:
    try:
        return Question.model_validate(body)
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_input=False))
        raise UserError("; ".join(problems)) from None


def _get(answer: Callable[[Request], Any]) -> Callable[[Request], Awaitable[Response]]:
    async def get(request: Request) -> Response:
        return Answer(await run_in_threadpool(answer, request))

    return get


def _post(answer: Callable[[Any], Awaitable[Any]]) -> Callable[[Request], Awaitable[Response]]:
    async def post(request: Request) -> Response:
        return await _told(request, answer)

    return post


def _post_one(answer: Callable[[str, Any], Awaitable[Any]]) -> Callable[[Request], Awaitable[Response]]:
    async def post(request: Request) -> Response:
        return await _told(request, lambda body: answer(request.path_params["id"], body))

    return post


async def _told(request: Request, answer: Callable[[Any], Awaitable[Any]]) -> Response:
    """The answer to a body of JSON; a mistake of the user in words."""
    size, parts = 0, []
    async for part in request.stream():
        size += len(part)
        if size > MOST_BODY:
            return JSONResponse({"error": f"the question and its files have more than {MOST_BODY:,} bytes"}, 413)
        parts.append(part)
    try:
        body = json.loads(b"".join(parts) or b"null")
    except (ValueError, RecursionError):
        return JSONResponse({"error": "the request is not JSON"}, 400)
    try:
        return Answer(await answer(body))
    except UserError as error:
        return JSONResponse({"error": str(error)}, 400)
