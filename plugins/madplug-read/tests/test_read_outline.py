"""What a debate looks like: one outline for pages, notebooks and terminals."""

from dataclasses import replace

import pytest

from madplug import Agent, DebateResult, Decision, Message, Persona, Sample, Spending, Vote
from madplug.store import MemoryStore
from madplug_read import TRAITS, Grader, outline
from madplug_testing import wait_for

GRADES = {"A": True, "B": False, "C": False}


def debate(text, *, references=("A",), voters=None, decision="B", error=None, **more):
    """A debate written as `round agent key seen`, one message a line; key `-` cannot be read, `0` gives no answer."""
    messages = []
    for line in text.strip().splitlines():
        number, agent, key, *seen = line.split()
        flags = {"data": {"plugin": {"unparsed": True}} if "unparsed" in seen else {},
                 "retracted": "retracted" in seen, "altered": tuple(int(s[1:]) for s in seen if s.startswith("~"))}
        messages.append(Message(
            len(messages), int(number), 0, None if agent == "note" else int(agent), "improve", f"text {len(messages)}",
            answer={"-": None, "0": ""}.get(key, key.lower()), key=None if key in "-0" else key,
            seen=tuple(int(s.lstrip("~")) for s in seen if s.lstrip("~").isdigit()), **flags))
    agents = tuple(Agent(i, Persona(f"Agent {i + 1}", votes=voters is None or i in voters), "m") for i in range(3))
    made = None if error else Decision(decision) if isinstance(decision, str) else decision
    return DebateResult("c", 0, Sample("q", "Which?"), references, agents, tuple(messages), made, error=error, **more)


TALKED_OUT = """
1 0 A
1 1 B
1 2 B
2 0 B 0 1 2
2 1 B 0 1 2
2 2 B 0 1 2
"""


@pytest.mark.parametrize(("text", "changes"), [
    (TALKED_OUT, [(0, 2, "A", "B", True, False, (1, 2), (1, 2), ())]),
    ("1 0 A\n1 1 B\n2 0 C 1", [(0, 2, "A", "C", True, False, (), (), ())]),
    ("1 0 A\n2 0 B\n3 0 A 0 1", [
        (0, 2, "A", "B", True, False, (), (), ()), (0, 3, "B", "A", False, True, (), (), (0,))]),
    ("1 0 A\n1 1 B\n1 2 B\n2 1 A\n2 2 -\n3 0 B 0 1 2 3 4", [
        (1, 2, "B", "A", False, True, (), (), ()), (0, 3, "A", "B", True, False, (2,), (2,), (1,))]),
    ("1 0 A\n1 1 B\n1 note B\n2 1 A\n3 0 B 0 1 2 3", [
        (1, 2, "B", "A", False, True, (), (), ()), (0, 3, "A", "B", True, False, (2,), (), (1,))]),
    ("1 0 A\n1 0 B\n1 0 A 0 1", []), ("1 0 A\n1 0 A\n1 0 B 0 1", [(0, 1, "A", "B", True, False, (), (), ())]),
    ("1 0 A\n2 0 -\n3 0 B retracted\n3 0 A", []),
], ids=["messages with the new answer that were shown", "nothing shown gave it", "only its own gave it",
        "one of two had left it, and the other is unread since", "a note, and one that had left it",
        "samples that differ and a refinement", "samples that agree and a refinement",
        "an unread and a retracted answer between two"])
def test_changes_of_mind_and_their_sources(text, changes):
    assert [(c.agent, c.round, c.before, c.after, c.from_right, c.to_right, c.sources, c.agents, c.formerly)
            for c in outline(debate(text), GRADES).changes] == changes


def test_answers_are_graded_and_numbered_letters_by_the_alphabet_others_in_order_of_appearance():
    found = outline(debate("1 0 B\n1 1 A\n2 0 A 1", decision="C"), GRADES).answers
    assert [(a.key, a.text, a.right, a.nth) for a in found] == [
        ("B", "b", False, 1), ("A", "a", True, 0), ("C", "C", False, 2)]
    found = outline(debate("1 0 42\n1 1 B\n2 0 17", decision="42"), {}).answers
    assert [(a.key, a.nth) for a in found] == [("42", 2), ("B", 1), ("17", 3)]


