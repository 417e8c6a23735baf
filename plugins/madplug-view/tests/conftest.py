"""Studies to look at, and the server as a process of its own or in a thread of this one."""

import asyncio
import http.client
import json
import random
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from madplug import Agent, Caller, Completion, DebateResult, Decision, Message, Persona, Sample, Usage
from madplug.records import Vote
from madplug.store import Call, CallRow, open_recorder

NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn")
TALKED_OUT = (("A", "B", "B"), ("B", "B", "B"))


def debate(cell, sample, repeat=0, *, keys=TALKED_OUT, decision="B", text="I say {key}.", **more):
    """A debate from its answers by round and agent; None is an answer that cannot be read."""
    said: list[Message] = []
    for number, row in enumerate(keys, 1):
        seen = tuple(m.id for m in said if m.round == number - 1)
        for agent, key in enumerate(row):
            said.append(Message(len(said), number, 0, agent, "draft" if number == 1 else "improve",
                                text.replace("{key}", str(key)), answer=key, key=key, seen=seen, model="small",
                                calls=(f"{cell}/{sample}/{repeat}/{len(said)}".encode().hex(),)))
    agents = tuple(Agent(i, Persona(NAMES[i % 6] + ("" if i < 6 else str(i))), "small") for i in range(len(keys[0])))
    votes = {key: float(keys[-1].count(key)) for key in keys[-1] if key is not None}
    parts = {"sample": Sample(sample, f"Which is it, in question {sample}?", ("the first", "the second", "the third")),
             "references": ("A",), "agents": agents, "messages": tuple(said),
             "metrics": {"qa.accuracy": float(decision == "A")},
             "decision": Decision(decision, scores=votes) if decision else Decision.undecided("a tie"),
             "calls": len(said), "tokens": Usage(100 * len(said), 10 * len(said), cost_usd=0.001 * len(said)),
             "seconds": 1.5} | more
    return DebateResult(cell, repeat, **parts)


def calls_of(result, prompt):
    """The calls of a debate: those of its messages, and those behind none, which their keys describe."""
    for m in result.messages:
        yield call(result, m.calls[0], m.agent, "discuss", m.round, f"{prompt} message {m.id} of {result.sample.id}",
                   m.content, Usage(100, 10, cost_usd=0.001), 0.5)
    for key in (*result.opening_calls, *result.other_calls):
        purpose, agent, number = bytes.fromhex(key).decode().split("/")[:3]
        yield call(result, key, None if agent == "None" else int(agent), purpose, int(number),
                   f"prompt of {purpose} {agent}", f"reply of {purpose} {agent}", Usage(50, 5), 0.25)


def call(result, key, agent, purpose, round, sent, reply, used, seconds):
    caller = Caller(result.cell, result.repeat, result.sample.id, agent, purpose, round=round)
    messages = [{"role": "system", "content": "You debate."}, {"role": "user", "content": sent}]
    return (CallRow(bytes.fromhex(key), caller, "small", json.dumps({"messages": messages, "params": {}})),
            Call(Completion(reply, used), seconds=seconds))


def write(folder: Path, debates, *, calls=True, status="finished", prompt="prompt of", **facts) -> Path:
    """A study's directory with these debates and facts, each message with a call."""
    async def keep():
        store = open_recorder(folder)
        for name, value in facts.items():
            await store.keep_fact(name, value)
        for result in debates:
            await asyncio.gather(*(store.keep_call(*found) for found in calls_of(result, prompt) if calls),
                                 store.finish_debate(result))
        store.close()

    here(keep())
    if status:
        (folder / "summary.json").write_text(json.dumps({"status": status, "cells": []}))
    return folder


