"""The components of madplug-hello: what they do, and the contracts of their kinds."""

from madplug_hello import Brief, LastCall, Quorum
from madplug_testing import debate_from, play
from madplug_testing.contracts import DecisionContract, ExtensionContract, StyleContract


def test_three_of_four_are_a_quorum():
    decision = Quorum().after_round(debate_from("A A A B"))
    assert (decision.key, decision.agreed, decision.scores) == ("A", True, {"A": 3, "B": 1})


def test_without_a_quorum_the_debate_goes_on():
    assert Quorum().after_round(debate_from("A A B B")) is None


def test_at_the_end_the_most_frequent_answer_stands_as_a_fallback():
    decision = Quorum().at_end(debate_from("A A B -"))
    assert (decision.key, decision.agreed, decision.fallback, decision.tie) == ("A", False, True, False)


def test_only_the_latest_round_counts():
    assert Quorum(share=1.0).after_round(debate_from("AB BB BB")).key == "B"


def test_a_debate_ends_in_the_round_of_the_quorum():
    played = play(decision=Quorum(), rounds=5, agents=2, replies=["A", "B", "B", "B"])
    assert (played.result.rounds, played.decision.key) == (2, "B")


def test_the_prompt_has_the_question_the_others_and_the_number_of_words():
    played = play(styles=[Brief(words=7)], agents=2, rounds=2, replies=["use {braces}", "B", "C", "C"])
    assert "the question" in played.prompts[0]
    assert "Answer in at most 7 words. Reply with the answer" in played.prompts[0]
    assert "Agent 1: use {braces}\nAgent 2: B" in played.prompts[2]


def test_only_the_last_round_is_announced():
    played = play(extensions=[LastCall(text="Now or never.")], agents=1, rounds=3, replies=["A", "A", "A"])
    assert ["Now or never." in prompt for prompt in played.prompts] == [False, False, True]


class TestQuorum(DecisionContract):
    """What every decision keeps."""

    component = Quorum
    agents_alike = True
    answers_alike = True


class TestBrief(StyleContract):
    """What every style keeps."""

    component = Brief


class TestLastCall(ExtensionContract):
    """What every extension keeps."""

    component = LastCall
