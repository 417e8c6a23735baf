"""Exchange-of-Thought from one line of a run file."""

import pytest


def said(request):
    return "Final answer: " + "ABA"[request.agent]


@pytest.mark.parametrize("name", ["memory", "report", "relay", "debate"])
def test_disagreement_costs_three_calls_in_each_of_six_rounds(run_debate, name):
    result, requests, _ = run_debate(f'paradigm = "eot.{name}"', said)
    assert len(requests) == 18
    assert (result.decision.key, result.rounds) == ("A", 6)


@pytest.mark.parametrize("name", ["memory", "report", "relay", "debate"])
def test_unanimous_first_answers_cost_three_calls(run_debate, name):
    result, requests, _ = run_debate(f'paradigm = "eot.{name}"', lambda r: "Final answer: B")
    assert len(requests) == 3
    assert result.decision.agreed


def test_the_number_of_agents_can_be_changed(run_debate):
    result, requests, _ = run_debate('paradigm = "eot.relay"\nagents = 5\nrounds = 2',
                               lambda r: f"Final answer: {'AB'[r.agent % 2]}")
    assert len(requests) == 10
    assert len({a.persona.name for a in result.agents}) == 5


def test_the_worst_case_is_announced(run_debate):
    assert run_debate('paradigm = "eot.memory"', said)[2].cells[0].worst_calls() == 18


def test_constrained_models_end_with_an_answer(run_debate):
    debate = 'paradigm = "eot.memory"\nrounds = 2\nstyles = [{use = "eot.exchange", max_characters = 70}]'
    assert all("{0,70}" in r.form["regex"] for r in run_debate(debate, said)[1])
