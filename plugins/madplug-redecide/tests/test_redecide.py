"""Recorded debates decided again: the same transcripts, another rule, and no call but the decision's own."""

import asyncio
from dataclasses import replace

import pytest
from tests_support import Appeal, OneByOne, Reviews, in_turn, letters, redo_once

from madplug import Decision, DecisionProtocol, ModelError, Reopen, Review
from madplug.store import MemoryStore
from madplug.study import DebateState, StudyPlan, StudyRun
from madplug_redecide.deciding import Redecider
from madplug_redecide.following import follow
from madplug_testing import LastRound, PlainStyle, Scripted, play, wait_for


class Early(DecisionProtocol):
    """Decides as soon as `rounds` rounds are over, and keeps what it was asked."""

    name = "early"

    def __init__(self, rounds):
        super().__init__()
        self.rounds, self.asked = rounds, []

    def after_wave(self, debate):
        self.asked.append(("wave", debate.round, len(debate.transcript.messages)))

    def after_round(self, debate):
        self.asked.append(("round", debate.round, len(debate.transcript.messages)))
        return Decision(debate.transcript.messages[-1].key, agreed=True) if debate.round == self.rounds else None

    def at_end(self, debate):
        return Decision.undecided("the end")


def followed(played, **parts):
    """The decision on a recorded debate with other components, and the debate."""
    debate = DebateState(replace(played.debate.cell, **parts), played.result.sample, client=played.debate.client)
    return wait_for(follow(debate, played.result)), debate


@pytest.mark.parametrize(("rounds", "key"), [(1, "A"), (2, "B"), (3, "C"), (9, None)])
def test_a_protocol_follows_the_record_wave_by_wave_and_sees_nothing_after_its_decision(rounds, key):
    early = Early(rounds)
    decision, debate = followed(play(replies={0: list("ABC"), 1: list("ABC")}, agents=2, rounds=3), decision=early)
    last = min(rounds, 3)
    assert early.asked == [(kind, n, 2 * n) for n in range(1, last + 1) for kind in ("wave", "round")]
    assert (decision.key, debate.transcript.messages[-1].round) == (key, last)


class Ballot(DecisionProtocol):
    """Asks every voter at the end, writes down what it was told, and adds a note beside a style's."""

    name = "ballot"

    async def at_end(self, debate):
        votes = await debate.ask_all(debate.ask(f"vote of {a.id}", purpose="vote", agent=a) for a in debate.voters)
        debate.notes.setdefault("shared", {})["ballot"] = [v.text for v in votes]
        return Decision(votes[0].text, agreed=True)

    def calls(self, plan):
        return plan.agents


class Scribe(PlainStyle):
    """Leaves a note, too."""

    async def respond(self, debate, turn, view):
        debate.notes.setdefault("shared", {})["scribe"] = debate.round
        return await super().respond(debate, turn, view)


def recorded(**parts):
    """A debate and its records; by default of agents that say A, and of voters that say B."""
    parts = {"replies": lambda r: "B" if r.purpose == "vote" else "A", **parts}
    return play(store=MemoryStore(), **parts)


def decide_again(played, decision, replies=lambda request: "C", **parts):
    """The study decided again by another protocol, with the calls of the first one at hand; what was asked."""
    model, again, redecider = Scripted(replies), MemoryStore(), Redecider(played.store)
    cell = replace(played.debate.cell, decision=decision, dataset=None, **parts)
    run = StudyRun(StudyPlan("play", [cell], {"model": model}), again, runner=redecider.run,
                   samples=redecider.samples, reuse=[played.store])
    asyncio.run(run.run())
    return next(again.results()), model.requests


def test_the_same_protocol_gives_the_same_decision_and_notes_without_a_call():
    played = recorded(styles=[Scribe()], decision=Ballot(), rounds=2)
    result, requests = decide_again(played, Ballot())
    assert requests == []
    for part in ("decision", "notes", "calls", "tokens", "other_calls"):
        assert getattr(result, part) == getattr(played.result, part)
    assert len(result.other_calls) == len(result.agents)


def test_what_the_old_decision_left_and_cost_does_not_stay():
    class First(LastRound):
        """Ends after round 1."""

        def after_round(self, debate):
            return self.at_end(debate)

    played = recorded(styles=[Scribe()], decision=Ballot(), rounds=3)
    assert (played.result.calls, played.result.notes) == (12, {"shared": {"scribe": 3, "ballot": ["B"] * 3}})
    result, requests = decide_again(played, First())
    assert (result.decision.key, result.rounds, result.calls, requests) == ("A", 1, 3, [])
    assert result.notes == {}, "a note may be about rounds that are left out"


