"""Tit for tat from one line of a run file."""

import json


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


def test_options_of_the_decision_can_be_changed_alone(run_debate):
    more = '[debate.decision]\nhistory = "first_round"\nretries = 0\n'
    plan = run_debate('paradigm = "mad.tit_for_tat"\n' + more, scripted(["(A)"]))[2]
    assert plan.cells[0].decision.options.history == "first_round"


def test_debaters_that_hold_a_form_end_with_an_answer(run_debate):
    styles = 'styles = [{use = "mad.side", max_characters = 70}, "mad.moderator"]'
    requests = run_debate('paradigm = "mad.tit_for_tat"\n' + styles, scripted(["(A)"]))[1]
    assert all("{0,70}" in r.form["regex"] for r in requests[:2])
    assert "json_schema" in requests[2].form
