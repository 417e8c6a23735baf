"""Recorded debates decided again: the same transcripts, another rule, and no call but the decision's own."""

import json

import pytest

from madplug import Decision, DecisionProtocol
from madplug.debate.cell import BoundStyle, Cell
from madplug.debate.state import DebateState
from madplug.redecide import follow
from madplug.testing import LastRound, PlainStyle, SeeAll, SpeakAll, StrippedText, play, wait_for


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


def again(played, decision):
    cell = Cell(slug="again", answers=StrippedText(), turns=SpeakAll(), visibility=SeeAll(), decision=decision,
                styles=[BoundStyle(PlainStyle())], rounds=3, agents=2)
    debate = DebateState(cell, played.result.sample)
    return wait_for(follow(debate, played.result)), debate


def test_a_protocol_follows_the_record_wave_by_wave():
    played = play(replies={0: list("ABC"), 1: list("ABC")}, agents=2, rounds=3)
    early = Early(9)
    decision, _ = again(played, early)
    assert early.asked == [("wave", 1, 2), ("round", 1, 2), ("wave", 2, 4), ("round", 2, 4), ("wave", 3, 6),
                           ("round", 3, 6)]
    assert decision.reason == "the end"


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_protocol_that_would_have_ended_the_debate_sees_nothing_after_its_decision(rounds):
    played = play(replies={0: list("ABC"), 1: list("ABC")}, agents=2, rounds=3)
    decision, debate = again(played, Early(rounds))
    assert decision.key == "ABC"[rounds - 1]
    assert debate.transcript.messages[-1].round == rounds


def test_deciding_again_as_before_gives_what_was_decided():
    played = play(replies={0: list("ABC"), 1: list("ABB")}, agents=2, rounds=3)
    assert again(played, LastRound())[0] == played.decision


def test_the_command_makes_a_study_like_any_other_without_a_call(madplug, write, tmp_path):
    madplug("run", write(), "--set", "models.m.ledger=calls.txt")
    calls = (tmp_path / "calls.txt").read_text()
    done = madplug("decide", "runs/study", "--decision", "last_round", "--set", "keep=2", "--output", "again")
    assert done.returncode == 0, done.stderr
    assert "at most 0 model calls" in done.stderr
    assert (tmp_path / "calls.txt").read_text() == calls
    summary = json.loads((tmp_path / "again/summary.json").read_text())
    assert (summary["cells"][0]["done"], summary["paid"]["calls"]) == (6, 0)


def test_a_wrong_option_and_the_study_itself_are_refused(madplug, write):
    madplug("run", write())
    done = madplug("decide", "runs/study", "--decision", "last_round", "--set", "keeep=2", "--output", "again")
    assert done.returncode == 2
    assert "did you mean 'keep'?" in done.stderr
    assert madplug("decide", "runs/study", "--decision", "last_round", "--output", "runs/study").returncode == 2


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


def decide_again(store, played, decision, replies):
    """The study decided again by another protocol, with the calls of the first one at hand."""
    import asyncio
    from dataclasses import replace

    from madplug.config.plan import StudyPlan
    from madplug.redecide import Redecider
    from madplug.store import MemoryStore
    from madplug.study.run import StudyRun
    from madplug.testing import Scripted

    model, again, redecider = Scripted(replies), MemoryStore(), Redecider(store)
    cell = replace(played.debate.cell, decision=decision, dataset=None)
    run = StudyRun(StudyPlan("play", [cell], {"model": model}), again, runner=redecider.run,
                   samples=redecider.samples, reuse=[store])
    asyncio.run(run.run())
    return next(again.results()), model.requests


def test_the_same_protocol_gives_the_same_decision_and_notes_without_a_call():
    from madplug.store import MemoryStore

    store = MemoryStore()
    played = play(replies=lambda r: "B" if r.purpose == "vote" else "A", styles=[Scribe()], decision=Ballot(),
                  store=store, rounds=2)
    result, requests = decide_again(store, played, Ballot(), lambda r: "C")
    assert requests == []
    assert (result.decision, result.notes, result.calls) == (
        played.result.decision, played.result.notes, played.result.calls)
    assert result.tokens == played.result.tokens
    assert result.other_calls == played.result.other_calls
    assert len(result.other_calls) == len(result.agents)


def test_what_the_old_decision_left_and_cost_does_not_stay():
    from madplug.store import MemoryStore

    store = MemoryStore()
    played = play(replies=lambda r: "B" if r.purpose == "vote" else "A", styles=[Scribe()], decision=Ballot(),
                  store=store, rounds=3)
    assert (played.result.calls, played.result.notes) == (12, {"shared": {"scribe": 3, "ballot": ["B"] * 3}})

    class First(LastRound):
        """Ends after round 1."""

        def after_round(self, debate):
            return self.at_end(debate)

    result, requests = decide_again(store, played, First(), lambda r: "C")
    assert requests == []
    assert (result.decision.key, result.rounds, result.calls) == ("A", 1, 3)
    assert result.notes == {"shared": {"scribe": 3}}


def test_a_new_decision_pays_for_what_it_asks_and_for_nothing_else():
    from madplug.store import MemoryStore

    store = MemoryStore()
    played = play(replies=lambda r: "A", store=store, rounds=2)
    result, requests = decide_again(store, played, Ballot(), lambda r: "C")
    assert [r.purpose for r in requests] == ["vote"] * 3
    assert (result.decision.key, result.calls) == ("C", played.result.calls + 3)


def test_a_debate_that_was_reopened_is_followed_to_its_end():
    from tests_support import Appeal, letters

    from madplug.store import MemoryStore

    store = MemoryStore()
    played = play(replies=letters, agents=2, rounds=1, phases=[Appeal()], store=store)
    result, requests = decide_again(store, played, LastRound(), letters)
    assert requests == []
    assert (result.decision, result.messages, result.notes) == (
        played.result.decision, played.result.messages, played.result.notes)


def test_a_round_that_was_retracted_for_good_is_not_asked_about():
    from madplug import Extension, Review, hookimpl
    from madplug.store import MemoryStore

    class Strike(Extension):
        """Retracts round 2 and ends the debate."""

        name = "strike"

        @hookimpl
        def madplug_round_ended(self, debate):
            return Review(redo=True, stop=True) if debate.round == 2 else None

    class Strict(LastRound):
        """Needs messages."""

        def after_round(self, debate):
            assert debate.transcript.of_round(debate.round)

    store = MemoryStore()
    played = play(replies=lambda r: "A", agents=2, rounds=3, store=store, extensions=[Strike()])
    result, requests = decide_again(store, played, Strict(), lambda r: "B")
    assert (result.error, result.calls, requests) == (None, 4, [])
