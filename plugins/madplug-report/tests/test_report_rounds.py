"""What goes on in the rounds, on transcripts small enough to count by hand; which debates have the same question."""

import re

import pytest

from madplug_report.questions import Questions
from madplug_report.reading import SaidMessage
from madplug_report.rounds import CellRounds, right_answers, spread


def said(text):
    """Messages from words: `1.0A` in round 1 agent 0 answers A; `-` an answer that cannot be read; `none` no answer."""
    for word in text.split():
        place, answer = re.fullmatch(r"(\d\.\d)(.*)", word).groups()
        number, agent = map(int, place.split("."))
        move, _, key = answer.rpartition(":")
        key = None if key in ("-", "none") else key
        yield SaidMessage(0, number, agent, move or "improve", answer="" if answer == "none" else key, key=key)


def cell_of(text, *, voters=(0, 1), references=("A",), key="A", score=1.0, pool=False):
    """A cell with one debate of these messages."""
    cell = CellRounds(pool)
    cell.add(list(said(text)), set(voters), references, key, score)
    return cell


def rounds_of(rows, **more):
    """A cell with one debate: a row for each agent, a character for each round, '-' for what could not be read."""
    columns = enumerate(zip(*rows.split(), strict=True), 1)
    text = " ".join(f"{n}.{agent}{key}" for n, column in columns for agent, key in enumerate(column))
    return cell_of(text, **{"voters": range(len(rows.split())), "key": None, "score": 0.0} | more)


def figures(cell, name):
    return [r.figures(i)[name] for i, r in enumerate(cell.rounds, 1)]


@pytest.mark.parametrize(("keys", "bits", "agreement"), [
    ("AAAAAAAABC", 0.921928, 28 / 45), ("AAAAAAAAAB", 0.468996, 36 / 45), ("AAAAAAAAAA", 0, 1),
    ("AAAAABBBBB", 1, 20 / 45), ("ABCD", 2, 0), ("ABB", 0.918296, 1 / 3), ("A", 0, None),
    # entropy is of the answers that could be read, and an unread answer is like no other
    ("AB--", 1, 0), ("AA--", 0, 1 / 6), ("--", 0, 0)])
def test_entropy_and_agreement_of_a_round(keys, bits, agreement):
    assert spread([None if key == "-" else key for key in keys]) == (
        pytest.approx(bits, abs=5e-7), agreement if agreement is None else pytest.approx(agreement))


def test_a_debate_without_an_answer_that_could_be_read_counts_for_agreement_and_not_for_entropy():
    cell = CellRounds()
    for text in ("1.0A 1.1B 2.0B 2.1B", "1.0A 1.1B 2.0- 2.1-"):
        cell.add(list(said(text)), {0, 1}, ("A",), None, 0.0)
    assert (figures(cell, "entropy"), figures(cell, "agreement")) == ([1, 0], [0, 0.5])
    assert [r.debates for r in cell.rounds] == [2, 2]


def test_a_debate_with_one_voter_counts_for_entropy_and_accuracy_and_not_for_what_is_of_several():
    cell = rounds_of("A B", score=1.0, key="A")
    cell.add(list(said("1.0A")), {0}, ("A",), "A", 1.0)
    assert [figures(cell, name) for name in ("entropy", "entropy_of_several", "accuracy", "lone")] == [
        [0.5], [1], [0.75], [1]]


@pytest.mark.parametrize(("reference", "to_right", "to_wrong"), [("A", 0, 1 / 3), ("B", 1 / 3, 0)])
def test_a_minority_that_is_lost_as_seen_from_either_reference(reference, to_right, to_wrong):
    cell = rounds_of("AB BB BB", references=(reference,), key="B", score=float(reference == "B"))
    assert figures(cell, "agreement") == pytest.approx([1 / 3, 1])
    assert figures(cell, "changed") == [None, pytest.approx(1 / 3)]
    assert (figures(cell, "to_right")[1], figures(cell, "to_wrong")[1]) == pytest.approx((to_right, to_wrong))


@pytest.mark.parametrize(("rows", "key", "field", "counted"), [
    # answers that go back and forth
    ("ABB BBA CCB", "B", "changed", [0, 1, 2]), ("ABB BBA CCB", "B", "to_right", [0, 0, 1]),
    ("ABB BBA CCB", "B", "to_wrong", [0, 1, 0]),
    # a change is between an answer and the one before it that could be read
    ("A-B -AA BBB", "A", "turns", [0, 1, 3]), ("A-B -AA BBB", "A", "changed", [0, 0, 1]),
    ("A-B -AA BBB", "A", "to_wrong", [0, 0, 1]),
    # a round in which no answer could be read was reached, and nobody agreed in it
    ("A-B A-B", "B", "debates", [1, 1, 1]),
    ("A-B A-B", "B", "agreement", [1, 0, 1]), ("A-B A-B", "B", "changed", [0, 0, 2])])
def test_turns_and_changes_of_rounds_are_counted(rows, key, field, counted):
    cell = rounds_of(rows, key=key, score=float(key == "A"))
    assert [getattr(r, field) for r in cell.rounds] == counted


