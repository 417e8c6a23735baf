"""Serving a study in its directory: from the run file to the summary, until a signal ends it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aiohttp import web

from madplug import DebateFinished, DebateResult, Observer, UserError, count, safe
from madplug.study import (
    FINISHED,
    INTERRUPTED,
    LIMIT,
    SOME_FAILED,
    STOPPING,
    Registry,
    ResolvedStudy,
    Resolver,
    Session,
    StudyRun,
    check_folder,
    collect_rarely,
    echo,
    interruptible,
    read,
)
from madplug_serve.debates import Debates
from madplug_serve.web import Api
from madplug_view.listening import Listening

LAST_REPLIES = 60.0
"""Seconds that requests have to end once the server is being stopped; a debate stops after its calls in flight."""
IDLE = 30.0
"""Seconds after which a connection is closed that has sent no request, or not all headers of one."""
CONVERSATIONS = "serve.conversations"


@dataclass(frozen=True)
class Address:
    """Where the server listens, and what it asks of clients."""

    host: str = "127.0.0.1"
    port: int = 8642
    """0 chooses a free one."""
    key: str | None = None
    template: str = "{answer}"
    timeout: float | None = None
    """Seconds for one request."""
    made: str = ""
    """The variable that could have had the key, if there was none in it: the new key is shown once, stored nowhere."""


def resolve_served(path: Path, settings: Sequence[str] = ()) -> tuple[ResolvedStudy, list[str]]:
    """The study of a run file, with the conversations of clients in the place of its data, and a sentence on each thing
    that it leaves out: cells that are matched to another one's debate of the same sample, `repeats`, `[execution]`.

    Observers and limits apply. Raises `UserError`.
    """
    registry = Registry()
    table = read(path, settings)
    table.setdefault("dataset", {"use": CONVERSATIONS})
    named = Resolver(table, path.parent, registry).resolve()
    own = {cell.slug: cell.settings for cell in named.plan.cells if not cell.match}
    if not own:
        raise UserError("serve: every cell is matched to another one, so none can debate a conversation by itself")
    table = named.expanded() | {"repeats": 1}
    table["cells"] = [cell for cell in table["cells"] if cell["name"] in own]
    for cell in table["cells"]:
        if cell["dataset"]["use"] != CONVERSATIONS:
            cell["dataset"] = {"use": CONVERSATIONS, "like": cell["dataset"]}
    served = Resolver(table, path.parent, registry).resolve()
    served.plan = replace(served.plan, limits=named.plan.limits, observers=named.plan.observers)
    for cell in served.plan.cells:
        cell.settings = own[cell.slug]  # an expanded cell has every one
    left_out = [f"cell '{cell.slug}' is matched to the debates of another cell and is not served"
                for cell in named.plan.cells if cell.match]
    if named.plan.repeats > 1 or named.plan.executor:
        left_out.append("repeats and [execution] are left out: a request is one debate, in this process")
    return served, left_out


def serve_study(resolved: ResolvedStudy, folder: Path, address: Address, *, quiet: bool = False) -> int:
    """Serve a study until a signal ends it; returns the exit status."""
    check_folder(folder)
    models = [cell.slug for cell in resolved.plan.cells]
    debates = Debates()
    resolved.plan = replace(resolved.plan, executor=debates)
    with closing(Listening(address.host, address.port)) as listening, Session(resolved, folder) as session:
        collect_rarely()
        server = _Server(session, debates, models, address, listening, quiet=quiet)
        try:
            summary = asyncio.run(server.run())
        except asyncio.CancelledError:
            server.say("stopped; run the same command to serve again")
            return INTERRUPTED
    return _conclude(summary, folder, server)


class _Server:
    """One run of a served study."""

    def __init__(self, session: Session, debates: Debates, models: Sequence[str], address: Address,
                 listening: socket.socket, *, quiet: bool) -> None:
        self._session = session
        self._models = models
        self._address = address
        self._listening = listening
        self._quiet = quiet
        self.debates = debates

    def say(self, text: str) -> None:
        """Print a line about the server."""
        if not self._quiet:
            echo(safe(text), err=True)

    async def run(self) -> dict[str, Any]:
        """Serve, and return the summary of the study."""
        with interruptible(self._session.interrupt):
            study = asyncio.ensure_future(self._session.run(
                [self.debates.relay, _Report(self.say)], warn=self.say, begun=self._begin, stopping=self._close))
            opened = asyncio.ensure_future(self.debates.opened.wait())
            await asyncio.wait([study, opened], return_when=asyncio.FIRST_COMPLETED)
            opened.cancel()
            if not study.done():
                await self._answer_requests()
            return await study

    def _begin(self, run: StudyRun) -> None:
        self._run = run
        self.debates.use(run.worker, run.recorder.done())

    async def _answer_requests(self) -> None:
        """Listen until the server is stopped; requests under way get their reply before."""
        hosts = [self._address.host, "localhost", "127.0.0.1", "::1"]
        api = Api(self.debates, self._models, key=self._address.key, hosts=hosts, template=self._address.template,
                  timeout=self._address.timeout)
        runner = web.AppRunner(api.application(), handler_cancellation=True, access_log=None,
                               keepalive_timeout=IDLE, shutdown_timeout=LAST_REPLIES)
        await runner.setup()
        try:
            await web.SockSite(runner, self._listening).start()
            self._announce()
            await self.debates.closed.wait()
        finally:
            await runner.cleanup()
            self.debates.end()

    def _announce(self) -> None:
        host, port = self._listening.getsockname()[:2]
        host = f"[{host}]" if ":" in host else host
        names = ", ".join(f"'{safe(model)}'" for model in self._models)
        if paid := self._run.progress().paid:
            self.say(f"{count(paid, 'model call')} made to prepare the cells")
        echo(f"serving {safe(self._session.resolved.plan.name)}, {count(len(self._models), 'model')} ({names}), at "
             f"http://{host}:{port}/v1", err=True)
        if self._address.made:
            echo(f"API key (set {self._address.made} to choose it): {self._address.key}", err=True)

    def _close(self) -> None:
        """Accept no request; calls in flight end."""
        self.debates.close()
        self.say(STOPPING)


class _Report(Observer):
    """Prints a line for each debate."""

    name = "report"

    def __init__(self, say: Any) -> None:
        super().__init__()
        self._say = say

    def debate_finished(self, event: DebateFinished) -> None:
        """Print how a debate ended."""
        where = f"[{event.debate.cell} {event.debate.sample}]"
        self._say(f"{where} {_ending(event.result)}" if event.result else f"{where} stopped")


def _ending(result: DebateResult) -> str:
    if result.error:
        return f"failed: {result.error}"
    decision, tokens = result.decision, result.tokens
    answer = "no answer" if decision is None or decision.key is None else " ".join((decision.answer or "").split())
    return (f"{answer:.60} ({count(result.calls, 'call')}, {tokens.prompt + tokens.completion:,} tokens, "
            f"{result.seconds:.1f} s)")


def _conclude(summary: dict[str, Any], folder: Path, server: _Server) -> int:
    for text in summary["problems"]:
        echo(f"problem: {safe(text)}", err=True)
    if summary["reason"] and summary["ending"] != "interrupted":
        echo(f"stopped: {safe(summary['reason'])}", err=True)
    server.say(f"{count(sum(cell['done'] for cell in summary['cells']), 'debate')} saved in {folder}")
    if summary["ending"] == "limit":
        return LIMIT
    return SOME_FAILED if summary["problems"] or summary["ending"] == "unusable" else FINISHED
