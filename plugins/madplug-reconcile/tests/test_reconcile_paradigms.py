"""ReConcile from one line of a run file."""

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


def said(answers):
    return lambda r: json.dumps({"reasoning": "r", "answer": f"({answers[r.agent]})", "confidence": 0.7})


def test_three_models_sit_at_the_table_and_disagreement_costs_nine_calls(hold):
    result, requests, plan = hold('paradigm = "reconcile.round_table"', said("ABB"), models=("x", "y", "z"))
    assert len(requests) == 9 == plan.cells[0].worst_calls()
    assert [r.model for r in requests[:3]] == ["x", "y", "z"]
    assert (result.decision.key, result.decision.scores) == ("B", {"A": 0.3, "B": 0.6})


def test_unanimity_costs_three_calls(hold):
    assert len(hold('paradigm = "reconcile.round_table"', said("BBB"))[1]) == 3


def test_weights_need_a_style_that_gives_confidences(hold):
    from madplug import UserError

    with pytest.raises(UserError, match="confidence"):
        hold('paradigm = "reconcile.round_table"\nstyles = ["eot.exchange"]'.replace("eot.exchange", "styles.simple"),
             said("ABB"))
