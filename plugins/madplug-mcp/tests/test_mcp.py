"""The server by the SDK's own client: over standard input and output, over HTTP, and after kills."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from itertools import islice
from types import SimpleNamespace

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.types import ElicitResult, ResourceTemplateReference

from madplug_mcp.server import Settings, server_of
from madplug_testing.endpoint import running_endpoint

REFUSED = {"error": {"message": "the account is closed", "code": "insufficient_quota"}}
QUESTION = {"question": "Which way?"}


@pytest.fixture
def endpoint():
    with running_endpoint(said, keep=10_000) as running:
        yield running


def slow(endpoint, milliseconds):
    endpoint.endpoint.configure(latency_ms=milliseconds)


def said(body):
    text = body["messages"][-1]["content"]
    if body["model"] == "dead":
        return REFUSED
    if "Is this so?" in text:
        return json.dumps({"vote": "no" if body["model"] == "c" else "yes", "confidence": 0.7, "reason": "So."})
    if "You chair it" in text:
        return "Go north." * (2000 if "length" in text else 1)
    labels = sorted(re.findall(r"^Answer (\w):$", text, re.MULTILINE))
    ranking = "\n".join(f"{i}. Answer {label}" for i, label in enumerate(labels, 1))
    return f"FINAL RANKING:\n{ranking}" if "Then rank" in text else f"By {body['model']}."


@pytest.fixture
def started(tmp_path, endpoint):
    """The command of a server, and its environment."""
    folder = tmp_path / "config" / "madplug"
    folder.mkdir(parents=True)
    slot = f'{{use = "openai.chat", model = "%s", base_url = "{endpoint.url}", max_in_flight = 4}}'
    seats = {"three": "abc", "hurt": ("a", "dead", "c"), "one": "a"}
    (folder / "councils.toml").write_text("".join(
        f"[{name}]\nseats = {{{', '.join(f'{m} = {slot % m}' for m in models)}}}\n" for name, models in seats.items()))
    environ = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_STATE_HOME": str(tmp_path / "state"),
               "OPENAI_API_KEY": "sk-do-not-show-this-1234567890"}
    return SimpleNamespace(args=["-m", "madplug", "mcp", "--council", "three"], env=environ, cwd=str(tmp_path))


def stdio(started, *words):
    return StdioServerParameters(command=sys.executable, args=[*started.args, *words], env=started.env, cwd=started.cwd)


@contextmanager
def http(started, key="a-key"):
    """A server process over HTTP, and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, *started.args, "--http", "--port", str(port)], cwd=started.cwd,
                               env={**started.env, "MADPLUG_MCP_KEY": key})
    try:
        until(lambda: process.poll() is not None or answers(port))
        yield process, f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait()


def answers(port):
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def until(condition):
    while not condition():
        time.sleep(0.01)


async def over_http(url, tool, **arguments):
    async with (create_mcp_http_client(headers={"Authorization": "Bearer a-key"}) as session,
                Client(streamable_http_client(url, http_client=session)) as client):
        return await call(client, tool, **arguments)


def talk(script, server, **options):
    """What a script does with a client of a server."""
    async def run():
        async with Client(server, **options) as client:
            return await asyncio.wait_for(script(client), 120)

    return asyncio.run(run())


async def call(client, tool, **arguments):
    found = await client.call_tool(tool, arguments)
    text = found.content[0].text if found.content else ""
    links = [str(block.uri) for block in found.content[1:] if block.type == "resource_link"]
    return SimpleNamespace(error=found.is_error, words=text, linked=links, **(found.structured_content or {}))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_question_over_standard_input_and_output_in_both_eras(started, endpoint, mode):
    async def run(client):
        first, again = [await call(client, "ask", **QUESTION) for _ in range(2)]
        assert (first.status, first.answer, first.calls) == ("decided", "Go north.", 7)
        assert (again.debate, first.linked) == (first.debate, first.links)
        assert [s["name"] for s in first.seats] == ["a", "b", "c"]
        page = await call(client, "result", debate=first.debate, part="answers")
        assert page.text.startswith("# Which way?\n\nGo north.")
        page = await call(client, "result", debate=first.debate, part="prompts")
        assert page.text.startswith("## discuss: ")
        assert "**user**\n\nWhich way?\n\n**reply**\n\nBy a." in page.text
        listed = await call(client, "history", query="which WAY")
        assert listed.result[0]["debate"] == first.debate
        read = await client.read_resource(f"madplug://debates/{first.debate}")
        assert "Go north." in read.contents[0].text
        debates = ResourceTemplateReference(uri="madplug://debates/{id}")
        assert (await call(client, "estimate", **QUESTION | {"question": "And?"})).seconds_p50 == first.seconds
        assert (await call(client, "history", before="2020-01-01")).result == []
        found = await client.complete(debates, {"name": "id", "value": "which"})
        assert found.completion.values == [first.debate]
    talk(run, stdio(started), mode=mode)
    assert len(endpoint.endpoint.seen) == 7


