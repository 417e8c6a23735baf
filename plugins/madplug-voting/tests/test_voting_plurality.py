
import pytest

from madplug import Persona
from madplug.records import Plan
from madplug_testing import debate_from, play, transcript_from, wait_for
from madplug_voting import Plurality


def decide(rows, decision=None, **more):
    return wait_for((decision or Plurality()).at_end(debate_from(rows, **more)))


MODERATED = {"personas": [Persona("M", votes=False), Persona("N", votes=False), Persona("P")]}


@pytest.mark.parametrize(("rows", "options", "more", "key", "tie", "agreed"), [
    ("B A B", {}, {}, "B", False, True), ("A B C", {}, {}, None, True, False), ("- -", {}, {}, None, False, False),
    # one readable voter of three decides, and is no agreement of the three
    ("A - -", {}, {}, "A", False, False), ("A A -", {}, {}, "A", False, True),
    # who falls silent in the last round does not count unless the latest answers do, nor who does not vote
    ("A- A- BB", {}, {}, "B", False, False), ("A- A- BB", {"scope": "latest"}, {}, "A", False, True),
    ("A A B", {}, MODERATED, "B", False, True),
    ("- C A", {"fallback": "first_agent"}, {}, "C", True, False)])
def test_worked_examples(rows, options, more, key, tie, agreed):
    debate = debate_from(rows, **more)
    decision = wait_for(Plurality(**options).at_end(debate))
    assert (decision.key, decision.tie, decision.agreed) == (key, tie, agreed)
    assert ("voting.plurality" in debate.notes) == ("scope" in options)  # an earlier answer stands in for an unread one
    assert decision.fallback == ("fallback" in options)


def test_scores_and_votes_are_kept():
    decision = decide("B A B -")
    assert decision.scores == {"B": 2.0, "A": 1.0}
    assert [(v.agent, dict(v.weights), v.valid) for v in decision.votes] == [
        (0, {"B": 1.0}, True), (1, {"A": 1.0}, True), (2, {"B": 1.0}, True), (3, {}, False)]


def test_a_voter_who_never_spoke_casts_no_vote_and_is_counted_among_the_voters():
    decision = decide("A B B B", transcript=transcript_from("A B B"))
    assert ([v.agent for v in decision.votes], decision.reason) == ([0, 1, 2], "2 of 4 voters")


def test_with_a_vote_round_it_ends_the_debate_there_or_after_the_tie():
    played = play(decision=Plurality(vote_round=3), agents=3, rounds=7, replies=["A", "B", "C"] * 4 + ["A", "B", "A"])
    assert (played.decision.key, played.result.rounds) == ("A", 5)
    assert play(decision=Plurality(vote_round=3), agents=2, rounds=7, replies=["A"] * 6).result.rounds == 3
    assert [list(Plurality(vote_round=n).warn(played.debate.cell)) for n in (None, 7, 8)] == [
        [], [], ["vote_round = 8 changes nothing: a debate has 7 rounds"]]


def test_final_answers_can_be_asked_for():
    def say(request):
        return "x" if request.purpose == "extract" else ""
    assert play(decision=Plurality(final="ask_if_unread"), agents=2, rounds=1, replies=say).decision.key == "x"
    assert Plurality().calls(Plan(3, 7, 3)) == 0
    assert Plurality(final="ask", vote_round=3).calls(Plan(3, 7, 3)) == 15
