"""Exchange-of-Thought from one line of a run file."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from madplug.config import load
from madplug.registry import Registry
from madplug.store import MemoryStore
from madplug.study import StudyRun
from madplug.testing import Scripted

for plugin in ("answers", "files", "openai"):
    pytest.importorskip(f"madplug_{plugin}")
REGISTRY = Registry()


@pytest.fixture
def hold(tmp_path):
    """Loads a run file with this `[debate]` and one question, and holds its debate with these replies."""
    def held(debate, replies, models=("m",), more="", **row):
        question = {"id": "q1", "question": "Which?", "choices": ["one", "two"], "reference": "B", **row}
        (tmp_path / "q.jsonl").write_text(json.dumps(question) + "\n")
        named = "".join(f'[models.{m}]\nuse = "openai.chat"\nmodel = "{m}"\nbase_url = "http://127.0.0.1:9/v1"\n'
                        for m in models)
        (tmp_path / "run.toml").write_text(f"""{named}
[dataset]
use = "files.table"
path = "q.jsonl"
answers = "choice"
{more}
[debate]
models = {json.dumps(list(models))}
{debate}""")
        plan = load(tmp_path / "run.toml", registry=REGISTRY).plan
        scripted, store = Scripted(replies), MemoryStore()
        asyncio.run(StudyRun(replace(plan, models=dict.fromkeys(plan.models, scripted)), store).run())
        result = list(store.results())[-1]
        assert result.error is None, result.error
        return result, scripted.requests, plan
    return held


def said(request):
    return "Final answer: " + "ABA"[request.agent]


@pytest.mark.parametrize("name", ["memory", "report", "relay", "debate"])
def test_disagreement_costs_three_calls_in_each_of_six_rounds(hold, name):
    result, requests, _ = hold(f'paradigm = "eot.{name}"', said)
    assert len(requests) == 18
    assert (result.decision.key, result.rounds) == ("A", 6)


@pytest.mark.parametrize("name", ["memory", "report", "relay", "debate"])
def test_unanimous_first_answers_cost_three_calls(hold, name):
    result, requests, _ = hold(f'paradigm = "eot.{name}"', lambda r: "Final answer: B")
    assert len(requests) == 3
    assert result.decision.agreed


def test_the_number_of_agents_can_be_changed(hold):
    result, requests, _ = hold('paradigm = "eot.relay"\nagents = 5\nrounds = 2',
                               lambda r: f"Final answer: {'AB'[r.agent % 2]}")
    assert len(requests) == 10
    assert len({a.persona.name for a in result.agents}) == 5


def test_the_worst_case_is_announced(hold):
    assert hold('paradigm = "eot.memory"', said)[2].cells[0].worst_calls() == 18


def test_models_that_hold_a_form_end_with_an_answer(hold):
    debate = 'paradigm = "eot.memory"\nrounds = 2\nstyles = [{use = "eot.exchange", max_characters = 70}]'
    assert all("{0,70}" in r.form["regex"] for r in hold(debate, said)[1])