def test_over_http_a_key_is_asked_for_and_two_clients_share_a_debate(started, endpoint):
    slow(endpoint, 500)

    async def run(url):
        found = await asyncio.gather(*(over_http(url, "ask", **QUESTION) for _ in range(2)))
        assert {f.answer for f in found} == {"Go north."}
        async with create_mcp_http_client() as session:
            assert (await session.post(url, json={})).status_code == 401
            own = {"Authorization": "Bearer a-key", "Origin": "http://evil.example"}
            assert (await session.post(url, headers=own, json={})).status_code == 403

    with http(started) as (_, url):
        asyncio.run(run(url))
    assert len(endpoint.endpoint.seen) == 7


def test_a_dead_seat_is_named_and_a_verdict_counts(started):
    async def run(client):
        hurt = await call(client, "ask", council="hurt", **QUESTION)
        assert (hurt.status, hurt.answer) == ("partial", "Go north.")
        assert "the account is closed" in hurt.missing[0]
        verdict = await call(client, "verdict", claim="North is up.")
        assert (verdict.answer, [v["vote"] for v in verdict.votes]) == ("yes", ["yes", "yes", "no"])
        assert (await call(client, "verdict", claim="North is up.", threshold=0.7)).answer == "no"
    talk(run, stdio(started))


def test_a_debate_goes_on_when_nobody_waits_for_it(started, endpoint):
    slow(endpoint, 1000)

    async def run(client):
        running = await call(client, "ask", wait_seconds=0, **QUESTION)
        assert (running.status, "nothing is paid twice" in running.next) == ("running", True)
        task = asyncio.ensure_future(client.call_tool("result", {"debate": running.debate}))
        await asyncio.sleep(0.2)
        task.cancel()
        done = await call(client, "result", debate=running.debate)
        assert done.answer == "Go north."
    talk(run, stdio(started))
    assert len(endpoint.endpoint.seen) == 7


@pytest.mark.parametrize("calls", [2, 5])
def test_a_killed_server_goes_on_with_the_debate_when_it_is_asked_for(started, endpoint, tmp_path, calls):
    slow(endpoint, 300)

    async def run(process, url):
        asking = asyncio.ensure_future(over_http(url, "ask", **QUESTION))
        await asyncio.to_thread(until, lambda: len(endpoint.endpoint.seen) >= calls)
        process.kill()
        await asyncio.gather(asking, return_exceptions=True)

    with http(started) as (process, url):
        asyncio.run(run(process, url))
    [folder] = (tmp_path / "runs/ask").iterdir()

    resumed = talk(lambda client: call(client, "result", debate=folder.name), stdio(started))
    assert resumed.answer == "Go north."
    assert len(endpoint.endpoint.seen) <= 7 + 3  # only calls that were in flight are made again


def test_the_model_of_the_client_takes_a_seat_by_tool_calls(started, endpoint):
    async def run(client):
        found = await call(client, "ask", council="one", **QUESTION)
        for text in ("By the client.", "FINAL RANKING:\n1. Answer A\n2. Answer B"):
            assert (found.status, "take_turn" in found.next) == ("your_turn", True)
            assert "Which way?" in found.turn["messages"][0]["content"]
            done = found.turn["turn"]
            found = await call(client, "take_turn", debate=found.debate, turn=done, text=text)
        assert (found.status, found.answer) == ("decided", "Go north.")
        assert [s["answer"] for s in found.seats] == ["By a.", "By the client."]
        late = await call(client, "take_turn", debate=found.debate, turn=done, text="Again.")
        assert "does not wait for an answer" in late.words
    talk(run, stdio(started, "--client-seat"))
    assert len(endpoint.endpoint.seen) == 3


