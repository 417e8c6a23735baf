"""Diverse debate from one line of a run file."""


import pytest

from madplug import UserError


def said(request):
    return "```python\nprint('(B)')\n```" if request.purpose == "program" else "Final answer: A"


def test_the_text_methods_cost_twelve_calls_and_three_programs(run_debate):
    result, requests, _ = run_debate('paradigm = "dmad.text"', said)
    assert len(requests) == 12
    programs = [m for m in result.messages if m.agent == 2]
    assert [(m.data["dmad"]["status"], m.key) for m in programs] == [("ok", "B")] * 3
    assert (result.decision.key, result.decision.scores) == ("A", {"A": 2, "B": 1})


def test_ties_are_broken_at_random(run_debate):
    replies = {0: ["Final answer: A"], 1: ["p", "Final answer: B"], 2: ["no program"]}
    result, _, plan = run_debate('paradigm = "dmad.text"\nrounds = 1', replies)
    assert plan.cells[0].decision.options.tie == "random"
    assert result.decision.tie


BOX = '\n[[debate.styles]]\nuse = "dmad.program"\nsandbox = "box"\n'


def test_a_sandbox_can_be_named_as_a_service_and_missing_bubblewrap_is_reported_before_anything_runs(run_debate):
    more = '[services.box]\nuse = "dmad.monty"\nseconds = 1\n'
    result, _, _ = run_debate('paradigm = "dmad.text"\nrounds = 1' + BOX, said, more=more)
    assert [m.key for m in result.messages] == ["B"] * 3
    more = '[services.box]\nuse = "dmad.bubblewrap"\nbinary = "no-such-bwrap"\n'
    with pytest.raises(UserError, match="install bubblewrap"):
        run_debate('paradigm = "dmad.text"' + BOX, said, more=more)


def test_only_the_step_that_answers_has_a_form(run_debate):
    vision = run_debate('paradigm = "dmad.vision"\nrounds = 1', said)[1]
    assert [(r.purpose, r.form is not None) for r in vision if r.agent == 1] == [("think", False), ("discuss", True)]
    direct = next(r for r in vision if r.agent == 0)
    assert not direct.form["regex"].startswith("[\\s\\S]")
