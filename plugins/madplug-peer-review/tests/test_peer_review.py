"""Who reviews whom, in which order, and in whose conversation."""

import pytest

from madplug_peer_review import Desk, Reviewer, Stages
from madplug_testing import play
from madplug_voting import Plurality

MARKED = {"first": "<q>", "review": "review {solution} {rate}", "rate": "1-10?", "revise": "{reviews}|{question}",
          "reviewed": "<{content}>"}


def said(request):
    """What is said tells who says it, and for which message of its own."""
    return f"{request.agent}{sum(m['role'] == 'assistant' for m in request.messages)}"


def reviewed(agents=3, replies=said, **options):
    return play(styles=[Reviewer(**MARKED | options)], turns=Stages(), visibility=Desk(),
                decision=Plurality(tie="first"), agents=agents, rounds=3, replies=replies)


@pytest.mark.parametrize(("agents", "calls"), [(2, 6), (3, 12), (4, 20)])
def test_everybody_answers_reviews_all_others_and_revises(agents, calls):
    assert reviewed(agents).result.calls == calls == sum(Stages().turns(agents, k) for k in (1, 2, 3, 4))
    assert list(Stages().check(type("Alone", (), {"wanted": 1}))) == [
        "it takes two agents or more to review each other"]


@pytest.mark.parametrize(("rounds", "told"), [(1, "nobody reviews"), (2, "nobody revises"), (3, None)])
def test_a_debate_that_ends_before_answers_are_revised_is_a_warning(rounds, told):
    said = [*Stages().warn(type("Cell", (), {"rounds": rounds}))]
    assert [told in text for text in said] == [True] * (told is not None)


def test_an_agent_has_one_conversation_with_all_solutions_and_the_reviews_of_its_own():
    played = reviewed()
    last = next(r for r in played.requests[9:] if r.agent == 1)
    assert [m["content"] for m in last.messages] == [
        "<q>", "10", "review 00 1-10?", "11", "review 20 1-10?", "12", "<01>\n\n<22>|the question"]
    assert [m["role"] for m in last.messages] == ["user", "assistant"] * 3 + ["user"]


def test_a_review_gives_no_answer_and_may_leave_out_confidence():
    played = reviewed(confidence=False)
    assert [m.answers for m in played.messages] == [True] * 3 + [False] * 6 + [True] * 3
    assert played.requests[3].messages[-1]["content"] == "review 10"


@pytest.mark.parametrize(("final", "key", "tie"), [("ABB", "B", False), ("ABC", "A", True), (" BC", "B", True)])
def test_the_most_common_final_answer_wins_and_one_that_cannot_be_read_has_no_vote(final, key, tie):
    played = reviewed(replies=[*"xyz", *"rrrrrr", *final])
    assert (played.decision.key, played.decision.tie) == (key, tie)
