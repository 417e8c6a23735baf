"""200 recorded debates of real models: what a first-time user can find in them."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests_support import chromium

sync_api = pytest.importorskip("playwright.sync_api", reason="the browser is driven by playwright")
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
name = "{kind}-{run}"
debate.models = ["{model}"]
debate.agents = {agents}
[cells.dataset]
use = "files.table"
path = "{traces}/som_{kind}.questions.jsonl"
columns = {{id = "qid", reference = "ref"}}
answers = "answers.{form}"
[models."{model}"]
use = "replay.replies"
path = "{traces}/som_{kind}.responses.jsonl"
questions = "{traces}/som_{kind}.questions.jsonl"
select = {{run = "{run}"}}
"""


def run_study(folder: Path) -> Path:
    """Run the study: som.debate's own prompts, each answered with what the same agent answered then."""
    cells = [CELL.format(kind=kind, run=run, model=f"{kind}-{run}".replace(".", "-"), agents=run[-1], traces=TRACES,
                         form="choice" if kind == "mmlu" else "number")
             for kind, runs in RUNS.items() for run in runs]
    folder.mkdir()
    file = folder / "recorded.toml"
    file.write_text(STUDY + "".join(cells))
    subprocess.run([sys.executable, "-m", "madplug", "run", str(file), "--output", str(folder / "study"), "--quiet"],
                   check=True)
    return folder / "study"


pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason="needs the recorded debates beside the checkout")
expect = sync_api.expect
expect.set_options(timeout=30_000)


@pytest.fixture(scope="module")
def page(kit, tmp_path_factory):
    for plugin in ("som", "files", "answers", "qa", "replay"):
        pytest.importorskip(f"madplug_{plugin}")
    folder = run_study(tmp_path_factory.mktemp("view") / "recorded")
    with kit.serving_here(folder) as address, chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(address)
        yield page


def test_a_right_minority_that_was_talked_out_of_its_answer_is_found_with_who_did_it_and_the_prompt_it_saw(page):
    expect(page.locator(".cells tbody tr")).to_have_count(10)
    expect(page.locator(".progress")).to_contain_text("200 of 200 debates")
    page.get_by_role("link", name="a right minority was talked out of its answer").click()
    for name in ("right turned wrong", "majority wrong, a minority right", "wrong"):
        expect(page.get_by_role("button", name=name, exact=True)).to_have_attribute("aria-pressed", "true")
    page.locator("a.row", has_text="mistral-7b-instruct-v0.3-persona5 · mmlu/jurisprudence").click()

    story = page.locator(".story li").first
    expect(story).to_contain_text("Agent 1 went from C")
    expect(story).to_contain_text("after being shown Agent 3, Agent 4 and Agent 5, who said so")
    story.get_by_role("button", name="the prompt it saw").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("difference feminism")
    expect(dialog.locator(".sent.user").last).to_contain_text("(A) There are fundamental differences between")
    expect(dialog.locator(".quote").last).to_contain_text("Agent 5, round 1")
    expect(dialog.locator(".sent.reply")).to_contain_text("(X) Answer: (A)")
