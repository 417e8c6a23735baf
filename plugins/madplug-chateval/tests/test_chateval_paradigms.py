"""ChatEval from one line of a run file."""

import pytest

PAIR = {"choices": None, "responses": ["It is one.", "It is two."], "reference": "2"}
KEPT = 'metadata = ["responses"]\n'


@pytest.mark.parametrize(("name", "calls"), [("one_by_one", 4), ("simultaneous", 4), ("summarised", 5)])
def test_calls_of_two_referees_in_two_rounds(run_debate, name, calls):
    result, requests, plan = run_debate(f'paradigm = "chateval.{name}"', lambda r: "Final answer: B")
    assert len(requests) == calls
    assert plan.cells[0].worst_calls() >= calls
    assert result.decision.key == "B"


@pytest.mark.parametrize(("name", "calls"), [("one_by_one", 8), ("simultaneous", 8), ("summarised", 10)])
def test_calibration_doubles_the_calls_of_a_pair(run_debate, name, calls):
    more = KEPT + '[[extensions]]\nuse = "chateval.swapped"\n[[metrics]]\nuse = "chateval.calibrated"\n'
    scores = "Score of Assistant 1: 4\nScore of Assistant 2: 9"
    result, requests, _ = run_debate(f'paradigm = "chateval.{name}"', lambda r: scores, more=more,
                                     answers="text", **PAIR)
    assert len(requests) == calls
    assert result.sample.id == "q1~swapped"


def test_one_by_one_each_referee_sees_the_one_before(run_debate):
    result, _, _ = run_debate('paradigm = "chateval.one_by_one"', lambda r: "Final answer: B")
    assert [m.seen for m in result.messages] == [(), (0,), (0, 1), (0, 1, 2)]


def test_simultaneous_referees_do_not(run_debate):
    result, _, _ = run_debate('paradigm = "chateval.simultaneous"', lambda r: "Final answer: B")
    assert [m.seen for m in result.messages] == [(), (), (0, 1), (0, 1)]


def test_blind_verdicts_are_one_option(run_debate):
    debate = 'paradigm = "chateval.one_by_one"\n[debate.visibility]\nblind_final = true'
    result, _, _ = run_debate(debate, lambda r: "Final answer: B")
    assert [m.seen for m in result.messages] == [(), (0,), (0, 1), (0, 1)]


def test_only_the_last_round_has_a_form(run_debate):
    requests = run_debate('paradigm = "chateval.simultaneous"', lambda r: "Final answer: B")[1]
    assert [r.form is not None for r in requests] == [False, False, True, True]
