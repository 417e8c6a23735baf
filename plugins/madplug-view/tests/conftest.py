"""Studies to look at, and the server as a process of its own."""

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
                                calls=(call_key(cell, sample, repeat, len(said)).hex(),)))
    agents = tuple(Agent(i, Persona(NAMES[i % 6] + ("" if i < 6 else str(i))), "small") for i in range(len(keys[0])))
    score = float(decision == "A")
    parts = {"sample": Sample(sample, f"Which is it, in question {sample}?", ("the first", "the second", "the third")),
             "references": ("A",), "agents": agents, "messages": tuple(said), "metrics": {"qa.accuracy": score},
             "decision": Decision(decision, scores=votes(keys[-1])) if decision else Decision.undecided("a tie"),
             "calls": len(said), "tokens": Usage(100 * len(said), 10 * len(said), cost_usd=0.001 * len(said)),
             "seconds": 1.5} | more
    return DebateResult(cell, repeat, **parts)


def asked(cell, sample, repeat, purpose, agent, round):
    """The key of a call behind no message, as text."""
    return f"{purpose}/{agent}/{round}/{cell}/{sample}/{repeat}".encode().hex()


def calls_behind(result):
    """The calls behind no message of a debate, which their keys describe."""
    for text in (*result.opening_calls, *result.other_calls):
        purpose, agent, number, *_ = bytes.fromhex(text).decode().split("/")
        request = {"messages": [{"role": "user", "content": f"prompt of {purpose} {agent}"}], "params": {}}
        caller = Caller(result.cell, result.repeat, result.sample.id, int(agent) if agent != "None" else None, purpose,
                        round=int(number))
        call = Call(Completion(f"reply of {purpose} {agent}", Usage(50, 5)), seconds=0.25)
        yield CallRow(bytes.fromhex(text), caller, "small", json.dumps(request)), call


def votes(row):
    """Votes by answer."""
    return {key: float(row.count(key)) for key in row if key is not None}


def call_key(cell, sample, repeat, message):
    """The key of the call behind a message."""
    return f"{cell}/{sample}/{repeat}/{message}".encode()


def write(folder: Path, debates, *, calls=True, planned=None, status="finished", prompt="prompt of") -> Path:
    """A study's directory with these debates, each message with a call."""
    async def keep():
        store, waiting = open_recorder(folder), []
        if planned is not None:
            await store.keep_fact("planned", planned)
        for result in debates:
            for m in result.messages if calls else ():
                request = {"messages": [{"role": "system", "content": "You debate."}, {
                    "role": "user", "content": f"{prompt} message {m.id} of {result.sample.id}"}], "params": {}}
                key = call_key(result.cell, result.sample.id, result.repeat, m.id)
                caller = Caller(result.cell, result.repeat, result.sample.id, m.agent, "discuss", round=m.round)
                call = Call(Completion(m.content, Usage(100, 10, cost_usd=0.001)), seconds=0.5)
                waiting.append(store.keep_call(CallRow(key, caller, "small", json.dumps(request)), call))
            waiting += [store.keep_call(*found) for found in calls_behind(result) if calls]
            waiting.append(store.finish_debate(result))
            if len(waiting) > 2000:
                await asyncio.gather(*waiting)
                waiting = []
        await asyncio.gather(*waiting)
        store.close()

    with ThreadPoolExecutor(1) as thread:  # a test that drives a browser has a loop of its own
        thread.submit(asyncio.run, keep()).result()
    if status:
        (folder / "summary.json").write_text(json.dumps({"status": status, "cells": []}))
    return folder


def keep_fact(folder, name, value):
    """Record a fact of a study."""
    store = open_recorder(folder)
    asyncio.run(store.keep_fact(name, value))
    store.close()


def some(cell, n, seed=0):
    """Debates of three agents and two rounds, drawn from a seed."""
    dice = random.Random(f"{seed} {cell}")
    for i in range(n):
        first = [dice.choice("AAB") for _ in range(3)]
        then = [dice.choice(first) for _ in first]
        yield debate(cell, f"q{i:05}", keys=(first, then), decision=max(set(then), key=then.count))


def voted(cell, sample):
    """A debate with personas that a model made, and with ballots."""
    found = debate(cell, sample)
    decision = replace(found.decision, votes=tuple(Vote(a.id, {"B": 1.0}) for a in found.agents))
    return replace(found, decision=decision, opening_calls=(asked(cell, sample, 0, "persona", None, 0),),
                   other_calls=tuple(asked(cell, sample, 0, "vote", a.id, 2) for a in found.agents))


def small_study(folder):
    """Two cells with a debate of every kind."""
    return write(folder, [
        voted("plain", "talked-out"), debate("plain", "agreed", keys=(("A", "A", "A"),), decision="A"),
        debate("plain", "corrected", keys=(("B", "A", "A"), ("A", "A", "A")), decision="A"),
        debate("plain", "split", keys=(("A", "B", None),), decision=None),
        debate("plain", "broken", keys=(("A", "B", "B"),), decision=None, error="ModelError: the endpoint is gone"),
        debate("other way", "talked-out", keys=(("A", "B", "B"), ("A", "A", "B")), decision="A"),
        debate("other way", "agreed", keys=(("A", "A", "A"),), decision="A")], planned=8)


@contextmanager
def serving(*words):
    """`madplug view` with these words: its address, and requests to it with the cookie."""
    process = subprocess.Popen([sys.executable, "-m", "madplug", "view", *map(str, words), "--no-browser"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        found = re.search(r"http://([^/]+):(\d+)/\?token=(\S+)", line)
        assert found, line + process.stderr.read()
        server = SimpleNamespace(url=found[0], port=int(found[2]), token=found[3], process=process, host=found[1])
        server.get = lambda path, method="GET", **headers: request(server, path, method, headers)
        server.api = lambda path: json.loads(server.get(f"/api/studies{path}").body)
        wait_until(lambda: answers(server))
        yield server
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()
        process.stderr.close()


@contextmanager
def serving_here(*folders):
    """The same server in a thread of this process, which starts at once; gives its address."""
    import uvicorn

    from madplug_view.connections import Patience
    from madplug_view.guard import Guard, host_names
    from madplug_view.listening import Listening
    from madplug_view.server import application
    from madplug_view.studies import open_studies

    listener = Listening("127.0.0.1", 0)
    port = listener.getsockname()[1]
    app = Guard(application(open_studies(folders)), "token", port, host_names("127.0.0.1"))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1,
                                           http=Patience))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield f"http://127.0.0.1:{port}/?token=token"
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


def request(server, path, method, headers):
    """A raw request; a header that is None is left out."""
    given = {"Host": f"127.0.0.1:{server.port}", "Cookie": f"madplug-view-{server.port}={server.token}"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    body = given.pop("body", "").encode()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in given.items():
        if value is not None:
            connection.putheader(name, value)
    if body:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return SimpleNamespace(status=answer.status, headers={k.lower(): v for k, v in answer.getheaders()}, body=body)


def wait_until(happened, seconds=60):
    """What `happened()` gives as soon as it is true."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := happened():
            return found
        time.sleep(0.05)
    raise AssertionError("it never happened")


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
    monkeypatch.setattr("madplug_view.export.can_draw", lambda: False)


@pytest.fixture(scope="session")
def kit():
    """The functions above."""
    return SimpleNamespace(debate=debate, write=write, keep=keep_fact, some=some, serving=serving,
                           serving_here=serving_here, wait_until=wait_until, request=request, small_study=small_study)