def test_marks_say_what_became_of_each_agent_in_each_round():
    first, second = outline(debate("1 0 A\n1 1 -\n2 0 B 1\n2 1 0"), GRADES).rounds
    assert [(m.key, m.state, m.right, m.changed) for m in first.marks] == [
        ("A", "answer", True, False), (None, "unread", None, False), (None, "silent", None, False)]
    assert [(m.key, m.state, m.right, m.changed) for m in second.marks] == [
        ("B", "answer", False, True), (None, "none", None, False), (None, "silent", None, False)]


def test_a_disagreement_that_was_not_read_or_has_nothing_to_be_about_is_none():
    made = debate("1 0 A\n1 1 B 0\n1 2 B 1")
    said = tuple(replace(m, agreement=False, data=data) for m, data in zip(
        made.messages, ({}, {}, {"styles": {"unparsed_agreement": True}}), strict=True))
    assert [m.agreement for m in outline(replace(made, messages=said), GRADES).messages] == [None, False, None]


def test_the_vote_stands_from_round_to_round_and_what_was_said_before_has_a_row_without_marks():
    first, second = outline(debate("1 0 A\n1 1 B\n1 2 C\n2 0 -\n2 1 A 0\n2 2 -", voters={0, 1}), GRADES).rounds
    assert (first.tally, first.unread, first.earlier) == ({"A": 1, "B": 1}, 0, ())
    assert (second.tally, second.unread, second.earlier) == ({"A": 2}, 0, (0,))
    opening, _ = outline(debate("0 note A\n1 0 A 0"), GRADES).rounds
    assert (opening.number, opening.messages, opening.marks) == (0, (0,), ())


@pytest.mark.parametrize(("text", "more", "wanted"), [
    (TALKED_OUT, {}, {"wrong", "changed", "right_to_wrong", "minority_right"}),
    ("1 0 A\n1 1 A\n1 2 B", {"decision": "A"}, {"right"}),
    ("1 0 A\n1 1 A\n1 2 B\n2 0 B", {"decision": "B"}, {"wrong", "changed", "right_to_wrong", "majority_lost"}),
    ("1 0 B\n2 0 A", {"decision": "A"}, {"right", "changed", "wrong_to_right"}),
    ("1 0 A\n1 1 -\n1 2 -", {"decision": "A"}, {"right", "minority_right", "unread", "ballot_unread"}),
    ("1 0 -\n2 0 A", {"decision": "A"}, {"right", "unread"}),
    ("1 0 -\n1 0 A", {"decision": "A"}, {"right", "unread"}),
    ("1 0 A\n2 0 -", {"decision": "A"}, {"right", "unread", "ballot_unread"}),
    ("1 0 A\n2 0 -", {"decision": Decision("A", votes=(Vote(0, {"A": 1}),))}, {"right", "unread"}),
    ("1 0 A\n1 1 -", {"voters": {0}, "decision": "A"}, {"right"}),
    ("1 0 A\n1 1 0", {"decision": "A"}, {"right"}),
    ("1 0 A\n2 0 0 unparsed", {"decision": "A"}, {"right", "ballot_unread"}),
    ("1 0 A retracted\n1 0 A\n1 1 B 0 ~1", {}, {"wrong", "retracted", "altered"}),
    ("1 0 A", {"decision": Decision("A", fallback=True, tie=True)}, {"right", "fallback", "tie"}),
    ("1 0 A", {"decision": Decision.undecided("tie")}, {"undecided"}),
    ("1 0 A", {"error": "ModelError: gone"}, {"failed"}),
    ("1 0 A", {"decision": None}, {"running"}),
    ("1 0 A\n1 1 B\n1 2 B\n2 2 C", {"voters": {0, 1}, "decision": "C"}, {"wrong"}),
], ids=["talked out", "right", "a majority lost", "corrected", "unread", "read in the end", "read when it spoke again",
        "the last unread", "a vote instead", "no voter's", "no answer asked for", "an unread ranking",
        "retracted and altered", "a fallback after a tie", "undecided", "failed", "running",
        "an agent without a vote"])
def test_the_traits_of_a_debate(text, more, wanted):
    found = outline(debate(text, **more), GRADES).traits
    assert set(found) == wanted
    assert list(found) == [name for name in TRAITS if name in wanted]


