"""200 recorded debates of real models: what a first-time user can find in them."""

import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="the browser is driven by playwright")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
TRACES = Path(__file__).resolve().parents[4] / "shared" / "data" / "traces"
RUNS = {"mmlu": ("mistral-7b-instruct-v0.3-persona3", "mistral-7b-instruct-v0.3-persona5", "qwen3-0.6b-persona3",
                 "qwen3-0.6b-persona5", "qwen3-14b-temp3"),
        "gsm": ("mistral-7b-instruct-v0.3-persona3", "mistral-7b-instruct-v0.3-persona5", "qwen3-0.6b-persona5",
                "qwen3-14b-persona3", "vibethinker-1.5b-persona3")}
STUDY = """
name = "recorded"
share_completions = false
[debate]
paradigm = "som.debate"
rounds = 3
[[metrics]]
use = "qa.accuracy"
"""
CELL = """
[[cells]]
name = "{name}"
dataset = {{use = "files.table", path = "{file}", answers = "answers.{form}"}}
debate.models = ["{model}"]
debate.agents = {agents}
[models."{model}"]
use = "openai.chat"
model = "{model}"
base_url = "http://127.0.0.1:9/v1"
"""


def rows(name: str) -> list[dict]:
    """The rows of a file of traces."""
    return [json.loads(line) for line in (TRACES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def run_study(folder: Path) -> Path:
    """Run the study in a directory: every call is answered with what the same agent answered then."""
    from madplug.config import load
    from madplug.store import open_recorder
    from madplug.study import StudyRun
    from madplug.testing import Scripted

    folder.mkdir()
    text, replies = STUDY, {}
    for kind, runs in RUNS.items():
        questions = rows(f"som_{kind}.questions")
        (folder / f"{kind}.jsonl").write_text("\n".join(json.dumps({
            "id": q["qid"], "question": q["question"], "reference": q["ref"],
            **({"choices": q["choices"]} if q.get("choices") else {})})
            for q in questions))
        words = {q["qid"]: q["question"] for q in questions}
        for r in rows(f"som_{kind}.responses"):
            replies[f"{kind}-{r['run']}", words[r["qid"]], r["agent"], r["round"]] = r["response"]
        for run in runs:
            name = f"{kind}-{run}"
            form = "choice" if kind == "mmlu" else "number"
            model = name.replace(".", "-")
            text += CELL.format(name=name, file=f"{kind}.jsonl", form=form, model=model, agents=run[-1])
    (folder / "study.toml").write_text(text)

    by_model = {}
    for (name, question, agent, number), reply in replies.items():
        by_model.setdefault(name.replace(".", "-"), {}).setdefault(question, {})[agent, number] = reply

    def answer(request):
        texts = [m["content"] for m in request.messages]
        question = next(q for q in by_model[request.model] if any(q in t for t in texts))
        number = 1 + sum(m["role"] == "assistant" for m in request.messages)
        return by_model[request.model][question][request.agent, number]

    resolved = load(folder / "study.toml")
    plan = replace(resolved.plan, models=dict.fromkeys(resolved.plan.models, Scripted(answer)))
    recorder = open_recorder(folder)

    async def run() -> None:
        await recorder.keep_fact("identity", resolved.identity)
        await recorder.keep_fact("planned", 200)
        await StudyRun(plan, recorder).run()

    asyncio.run(run())
    recorder.close()
    return folder


pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
    pytest.mark.skipif(not TRACES.is_dir(), reason="needs the recorded debates beside the checkout")]
expect = sync_api.expect
expect.set_options(timeout=30_000)


@pytest.fixture(scope="module")
def page(kit, tmp_path_factory):
    for plugin in ("som", "files", "answers", "qa", "openai"):
        pytest.importorskip(f"madplug_{plugin}")
    folder = run_study(tmp_path_factory.mktemp("view") / "recorded")
    with kit.serving_here(folder) as address, sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(address)
        yield page
        browser.close()


def test_a_right_minority_that_was_talked_out_of_its_answer_is_found_with_who_did_it_and_the_prompt_it_saw(page):
    expect(page.locator(".cells tbody tr")).to_have_count(10)
    expect(page.locator(".progress")).to_contain_text("200 of 200 debates")
    page.get_by_role("link", name="mmlu-mistral-7b-instruct-v0.3-persona5").click()
    for name in ("right turned wrong", "majority wrong, a minority right", "wrong"):
        page.get_by_role("button", name=name, exact=True).click()
    page.locator("a.row", has_text="jurisprudence").click()

    story = page.locator(".story li").first
    expect(story).to_contain_text("Agent 1 went from C")
    expect(story).to_contain_text("after being shown Agent 3, Agent 4 and Agent 5, who said so")
    story.get_by_role("button", name="the prompt it saw").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("difference feminism")
    expect(dialog.locator(".sent.user").last).to_contain_text("(A) There are fundamental differences between")
    expect(dialog.locator(".sent.reply")).to_contain_text("(X) Answer: (A)")
