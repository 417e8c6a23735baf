"""Recorded debates decided again: the same transcripts, another rule, and no call but the decision's own."""

import json

import pytest

from madplug import Decision, DecisionProtocol
from madplug.cell import BoundStyle, Cell
from madplug.debate import Debate, decide_again
from madplug.testing import LastRound, PlainStyle, SeeAll, SpeakAll, StrippedText, play, wait_for


class Early(DecisionProtocol):
    """Decides as soon as `rounds` rounds are held, and keeps what it was asked."""

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
    debate = Debate(cell, played.result.sample, road=None)
    return wait_for(decide_again(debate, played.result)), debate


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
    assert madplug("export", "again", "--output", "x.jsonl").stdout == "6 debates in x.jsonl\n"


def test_a_wrong_option_and_the_study_itself_are_refused(madplug, write):
    madplug("run", write())
    done = madplug("decide", "runs/study", "--decision", "last_round", "--set", "keeep=2", "--output", "again")
    assert done.returncode == 2
    assert "did you mean 'keep'?" in done.stderr
    assert madplug("decide", "runs/study", "--decision", "last_round", "--output", "runs/study").returncode == 2
