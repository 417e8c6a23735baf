"""Agents that leave a debate: they get no turn, their answers no longer count, and the record says so."""

import pytest
from tests_support import OneByOne, Reviews, in_turn, made

from madplug import Agent, Persona, Phase, Reopen, Review
from madplug_testing import debate_from, play


def left(*reviews, rounds=2, **parts):
    return play(replies=lambda r: "ABB"[r.agent], rounds=rounds, extensions=[Reviews(in_turn(*reviews))], **parts)


def speakers(played, round):
    return [m.agent for m in played.transcript.of_round(round)]


@pytest.mark.parametrize("who", [0, Agent(0, Persona("Ada"), None)])
def test_an_agent_that_left_gets_no_further_turn_and_is_no_voter_or_neighbour(who):
    played = left(Review(leave=(who,)))
    assert (speakers(played, 1), speakers(played, 2)) == ([0, 1, 2, None], [1, 2])
    debate = played.debate
    assert [a.id for a in debate.agents] == [0, 1, 2]
    assert [a.id for a in debate.active] == [a.id for a in debate.voters] == [1, 2]
    assert list(debate.neighbours(debate.agents[1])) == [2]
    assert [a.id for a in debate_from("AB BB").active] == [0, 1], "nobody left a debate without the host"


def test_a_wave_of_agents_that_left_is_skipped():
    played = left(Review(leave=(1,)), turns=OneByOne())
    assert [(m.agent, m.wave) for m in played.transcript.of_round(2)] == [(0, 0), (2, 1)]


def test_two_survivors_that_agree_are_agreed():
    leaving = Reviews(in_turn(Review(leave=(0, 3))))
    played = play(replies=lambda r: "ABBC"[r.agent], agents=4, rounds=2, extensions=[leaving])
    assert (played.decision.key, played.decision.agreed, played.decision.scores) == ("B", True, {"B": 2})


def test_a_round_that_is_retracted_takes_back_who_left_in_it():
    played = left(Review(redo=True, leave=(0,)), Review(redo=True), rounds=1)
    assert speakers(played, 1) == [0, 1, 2]
    assert [m.agent for m in played.result.messages] == [0, 1, 2, None, 1, 2, 0, 1, 2]


def test_a_debate_whose_voters_have_all_left_is_undecided():
    played = left(Review(leave=(0, 1, 2)), rounds=3)
    assert (played.decision.key, played.decision.reason) == (None, "every agent that votes has left the debate")
    assert played.result.rounds == 1


@pytest.mark.parametrize(("review", "message"), [
    (Review(leave=(7,)), "a Review in which 7 leaves; expected agents, or their ids from 0 to 2"),
    (Review(leave=("Ada",)), "a Review whose leave[0].Agent is str 'Ada'; expected an instance of Agent"),
    (Review(leave=1), "a Review whose leave is int 1; expected a valid tuple"),
    (Review(say="x", data="y"), "a Review whose data is str 'y'; expected a valid dictionary"),
])
def test_a_review_that_cannot_be_carried_out_says_what_was_expected(review, message):
    assert message in left(review, expect_failure=True).result.error


def test_what_a_review_and_a_reopening_say_and_store_is_in_their_messages():
    def run(self, debate, decision):
        return None if debate.rounds > 2 else Reopen(say="go on", data={"once": {"n": 1}})

    once = made(Phase, run=run)
    reviews = Review(say="hm", data={"mine": {"n": 2}}), Review(leave=(0,), say="0 is out.", data={"mine": {"n": 3}})
    played = left(*reviews, phases=[once])
    assert [(m.content, m.move, m.stage, m.data) for m in played.messages if m.agent is None] == [
        ("hm", "say", "", {"mine": {"n": 2}}),
        ("0 is out.", "leave", "", {"mine": {"n": 3}, "madplug": {"left": [0]}}),
        ("go on", "say", "reopened", {"once": {"n": 1}})]
