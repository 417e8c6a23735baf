"""A council asked in the terminal and over MCP, and looked at in the browser: one debate, wherever it was killed."""

import asyncio
import os
import re
import socket
import subprocess
import sys
import time
from collections import Counter

import pytest
from tests_support import chromium

from madplug_testing.endpoint import running_endpoint

pytest.importorskip("mcp", reason="assistants are served with the SDK")
QUESTION = "Which way?"
ERRORS = {"dead": ("the account is closed", "insufficient_quota"), "shy": ("the prompt was flagged", "content_filter")}
STAGES = (QUESTION, "Then rank", "You chair it")


class Members:
    """What the members reply, and what was paid for."""

    def __init__(self):
        self.paid = Counter()

    def __call__(self, body):
        model, text = body["model"], body["messages"][-1]["content"]
        if model in ERRORS:
            return {"error": dict(zip(("message", "code"), ERRORS[model], strict=True))}
        self.paid[model, text] += 1
        if STAGES[2] in text:
            return "Go north."
        labels = re.findall(r"^Answer (\w):$", text, re.MULTILINE)
        ranking = "\n".join(f"{i}. Answer {label}" for i, label in enumerate(sorted(labels), 1))
        return f"FINAL RANKING:\n{ranking}" if STAGES[1] in text else f"By {model}."


@pytest.fixture
def start(tmp_path):
    """Start the program in a folder with a council of five, and with nothing else of this machine."""
    environ = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
    environ |= {"XDG_CONFIG_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "MADPLUG_MCP_KEY": "key"}
    begun = []

    def start(*words):
        begun.append(subprocess.Popen([sys.executable, "-m", "madplug", *words], cwd=tmp_path, env=environ, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.communicate()


def until(condition):
    while not condition():
        time.sleep(0.005)


def assistants_of(start):
    """The server of assistants, and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = start("mcp", "--http", "--port", str(port))
    until(lambda: process.poll() is not None or answers(port))
    return process, f"http://127.0.0.1:{port}/mcp"


def answers(port):
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


async def ask_over(url):
    from mcp import Client
    from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

    async with (create_mcp_http_client(headers={"Authorization": "Bearer key"}) as session,
                Client(streamable_http_client(url, http_client=session)) as client):
        found = await client.call_tool("ask", {"question": QUESTION, "council": "five"})
        return found.structured_content


def test_a_council_with_two_silent_seats_that_was_killed_twice_is_told_the_same_everywhere(start, tmp_path):
    members = Members()
    with running_endpoint(members, keep=100, latency_ms=1000, jitter=0.5) as endpoint:
        (tmp_path / "madplug").mkdir()
        slot = f'{{use = "openai.chat", model = "%s", base_url = "{endpoint.url}"}}'
        seats = ", ".join(f"{name} = {slot % name}" for name in ("a", "b", "c", *ERRORS))
        (tmp_path / "madplug" / "councils.toml").write_text(f"[five]\nseats = {{{seats}}}\n")

        def reached(stage):
            return lambda: any(STAGES[stage] in body["messages"][-1]["content"] for _, body in endpoint.seen)

        terminal = start("ask", QUESTION, "--council", "five")
        until(reached(0))
        terminal.kill()

        async def killed():
            process, url = assistants_of(start)
            asking = asyncio.ensure_future(ask_over(url))
            await asyncio.to_thread(until, reached(1))
            process.kill()
            await asyncio.gather(asking, return_exceptions=True)

        asyncio.run(killed())
        said = start("ask", QUESTION, "--council", "five").communicate()[0]
        words = [message for message, _ in ERRORS.values()]
        *missing, answer = said.splitlines()
        assert (answer, len(missing)) == ("Go north.", 2)
        assert all(word in line for word, line in zip(words, missing, strict=True))

        _, url = assistants_of(start)
        told = asyncio.run(ask_over(url))
        assert (told["status"], told["answer"]) == ("partial", "Go north.")
        assert all(word in line for word, line in zip(words, told["missing"], strict=True))

        with chromium() as browser:
            page = browser.new_page()
            page.goto(start("view", "--ask", "--no-browser").stdout.readline().strip())
            page.get_by_role("link", name=QUESTION).click()
            page.get_by_role("region", name="Answer", exact=True).filter(has_text="Go north.").wait_for()
            for word in words:
                page.locator(".problem", has_text=word).wait_for()
    assert max(members.paid.values()) == 1
    assert len(members.paid) == 3 + 3 + 1
