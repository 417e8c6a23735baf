"""What is kept of a round, who reads it, and what happens where that cannot be read."""

from math import exp

import pytest

from madplug import Completion, Plan
from madplug_dar import Retained, Retention, Revise
from madplug_dar.retention import most_common, read_names
from madplug_som import Exchange
from madplug_testing import debate_from, play
from madplug_visibility import Everything, PreviousRound


def debated(choices=(), answers="AABC" * 3, rounds=3, agents=4, style=None, **options):
    """A debate of four whose filter says this."""
    chosen, said = iter(choices), iter(answers)
    return play(styles=[style or Revise(first="<q>", revise="{answers}|{notes}|{own}|{question}")], agents=agents,
                visibility=Retained(inner=PreviousRound(), majority="most: {majority}", **options), rounds=rounds,
                replies=lambda r: next(chosen) if r.purpose == "filter" else next(said),
                metrics={"dar": Retention()})


def heard(played, round=2):
    """Whom each agent heard in a round."""
    record = played.transcript.record
    return [{record[i].agent for i in m.seen} - {None, m.agent} for m in played.transcript.of_round(round)
            if m.agent is not None]


def test_a_call_before_each_round_of_debate_chooses_what_everybody_reads():
    played = debated(["Keep [Agent 2, Agent 3]", "[Agent 1]"])
    assert played.result.calls == 14
    assert heard(played, 2) == [{1, 2}, {2}, {1}, {1, 2}]
    assert heard(played, 3) == [{1, 2, 3}, {0}, {0}, {0}]
    assert played.metrics == {"dar.kept": (2 / 4 + 1 / 4) / 2, "dar.unread": 0, "dar.read": 12}
    assert not played.result.unread, "a reply without log-probabilities, which help the choice, is shown without"


@pytest.mark.parametrize(("rounds", "agents", "calls"), [(3, 4, 14), (3, 8, 26), (2, 2, 5)])
def test_calls_are_answers_and_a_filter_for_each_round_of_debate(rounds, agents, calls):
    plan = Plan(agents=agents, rounds=rounds, turns=agents)
    assert agents * rounds + Retained(inner=Everything()).calls(plan) == calls
    assert Retained(inner=Everything(), mode="vote").calls(plan) == 0
    assert debated(agents=1, answers="AAA").result.calls == 3  # one agent has nothing to choose from


@pytest.mark.parametrize("reply", ["Agents 1 and 2", "[nobody]", "[]", "", "[Agent 2] no: [Agent 9]"])
def test_a_choice_that_cannot_be_read_keeps_everything_and_is_counted(reply):
    played = debated([reply or "..."] * 2)
    assert heard(played) == [{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}]
    assert (played.metrics["dar.kept"], played.metrics["dar.unread"], played.result.unread) == (1, 2, True)


@pytest.mark.parametrize(("text", "names"), [
    ("[a] then ['Agent 1', \"B b\"]", {"agent 1", "b b"}), ("<think>[x]</think>", set()), ("[[a, b]]", {"a", "b"})])
def test_the_last_list_counts(text, names):
    assert read_names(text) == names


@pytest.mark.parametrize(("mode", "answers", "expected"), [
    ("nonvote", "AABC" * 3, [{2, 3}, {2, 3}, {3}, {2}]), ("vote", "AABC" * 3, [{1}, {0}, {0, 1}, {0, 1}]),
    # where all agree there is nobody without the majority, and all are kept
    ("nonvote", "A" * 12, [{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}])])
def test_a_vote_chooses_without_a_call(mode, answers, expected):
    played = debated(answers=answers, mode=mode)
    assert (heard(played), played.result.calls) == (expected, 12)


def test_the_likelier_half_is_kept_and_likelihoods_travel_with_replies_and_to_the_filter():
    logs = [-0.3, -0.1, None, -0.2]
    said = Revise(first="<q>", revise="{answers}|{own}", block="{content}", likelihood="nll {nll}")
    more = {"agents": 4, "rounds": 2, "replies": lambda r: Completion(
        "ABCD"[r.agent or 0], logprobs=logs[r.agent or 0] and (logs[r.agent or 0],))}
    played = play(styles=[said], visibility=Retained(inner=PreviousRound(), mode="likely"), **more)
    assert heard(played) == [{1, 3}, {3}, {1, 3}, {1}]
    assert played.requests[4].messages[-1]["content"] == "B\nnll 0.1000\n\nD\nnll 0.2000|A\nnll 0.3000"
    assert played.messages[0].data["prompting"]["p"] == pytest.approx(exp(-0.3))
    assert all(r.params == {"logprobs": True} for r in played.requests)
    played = play(styles=[said], visibility=Retained(inner=PreviousRound(), prompt="{answers}", measured="nll {nll}"),
                  **more)
    [chosen] = [r.messages[-1]["content"] for r in played.requests if r.purpose == "filter"]
    assert chosen.startswith("Agent 1:\nA\nnll 0.3000\n\nAgent 2:\nB\nnll 0.1000\n\nAgent 3:\nC\n\nAgent 4:")


def test_the_filter_works_in_any_debate():
    exchange = Exchange(first="<q>", exchange="{answers}", block="{content}", note="{content}")
    played = debated(["[Agent 3]"] * 2, style=exchange, likelihood=False)
    assert played.requests[5].messages[-1]["content"] == "B\n\nmost: A"
    assert played.requests[5].params == {}


def test_a_tie_of_the_majority_is_drawn_with_the_seed():
    drawn = {most_common(d, d.transcript.messages) for d in (debate_from("A B", seed=s) for s in range(20))}
    assert drawn == {"A", "B"}
