from dataclasses import replace
from math import exp

import pytest

from madplug import Agent, Message, Persona, Sample
from madplug_answers import Choice
from madplug_simulator import Debater, Questions
from madplug_simulator.debater import latest, possible
from madplug_testing import debate_from, play

QUESTION = Sample("q1", "?", ("w", "x", "y", "z"), metadata={"difficulty": 0.5})
ME = Agent(0, Persona("Agent 1"), None)


def debate(rows="B", references=("B",), sample=QUESTION):
    return debate_from(rows, answers=Choice(), references=references, sample=sample, oracle=True)


def chances(peers=(), rows="-", references=("B",), agent=ME, sample=QUESTION, **options):
    style, d = Debater(**{"competence": 0.7, "difficulty": 0, **options}), debate(rows, references, sample)
    answers, right = possible(d, style.options.wrong)
    found = style.chances(d, agent, style.alone(d, agent, answers, right), list(peers))
    return {a: c / sum(found.values()) for a, c in found.items()}


def run(size=40, **settings):
    settings = {"models": (), "oracle": True, "answers": Choice(), "dataset": Questions(size=size), **settings}
    return play(**{"styles": [Debater()], "agents": 5, "rounds": 3, **settings})


RAISED = 0.1 * exp(2)
SHARED = 0.1 * exp(2 / 3)


@pytest.mark.parametrize(("more", "answer", "chance"), [
    ({}, "B", 0.7), ({}, "A", 0.1),  # alone an agent is right with its competence
    ({"peers": "A"}, "A", RAISED / (RAISED + 0.9)),  # a peer multiplies the chances of its answer
    ({"peers": "AB", "recency": 1}, "A", SHARED / (SHARED + 0.7 * exp(4 / 3) + 0.2)),  # the last weighs most
    ({"rows": "C", "stubbornness": 3}, "C", 0.1 * exp(3) / (0.1 * exp(3) + 0.9)),  # it holds on to its own answer
    # difficulty shifts the odds of the question's 0.0, 0.5 and 1.0
    *(({"difficulty": 2.0, "sample": replace(QUESTION, metadata={"difficulty": difficulty})}, "B", chance)
      for difficulty, chance in ((0.0, 0.9452), (0.5, 0.7), (1.0, 0.24)))])
def test_the_chance_of_an_answer(more, answer, chance):
    assert chances(**more)[answer] == pytest.approx(chance, abs=1e-4)


def test_what_others_say_draws_or_repels_and_its_order_matters_only_with_recency():
    assert chances("AAA", conformity=-2)["A"] < chances("AAA", conformity=0)["A"] < chances("AAA", conformity=2)["A"]
    assert chances("AABB", recency=0) == pytest.approx(chances("BABA", recency=0))


def test_a_lure_draws_wrong_answers_to_one_option():
    assert sorted(chances(lure=0.8).values()) == pytest.approx([0.02, 0.02, 0.26, 0.7])
    assert chances(lure=0.8) == chances(lure=0.8, agent=Agent(3, Persona("Agent 4"), None))


@pytest.mark.parametrize(("competence", "agent", "expected"), [
    ((0.9, 0.3), Agent(3, Persona("x"), None), 0.3), ({"expert": 0.9, "default": 0.2}, ME, 0.2),
    ({"expert": 0.9}, Agent(0, Persona("x", role="expert"), None), 0.9),
    ({"expert": 0.9}, Agent(0, Persona("expert"), None), 0.9)])
def test_agents_may_differ(competence, agent, expected):
    assert chances(competence=competence, agent=agent)["B"] == pytest.approx(expected)


@pytest.mark.parametrize(("reference", "expected"), [
    ("12", ["12", "13", "14", "15"]), ("yes", ["yes", "no"]), ("Paris", [
        "Paris", "another answer 1", "another answer 2", "another answer 3"])])
def test_wrong_answers_to_questions_without_options(reference, expected):
    assert possible(debate(references=(reference,), sample=Sample("q", "?")), 3)[0] == expected
    assert possible(debate(references=("(C)",)), 3)[1] == ["C"]


def test_a_reference_that_is_no_option_and_a_role_without_a_value_are_named():
    with pytest.raises(Exception, match="the reference 'F' is none of the options"):
        possible(debate(references=("F",)), 3)
    with pytest.raises(Exception, match="no value for 'Agent 1' nor for the role 'participant'"):
        chances(competence={"expert": 0.9})


def test_only_the_latest_message_of_a_peer_counts_and_own_ones_do_not():
    said = [Message(i, 1, 0, agent, "improve", "", answer=answer, key=answer)
            for i, (agent, answer) in enumerate([(1, "A"), (0, "B"), (2, "C"), (1, "D"), (None, "A"), (None, "B")])]
    assert latest(said, 0, "ABCD") == ["C", "D", "A", "B"]


def test_agreement_is_with_the_latest_answer_of_another_agent_and_first_answers_do_not_depend_on_the_protocol():
    played = run(size=1)
    first, later = played.transcript.of_round(1), played.transcript.of_round(2)
    assert {m.agreement for m in first} == {None}
    for m in later:
        seen = [first[i] for i in m.seen if i != m.agent]
        assert m.agreement == (m.answer == seen[-1].answer)
    other = run(size=1, styles=[Debater(conformity=-1, recency=5)], rounds=2)
    assert [m.key for m in first] == [m.key for m in other.transcript.of_round(1)]


def test_references_reach_no_message_but_as_an_answer():
    sample = Sample("q", "?")
    played = play(styles=[Debater(competence=0.01)], sample=sample, references=("SECRET",), oracle=True, models=(),
                  agents=3, rounds=2, seed=2)
    assert {m.answer for m in played.messages if "SECRET" in m.content} <= {"SECRET"}


def test_questions_are_the_same_for_a_seed():
    def drawn(**options):
        return [(s.id, s.metadata["difficulty"], refs) for s, refs in Questions(size=5, **options).samples()]

    assert drawn() == drawn() != drawn(seed=8)
    assert all(0.2 <= d <= 0.4 for _, d, _ in drawn(easiest=0.2, hardest=0.4))
    assert {d for _, d, _ in drawn(spread="two")} <= {0.0, 1.0}


def test_questions_have_options_a_group_and_a_format():
    dataset = Questions(size=300, choices=5, spread="middle")
    rows = list(dataset.samples())
    assert (dataset.size(), len(rows), dataset.answers) == (300, 300, "answers.choice")
    assert {refs[0] for _, refs in rows} == set("ABCDE")
    assert {s.group for s, _ in rows} == {"easy", "middle", "hard"}
