"""Makes the picture in the README: `python tests/tools/picture.py` writes docs/debate.png with Chromium."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

from madplug import Agent, Caller, Completion, DebateResult, Decision, Message, Persona, Sample, Usage
from madplug.records import Vote
from madplug.store import Call, CallRow, open_recorder

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "debate.png"
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


def main() -> None:
    """Serve the study and take the picture."""
    import uvicorn
    from playwright.sync_api import sync_playwright

    from madplug_view.command import listen
    from madplug_view.guard import Guard, host_names
    from madplug_view.server import application
    from madplug_view.studies import open_studies

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "study"
        write(folder)
        listener = listen("127.0.0.1", 0)
        port = listener.getsockname()[1]
        app: Any = Guard(application(open_studies([folder])), "token", port, host_names("127.0.0.1"))
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
                page = browser.new_page(viewport={"width": 1240, "height": 1250}, color_scheme="light")
                page.goto(f"http://127.0.0.1:{port}/?token=token")
                page.evaluate("location.hash = '#/debate/0/debate/0/bat-and-ball'")
                page.wait_for_timeout(500)
                place = page.locator("#m3").bounding_box()
                assert place is not None
                page.mouse.move(place["x"] + 60, place["y"] + 60)  # `hover` would scroll
                page.wait_for_timeout(500)
                page.screenshot(path=PICTURE)
                browser.close()
        finally:
            server.should_exit = True
            thread.join(20)


if __name__ == "__main__":
    main()
