import re
from dataclasses import replace

import pytest

from madplug import AccessError, Plan
from madplug_moa import Aggregate, AggregateSequence, Losses, Propose, Rank
from madplug_testing import debate_from, play

RUN = """
metrics = [{use = "moa.losses"}]
[debate]
agents = 3
models = ["x", "y", "x"]
paradigm = "moa.%s"
"""
CHOICE = {"id": "q1", "question": "Which?", "choices": ["one", "two"], "reference": "B"}
REFUSED = {"error": {"message": "the content is refused", "code": "content_filter"}}
SHORT = {"references": "REFERENCES\n{answers}", "first": "{question}"}


def shown(body):
    """The numbered answers in the system message of a request; none without one."""
    system = body["messages"][0]["content"] if body["messages"][0]["role"] == "system" else ""
    return re.findall(r"^(\d+\. .*)", system, re.MULTILINE)


def test_a_failed_proposer_is_left_out_and_the_numbers_close_up(run_on_endpoint):
    def reply(body):
        if shown(body):
            return f"{len(shown(body))} seen\nFinal answer: B"
        return REFUSED if body["model"] == "y" else "first\nFinal answer: A"

    [result], bodies = run_on_endpoint(RUN % "mixture", [CHOICE], reply, models="xy")
    layers = [shown(body) for body in bodies]
    assert sorted(layers[:3]) == [[], [], []]
    assert layers[3:6] == [["1. first", "2. first"]] * 3
    assert layers[6] == ["1. 2 seen", "2. 2 seen", "3. 2 seen"]
    assert (len(bodies), result.calls, result.metrics["moa.losses.failed"]) == (7, 6, 1)
    assert (result.decision.key, result.decision.agreed) == ("B", True)
    question = {body["messages"][-1]["content"] for body in bodies}
    assert len(question) == 1  # the user message stays the question, which is nowhere else
    assert not any("Which?" in body["messages"][0]["content"] for body in bodies if shown(body))
    assert result.notes["moa"]["reply"] == "3 seen\nFinal answer: B"


def test_without_any_proposal_the_aggregator_answers_the_bare_question():
    played = play(styles=[Propose()], decision=Aggregate(), replies=["", " ", "", "the end"] * 9)
    assert [m["role"] for m in played.requests[-1].messages] == ["user"]
    assert played.decision.key is not None


def test_a_model_that_cannot_be_used_at_all_fails_the_debate():
    def reply(request):
        raise AccessError("a wrong key")

    with pytest.raises(AssertionError, match="a wrong key"):
        play(styles=[Propose()], replies=reply)


@pytest.mark.parametrize(("paradigm", "calls"), [
    ("mixture", 13), ("lite", 7), ("self", 7), ("self_seq", 39), ("ranker", 13)])
def test_check_counts_the_calls_that_are_made(run_debate, paradigm, calls):
    result, requests, plan = run_debate(f'paradigm = "moa.{paradigm}"', lambda r: "Final answer: A")
    assert plan.cells[0].worst_calls() == result.calls == len(requests) == calls


def test_samples_of_several_models_are_told_apart_from_those_of_one():
    cell = debate_from("A").cell
    [told] = Propose().warn(replace(cell, models=("m", "n")))
    assert told.endswith('of m, n in turn; name one: debate.models = ["m"]')
    assert not [*Propose().warn(cell)]
    assert not [*Propose().warn(replace(debate_from("A B").cell, models=("m", "n")))]


@pytest.mark.parametrize(("samples", "aggregations"), [(1, 1), (6, 1), (7, 2), (16, 5), (30, 9)])
def test_a_window_of_six_keeps_three_places_for_the_synthesis(samples, aggregations):
    decision = AggregateSequence(**SHORT)
    assert decision.calls(Plan(agents=1, rounds=1, turns=samples)) == aggregations
    replies = [*(f"s{i}" for i in range(samples)), *(f"S{i}" for i in range(aggregations))]
    played = play(styles=[Propose(**SHORT)], decision=decision, agents=samples, replies=replies)
    seen = [r.messages[0]["content"].split("\n")[1:] for r in played.requests[samples:]]
    assert len(seen) == aggregations
    assert seen[0] == [f"{i}. s{i - 1}" for i in range(1, min(samples, 6) + 1)]
    for step, items in enumerate(seen[1:]):
        assert items[:3] == [f"{i}. S{step}" for i in (1, 2, 3)]
        assert items[3:] == [f"{i}. s{3 * step + 2 + i}" for i in range(4, 4 + min(3, samples - 6 - 3 * step))]
    assert played.decision.answer == f"S{aggregations - 1}"
    with pytest.raises(ValueError, match="'repeat' has to be less than 'window'"):
        AggregateSequence(window=3, repeat=3)


@pytest.mark.parametrize(("said", "chosen", "unread"), [("2", "b", 0), ("Answer 3.", "c", 0), ("none", "a", 1),
                                                        ("1 or 2", "a", 1), ("9", "a", 1)])
def test_the_ranker_s_choice_is_returned_unchanged_or_else_the_first(said, chosen, unread):
    played = play(styles=[Propose()], decision=Rank(prompt="{answers}"), replies=[*"abc", said],
                  metrics={"l": Losses()})
    assert played.requests[-1].messages == ({"role": "user", "content": "1. a\n2. b\n3. c"},)
    assert (played.decision.answer, played.decision.fallback) == (chosen, bool(unread))
    assert (played.metrics["l.unread"], played.metrics["l.failed"], played.result.unread) == (unread, 0, bool(unread))


@pytest.mark.parametrize("unread", [False, True])
def test_an_aggregate_that_cannot_be_read_decides_nothing_and_the_debate_is_unread(unread):
    played = play(styles=[Propose()], decision=Aggregate(), replies=[*"abc", "<think>d" if unread else "d"])
    assert (played.decision.key, played.result.unread) == (None if unread else "d", unread)
