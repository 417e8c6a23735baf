"""Calls behind no message: ballots, phases, metrics, extensions that say nothing, and the turn that failed; those of a
turn order are behind the first message of the wave that they were made for."""

import pytest
from tests_support import made

from madplug import Decision, Extension, Metric, Phase, Turn, hookimpl
from madplug_testing import LastRound, PlainStyle, SpeakAll, play


async def ballot(self, debate):
    votes = await debate.ask_all(debate.ask("vote", purpose="vote", agent=a) for a in debate.voters)
    return Decision(votes[0].text)


async def second(self, debate, decision):
    await debate.ask("certain?", purpose="challenge")


async def judged(self, debate, references):
    return float(len((await debate.ask("grade", purpose="grade")).text))


@hookimpl
async def listening(self, debate):
    await debate.ask("anything to say?", purpose="moderate")


async def choking(self, debate, turn, view):
    raise ValueError(f"unreadable: {(await debate.ask('speak', purpose='discuss', agent=turn.agent)).text}")


async def planned(self, debate):
    await debate.ask(f"who speaks {debate.round}?", purpose="rank")
    yield [Turn(a, "draft") for a in debate.agents]
    await debate.ask(f"anybody else {debate.round}?", purpose="moderate")


@pytest.mark.parametrize(("parts", "purposes"), [
    ({"decision": made(LastRound, at_end=ballot), "phases": [made(Phase, run=second)],
      "metrics": {"judged": made(Metric, score=judged)}}, ["vote", "vote", "challenge", "grade"]),
    ({"rounds": 2, "extensions": [made(Extension, madplug_round_ended=listening)]}, ["moderate", "moderate"])])
def test_calls_behind_no_message_are_found_by_the_keys_of_the_debate(parts, purposes):
    played = play(replies=lambda request: "A", agents=2, **parts)
    assert [figures.purpose for figures in played.store.call_figures(played.result.other_calls)] == purposes
    assert played.result.opening_calls == ()
    assert all(m.calls for m in played.messages)


def test_the_calls_of_a_turn_order_are_behind_the_first_message_of_their_wave():
    played = play(replies=lambda request: "A", agents=2, rounds=2, turns=made(SpeakAll, waves=planned))
    purposes = [[figures.purpose for figures in played.store.call_figures(m.calls)] for m in played.messages]
    assert purposes == [["rank", "discuss"], ["discuss"]] * 2
    assert [f.purpose for f in played.store.call_figures(played.result.other_calls)] == ["moderate", "moderate"]


def test_the_calls_of_the_turn_that_failed_are_found():
    played = play(replies=lambda request: "A", agents=1, styles=[made(PlainStyle, respond=choking)],
                  expect_failure=True)
    assert played.result.error.startswith("ValueError: unreadable: A")
    assert [figures.purpose for figures in played.store.call_figures(played.result.other_calls)] == ["discuss"]
