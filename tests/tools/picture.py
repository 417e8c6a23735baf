"""Makes two pictures with Chromium: `python tests/tools/picture.py` writes docs/debate.png and docs/council.png."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect, sync_playwright

from madplug import Agent, Caller, Completion, DebateResult, Decision, Message, Persona, Sample, Usage
from madplug.records import Vote
from madplug.store import Call, CallRow, open_recorder
from madplug_testing.endpoint import running_endpoint

DOCS = Path(__file__).resolve().parents[2] / "docs"
SAID = [
    ("Ada", "B", "Call the ball b. Then the bat is b + 100 cents, and together 2b + 100 = 110, so b = 5. The ball "
     "costs 5 cents."),
    ("Ben", "A", "The bat is a dollar, which leaves 10 cents of the total for the ball."),
    ("Cleo", "A", "110 cents less 100 cents is 10 cents. The ball costs 10 cents."),
    ("Ada", "A", "Both of you take the dollar off first and get 10 cents. Two independent solutions agree, so I must "
     "have set up my equation wrongly. I change my answer to 10 cents."),
    ("Ben", "A", "Cleo arrives at the same figure by the same steps. I keep 10 cents."),
    ("Cleo", "A", "Ben confirms it, and Ada's equation is more complicated than the question needs. 10 cents."),
]
QUESTION = ("A bat and a ball cost 1.10 dollars together. The bat costs one dollar more than the ball. What does the "
            "ball cost?")


def write(folder: Path) -> None:
    """A study of one debate, in which the only right agent is talked out of its answer."""
    messages = []
    for i, (_, key, text) in enumerate(SAID):
        messages.append(Message(
            i, 1 + i // 3, 0, i % 3, "improve" if i > 2 else "draft", text, answer=key, key=key,
            seen=(0, 1, 2) if i > 2 else (), model="small-model", calls=(f"{i}".encode().hex(),),
            confidence=(0.9, 0.7, 0.75, 0.6, 0.85, 0.9)[i]))
    names = dict.fromkeys(name for name, _, _ in SAID)
    result = DebateResult(
        "debate", 0, Sample("bat-and-ball", QUESTION, ("10 cents", "5 cents", "1 cent", "15 cents")), ("B",),
        tuple(Agent(i, Persona(name), "small-model") for i, name in enumerate(names)), tuple(messages),
        Decision("A", "A", agreed=True, scores={"A": 3.0}, votes=tuple(Vote(i, {"A": 1.0}) for i in range(3)),
                 reason="3 of 3 voters"),
        metrics={"qa.accuracy": 0.0}, calls=6, tokens=Usage(2310, 402, cost_usd=0.0031), seconds=6.4)

    async def keep() -> None:
        recorder = open_recorder(folder)
        await recorder.keep_fact("identity", {"cells": {"debate": {"answers": {"use": "answers.choice"}}}})
        for m in messages:
            request = json.dumps({"messages": [{"role": "user", "content": QUESTION}], "params": {}})
            caller = Caller("debate", 0, "bat-and-ball", m.agent, "discuss", round=m.round)
            used = Usage(290 + 120 * (m.round - 1), len(m.content) // 3, cost_usd=0.0005)
            await recorder.keep_call(CallRow(f"{m.id}".encode(), caller, "small-model", request),
                                     Call(Completion(m.content, used), seconds=0.9 + m.id / 10))
        await recorder.finish_debate(result)
        recorder.close()

    asyncio.run(keep())


ASKED = "We want to rename a column of a large table while the service keeps running. How?"
OPINIONS = {
    "large": "Not in one step. **Add** the new column, let the service **write both**, **copy** the old rows in "
             "batches, switch the reads, and only then drop the old one. Each step can be undone by itself.",
    "small": "Run `ALTER TABLE ... RENAME COLUMN` in a migration and deploy the new code right after it. The rename "
             "itself takes milliseconds, even on a large table.",
    "local": "A rename is quick, but it waits for a lock, and until the new code is everywhere the old one fails on "
             "the new name. Keep both names for a while: a new column with a trigger that fills it, or a view."}
CHAIR = """Keep both names until nothing uses the old one:

1. Add the new column, and have the service write both.
2. Copy the old rows in batches.
3. Read from the new column; wait until the last old process has ended.
4. Drop the old column.

A bare rename is quick, but every process that runs the old code fails from then on."""


def reply(body: Any) -> str:
    """What a member of the council says: its opinion, a ranking by which `small` is last, or the chair's answer."""
    text = body["messages"][-1]["content"]
    if "You chair it" in text:
        return CHAIR
    if "Then rank" not in text:
        return OPINIONS[body["model"]]
    shown = re.findall(r"^Answer (\w):\n> (.{10})", text, re.MULTILINE)
    found = {name: label for label, begins in shown for name, said in OPINIONS.items() if said.startswith(begins)}
    order = ["local", "large", "small"] if body["model"] == "local" else ["large", "local", "small"]
    return "FINAL RANKING:\n" + "\n".join(f"{i}. Answer {found[name]}" for i, name in enumerate(order, 1))


@contextmanager
def page_of(folder: Path, *words: str, height: int, **environ: str) -> Iterator[Page]:
    """The page of `madplug view` in a browser."""
    with subprocess.Popen([sys.executable, "-m", "madplug", "view", "--no-browser", *words], cwd=folder, text=True,
                          env={**os.environ, **environ}, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
                page = browser.new_page(viewport={"width": 1240, "height": height}, color_scheme="light")
                page.goto(server.stdout.readline().strip())
                yield page
                browser.close()
        finally:
            server.terminate()


def debate(folder: Path) -> None:
    """A debate, with what an agent had been shown when it changed its mind."""
    write(folder / "study")
    with page_of(folder, "study", height=1250) as page:
        page.evaluate("location.hash = '#/debate/study/debate/0/bat-and-ball'")
        place = page.locator("#m3").bounding_box()
        assert place is not None
        page.mouse.move(place["x"] + 60, place["y"] + 60)  # `hover` would scroll
        page.wait_for_timeout(500)
        page.screenshot(path=DOCS / "debate.png")


def council(folder: Path) -> None:
    """A council that was asked on the page."""
    with running_endpoint(reply) as endpoint:
        seats = "".join(f'{name} = {{use = "openai.chat", model = "{name}", base_url = "{endpoint.url}", '
                        "price = {prompt = 2.5, completion = 10}}\n" for name in OPINIONS)
        (folder / "madplug").mkdir()
        (folder / "madplug/councils.toml").write_text(f"[team.seats]\n{seats}", encoding="utf-8")
        with page_of(folder, "--ask", height=1020, XDG_CONFIG_HOME=str(folder)) as page:
            page.get_by_role("textbox", name="Question").fill(ASKED)
            page.get_by_role("button", name="Ask", exact=True).click()
            expect(page.get_by_role("region", name="Answer", exact=True)).to_contain_text("Keep both", timeout=30_000)
            page.screenshot(path=DOCS / "council.png")


if __name__ == "__main__":
    for make in (debate, council):
        with tempfile.TemporaryDirectory() as name:
            make(Path(name))