def here(coroutine):
    """Run a coroutine in another thread: a test that drives a browser has a loop of its own."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, coroutine).result()


def some(cell, n):
    """Debates of three agents and two rounds, drawn from a seed."""
    dice = random.Random(cell)
    for i in range(n):
        first = [dice.choice("AAB") for _ in range(3)]
        then = [dice.choice(first) for _ in first]
        yield debate(cell, f"q{i:05}", keys=(first, then), decision=max(set(then), key=then.count))


def voted(cell, sample):
    """A debate with personas that a model made, and with ballots."""
    def key(purpose, agent, round):
        return f"{purpose}/{agent}/{round}/{cell}/{sample}".encode().hex()

    found = debate(cell, sample)
    decision = replace(found.decision, votes=tuple(Vote(a.id, {"B": 1.0}) for a in found.agents))
    return replace(found, decision=decision, opening_calls=(key("persona", None, 0),),
                   other_calls=tuple(key("vote", a.id, 2) for a in found.agents))


def small_study(folder, **facts):
    """Two cells with a debate of every kind."""
    return write(folder, [
        voted("plain", "talked-out"), debate("plain", "agreed", keys=(("A", "A", "A"),), decision="A"),
        debate("plain", "corrected", keys=(("B", "A", "A"), ("A", "A", "A")), decision="A"),
        debate("plain", "split", keys=(("A", "B", None),), decision=None),
        debate("plain", "broken", keys=(("A", "B", "B"),), decision=None, error="ModelError: the endpoint is gone"),
        debate("other way", "talked-out", keys=(("A", "B", "B"), ("A", "A", "B")), decision="A"),
        debate("other way", "agreed", keys=(("A", "A", "A"),), decision="A")], planned=8, **facts)


class Server:
    """A server at an address, and requests to it as a browser sends them that has the cookie."""

    def __init__(self, url, process=None):
        self.url, self.process = url, process
        port, self.token = re.fullmatch(r"http://[^/]+:(\d+)/\?token=(\S+)", url).groups()
        self.port = int(port)
        self.own = f"http://127.0.0.1:{port}"
        self.headers = {"Host": f"127.0.0.1:{port}", "Cookie": f"madplug-view-{port}={self.token}"}

    def get(self, path, method="GET", body=None, **headers):
        """The answer to a request; a header that is None is left out."""
        given = {name: value for name, value in (self.headers | headers).items() if value is not None}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, given)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return SimpleNamespace(status=answer.status, headers={k.lower(): v for k, v in answer.getheaders()}, body=body)

    def api(self, path):
        """What the pages are told."""
        return json.loads(self.get(f"/api/studies{path}").body)


@contextmanager
def serving(*words):
    """`madplug view` with these words, as a process."""
    process = subprocess.Popen([sys.executable, "-m", "madplug", "view", *map(str, words), "--no-browser"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        try:
            server = Server(process.stdout.readline().strip(), process)
            wait_until(lambda: answers(server))
            yield server
        finally:
            process.terminate()


@contextmanager
def serving_here(*folders):
    """The same server in a thread of this process, which starts at once."""
    import uvicorn

    from madplug_view.connections import Patience
    from madplug_view.guard import Guard, host_names
    from madplug_view.listening import Listening
    from madplug_view.server import application
    from madplug_view.studies import open_studies

    listener = Listening("127.0.0.1", 0)
    port = listener.getsockname()[1]
    app = Guard(application(open_studies(folders), folders), "token", port, host_names("127.0.0.1"))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1,
                                           http=Patience))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield Server(f"http://127.0.0.1:{port}/?token=token")
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()


def answers(server):
    """Whether the server accepts connections."""
    try:
        return server.get("/").status
    except ConnectionRefusedError:
        return None


def wait_until(happened, seconds=60):
    """Wait until `happened()` is true."""
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until, "it never happened"
        time.sleep(0.05)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The directory of a small study."""
    return small_study(tmp_path_factory.mktemp("view") / "small")


@pytest.fixture(scope="session")
def server(folder):
    """The server of the small study."""
    with serving(folder) as found:
        yield found


@pytest.fixture
def without_charts(monkeypatch):
    """As if the report were not installed: drawing charts takes seconds."""
    for module in ("studies", "export"):
        monkeypatch.setattr(f"madplug_view.{module}.can_draw", lambda: False)


@pytest.fixture(scope="session")
def kit():
    """The functions above."""
    return SimpleNamespace(debate=debate, write=write, here=here, some=some, serving=serving, serving_here=serving_here,
                           small_study=small_study)
