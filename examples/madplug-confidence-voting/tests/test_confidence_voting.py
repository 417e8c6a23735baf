"""Confidence-weighted voting: asked, recalibrated, weighed, and ties."""

import math

import pytest

from madplug_confidence_voting import Weighted, percent
from madplug_testing import debate_from, play, wait_for
from madplug_testing.contracts import DecisionContract


def decided(rows, sure, **options):
    return wait_for(Weighted(ask="never", **options).at_end(debate_from(rows, confidence=sure)))


def test_one_confident_voter_outvotes_two_doubtful_ones():
    decision = decided("A B B", [0.9, 0.3, 0.4])
    assert (decision.key, decision.agreed) == ("A", True)
    assert decision.scores == pytest.approx({"A": 0.9, "B": 0.7})


@pytest.mark.parametrize(("rows", "agreed"), [("A - -", False), ("A A -", True), ("A A B", True)])
def test_one_readable_voter_of_three_is_no_agreement(rows, agreed):
    decision = decided(rows, 0.9)
    assert (decision.key, decision.agreed) == ("A", agreed)


def test_recalibration_lets_the_many_win_again():
    """Log-odds halved: 0.9 becomes 0.75, 0.3 becomes 0.396 and 0.4 becomes 0.449."""
    decision = decided("A B B", [0.9, 0.3, 0.4], slope=0.5)
    assert decision.key == "B"
    assert decision.scores == pytest.approx({"A": 0.75, "B": 0.39564 + 0.44949}, abs=1e-4)


def test_a_shift_moves_every_voter():
    assert decided("A", [0.5], shift=1.0).scores == pytest.approx({"A": 1 / (1 + math.exp(-1))})


def test_no_agent_is_ever_certain():
    assert decided("A B", [1.0, 0.0]).scores == pytest.approx({"A": 0.99, "B": 0.01})


@pytest.mark.parametrize(("tie", "key"), [("first", "B"), ("lexical", "A"), ("undecided", None)])
def test_a_tie_goes_as_the_option_says(tie, key):
    decision = decided("B A", [0.7, 0.7], tie=tie)
    assert (decision.key, decision.tie, decision.agreed) == (key, True, False)


def test_a_randomly_broken_tie_does_not_depend_on_the_order_of_the_agents():
    assert decided("B A", [0.7, 0.7], tie="random").key == decided("A B", [0.7, 0.7], tie="random").key


def test_voters_are_asked_for_a_confidence_that_was_not_recorded():
    played = play(decision=Weighted(), agents=3, replies={0: ["A", "I am 90% sure."], 1: ["B", "30"], 2: ["B", "?"]})
    assert [r.purpose for r in played.requests] == ["discuss"] * 3 + ["confidence"] * 3
    assert "Your answer is: A" in played.prompts[3]
    assert [(v.agent, dict(v.weights), v.valid) for v in played.decision.votes] == [
        (0, {"A": pytest.approx(0.9)}, True), (1, {"B": pytest.approx(0.3)}, True), (2, {"B": 0.5}, False)]
    assert played.decision.key == "A"


@pytest.mark.parametrize(("text", "share"), [("85", 0.85), ("85%", 0.85), ("Of 3 options, I am 62.5 sure", 0.625),
                                             ("sure", None), ("250", None), ("from 10 to 20", 0.2), ("-5", None)])
def test_the_last_number_from_0_to_100_is_read(text, share):
    assert percent(text) == share


class TestWeighted(DecisionContract):
    """What every decision keeps."""

    component = Weighted
    agents_alike = True
    answers_alike = True