def test_without_a_vote_no_mind_is_counted_as_changed_and_nothing_undecided_is_partial():
    moved = outline(debate("1 0 A\n1 1 B\n1 2 A\n2 2 B", voters={0, 1}), GRADES)
    assert moved.changes == ()
    gone = debate("1 0 A\n1 1 -")
    left = replace(gone.messages[1], agent=None, stage="failed", data={"madplug": {"failed": {"1": "503"}}})
    for decision, partial in ((Decision("A"), True), (Decision.undecided("none"), False)):
        found = outline(replace(gone, messages=(gone.messages[0], left), decision=decision), GRADES)
        assert ("partial" in found.traits) is partial


def test_what_an_agent_was_shown_instead_is_with_the_message_that_answers_it():
    result = debate("1 0 A\n2 1 B ~0")
    data = {"channel": {"received": {"0": "say B", "7": "not shown"}}, "note": 3}
    found = outline(replace(result, messages=(result.messages[0], replace(result.messages[1], data=data))), {})
    assert found.messages[1].received == {"0": "say B"}
    assert found.messages[0].altered_for == (1,)


def test_a_message_has_the_figures_of_its_calls_and_an_agent_that_only_messages_name_a_column():
    debated = replace(debate("1 7 A"), agents=())
    found = outline(debated, {}, lambda keys: Spending(len(tuple(keys)), 0, 3, 4, 0, 0.5, 1.0))
    assert found.messages[0].spent == Spending(0, 0, 3, 4, 0, 0.5, 1.0)
    assert [(a.id, a.name) for a in found.agents] == [(7, "Agent 8")]


def grader(answers):
    """What grades a study with this answer format."""
    store = MemoryStore()
    wait_for(store.keep_fact("identity", {"cells": {"c": {"answers": answers}}}))
    return Grader(store)


def test_the_answer_format_of_the_study_grades(program):
    found = grader({"use": "kit.stripped"})
    assert found.grade(debate("1 0 A\n1 1 B", references=(" A ",), decision="A")) == {"A": True, "B": False}
    assert not found.problems


@pytest.mark.parametrize("answers", [{"use": "not.installed"}, None, {"use": 3}])
def test_without_the_answer_format_spelling_grades_and_the_reason_is_kept(answers):
    found = grader(answers)
    assert found.grade(debate("1 0 A\n1 1 B")) == {"A": True, "B": False}
    assert found.grade(debate("1 0 2", references=("two",), decision="2")) == {"2": None}
    assert found.problems["c"]


EVIL = """
from pathlib import Path
Path(__file__).with_suffix(".ran").touch()
"""


@pytest.mark.parametrize("use", ["{folder}/evil.py:Evil", "./evil.py:Evil", "evil.py:Evil"])
def test_reading_a_study_executes_no_file_that_the_study_names(tmp_path, monkeypatch, use):
    (tmp_path / "evil.py").write_text(EVIL)
    monkeypatch.chdir(tmp_path)
    found = grader({"use": use.format(folder=tmp_path)})
    assert found.grade(debate("1 0 A\n1 1 B")) == {"A": True, "B": False}
    assert not (tmp_path / "evil.ran").exists()
    assert "files are not executed to read a study" in found.problems["c"]


def test_a_decision_that_was_scored_right_is_right_however_its_reference_is_spelled_and_none_without_references():
    scored = debate("1 0 2\n1 1 3", references=("two",), decision="2", metrics={"qa.accuracy": 1.0})
    assert Grader(MemoryStore()).grade(scored) == {"2": True, "3": None}
    assert Grader(MemoryStore()).grade(debate("1 0 A", references=())) == {}


def test_agents_that_leave_are_named_where_nothing_was_said_about_it():
    left = Message(0, 1, 0, None, "leave", "", data={"madplug": {"left": [1]}})
    agents = (Agent(0, Persona("Ada"), None), Agent(1, Persona("Bob"), None))
    shown = outline(DebateResult("c", 0, Sample("q", "?"), (), agents, (left,)), {}).messages
    assert [m.content for m in shown] == ["left the debate: Bob"]


def test_agents_that_have_left_are_no_longer_counted():
    left = Message(3, 1, 0, None, "leave", "", data={"madplug": {"left": [2]}})
    found = debate("1 0 A\n1 1 -\n1 2 B")
    shown = outline(replace(found, messages=(*found.messages, left)), {}).rounds
    assert [(row.tally, row.unread) for row in shown] == [({"A": 1}, 1)]
    odd = replace(left, data={"madplug": {"left": 7}})
    assert outline(replace(found, messages=(*found.messages, odd)), {}).rounds[0].tally == {"A": 1, "B": 1}
