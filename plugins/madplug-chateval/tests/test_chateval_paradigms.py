"""ChatEval from one line of a run file."""

import pytest

PAIR = {"choices": None, "responses": ["It is one.", "It is two."], "reference": "2"}
KEPT = 'metadata = ["responses"]\n'


@pytest.mark.parametrize(("name", "more", "calls", "seen"), [
    ("one_by_one", "", 4, [(), (0,), (0, 1), (0, 1, 2)]), ("simultaneous", "", 4, [(), (), (0, 1), (0, 1)]),
    ("one_by_one", "\n[debate.visibility]\nblind_final = true", 4, [(), (0,), (0, 1), (0, 1)]),
    ("summarised", "", 5, None)])
def test_what_two_referees_see_in_two_rounds_and_what_it_costs(run_debate, name, more, calls, seen):
    result, requests, plan = run_debate(f'paradigm = "chateval.{name}"{more}', lambda r: "Final answer: B")
    assert len(requests) == calls <= plan.cells[0].worst_calls()
    assert result.decision.key == "B"
    assert seen in (None, [m.seen for m in result.messages])


@pytest.mark.parametrize(("name", "calls"), [("one_by_one", 8), ("simultaneous", 8), ("summarised", 10)])
def test_calibration_doubles_the_calls_of_a_pair(run_debate, name, calls):
    more = KEPT + '[[extensions]]\nuse = "chateval.swapped"\n[[metrics]]\nuse = "chateval.calibrated"\n'
    scores = "Score of Assistant 1: 4\nScore of Assistant 2: 9"
    result, requests, _ = run_debate(f'paradigm = "chateval.{name}"', lambda r: scores, more=more,
                                     answers="text", **PAIR)
    assert len(requests) == calls
    assert result.sample.id == "q1~swapped"


def test_only_the_last_round_has_a_form(run_debate):
    requests = run_debate('paradigm = "chateval.simultaneous"', lambda r: "Final answer: B")[1]
    assert [r.form is not None for r in requests] == [False, False, True, True]
