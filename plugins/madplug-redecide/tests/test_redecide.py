"""Recorded debates decided again: the same transcripts, another rule, and no call but the decision's own."""

import asyncio
import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from tests_support import RUN, Appeal, OneByOne, Reviews, in_turn, letters, redo_once

from madplug import Decision, DecisionProtocol, ModelError, Reopen, Review
from madplug.config.plan import StudyPlan
from madplug.debate.cell import BoundStyle, Cell
from madplug.debate.state import DebateState
from madplug.store import MemoryStore
from madplug.study.run import StudyRun
from madplug_redecide.deciding import Redecider
from madplug_redecide.following import follow
from madplug_testing import LastRound, PlainStyle, Scripted, SeeAll, SpeakAll, StrippedText, play, wait_for


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
    debate = DebateState(cell, played.result.sample, client=played.debate.client)
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


@pytest.fixture
def study(tmp_path, program):
    """A study in `first`, and what its model was asked in `calls.txt`."""
    program("run", "study.toml", "--set", "models.m.ledger=calls.txt", "--output", "first", "--quiet", status=0)
    return tmp_path


def test_the_command_makes_a_study_like_any_other_without_a_call(program, study):
    calls = (study / "calls.txt").read_text()
    with closing(sqlite3.connect(study / "first/study.db")) as db, db:
        db.execute("UPDATE debates SET record = json_set(record, '$.seconds', 90.5)")
    done = program("decide", "first", "--decision", '{use = "kit.last_round", keep = 2}', "--output", "again",
                   "--quiet")
    assert (done.exit_code, done.stderr) == (0, "")
    assert (study / "calls.txt").read_text() == calls
    summary = json.loads((study / "again/summary.json").read_text())
    assert (summary["study"], summary["cells"][0]["done"], summary["paid"]["calls"]) == ("again", 6, 0)
    assert summary["cells"][0]["seconds"] > 6 * 90
    assert json.loads(program("status", "again", "--json").stdout)["cost_usd"] == 0, "though the calls have no price"


@pytest.mark.parametrize(("words", "text"), [
    (("--set", "debate.decision.keeep=2", "--output", "again"), "did you mean 'keep'?"),
    (("--set", "debat.rounds=2", "--output", "again"), "did you mean 'debate'?"),
    (("--cell", "other", "--output", "again"), "no cell has such a name"),
    (("--output", "first"), "is the study itself")])
def test_mistakes_on_the_command_line_are_named(program, study, words, text):
    done = program("decide", "first", *words, status=2)
    assert text in done.stderr


def test_cells_that_are_decided_alike_are_not_called_the_same_debate(program, study):
    (study / "study.toml").write_text(RUN + '[sweep]\n"debate.rounds" = [1, 2]\n')
    assert program("run", "study.toml", "--output", "two", "--quiet").exit_code == 0
    done = program("decide", "two", "--set", "debate.rounds=2", "--output", "again")
    assert (done.exit_code, "same debate" in done.stderr) == (0, False)


def test_what_is_not_decided_again_is_told(program, study):
    cells = '[[cells]]\nname = "a b"\n[[cells]]\nname = "c"\ndebate.decision = "voting.plurality"\n'
    (study / "study.toml").write_text(RUN + cells)
    for words in (("--set", "repeats=2"), ()):
        assert program("run", "study.toml", "--output", "two", "--quiet", *words).exit_code == 0
    done = program("decide", "two", "--output", "again")
    assert done.stderr.startswith("12 debates on record left out: of cells, repeats or samples that the run file no")
    done = program("decide", "two", "--set", "debate.decision.keep=2", "--output", "kept")
    assert done.stderr.endswith("the other cells can be decided: '--cell=a b'\n")


def test_a_model_whose_name_begins_like_that_of_a_missing_one_is_kept(program, study):
    path = study / "study.toml"
    path.write_text(RUN + '\n[models.m-large]\nuse = "kit.hash"\n')
    done = program("run", "study.toml", "--set", 'debate.models=["m", "m-large"]', "--output", "two", "--quiet")
    assert done.exit_code == 0, done.stderr
    recorded = study / "two" / "study.toml"
    text = re.sub(r'(models\.m-large\]\s*use = )"kit.hash"', r'\1"gone.model"', recorded.read_text())
    assert "gone.model" in text
    recorded.write_text(text)
    done = program("decide", "two", "--decision", "kit.last_round", "--output", "again", "--yes", "--quiet", status=0)
    assert (study / "again" / "study.toml").read_text().count("redecide.absent") == 1


