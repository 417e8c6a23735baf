"""A judge that steps in when the group's answer gets worse."""

import pytest
from tests_support import Reviews, in_turn

from madplug import Plan, Review
from madplug_judge import Intervention
from madplug_judge.intervention import read_preference
from madplug_testing import play


def played_with(*extensions, rounds, judge="A", replayed=None, feedback="look again"):
    """Agents that answer as the words say, round by round; `replayed` are the answers of a round that is run again."""
    spoken, verdicts = {}, iter([judge] * 99 if isinstance(judge, str) else judge)
    rows = rounds.split()

    def replies(request):
        if request.purpose == "judge":
            return next(verdicts) if "Which answer" in request.messages[0]["content"] else feedback
        nth = spoken[request.agent] = spoken.get(request.agent, -1) + 1
        texts = [row[request.agent] for row in rows]
        if replayed:
            texts[2:2] = [row[request.agent] for row in replayed.split()]
        return texts[nth]

    return play(extensions=extensions, replies=replies, rounds=len(rows))


def test_a_round_that_made_the_answer_worse_is_run_again():
    played = played_with(Intervention(), rounds="AAA BBB", replayed="AAA")
    assert [m.key for m in played.messages] == ["A"] * 6
    assert [m.key for m in played.transcript.record if m.retracted] == ["B"] * 3
    assert played.debate.notes["judge"] == [{"round": 2, "older": "A", "newer": "B", "preferred": "A"}]
    assert any("Answer A:\nA\n\nAnswer B:\nB\n\n" in prompt for prompt in played.prompts)


@pytest.mark.parametrize(("options", "rounds", "replayed", "judge", "key", "record", "calls"), [
    ({}, "AAB ABA AAA", None, "A", "A", 9, 9), ({}, "AAA", None, "A", "A", 3, 3),  # the answer stays the same
    ({}, "AAA BBB", "BBB", "A", "B", 9, 10),  # a round is run again at most once
    ({}, "AAA BBB", None, "B", "B", 6, 7), ({}, "AAA BBB", None, "both", "B", 6, 6 + 3),
    ({"always": True}, "AAA BBB", "BBB", "", "B", 9, 9), ({"action": "policy"}, "AAA BBB", None, "A", "B", 6, 6)])
def test_when_the_judge_is_asked_and_a_round_is_run_again(options, rounds, replayed, judge, key, record, calls):
    played = played_with(Intervention(**options), rounds=rounds, replayed=replayed, judge=judge)
    assert (played.decision.key, len(played.transcript.record), played.result.calls) == (key, record, calls)
    assert played.result.unread == (judge == "both")


def test_policy_tells_everybody_what_went_wrong_unless_that_is_empty():
    played = played_with(Intervention(action="policy"), rounds="AAA BBB BBB")
    note = next(m for m in played.messages if m.agent is None)
    assert (note.round, note.content) == (2, "look again")
    assert all(note.id in m.seen for m in played.transcript.of_round(3))
    assert played.result.calls == 9 + 2
    silent = played_with(Intervention(action="policy"), rounds="AAA BBB BBB", feedback=" ")
    assert all(m.agent is not None for m in silent.messages)


@pytest.mark.parametrize(("review", "calls"), [(Review(stop=True), 6), (Review(redo=True), 9)])
def test_a_round_that_another_extension_ends_or_retracts_is_not_judged(review, calls):
    played = played_with(Reviews(in_turn(None, review)), Intervention(), rounds="AAA BBB", replayed="AAA")
    assert played.result.calls == calls
    assert "judge" not in played.result.notes


@pytest.mark.parametrize(("options", "rounds", "replayed", "judge", "said"), [
    ({"action": "policy"}, "AAA BBB BBB", None, "A", ["a summary\n\nlook again"]),  # the feedback follows
    ({}, "AAA BBB", "AAA", "A", []),  # a message about a retracted round is not said
    ({}, "AAA BBB BBB", None, "B", ["a summary"])])  # the judge has no objection
def test_what_another_extension_says_stands_unless_its_round_is_retracted(options, rounds, replayed, judge, said):
    summary = Reviews(in_turn(None, Review(say="a summary")))
    played = played_with(summary, Intervention(**options), rounds=rounds, replayed=replayed, judge=judge)
    assert [m.content for m in played.transcript.record if m.agent is None] == said


def test_the_judge_may_have_its_own_model():
    played = play(extensions=[Intervention(model="wise")], models=["model", "wise"], rounds=2,
                  replies={0: ["A", "B"], 1: ["A", "B"], 2: ["A", "B"], None: ["B"]})
    assert [r.model for r in played.requests if r.purpose == "judge"] == ["wise"]


def test_the_worst_case_counts_rounds_run_twice():
    assert Intervention().calls(Plan(3, 5, 3)) == 4 * (3 + 3)
    assert Intervention(action="policy").calls(Plan(3, 5, 3)) == 4 * (3 + 1)
    assert Intervention(always=True).calls(Plan(3, 5, 3)) == 4 * 3


@pytest.mark.parametrize(("text", "letter"), [
    ("A", "A"), ("b", "B"), ("(B).", "B"), ("Answer A", "A"), ("**A**", "A"), ("A is better than B", None),
    ("I prefer answer B to A.", "B"), ("The better answer is A, not B", "A"), ("A better answer is B", "B"),
    ("", None), ("neither", None), ("both A and B", None)])
def test_a_preference_is_read_only_when_it_is_one(text, letter):
    assert read_preference(text) == letter
