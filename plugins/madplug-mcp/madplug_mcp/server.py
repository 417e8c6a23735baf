"""The server: its tools, resources and prompts."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.types import (
    CallToolResult,
    Completion,
    CompletionArgument,
    InputRequiredResult,
    ResourceLink,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

from madplug import MadplugError, Observer, count, dollars, to_json
from madplug.study import Registry
from madplug_ask import attachments, told
from madplug_ask import councils as sitting
from madplug_ask.command import write
from madplug_ask.debates import Debates
from madplug_ask.study import model_table
from madplug_mcp.consent import confirmed
from madplug_mcp.notices import Notices, resources_of
from madplug_mcp.turns import NAME, SLOT, ClientSeats

PROGRESS = 10.0
"""Seconds between two messages about progress."""
MOST_MESSAGE, PAGE, MOST_LISTED, MOST_COMPLETED = 200, 12_000, 200, 100
"""Characters of a message about progress, and of a page of a result; debates in a list, and in what completes an id."""
READS = ToolAnnotations(read_only_hint=True)
ASKS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=True)
Method = Literal["council.three_stages", "council.original", "council.ranked", "council.selected", "council.fusion",
                 "council.delphi", "council.dialectic"]
NEXT = {
    "running": "call result(debate={id!r}), or ask again with the same arguments; nothing is paid twice",
    "stopped": "ask again, with a higher max_usd if that has ended it; what was answered is not paid twice",
    "failed": "ask again with the same arguments once the seats can answer, or ask other seats; what was answered is "
              "not paid twice",
    "your_turn": "answer the messages of `turn` yourself, and call take_turn with the answer"}
"""What to do next, by status."""
INSTRUCTIONS = """Ask a council of models: several answer alone, review the answers without names, and a chair \
writes the answer. Everything is recorded. A question that takes longer than wait_seconds goes on: call `result` with \
its id, or `ask` again with the same arguments, which costs nothing twice. Call `estimate` first where cost matters."""


@dataclass(frozen=True)
class Settings:
    """What a server allows."""

    base: Path = sitting.FOLDER
    allow: Path | None = None
    """The directory whose files may be read; None: no file."""
    read_only: bool = False
    usd_a_question: float | None = None
    usd_a_day: float | None = None
    council: str | None = None
    """The council that is asked unless another is named."""
    settings: tuple[str, ...] = ()
    confirm_usd: float | None = None
    """What a question may cost before the person at the client is asked; None: nobody is."""
    client_seat: bool = False
    """Whether the client's own model has a seat in every council."""


class Seat(BaseModel):
    """What became of a seat."""

    name: str
    model: str | None
    status: Literal["ok", "failed", "waiting", "silent"]
    error: str | None = None
    answer: str = ""
    place: float | None = None


class Turn(BaseModel):
    """What the client's own model is asked: answer as if these were your messages, then call `take_turn`."""

    turn: str
    messages: list[dict[str, Any]]


class Answer(BaseModel):
    """A debate in short. `partial`: seats in `missing` were not heard; say so before the answer."""

    debate: str
    status: Literal["decided", "undecided", "partial", "running", "stopped", "your_turn", "failed"]
    turn: Turn | None = None
    missing: list[str] = []
    answer: str | None = None
    decided_by: str = ""
    agreement: float | None = None
    dissent: dict[str, str] = {}
    """Of a question with choices."""
    tie: bool = False
    seats: list[Seat] = []
    votes: list[dict[str, Any]] = []
    analysis: dict[str, Any] | None = None
    rounds: int = 0
    calls: int = 0
    tokens: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
    next: str = ""
    links: list[str] = []
    text: str = ""
    """A page of a part."""
    page: int = 1
    pages: int = 1


class Expected(BaseModel):
    """What a question may take."""

    calls_at_most: int
    usd_low: float | None
    usd_high: float | None
    seconds_p50: float | None
    """The median of recent questions to the same seats."""
    based_on: str


