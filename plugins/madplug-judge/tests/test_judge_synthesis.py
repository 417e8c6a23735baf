"""A judge that decides: what it sees, when, and what happens when it cannot be understood."""

import pytest
from tests_support import Letter, made

from madplug import Message, Persona, Plan
from madplug_judge import Synthesis
from madplug_judge.synthesis import read_number
from madplug_testing import debate_from, play, wait_for


def judging(verdict, answers="ABB", written="?"):
    """Agents that always give these answers, and a judge that says the verdicts in order.

    written: what agents say when they are asked to write their answer down.
    """
    verdicts = iter([verdict] if isinstance(verdict, str) else verdict)

    def replies(request):
        if request.purpose == "extract":
            return written
        return next(verdicts) if request.purpose == "judge" else f"I say {answers[request.agent]}"

    return replies


def run(decision, replies, rounds=5, **more):
    return play(decision=decision, answers=Letter(), replies=replies, rounds=rounds, **more)


@pytest.mark.parametrize(("options", "rounds", "after"), [({}, 5, 3), ({}, 1, 1), ({"vote_round": 1}, 5, 1)])
def test_the_judge_decides_after_round_three_or_at_an_earlier_end_with_one_call(options, rounds, after):
    played = run(Synthesis(**options), judging("C"), rounds=rounds)
    assert (played.decision.key, played.decision.agreed, played.result.rounds) == ("C", True, after)
    assert played.result.calls == 3 * after + 1
    assert played.decision.scores == {"A": 1, "B": 2}
    assert played.decision.reason == "the judge decided on 3 solutions"


def test_with_extraction_an_attempt_is_a_call_per_agent_and_one():
    def replies(request):
        return {"discuss": "I say A", "extract": "A", "judge": "A"}[request.purpose]

    played = run(Synthesis(final="ask"), replies, rounds=3)
    assert played.result.calls == 9 + (3 + 1)
    assert [r.agent for r in played.requests[9:]] == [0, 1, 2, None]
    assert "I say A" in played.prompts[9]


def test_an_agent_that_states_no_solution_is_asked_for_one_and_else_shown_with_its_whole_message():
    played = run(Synthesis(model="wise"), judging("B", answers="A?B", written="C"), models=["model", "wise"])
    assert [r.agent for r in played.requests if r.purpose == "extract"] == [1]
    assert "Solution 2:\nC" in played.prompts[-1]
    assert played.requests[-1].model == "wise"
    assert played.decision.scores == {"A": 1, "C": 1, "B": 1}
    played = run(Synthesis(), judging("B", answers="A?B"), models=["model", "wise"])
    assert "Solution 2:\nI say ?" in played.prompts[-1]
    assert played.requests[-1].model == "model"
    assert run(Synthesis(final="recorded"), judging("B", answers="A?B")).result.calls == 9 + 1


@pytest.mark.parametrize(("rows", "voters", "scores"), [
    ([["A", None], ["B", "C"]], None, {"A": 1, "C": 1}),  # an earlier answer stands in for none
    ("A B B", [Persona("x", votes=False), Persona("y"), Persona("z")], {"B": 2})])
def test_what_voters_said_last_is_put_up_and_no_message_without_an_author(rows, voters, scores):
    debate = debate_from(rows, replies=["?", "C"], personas=voters, answers=Letter())
    debate.transcript.append(Message(0, 1, 1, None, "say", "Z", key="Z", answer="Z"))
    assert wait_for(Synthesis().at_end(debate)).scores == scores
    nobody = debate_from("A B", personas=[Persona("x", votes=False)] * 2)
    assert wait_for(Synthesis().at_end(nobody)).reason == "no agent that votes said anything"


# A judge that cannot be read

@pytest.mark.parametrize(("verdicts", "answers", "key", "agreed", "fallback", "calls", "reason"), [
    (["hm", "well", "Z"], "ABB", "Z", True, False, 9 + 3, "the judge decided on 3 solutions"),
    (["hm"] * 3, "ABB", "B", False, True, 9 + 3,
     "the judge's reply could not be read in 3 attempts: the agents' most frequent answer"),
    (["hm"] * 3, "???", None, False, False, 9 + 3 + 3, "the agents gave no answer that could be read")])
def test_a_judge_that_cannot_be_read_is_asked_three_times_then_the_most_frequent_answer_is_a_fallback(
        verdicts, answers, key, agreed, fallback, calls, reason):
    played = run(Synthesis(), judging(verdicts, answers=answers))
    decision = played.decision
    assert (decision.key, decision.agreed, decision.fallback, decision.tie) == (key, agreed, fallback, False)
    assert (played.result.calls, decision.reason.endswith(reason)) == (calls, True)
    assert played.result.unread == (not agreed)


# Selecting

@pytest.mark.parametrize(("base", "said"), [(0, "1"), (1, "2"), (1, "Solution number 2"), (1, "<think>1?</think>2")])
def test_the_judge_may_select_by_number(base, said):
    played = run(Synthesis(mode="select", index_base=base), judging(said, answers="ABC"))
    assert (played.decision.key, played.decision.agreed) == ("B", True)
    assert f"Output only its number, from {base} to {base + 2}." in played.prompts[-1]


def test_selecting_a_solution_without_a_readable_answer_does_not_count():
    played = run(Synthesis(mode="select"), judging(["2", "3"], answers="A?C"))
    assert (played.decision.key, played.result.calls) == ("C", 9 + 1 + 2)
    selected = "the solution that the judge selected has no answer that could be read: the agents' most frequent answer"
    for verdicts, why in ((["2"] * 3, selected), (["2", "hm", "2"], (
            f"the judge's reply could not be read in 1 of 3 attempts; otherwise {selected}"))):
        assert run(Synthesis(mode="select"), judging(verdicts, answers="A?A")).decision.reason == why


@pytest.mark.parametrize(("text", "number"), [
    ("0", 0), (" 2.", 2), ("Solution 1", 1), ('{"solution": 1}', 1), ('{"choice": "2"}', 2), ("solution 0, then", 0),
    ("3", None), ("-1", None), ("1.5", None), ("0 or 1", None), ("", None), ("١", None), ("12345", None),
    ("Solution 1, out of 3", 1), ("none", None), ("{", None), ("Solution 7", None)])
def test_a_number_is_read_only_when_it_names_one_solution(text, number):
    assert read_number(text, 3) == number


# Options

def test_an_answer_equal_to_an_earlier_one_gets_its_key():
    folded = made(Letter, canonical=lambda self, text, sample: text[-1:] or None,
                  same=lambda self, a, b, sample: a.lower() == b.lower())
    assert play(decision=Synthesis(), answers=folded, replies=judging("b"), rounds=3).decision.key == "B"


def test_the_worst_case_is_every_attempt():
    assert Synthesis(final="recorded").calls(Plan(3, 5, 3)) == 3
    assert Synthesis(attempts=1, final="ask").calls(Plan(3, 5, 3)) == 4


def test_prompts_are_options_and_braces_of_agents_stay_text():
    played = run(Synthesis(system="WISE", synthesise="JUDGE {solutions} {unknown}", solution="<{number}> {text}"),
                  lambda request: "B" if request.purpose == "judge" else "{question}")
    assert played.requests[-1].messages[0] == {"role": "system", "content": "WISE"}
    assert played.requests[-1].messages[1]["content"].startswith("JUDGE <1> {question}\n\n<2> {question}")
    assert "{unknown}" in played.prompts[-1]
