"""Tit for tat from one line of a run file."""

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


def scripted(verdicts):
    """A moderator that says these answers, round after round, and a judge that says B."""
    given = iter(verdicts)

    def say(request):
        if request.purpose == "moderate":
            return json.dumps({"preference": "No", "supported_side": "", "reason": "", "answer": next(given)})
        if request.purpose == "judge":
            return json.dumps({"answer": "B", "reason": "r"})
        return "Final answer: " + "AB"[request.agent]
    return say


@pytest.mark.parametrize(("verdicts", "calls"), [(["(A)"], 3), (["", "(A)"], 6), (["", "", ""], 11)])
def test_calls_by_the_round_that_settles_it(hold, verdicts, calls):
    result, requests, _ = hold('paradigm = "mad.tit_for_tat"', scripted(verdicts))
    assert len(requests) == calls
    assert result.decision.key == ("A" if calls < 11 else "B")


def test_agents_count_the_moderator(hold):
    result, _, _ = hold('paradigm = "mad.tit_for_tat"', scripted(["(A)"]))
    assert [a.persona.role for a in result.agents] == ["affirmative", "negative", "moderator"]


def test_options_of_the_decision_can_be_changed_alone(hold):
    more = '[debate.decision]\nhistory = "first_round"\nretries = 0\n'
    plan = hold('paradigm = "mad.tit_for_tat"\n' + more, scripted(["(A)"]))[2]
    assert plan.cells[0].decision.options.history == "first_round"


def test_debaters_that_hold_a_form_end_with_an_answer(hold):
    styles = 'styles = [{use = "mad.side", max_characters = 70}, "mad.moderator"]'
    requests = hold('paradigm = "mad.tit_for_tat"\n' + styles, scripted(["(A)"]))[1]
    assert all("{0,70}" in r.form["regex"] for r in requests[:2])
    assert "json_schema" in requests[2].form
