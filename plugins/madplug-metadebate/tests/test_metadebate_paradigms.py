"""Meta-Debate from one line of a run file."""

import json

import pytest

THREE = ("a", "b", "c")


def scripted(request):
    if request.purpose == "criteria":
        return json.dumps({"criteria": [{"name": "Wit", "explanation": "e"}, {"name": "Truth", "explanation": "e"}]})
    if request.purpose == "review":
        score = {"Wit": 3, "Truth": 3, "explanation": ""}
        return json.dumps({"Agent 1": score, "Agent 2": score | {"Truth": 5}, "Agent 3": score})
    if request.purpose == "moderate":
        return json.dumps({"preference": "Yes", "supported_side": "", "reason": "", "answer": "(B)"})
    return "```python\nprint('B')\n```" if request.purpose == "program" else "Final answer: B"


def test_dmad_costs_twenty_one_calls_and_its_debate(run_debate):
    """Three models apply with four calls each for three methods, and review each method once."""
    result, requests, plan = run_debate('paradigm = "metadebate.dmad"', scripted, models=THREE)
    assert plan.cells[0].worst_calls() >= sum(r.purpose != "criteria" for r in requests) == 3 * 4 + 9 + 12
    assert not any("said before" in json.dumps(r.messages) for r in requests)
    assert [s["role"] for s in result.notes["metadebate"]["cast"]] == ["cot", "step_back", "program"]


@pytest.mark.parametrize("name", ["mad", "dmad", "dmad_vision"])
def test_one_model_is_enough(run_debate, name):
    def lone(request):
        score = {"Wit": 3, "Truth": 3, "explanation": ""}
        return json.dumps({"Agent 1": score}) if request.purpose == "review" else scripted(request)

    result, _, _ = run_debate(f'paradigm = "metadebate.{name}"', lone)
    assert result.decision.key == "B"
    assert not any("fallback" in s for s in result.notes["metadebate"]["cast"])