def test_a_new_decision_pays_for_what_it_asks_and_for_nothing_else():
    played = recorded(rounds=2)
    result, requests = decide_again(played, Ballot())
    assert [r.purpose for r in requests] == ["vote"] * 3
    assert (result.decision.key, result.calls) == ("C", played.result.calls + 3)


# What interferes with a debate

def test_what_was_said_when_a_round_was_retracted_stands_before_the_next_attempt():
    def retry(debate):
        return None if any(m.retracted for m in debate.transcript.record) else Review(redo=True, say="once more")

    asked, again = Early(9), Early(9)
    decide_again(recorded(agents=2, rounds=2, extensions=[Reviews(retry)], decision=asked), again)
    assert asked.asked[2:] == again.asked == [("wave", 1, 3), ("round", 1, 3), ("wave", 2, 5), ("round", 2, 5)]


def test_a_message_keeps_what_its_agent_saw_without_what_was_retracted():
    played = play(replies=lambda request: "x", agents=2, rounds=2, extensions=[Reviews(redo_once)])
    assert [(m.id, m.seen) for m in played.messages] == [(2, ()), (3, ()), (4, (2, 3)), (5, (2, 3))]
    _, debate = followed(played)
    assert [(m.id, m.seen) for m in debate.transcript.messages] == [(0, ()), (1, ()), (2, (0, 1)), (3, (0, 1))]


def test_a_round_that_was_retracted_for_good_is_not_asked_about():
    class Strict(LastRound):
        """Needs messages."""

        def after_round(self, debate):
            assert debate.transcript.of_round(debate.round)

    strike = Reviews(lambda debate: Review(redo=True, stop=True) if debate.round == 2 else None)
    result, requests = decide_again(recorded(agents=2, rounds=3, extensions=[strike]), Strict())
    assert (result.error, result.calls, requests) == (None, 4, [])


def fail_once(request):
    if (request.agent, request.round) == (1, 2):
        raise ModelError("503 agent 1 is away")
    return "ABB"[request.agent]


@pytest.mark.parametrize("parts", [
    {"extensions": [Reviews(in_turn(Review(leave=(1,))))]}, {"on_failed_agent": "drop"}])
def test_who_left_has_left_where_the_debate_is_decided_again(parts):
    played = play(replies=fail_once, rounds=2, turns=OneByOne(), **parts)
    decision, debate = followed(played)
    assert (decision, [a.id for a in debate.active]) == (played.decision, [0, 2])
    assert [m.stage for m in debate.transcript.messages] == [m.stage for m in played.messages]


# Reopened debates

class Loud(Appeal):
    """Reopens whenever it is asked, and notes whether it knows that the debate is recorded and what was noted."""

    def run(self, debate, decision):
        debate.notes["loud"] = (debate.recorded, debate.notes["appeal"])
        return Reopen(rounds=2, say="something else")


@pytest.mark.parametrize(("phases", "notes"), [
    ([Appeal()], {"appeal": 1}), ([Loud()], {"appeal": 1, "loud": [True, 1]}), ([], {})])
def test_a_reopened_debate_keeps_its_record_whatever_phases_say_now_and_the_notes_while_there_are_any(phases, notes):
    played = recorded(replies=letters, agents=2, phases=[Appeal()])
    result, requests = decide_again(played, LastRound(), letters, phases=phases)
    assert (requests, result.notes) == ([], notes)
    assert (result.decision, result.messages) == (played.result.decision, played.result.messages)


def test_a_debate_that_was_reopened_without_a_word_keeps_its_record():
    played = recorded(replies=letters, agents=2, phases=[Appeal(say=None)], decision=Early(1))
    assert played.result.notes["madplug"] == {"reopened": [1]}
    result, _ = decide_again(played, Early(1), letters)
    assert (result.messages, result.notes) == (played.result.messages, played.result.notes)


def test_an_early_decision_leaves_out_the_last_rounds_of_the_last_part_only():
    result, _ = decide_again(recorded(replies=letters, agents=2, phases=[Appeal()]), Early(2), letters)
    assert [m.round for m in result.messages] == [1, 1, 1, 2, 2]
    assert result.decision.key == "B"


def test_a_phase_of_the_new_study_puts_no_text_on_record():
    played = recorded(replies=letters, agents=2, rounds=2)
    result, requests = decide_again(played, LastRound(), letters, phases=[Appeal()])
    assert requests == []
    assert (result.decision, result.messages) == (played.result.decision, played.result.messages)