def test_many_questions_at_once_hold_the_limits_of_their_models(started, endpoint):
    slow(endpoint, 20)

    async def run(client):
        found = await asyncio.gather(*(call(client, "ask", council="one", question=f"Number {i}?")
                                       for i in range(40)))
        assert {f.status for f in found} == {"decided"}
    talk(run, stdio(started))
    assert endpoint.endpoint.max_in_flight <= 4


def test_questions_at_once_keep_to_the_requests_a_minute_of_their_model_together(endpoint, tmp_path):
    settings = (f"models.a.base_url={endpoint.url}", "models.a.requests_per_minute=60")

    async def run(client):
        begun = time.monotonic()
        await asyncio.gather(*(call(client, "ask", seats={"a": "openai:a"}, question=f"{i}?") for i in range(3)))
        return time.monotonic() - begun
    assert talk(run, server_of(Settings(tmp_path, settings=settings))) > 1.9


MISTAKES = {"there is no [two]": {"council": "two"}, "files outside are not read": {"files": ["/etc/passwd"]},
            "the price of model": {"max_usd": 1.0}, "wait_seconds": {"wait_seconds": 99999}}


def test_what_a_client_sees_of_the_server_and_is_told_in_words_of_its_mistakes(started, endpoint):
    async def run(client):
        tools = (await client.list_tools()).tools
        assert {t.name for t in tools} == {"ask", "verdict", "result", "estimate", "history", "councils"}
        assert len(json.dumps([t.model_dump(mode="json", exclude_none=True) for t in tools])) / 4 < 6000
        expected = await call(client, "estimate", **QUESTION)
        assert (expected.calls_at_most, expected.seconds_p50) == (10, None)
        councils = await call(client, "councils")
        assert councils.councils["three"]["seats"]["a"] == {"model": "a", "price": None, "problem": None}
        assert "sk-do-not-show" not in str(councils)
        prompts = (await client.list_prompts()).prompts
        assert {p.name for p in prompts} == {"council", "verdict", "review_diff"}
        for message, arguments in MISTAKES.items():
            found = await call(client, "ask", **QUESTION, **arguments)
            assert (found.error, message in found.words) == (True, True), found.words
    talk(run, stdio(started))
    assert not endpoint.endpoint.seen
    read_only = talk(lambda client: client.list_tools(), stdio(started, "--read-only"))
    assert "ask" not in {tool.name for tool in read_only.tools}


@pytest.mark.parametrize(("client", "file", "other"), [
    ("claude", ".mcp.json", '{"mcpServers": {"other": {}}}'), ("codex", ".codex/config.toml", "[mcp_servers.other]"),
    ("vscode", ".vscode/mcp.json", '{"servers": {"other": {}}}')])
