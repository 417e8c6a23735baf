"""Consensus in whole debates: when it stops, what it costs, and what becomes of an answer that cannot be read."""

import pytest
from tests_support import OneLetter, made

from madplug import Plan, Reply, Style
from madplug_consensus import Hybrid, Majority, Supermajority, Unanimity
from madplug_testing import play

orders = pytest.importorskip("madplug_turns")
shown = pytest.importorskip("madplug_visibility")


class Tagged(Style):
    """The first line says [AGREE], [DISAGREE] or nothing; the rest is the answer."""

    name = "tagged"
    moves = frozenset({"draft", "improve"})
    gives = frozenset({"agreement"})

    async def respond(self, debate, turn, view):
        said = (await debate.ask("go on", agent=turn.agent, purpose="discuss")).text
        tag, _, answer = said.rpartition(" ")
        drafts = [m for m in view if m.move == "draft" or m.agreement is not True]
        return Reply(said, answer, None if turn.move == "draft" or not drafts else tag == "[AGREE]")


def run(decision, replies, *, turns=None, visibility=None, rounds=3, answers=None):
    return play(styles=[Tagged()], turns=turns or orders.RoundRobin(), visibility=visibility or shown.Everything(),
                decision=decision, replies=replies, rounds=rounds, answers=answers or OneLetter())


EVERY = [Majority(), Supermajority(), Unanimity(), Hybrid()]


@pytest.mark.parametrize("decision", EVERY)
@pytest.mark.parametrize(("turns", "visibility"), [
    (orders.RoundRobin(), shown.Everything()), (orders.RoundRobin(), shown.Relay()),
    (orders.DrafterFirst(), shown.Report()), (orders.InnerDebate(), shown.InnerDebate())])
def test_agents_that_agree_decide_in_the_first_round(decision, turns, visibility):
    played = run(decision, lambda request: "[AGREE] a", turns=turns, visibility=visibility)
    assert (played.decision.key, played.decision.agreed, played.result.rounds) == ("a", True, 1)
    assert len(played.messages) <= 3


@pytest.mark.parametrize("decision", EVERY)
def test_agents_that_never_agree_fall_back_on_the_latest_proposal(decision):
    answers = {0: ["[DISAGREE] a"] * 3, 1: ["[DISAGREE] b"] * 3, 2: ["[DISAGREE] c"] * 3}
    played = run(decision, answers)
    assert (played.decision.key, played.decision.agreed, played.decision.fallback) == ("c", False, True)
    assert (played.result.rounds, played.result.calls) == (3, 9)


def test_simultaneous_agents_agree_with_the_last_of_the_drafts():
    replies = {0: ["- a", "[AGREE] c"], 1: ["- b", "[AGREE] c"], 2: ["- c", "[AGREE] c"]}
    played = run(Unanimity(), replies, turns=orders.Simultaneous())
    assert (played.decision.key, played.decision.agreed, played.result.rounds) == ("c", True, 2)


# An answer that cannot be read

def unread(request):
    """Agents that propose and agree, and state no answer until they are asked to write it down."""
    return "b" if request.purpose == "extract" else "[AGREE] something"


def test_who_agreed_last_is_asked_for_an_answer_that_could_not_be_read():
    played = run(Majority(solve="WRITE IT {down}"), unread)
    assert (played.decision.key, played.decision.agreed, played.result.calls) == ("b", True, 3)
    asked = played.requests[-1]
    assert (asked.purpose, asked.agent) == ("extract", 1)
    for said in ("something", "WRITE IT {down}", "Answer with a single letter."):
        assert said in played.prompts[-1]


@pytest.mark.parametrize(("options", "replies", "key", "calls"), [
    ({}, {0: ["- long"], 1: ["[AGREE] long", "what?", "d"]}, "d", 4),  # it is asked again
    ({"attempts": 2}, lambda request: "[AGREE] long", None, 4), ({"final": "recorded"}, unread, None, 2)])
def test_an_agreed_answer_that_stays_unreadable_ends_the_debate_undecided(options, replies, key, calls):
    played = run(Majority(**options), replies)
    assert (played.decision.key, played.decision.agreed, played.result.calls) == (key, key is not None, calls)
    assert played.result.notes.get("consensus", {}).get("unparsed", False) == (key is None)
    assert key or played.decision.reason == (
        "2 of 3 voters support the proposal (Agent 1's in round 1); the answer of that proposal could not be read")


def test_the_last_agent_may_always_be_asked_as_in_the_paper():
    played = run(Majority(final="ask"), lambda request: "z" if request.purpose == "extract" else "[AGREE] a")
    assert (played.decision.key, played.decision.agreed) == ("z", True)
    assert Majority(final="ask").calls(Plan(3, 7, 3)) == 3
    assert Majority(final="recorded").calls(Plan(3, 7, 3)) == 0


@pytest.mark.parametrize(("written", "unread"), [("b", False), ("what?", True)])
def test_a_debate_is_unread_where_the_proposal_stands_in_for_what_was_written_down(written, unread):
    played = run(Majority(final="ask"), lambda request: written if request.purpose == "extract" else "[AGREE] a")
    assert (played.decision.key, played.result.unread) == ("a" if unread else "b", unread)


def test_a_written_answer_that_is_the_same_as_an_earlier_one_gets_its_key():
    replies = {0: ["- a"], 1: ["[DISAGREE] B"], 2: ["[AGREE] long", "b"]}
    folded = made(OneLetter, same=lambda self, a, b, sample: a.lower() == b.lower())
    assert run(Majority(final="ask"), replies, answers=folded).decision.key == "B"
