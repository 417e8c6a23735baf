"""ReConcile from one line of a run file."""

import json

import pytest


def said(answers):
    return lambda r: json.dumps({"reasoning": "r", "answer": f"({answers[r.agent]})", "confidence": 0.7})


def test_three_models_sit_at_the_table_and_disagreement_costs_nine_calls(run_debate):
    result, requests, plan = run_debate('paradigm = "reconcile.round_table"', said("ABB"), models=("x", "y", "z"))
    assert len(requests) == 9 == plan.cells[0].worst_calls()
    assert [r.model for r in requests[:3]] == ["x", "y", "z"]
    assert (result.decision.key, result.decision.scores) == ("B", {"A": 0.3, "B": 0.6})


def test_unanimity_costs_three_calls(run_debate):
    assert len(run_debate('paradigm = "reconcile.round_table"', said("BBB"))[1]) == 3


def test_weights_need_a_style_that_gives_confidences(run_debate):
    from madplug import UserError

    with pytest.raises(UserError, match="confidence"):
        run_debate('paradigm = "reconcile.round_table"\nstyles = ["styles.simple"]', said("ABB"))