def test_a_client_s_file_is_added_to_without_a_key_and_keeps_the_rest(
        started, program, tmp_path, monkeypatch, client, file, other):
    def install(*words):
        return program(*started.args[2:], "--install", client, *words)

    for name, value in {**started.env, "HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(other)
    limited = ("--read-only", "--max-usd=1", "--max-usd-day=2.5", "--confirm-usd=0.5", "--set=debate.rounds=1",
               f"--allow-dir={tmp_path}")
    assert all(word in install(*limited).stdout for word in limited)
    assert "looks like a secret" in install("--set=models.a.api_key=x", "--write").output
    assert sys.executable in install().stdout
    assert path.read_text() == other
    assert install("--write").exit_code == 0
    assert all(word in path.read_text() for word in ("other", "madplug", sys.executable, "OPENAI_API_KEY"))
    assert "sk-do-not-show" not in path.read_text()
    path.write_text("[mcp_servers.madplug]")
    assert (install("--write").exit_code, path.read_text()) == (2, "[mcp_servers.madplug]")


def seats_of(endpoint):
    """What names two seats, and the settings by which they are reached."""
    return {"seats": {"a": "openai:a", "b": {"model": "openai:b", "role": "You doubt."}}, **QUESTION}, tuple(
        f"models.{m}.base_url={endpoint.url}" for m in "ab")


def test_a_client_is_told_who_has_answered_while_nothing_comes(endpoint, tmp_path, monkeypatch):
    monkeypatch.setattr("madplug_mcp.server.PROGRESS", 0.2)
    slow(endpoint, 1500)
    heard = []

    async def note(progress, total, message):
        heard.append((progress, message))

    question, settings = seats_of(endpoint)

    async def run(client):
        await client.call_tool("ask", question, progress_callback=note)
    talk(run, server_of(Settings(tmp_path, settings=settings)))
    begins = {body["model"]: body["messages"][0]["content"] for _, body in islice(endpoint.endpoint.seen, 2)}
    assert begins == {"a": "Which way?", "b": "You doubt."}
    assert len(heard) >= 10
    assert [progress for progress, _ in heard] == sorted({progress for progress, _ in heard})
    assert {message.partition(" (")[0] for _, message in heard} >= {
        "0 of 2 have answered; waiting for a, b", "0 of 2 have reviewed; waiting for a, b",
        "the answer is being written"}


@pytest.mark.parametrize(("model", "more", "status", "words"), [
    ("dead", {}, "failed", "the account is closed.*ask again with the same arguments once the seats can answer"),
    ("b", {"max_usd": 0.001}, "stopped", r"cost_usd: 0.001 reached.*2 calls, \$.*ask again, with a higher max_usd"),
    ("b", {"question": "At length?"}, "decided", "the answer in full: result")])
def test_a_result_says_what_is_missing_in_it_and_how_to_get_it(endpoint, tmp_path, model, more, status, words):
    prices = "price={prompt = 100.0, completion = 100.0}"
    settings = (*seats_of(endpoint)[1], *(f"models.{m}.{prices}" for m in "ab"))

    async def run(client):
        seats = {"a": f"openai:{model}", "b": f"openai:{model}"}
        found = await call(client, "ask", seats=seats, **QUESTION | more)
        return found, await call(client, "result", debate=found.debate), await call(client, "history")
    found, later, listed = talk(run, server_of(Settings(tmp_path, settings=settings)))
    assert (later.status, later.calls, listed.result[0]["status"]) == (status, found.calls, status)
    assert (found.status, found.error) == (status, status == "failed")
    assert re.search(words, found.words, re.DOTALL)
    assert len(found.words) < 13_000


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(("action", "words", "paid"), [
    ("accept", "Go north.", 5), ("decline", "does not agree", 0), (None, "give a max_usd of 0.01 at most", 0)])
def test_a_question_that_may_cost_too_much_is_confirmed_by_the_user_once(endpoint, tmp_path, mode, action, words, paid):
    question, settings = seats_of(endpoint)
    heard = []

    async def asked(_, request):
        heard.append(request.message)
        return ElicitResult(action=action, content={} if action == "accept" else None)

    async def run(client):
        found = [await call(client, "ask", **question) for _ in range(2 if paid else 1)]
        assert all(words in f.words for f in found)
    server = server_of(Settings(tmp_path, settings=settings, confirm_usd=0.01))
    talk(run, server, mode=mode, elicitation_callback=asked if action else None)
    assert ["at most 5 calls (excluding retries), about" in said for said in heard] == [True] * bool(action)
    assert len(endpoint.endpoint.seen) == paid


def test_who_listens_to_a_debate_is_told_until_it_can_be_read_in_full(endpoint, tmp_path):
    question, settings = seats_of(endpoint)
    slow(endpoint, 200)

    async def run(client):
        begun = await call(client, "ask", wait_seconds=0, **question)
        page = begun.links[0]
        async with client.listen(resource_subscriptions=[page]) as changes:
            async for change in changes:
                assert change.uri == page
                if "Go north." in (await client.read_resource(page)).contents[0].text:
                    return
    talk(run, server_of(Settings(tmp_path, settings=settings)))
