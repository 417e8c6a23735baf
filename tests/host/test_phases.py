"""A phase may reopen a debate: further rounds with the cell's turn order, and the decision is asked again."""

import pytest
from tests_support import Appeal, letters, made

from madplug import Decision, Phase, Reopen
from madplug_testing import LastRound, play


def test_further_rounds_are_run_and_the_decision_is_asked_again():
    played = play(replies=letters, agents=2, rounds=1, phases=[Appeal()])
    assert [(m.round, m.agent, m.content) for m in played.messages] == [
        (1, 0, "A"), (1, 1, "A"), (1, None, "think again"), (2, 0, "B"), (2, 1, "B"), (3, 0, "B"), (3, 1, "B")]
    assert played.decision.key == "B"
    assert played.result.notes == {"appeal": 1}
    assert played.debate.round == 3


def test_the_phases_before_it_follow_the_new_decision_too():
    seen = []
    look = made(Phase, run=lambda self, debate, decision: seen.append(decision.key))
    play(replies=letters, agents=2, rounds=1, phases=[look, Appeal(), look])
    assert seen == ["A", "B", "B"]


def test_a_phase_that_never_stops_reopening_fails_the_debate():
    played = play(replies=letters, agents=1, phases=[Appeal(rounds=1, times=99)], expect_failure=True)
    assert "reopened the debate 20 times" in played.result.error


@pytest.mark.parametrize(("reopen", "message"), [
    (Reopen(rounds=0), "rounds is int 0; expected greater than or equal to 1"),
    (Reopen(say=5), "say is int 5; expected a valid string")])
def test_a_reopening_that_makes_no_sense_is_named(reopen, message):
    odd = made(Phase, run=lambda self, debate, decision: reopen)
    error = play(replies=letters, phases=[odd], expect_failure=True).result.error
    assert f"Made.run returned a Reopen whose {message}" in error


def test_further_rounds_are_counted_before_the_run():
    one, more = (play(replies=letters, agents=2, rounds=1, phases=phases).debate.cell.worst_calls()
                 for phases in ([], [Appeal()]))
    assert (one, more) == (2, 6)


def test_an_early_decision_leaves_its_unused_rounds_unused():
    early = made(LastRound, after_round=lambda self, debate: self.at_end(debate))
    played = play(replies=letters, agents=1, rounds=5, decision=early, phases=[Appeal(rounds=1)])
    assert [m.round for m in played.messages if m.agent is not None] == [1, 2]
    assert played.decision == Decision("B", answer="B", agreed=True, scores={"B": 1})