Told = Annotated[CallToolResult, Answer]
Wait = Annotated[float, Field(ge=0, le=3600, description="seconds to wait; the debate goes on after that")]
Council = Annotated[str | None, Field(description="a council of the tool `councils`, or auto")]


class Seated(BaseModel):
    """A seat that is told who it is."""

    model: str
    role: str


Seats = Annotated[dict[str, str | Seated] | None, Field(
    description="instead of a council: PLUGIN:MODEL by name, as {\"small\": \"openai:gpt-4o-mini\"}, or with a role")]
Files = Annotated[list[str] | None, Field(description="text files that the question is about")]
Way = Annotated[Method | None, Field(description="how it is held; default: the council's own, three stages")]
Rounds = Annotated[int | None, Field(ge=1, le=10, description="stages before the decision; 1: answers, no reviews")]
Tie = Literal["undecided", "no", "chair"]
HALF = 0.5
UNDECIDED: Tie = "undecided"
MARKDOWN = "text/markdown"
KINDS = {"record": "application/json", "page": "text/html"}
Share = Annotated[float, Field(ge=0, lt=1, description="yes needs a greater share of the votes")]
Budget = Annotated[float | None, Field(ge=0, description="start no call once so many US dollars are spent; needs "
                                       "models with known prices")]


def server_of(allowed: Settings, **options: Any) -> MCPServer[Any]:
    """The server. options: of `MCPServer`."""
    seats, bus = ClientSeats(), InMemorySubscriptionBus()

    @contextmanager
    def around(debate: str) -> Iterator[Sequence[Observer]]:
        with seats.around(debate):
            yield [Notices(bus, debate)]

    debates = Debates(allowed.base, allowed.usd_a_day, around)

    @asynccontextmanager
    async def lifespan(_: MCPServer[Any]) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await debates.close()

    server = MCPServer("madplug", instructions=INSTRUCTIONS, lifespan=lifespan, subscriptions=bus, **options)
    tools = Tools(debates, allowed, seats)
    asking: tuple[Callable[..., Any], ...] = () if allowed.read_only else (tools.ask, tools.verdict)
    asking += (tools.take_turn,) if asking and allowed.client_seat else ()
    reading: tuple[Callable[..., Any], ...] = (tools.result, tools.estimate, tools.history, tools.councils)
    for tool in (*asking, *reading):
        server.tool(annotations=ASKS if tool in asking else READS)(tool)
    _add_resources(server, debates)
    _add_prompts(server)
    return server