def test_only_who_spoke_before_can_have_changed_and_agents_that_do_not_vote_do_not_count():
    cell = cell_of("1.0A 2.0B 2.1B", key="B", score=0.0)
    assert (cell.rounds[1].turns, cell.rounds[1].changed) == (1, 1)
    cell = CellRounds()
    cell.add([*said("1.0A 1.1A 1.2moderate:B"), SaidMessage(0, 1, None, "say")], {0, 1}, ("A",), "A", 1.0)
    assert (figures(cell, "agreement"), cell.unread()) == ([1.0], (0, 2))
    assert figures(cell_of("1.0A 1.1none"), "agreement") == [None], "one was not to give an answer"


@pytest.mark.parametrize(("references", "key", "score", "right"), [
    (("A",), "A", 1.0, {"A"}), (("0.50",), "1/2", 1.0, {"1/2", "0.50"}), (("A",), "B", 0.0, {"A"}),
    (("A",), None, 0.0, {"A"}), ((), "B", 0.0, None), (("A",), "B", 0.4, None), (("A",), "B", None, None),
    (("A",), "A", 0.0, None)])  # the metric knows better than we do
def test_which_answers_are_right_as_far_as_a_record_shows(references, key, score, right):
    assert right_answers(references, key, score) == right


def test_references_in_another_spelling_cannot_judge_answers():
    cell = CellRounds()
    for text, reference, key in [("1.01/2", "0.50", "1/2")] * 10 + [("1.02", "2", "2")]:
        cell.add(list(said(text)), {0}, (reference,), key, 1.0)
        assert not cell.judges


@pytest.mark.parametrize(("text", "key", "unread"), [
    ("1.0feedback:- 1.0A 1.1-", "A", (1, 2)),  # of kinds of turns that do give answers
    ("1.0- 1.1-", None, (2, 2)),  # where nothing was ever read everything was unreadable
    ("1.0none 1.1A", "A", (0, 1))])  # a turn that says it gives no answer is not unread
def test_unread_answers_are_counted(text, key, unread):
    assert cell_of(text, key=key, score=float(key is not None)).unread() == unread


@pytest.mark.parametrize(("rows", "key", "curve"), [
    ("B A A B B", "B", [0, 0, 1, 0, 0]),  # B; B of the equals; A; B of the equals; B
    ("- A A", "A", [0, 1, 1])])
def test_the_vote_of_the_first_samples_of_a_pool(rows, key, curve):
    assert rounds_of(rows, pool=True, key=key, score=float(key == "A")).curve() == [*enumerate(curve, 1)]


def test_a_debate_with_fewer_samples_counts_with_all_it_has():
    cell = rounds_of("B A A", pool=True, key="A", score=1.0)
    cell.add(list(said("1.0draft:A")), {0}, ("A",), "A", 1.0)
    cell.add(list(said("1.0A 1.1B")), {0, 1}, (), "A", None)  # has no score, so that it does not count
    assert cell.curve() == [(1, 0.5), (1.5, 0.5), (2, 1)]


@pytest.mark.parametrize(("rows", "key", "expected"), [
    ("AB AB BB", "B", {"accuracy": [1, 0]}), ("A- BA CA", "A", {"accuracy": [1 / 3, 1]}),  # of equals, their share
    ("AB BB BB", "B", {"lone": [1, 0], "lone_kept": [0, None], "lone_won": [0, None]}),
    ("AA BA BB", "A", {"lone": [1, 0], "lone_kept": [1, None], "lone_won": [1, None]}), ("A A", "A", {"lone": [0]}),
    ("A", "A", {"lone": [None]})])
def test_a_round_has_the_accuracy_of_its_most_common_answer_and_the_fate_of_a_lone_right_voter(rows, key, expected):
    cell = rounds_of(rows, key=key, score=float(key == "A"))
    assert {name: figures(cell, name) for name in expected} == expected


def test_places_count_answers_that_one_peer_alone_gave():
    """Agent 0 has A and is shown B, C, C of which only B stands alone, and takes it over."""
    said = [SaidMessage(i, 1, i, "draft", key=key) for i, key in enumerate("ABCC")]
    said.append(SaidMessage(4, 2, 0, "improve", key="B", seen=[0, 1, 2, 3]))
    cell = CellRounds()
    cell.add(said, range(4), ("A",), "B", 0.0)
    assert cell.places() == [{"place": 1, "of": 3, "opportunities": 1, "adopted": 1, "share": 1.0}]


def test_an_answer_that_its_author_has_replaced_in_the_same_view_cannot_be_taken_over():
    said = [SaidMessage(i, 1, i, "draft", key=key) for i, key in enumerate("ABCD")]
    said.append(SaidMessage(4, 2, 0, "improve", key="A"))
    said.append(SaidMessage(5, 2, 3, "improve", key="C", seen=[0, 1, 2, 4]))
    cell = CellRounds()
    cell.add(said, range(4), ("A",), "A", 1.0)
    assert cell.places() == [{"place": place, "of": 2, "opportunities": 1, "adopted": place - 1, "share": place - 1.0}
                             for place in (1, 2)]


def test_questions_are_numbered_as_they_first_occur_and_differ_by_name_and_by_text():
    questions = Questions()
    assert [len(found) for found in questions.number()] == [0, 0]
    for name, text in (("q2", "Why?"), ("q1", "Why?"), ("q2", "Why?"), ("q2", "How?"), ("q1", "Why?")):
        questions.add(name, (text,), 0, ())
    numbers, names = questions.number()
    assert numbers.tolist() == [0, 1, 0, 2, 1]
    assert names.tolist() == [hash("q2"), hash("q1"), hash("q2")]
