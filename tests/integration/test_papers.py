"""The run files that paste a paper's wording: they load, and what is pasted is what is sent."""

import json
import re
from pathlib import Path

import pytest
from recording import REGISTRY, exchange

from madplug.config import load

PAPERS = (Path(__file__).parents[2] / "docs/papers.md").read_text(encoding="utf-8")
PASTED = dict(re.findall(r"^## ([^\n]+)\n(?:(?!^## ).)*?```toml\n(.*?)```", PAPERS, re.MULTILINE | re.DOTALL))
ROW = {"id": "q1", "question": "Which one?", "choices": ["one", "two", "three", "four"], "reference": "B"}


@pytest.mark.parametrize("title", PASTED)
def test_a_paper_s_run_file_loads(title, tmp_path):
    (tmp_path / "questions.jsonl").write_text(json.dumps(ROW) + "\n")
    (tmp_path / "run.toml").write_text(PASTED[title])
    assert load(tmp_path / "run.toml", registry=REGISTRY).plan.cells


def test_every_paper_with_prompts_of_its_own_has_one():
    assert len(PASTED) >= 12


MALLM = """persona_place = "system"
persona = "WHO {name}"
frame_place = "system"
frame = "TASK {instruction} INPUT {question} SOLUTION {solution}"
no_solution = "none"
step_by_step = false
propose = "PROPOSE"
improve = "IMPROVE"
tag = "TAG"
"""
VOTE = """final = "ask"
persona = "VOTER {name}"
frame = "VOTE TASK {instruction} INPUT {question}"
introduction = "{solutions}"
solution = "SOLUTION {number} {answer}"
ask = "VOTE"
reply = "REPLY {form}"
example = "EXAMPLE"
extract_persona = "WRITER {name}"
extract_frame = "EXTRACT TASK {question}"
extract = "EXTRACT"
"""


def test_what_is_pasted_is_all_that_is_sent(tmp_path):
    debate = f'''paradigm = "mallm.memory"
agents = 2
rounds = 1
[[debate.styles]]
use = "styles.simple"
{MALLM}
[debate.decision]
use = "voting.simple"
{VOTE}'''
    def script(request):
        answer = "AB"[request.agent]
        return "1" if request.purpose == "vote" else f"[DISAGREE] It is so.\nFinal answer: ({answer})"

    calls, _ = exchange(tmp_path, debate, script, ROW, dataset=', instruction = "WORDS"',
                        top='answers = {use = "answers.choice", instruction = "FORM {form}"}')
    sent = [[(m["role"], m["content"]) for m in body["messages"]] for _, body in calls]
    choices = "Which one?\n\n(A) one\n(B) two\n(C) three\n(D) four"
    form = "FORM `Final answer: (<letter>)`"
    said = "[DISAGREE] It is so.\nFinal answer: (A)"
    assert sent[0] == [("system", f"WHO Agent 1\n\nTASK WORDS INPUT {choices} SOLUTION none"),
                       ("user", f"PROPOSE\n{form}")]
    assert sent[1] == [("system", f"WHO Agent 2\n\nTASK WORDS INPUT {choices} SOLUTION A"),
                       ("user", f"Agent 1: {said}\n\nIMPROVE\nTAG\n{form}")]
    assert sent[2] == [("system", "WRITER Agent 1"), ("user", f"EXTRACT TASK WORDS\n\n{choices}"),
                       ("assistant", said), ("user", f"EXTRACT\n{form}")]
    ballot = "SOLUTION 1 A\n\nSOLUTION 2 B\n\nVOTE\nREPLY EXAMPLE"
    assert sent[4] == [("system", "VOTER Agent 1"), ("user", f"VOTE TASK WORDS INPUT {choices}\n\n{ballot}")]
