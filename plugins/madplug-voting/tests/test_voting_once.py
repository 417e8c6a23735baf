"""A round is voted on once, however often it is decided, and a decision's text is that of the record."""

import asyncio
from dataclasses import replace
from functools import partial

import pytest
from tests_support import Reviews, redo_once

import madplug_voting
from madplug import Review
from madplug.debate.recorded import follow
from madplug.debate.state import DebateState
from madplug.testing import play
from madplug_voting import Plurality

# The worked cases number solutions from 0.
Simple, Approval, Ranked, Cumulative = (
    partial(getattr(madplug_voting, name), index_base=0) for name in ("Simple", "Approval", "Ranked", "Cumulative"))

EVEN = {Simple: ["0", "1", "2"], Approval: ["0, 1, 2"] * 3, Ranked: ["0 1 2", "1 2 0", "2 0 1"],
        Cumulative: ['{"0": 5, "1": 5}', '{"1": 5, "2": 5}', '{"0": 5, "2": 5}']}
"""Ballots of three agents that end in a tie."""


def stop(round, *, redo=False):
    """Ends the debate after a round, or has the round run again once."""
    def review(debate):
        if debate.round != round:
            return None
        again = redo and redo_once(debate).redo
        return Review(redo=again, stop=not again)

    return Reviews(review)


def script(answers, ballots):
    def say(request):
        return ballots[request.agent] if request.purpose == "vote" else answers[request.agent]
    return say


def asked(played, *purposes):
    return [r.purpose for r in played.requests if r.purpose in purposes]


def again(played, decision, rounds):
    """The recorded debate decided by another protocol, in a study that allows more rounds."""
    cell = replace(played.debate.cell, decision=decision, rounds=rounds)
    debate = DebateState(cell, played.result.sample, client=played.debate.client)
    return asyncio.run(follow(debate, played.result)), debate


@pytest.mark.parametrize("kind", EVEN)
def test_a_debate_that_is_stopped_after_a_tie_is_decided_by_the_same_ballots(kind):
    played = play(decision=kind(), agents=3, rounds=7, replies=script("xyz", EVEN[kind]), extensions=[stop(4)])
    assert asked(played, "vote") == ["vote"] * 2 * 3
    assert [note["round"] for note in played.result.notes["voting"]] == [3, 4]
    once = play(decision=kind(vote_round=7), agents=3, rounds=4, replies=script("xyz", EVEN[kind])).decision
    assert played.decision == once


@pytest.mark.parametrize("kind", EVEN)
def test_a_recorded_debate_that_ends_after_a_tie_is_voted_on_once_a_round(kind):
    played = play(agents=3, rounds=4, replies=script("xyz", EVEN[kind]))
    decision, debate = again(played, kind(), rounds=7)
    assert asked(played, "vote") == ["vote"] * 2 * 3
    assert [note["round"] for note in debate.notes["voting"]] == [3, 4]
    assert (decision.key, decision.fallback, decision.tie) == ("x", True, True)
    assert [v.valid for v in decision.votes] == [True] * 3


def test_ballots_that_were_missing_are_not_asked_for_again():
    played = play(decision=Simple(attempts=2), agents=2, rounds=7, replies=script("xy", ["?", "?"]),
                  extensions=[stop(3)])
    assert asked(played, "vote") == ["vote"] * 2 * 2
    assert (played.decision.fallback, played.decision.reason[:15]) == (True, "no valid ballot")


def test_numbers_that_begin_with_one_are_read_back():
    played = play(decision=Simple(index_base=1), agents=2, rounds=7, replies=script("xy", ["1", "2"]),
                  extensions=[stop(3)])
    assert [dict(v.weights) for v in played.decision.votes] == [{"x": 1.0}, {"y": 1.0}]


def test_a_round_that_was_run_again_is_voted_on_again():
    played = play(decision=Simple(), agents=2, rounds=7, replies=script("xy", ["0", "1"]),
                  extensions=[stop(3, redo=True)])
    assert asked(played, "vote") == ["vote"] * 2 * 2
    assert [(note["round"], note["after"]) for note in played.result.notes["voting"]] == [
        (3, [[4, "x"], [5, "y"]]), (3, [[6, "x"], [7, "y"]])]


def test_voters_without_an_answer_are_asked_for_one_once_a_round():
    played = play(decision=Simple(), agents=2, rounds=7, replies=lambda request: "", extensions=[stop(3)])
    assert asked(played, "extract", "vote") == ["extract"] * 2
    assert (played.decision.key, played.result.notes["voting"][0]["solutions"]) == (None, [])


def test_plurality_asks_for_final_answers_once_a_round():
    def say(request):
        return ("x", "y")[request.agent] if request.purpose == "extract" else "?"

    played = play(decision=Plurality(final="ask", vote_round=1), agents=2, rounds=7, replies=say, extensions=[stop(2)])
    assert asked(played, "extract") == ["extract"] * 2 * 2
    assert (played.decision.tie, dict(played.decision.scores)) == (True, {"x": 1.0, "y": 1.0})


def test_plurality_leaves_no_notes_where_it_asks_no_voter():
    assert "voting" not in play(decision=Plurality(), agents=2, rounds=1, replies=["x", "y"]).result.notes


@pytest.mark.parametrize("decision", [Plurality(final="ask"), Simple(final="ask")])
def test_an_answer_that_only_stands_in_a_final_reply_keeps_its_wording(decision):
    def say(request):
        return {"extract": "  the  Nile ", "vote": "0"}.get(request.purpose, "")

    assert play(decision=decision, agents=1, rounds=1, replies=say).decision.answer == "the  Nile"