ASKING = """
from madplug import Decision, DecisionProtocol, hookimpl

class Judge(DecisionProtocol):
    \'\'\'Asks a model.\'\'\'
    name = "judge"
    def calls(self, plan):
        return 1
    async def at_end(self, debate):
        return Decision((await debate.ask("who is right?", purpose="judge")).text)

@hookimpl
def madplug_register_decisions():
    return [Judge]
"""


def test_a_call_that_is_not_on_record_is_made_only_with_pay(program, study, madplug_plugin):
    madplug_plugin("asking", ASKING)
    words = ("decide", "first", "--decision", "asking.judge", "--output", "again")
    calls = (study / "calls.txt").read_text()
    done = program(*words, status=2)
    assert "calls that are not on record are needed, at most 6, which is all that the decision," in done.stderr
    assert done.stderr.rstrip().endswith("--pay")
    assert not (study / "again").exists()
    assert (study / "calls.txt").read_text() == calls
    done = program(*words, "--pay", status=0)
    assert "at most 6 model calls" in done.stderr
    assert len((study / "calls.txt").read_text().split()) == len(calls.split()) + 6
    assert program("decide", "again", "--output", "third", "--quiet").exit_code == 0, "each call is on record now"


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


def decide_again(store, played, decision, replies, phases=None):
    """The study decided again by another protocol, with the calls of the first one at hand."""
    model, again, redecider = Scripted(replies), MemoryStore(), Redecider(store)
    cell = replace(played.debate.cell, decision=decision, dataset=None)
    if phases is not None:
        cell = replace(cell, phases=phases)
    run = StudyRun(StudyPlan("play", [cell], {"model": model}), again, runner=redecider.run,
                   samples=redecider.samples, reuse=[store])
    asyncio.run(run.run())
    return next(again.results()), model.requests


def test_the_same_protocol_gives_the_same_decision_and_notes_without_a_call():
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
    assert result.notes == {}, "a note may be about rounds that are left out"


def test_a_new_decision_pays_for_what_it_asks_and_for_nothing_else():
    store = MemoryStore()
    played = play(replies=lambda r: "A", store=store, rounds=2)
    result, requests = decide_again(store, played, Ballot(), lambda r: "C")
    assert [r.purpose for r in requests] == ["vote"] * 3
    assert (result.decision.key, result.calls) == ("C", played.result.calls + 3)


@pytest.mark.parametrize("phases", [None, []])
def test_a_debate_that_was_reopened_is_followed_to_its_end_and_keeps_notes_of_phases_that_are_still_there(phases):
    played, store = reopened(Appeal())
    result, requests = decide_again(store, played, LastRound(), letters, phases)
    assert requests == []
    assert (result.decision, result.messages) == (played.result.decision, played.result.messages)
    assert result.notes == (played.result.notes if phases is None else {})


def test_what_was_said_when_a_round_was_retracted_stands_before_the_next_attempt():
    def retry(debate):
        return None if any(m.retracted for m in debate.transcript.record) else Review(redo=True, say="once more")

    asked, store = Early(9), MemoryStore()
    played = play(replies=letters, agents=2, rounds=2, store=store, extensions=[Reviews(retry)], decision=asked)
    before, again = asked.asked, Early(9)
    decide_again(store, played, again, letters)
    assert before[2:] == again.asked == [("wave", 1, 3), ("round", 1, 3), ("wave", 2, 5), ("round", 2, 5)]


def test_a_message_keeps_what_its_agent_saw_without_what_was_retracted():
    class Look(LastRound):
        """Keeps who saw what."""

        def at_end(self, debate):
            shown.extend((m.id, m.seen) for m in debate.transcript.messages)
            return super().at_end(debate)

    shown = []
    played = play(replies=lambda request: "x", agents=2, rounds=2, extensions=[Reviews(redo_once)])
    assert [(m.id, m.seen) for m in played.messages] == [(2, ()), (3, ()), (4, (2, 3)), (5, (2, 3))]
    again(played, Look())
    assert shown == [(0, ()), (1, ()), (2, (0, 1)), (3, (0, 1))]