class Tools:
    """The tools; their docstrings are what an assistant reads."""

    def __init__(self, debates: Debates, allowed: Settings, seats: ClientSeats) -> None:
        self._debates = debates
        self._seats = seats
        self._allowed = allowed

    async def ask(self, ctx: Context, question: Annotated[str, Field(min_length=1, max_length=256_000)],
                  council: Council = None, seats: Seats = None, chair: str | None = None,
                  method: Way = None, rounds: Rounds = None, choices: list[str] | None = None,
                  context: str | None = None, files: Files = None, follow: str | None = None, max_usd: Budget = None,
                  wait_seconds: Wait = 240, again: bool = False) -> Told | InputRequiredResult:
        """Ask several models one question; they review each other, and a chair answers. Same arguments, same debate:
        nothing is paid twice, unless again."""
        with _told():
            asked = self._asked(question, council, seats, chair, method, rounds, choices, context, files, follow,
                                max_usd)
            return await self._hold(asked, again, wait_seconds, ctx)

    async def verdict(self, ctx: Context, claim: Annotated[str, Field(min_length=1, max_length=256_000)],
                      criteria: str | None = None, council: Council = None, seats: Seats = None,
                      threshold: Share = HALF, tie: Tie = UNDECIDED,
                      context: str | None = None, files: Files = None, max_usd: Budget = None,
                      wait_seconds: Wait = 240, again: bool = False) -> Told | InputRequiredResult:
        """Have several models vote yes or no on a claim, each with a confidence and a reason. `answer` is yes, no or
        null; `votes` has the ballots."""
        with _told():
            question = f"{claim}\n\nCriteria: {criteria}" if criteria else claim
            asked = self._asked(question, council, seats, None, sitting.JURY, None, None, context, files, None, max_usd)
            rule = {"threshold": (threshold, HALF), "tie": (tie, UNDECIDED)}
            changes = [f"debate.decision.{key}={value}" for key, (value, usual) in rule.items() if value != usual]
            asked = replace(asked, settings=(*asked.settings, *changes))
            return await self._hold(asked, again, wait_seconds, ctx)

    async def take_turn(self, ctx: Context, debate: str, turn: str,
                        text: Annotated[str, Field(min_length=1, max_length=256_000)],
                        wait_seconds: Wait = 240) -> Told:
        """Give your own answer to the messages of a turn that `ask` returned with the status your_turn. Answer them
        by yourself, without what you know of the other seats."""
        with _told():
            self._debates.folder(debate)
            self._seats.of(debate).answer(turn, text)
            return await self._answer(debate, wait_seconds, ctx, None)

    async def result(self, ctx: Context, debate: str, wait_seconds: Wait = 240,
                     part: Literal["summary", "answers", "prompts", "record"] = "summary",
                     page: Annotated[int, Field(ge=1)] = 1) -> Told:
        """A debate by its id, waiting if it still runs. summary; answers: answers and reviews in full, as Markdown;
        prompts: what each model was sent and replied; record: the debate as JSON. All but the first in pages."""
        with _told():
            if not self._allowed.read_only:
                self._debates.resume(debate)
            if part == "summary":
                return await self._answer(debate, wait_seconds, ctx, None)
            found = self._debates.debate(debate)
            text = "" if found is None else told.markdown(found) if part == "answers" else to_json(found) \
                if part == "record" else told.prompts(self._debates.folder(debate))
            status: Any = self._debates.status(debate, told.told(found)["status"] if found else "running")
            return result_of(Answer(debate=debate, status=status, page=page, pages=max(1, -(-len(text) // PAGE)),
                                    text=text[PAGE * (page - 1):PAGE * page], links=resources_of(debate)))

    def estimate(self, question: Annotated[str, Field(min_length=1, max_length=256_000)], council: Council = None,
                 seats: Seats = None, chair: str | None = None, method: Way = None, rounds: Rounds = None,
                 choices: list[str] | None = None, context: str | None = None, files: Files = None,
                 follow: str | None = None) -> Expected:
        """What `ask` may take. No model is asked."""
        with _told():
            asked = self._asked(question, council, seats, chair, method, rounds, choices, context, files, follow, None,
                                registry := Registry())  # in a thread of its own
            resolved = asked.resolve(registry)
            found, took = sitting.estimate(resolved), self._debates.seconds_of(resolved)
            low, high = found.usd or (None, None)
            return Expected(calls_at_most=found.calls, usd_low=low, usd_high=high,
                            seconds_p50=round(median(took), 1) if took else None,
                            based_on="a trial without a model, with replies of 100 tokens and as long as can be; "
                                     f"seconds: {count(len(took), 'earlier question')} to the same seats")

    def history(self, query: str = "", limit: Annotated[int, Field(ge=1, le=MOST_LISTED)] = 20,
                before: Annotated[str, Field(description="only of days before this one, as 2026-11-23")] = "",
                ) -> list[dict[str, Any]]:
        """Recorded debates whose question or answer has these words, the newest first."""
        with _told():
            return self._debates.history(query, limit, before)

    def councils(self) -> dict[str, Any]:
        """The councils that can be asked: their chairs and methods, and seats with models, prices (US dollars per
        million tokens) and what keeps this machine from asking them. `auto` is what has a key or runs here."""
        with _told():
            return {"default": self._allowed.council, "councils": sitting.offered(Registry())}

    def _asked(self, question: str, council: str | None, seats: Mapping[str, str | Seated] | None, chair: str | None,
               method: str | None, rounds: int | None, choices: Sequence[str] | None, context: str | None,
               files: Sequence[str] | None, follow: str | None, max_usd: float | None,
               registry: Registry | None = None) -> sitting.Asked:
        allowed, registry = self._allowed, registry or self._debates.registry
        named = {name: one if isinstance(one, str) else {**model_table(registry, one.model), "role": one.role}
                 for name, one in (seats or {}).items()}
        found = sitting.chosen(registry, council or (None if seats else allowed.council), named, chair, method)
        if allowed.client_seat:
            found = replace(found, seats={**found.seats, NAME: SLOT})
        if files and allowed.allow is None:
            raise ToolError("this server reads no files; send their text as context")
        passages = [attachments.earlier(self._debates.folder(follow))] if follow else []
        passages += [attachments.passage("Context", context)] if context else []
        passages += [attachments.file_passage(Path(allowed.allow or "", name), allowed.allow) for name in files or ()]
        limits = [usd for usd in (max_usd, allowed.usd_a_question) if usd is not None]
        settings = (*allowed.settings, *([f"debate.rounds={rounds}"] if rounds else []))
        return sitting.Asked(question, found, tuple(choices or ()), tuple(passages), settings=settings,
                             max_usd=min(limits, default=None))

    async def _hold(self, asked: sitting.Asked, again: bool, seconds: float,
                    ctx: Context) -> Told | InputRequiredResult:
        """Ask, once the cost is confirmed where that is wanted."""
        most = self._allowed.confirm_usd
        if most is not None and not self._debates.is_known(asked, again=again) and \
                (first := await confirmed(ctx, asked, most)) is not None:
            return first
        id = self._debates.start(asked, again=again)
        most_calls = asked.resolve(self._debates.registry).plan.cells[0].worst_calls()
        return await self._answer(id, seconds, ctx, most_calls)

    async def _answer(self, id: str, seconds: float, ctx: Context, most: int | None) -> CallToolResult:
        """Wait, with messages about progress, and tell what there is."""
        self._debates.folder(id)
        began, told_of, turns = monotonic(), 0.0, self._seats.of(id)
        until = began + seconds
        while True:
            await self._debates.wait(id, max(0.0, min(until - monotonic(), PROGRESS)), turns.opened)
            found, turn = self._debates.debate(id), turns.first()
            if turn or not self._debates.runs(id) or monotonic() >= until:
                break
            now = told.progress(self._debates.folder(id))
            told_of = max(told_of + 0.001, float(now.calls))
            text = f"{now.text[:MOST_MESSAGE - 10]} ({monotonic() - began:.0f} s)"
            await ctx.report_progress(told_of, most, text)
        now = told.progress(self._debates.folder(id))
        facts = told.told(found) if found else {"status": "running"}
        status = "your_turn" if turn else self._debates.status(id, facts["status"])
        if facts["status"] == "running":
            facts |= {"calls": now.calls, "cost_usd": now.cost_usd, "decided_by": self._debates.problems.get(id, "")}
        following = NEXT.get(status, "")
        if len(answer := facts.get("answer") or "") > PAGE:
            facts["answer"] = f"{answer[:PAGE]}..."
            following = "the answer in full: result(debate={id!r}, part='answers')"
        return result_of(Answer(**{**facts, "debate": id, "status": status, "next": following.format(id=id),
                                   "turn": turn, "links": resources_of(id)}))


def result_of(answer: Answer) -> CallToolResult:
    """A result as data, in words for those who read no data, and with links to the record."""
    links = [ResourceLink(uri=uri, name=uri.partition("://")[2], mime_type=KINDS.get(uri.rpartition("/")[2], MARKDOWN))
             for uri in answer.links]
    return CallToolResult(content=[TextContent(text="\n\n".join(filter(None, _words(answer)))), *links],
                          structured_content=answer.model_dump(mode="json"), is_error=answer.status == "failed")


def _words(answer: Answer) -> Iterator[str]:
    """What stands in the text of a result."""
    yield f"{answer.status} (debate {answer.debate})"
    yield from (f"Not heard: {line}" for line in answer.missing)
    yield answer.answer or ""
    yield answer.decided_by and f"({answer.decided_by})"
    yield "\n".join(f"{name} answered otherwise: {said}" for name, said in answer.dissent.items())
    yield "\n".join(f"{vote['seat']}: {vote['vote']}. {vote['reason']}" for vote in answer.votes)
    yield f"{answer.text}\n\n(page {answer.page} of {answer.pages})" if answer.text else ""
    yield answer.turn.model_dump_json() if answer.turn else ""
    cost = f", ${dollars(answer.cost_usd)}" if answer.cost_usd else ""
    yield f"{count(answer.calls, 'call')}{cost}, {answer.seconds:.0f} s" if answer.seats else ""
    yield answer.next


@contextmanager
def _told() -> Any:
    """What the user can change is the tool's error, in words; anything else is the server's fault."""
    try:
        yield
    except MadplugError as error:
        raise ToolError(str(error)) from None


def _add_resources(server: MCPServer[Any], debates: Debates) -> None:
    def add(uri: str, kind: str, text: Callable[..., str]) -> None:
        server.resource(uri, mime_type=kind)(text)

    def listed() -> str:
        """Recorded debates."""
        return json.dumps([{"debate": id, "question": debate.sample.question} for id, debate, _ in debates.all()])

    def debate(id: str) -> str:
        """A debate as Markdown."""
        found = debates.debate(id)
        return "not begun" if found is None else told.markdown(found)

    def record(id: str) -> str:
        """Everything on record of a debate, as JSON."""
        return to_json(debates.debate(id))

    def page(id: str) -> str:
        """A debate as a page in one HTML file, with madplug-view."""
        with TemporaryDirectory() as folder:
            write(debates.folder(id), file := Path(folder) / "debate.html")
            return file.read_text(encoding="utf-8")

    def councils() -> str:
        """The councils that can be asked."""
        return json.dumps(sitting.offered(Registry()))

    def methods() -> str:
        """The ways to hold a council."""
        offers = Registry().of_plugin("council")
        return "\n".join(f"* `{o.name}`: {o.summary}" for o in offers if o.kind == "paradigm")

    add("madplug://debates", "application/json", listed)
    add("madplug://debates/{id}", "text/markdown", debate)
    add("madplug://debates/{id}/record", "application/json", record)
    add("madplug://debates/{id}/page", "text/html", page)
    add("madplug://councils", "application/json", councils)
    add("madplug://methods", "text/markdown", methods)

    async def complete(ref: Any, argument: CompletionArgument, _: Any) -> Completion | None:
        """The ids of debates, or the councils, that begin with what is typed."""
        if argument.name not in ("id", "council"):
            return None
        names = (id for id, *_ in debates.all()) if argument.name == "id" else ("auto", *sitting.councils())
        found = [name for name in names if name.startswith(argument.value)]
        return Completion(values=found[:MOST_COMPLETED], total=len(found))

    completes: Any = server.completion  # has no types
    completes()(complete)


def _add_prompts(server: MCPServer[Any]) -> None:
    @server.prompt()
    def council(question: str, council: str = "") -> str:
        """Ask the council, and report its answer."""
        which = f", council {council!r}" if council else ""
        return (f"Ask the council with the tool `ask`{which}:\n\n{question}\n\nReport its answer. If the status is "
                "partial, say first who was not heard. Then say where the seats disagreed.")

    @server.prompt()
    def verdict(claim: str) -> str:
        """Have the council vote on a claim."""
        return (f"Have the council vote with the tool `verdict` on this claim:\n\n{claim}\n\nReport the verdict, the "
                "votes and the strongest reason on each side.")

    @server.prompt()
    def review_diff(revision: str = "HEAD") -> str:
        """Have the council review a change."""
        return (f"Run `git diff {revision}` and give its output to the tool `ask` as context, with the question what "
                "is wrong, risky or missing in this change. Check each point against the code before you report it.")