def fail_once(request):
    if (request.agent, request.round) == (1, 2):
        raise ModelError("503 agent 1 is away")
    return "ABB"[request.agent]


@pytest.mark.parametrize("parts", [
    {"extensions": [Reviews(in_turn(Review(leave=(1,))))]}, {"on_failed_agent": "drop"}])
def test_who_left_has_left_where_the_debate_is_decided_again(parts):
    played = play(replies=fail_once, rounds=2, turns=OneByOne(), **parts)
    state = DebateState(played.debate.cell, played.result.sample, client=played.debate.client)
    assert wait_for(follow(state, played.result)) == played.decision
    assert [a.id for a in state.active] == [0, 2]
    assert [m.stage for m in state.transcript.messages] == [m.stage for m in played.messages]


def test_a_round_that_was_retracted_for_good_is_not_asked_about():
    def strike(debate):
        return Review(redo=True, stop=True) if debate.round == 2 else None

    class Strict(LastRound):
        """Needs messages."""

        def after_round(self, debate):
            assert debate.transcript.of_round(debate.round)

    store = MemoryStore()
    played = play(replies=lambda r: "A", agents=2, rounds=3, store=store, extensions=[Reviews(strike)])
    result, requests = decide_again(store, played, Strict(), lambda r: "B")
    assert (result.error, result.calls, requests) == (None, 4, [])


def reopened(phase, **more):
    """A debate of one round that was reopened for two, and its records."""
    store = MemoryStore()
    return play(replies=letters, agents=2, rounds=1, phases=[phase], store=store, **more), store


def test_a_reopened_debate_keeps_its_record_whatever_the_phase_would_say_now():
    class Loud(Appeal):
        """Reopens whenever it is asked, unless the debate is recorded."""

        def run(self, debate, decision):
            seen.append((debate.recorded, dict(debate.notes)))
            return Reopen(rounds=2, say="something else")

    seen = []
    played, store = reopened(Appeal())
    result, requests = decide_again(store, played, LastRound(), letters, [Loud()])
    assert requests == []
    assert result.messages == played.result.messages
    assert result.decision == played.result.decision
    assert seen == [(True, {"appeal": 1})]


def test_a_debate_that_was_reopened_without_a_word_keeps_its_record():
    played, store = reopened(Appeal(say=None), decision=Early(1))
    assert played.result.notes["madplug"] == {"reopened": [1]}
    result, _ = decide_again(store, played, Early(1), letters)
    assert result.messages == played.result.messages
    assert result.notes == played.result.notes


def test_an_early_decision_leaves_out_the_last_rounds_of_the_last_part_only():
    played, store = reopened(Appeal())
    result, _ = decide_again(store, played, Early(2), letters)
    assert [m.round for m in result.messages] == [1, 1, 1, 2, 2]
    assert result.decision.key == "B"


def test_a_phase_of_the_new_study_puts_no_text_on_record():
    store = MemoryStore()
    played = play(replies=letters, agents=2, rounds=2, store=store)
    result, requests = decide_again(store, played, LastRound(), letters, [Appeal()])
    assert requests == []
    assert result.messages == played.result.messages
    assert result.decision == played.result.decision


DECIDE = ("decide", "runs/study", "--decision", "kit.last_round", "--output", "again", "--yes")


def damage(folder, statement):
    with closing(sqlite3.connect(folder / "study.db")) as db:
        db.execute(statement.replace("sample = 'q'", "sample = 'q0000'"))
        db.commit()


@pytest.mark.parametrize("hostile", ["wrong type", "deep", "metrics"])
def test_a_hostile_record_is_a_message(program, tmp_path, hostile):
    from damage import HOSTILE

    program("run", "study.toml", "--quiet")
    damage(tmp_path / "runs/study", HOSTILE[hostile])
    done = program(*DECIDE)
    assert done.exit_code in (1, 2)
    assert "sample 'q0000' cannot be read" in done.stderr


@pytest.mark.parametrize("content", [b"\x89PNG" * 3000, b""])
def test_what_is_not_a_study_is_a_message(program, tmp_path, content):
    program("run", "study.toml", "--quiet")
    (tmp_path / "runs/study/study.db").write_bytes(content)
    done = program(*DECIDE)
    assert (done.exit_code, "runs/study" in done.stderr) == (2, True)
