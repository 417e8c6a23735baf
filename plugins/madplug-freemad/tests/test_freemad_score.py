from fractions import Fraction as F
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madplug import Persona
from madplug_freemad import Score, trajectory_scores
from madplug_testing import debate_from


def scores(rows, **options):
    table = [[None if key == "-" else key for key in row] for row in rows.split()]
    return trajectory_scores(table, **options)


def decide(rows, seed=0, **options):
    return Score(**options).at_end(debate_from(rows, seed=seed))


@pytest.mark.parametrize(("rows", "options", "expected"), [
    ("AA BA BB", {}, {"A": F(45), "B": F(75, 2)}),
    ("AA BC BC", {}, {"A": F(30), "B": F(15), "C": F(30)}),
    ("AA AB AB", {}, {"A": F(45), "B": F(30)}),
    ("ABB BBA CCB", {}, {"A": F(35, 2), "B": F(160, 3), "C": F(65, 3)}),
    ("AAB BBB CAA", {}, {"A": F(130, 3), "B": F(140, 3), "C": F(15, 2)}),
    ("AAAA BABA BBBB", {}, {"A": F(335, 6), "B": F(635, 12)}),
    ("xxx", {}, {"x": 20 + 10 + F(20, 3)}),
    ("AA BA BB", {"normalize": True}, {"A": F(45, 2), "B": F(75, 4)}),  # by contributors
    ("AA BA BB", {"decay": "none"}, {"A": F(70), "B": F(35)}),
    ("AA BA BB", {"decay": "halving"}, {"A": F(45), "B": F(75, 2)}),
    ("AA BA BB", {"decay": "inverse"}, {"A": F(45), "B": F(75, 2)}),
    ("AA BA BB", {"weights": (0.1, 0, 0, 0)}, {"A": F(1, 10), "B": F(1, 5)}),  # taken as written
    # an answer in the middle, or the first, that cannot be read
    ("A-A", {"on_none": "carry"}, {"A": 30 + F(20, 3)}), ("A-A", {"on_none": "skip"}, {"A": 20 + F(20, 3)}),
    ("A-A", {"on_none": "as_answer"}, {"A": 20 - F(25, 2) + 10, "": 15 - F(25, 3)}),
    ("-AA", {"on_none": "carry"}, {"A": F(10) + F(20, 3)}), ("-AA", {"on_none": "skip"}, {"A": F(10) + F(20, 3)}),
    ("-AA", {"on_none": "as_answer"}, {"": 20 - F(25, 2), "A": 15 + F(20, 3)}),
    ("A-B", {"on_none": "skip"}, {"A": 20 - F(25, 3), "B": F(10)}),  # a change across a skipped turn is a change
])
def test_scores_are_exact(rows, options, expected):
    assert scores(rows, **options) == expected


@pytest.mark.parametrize(("rows", "key"), [
    ("AA BA BB", "A"), ("AA AB AB", "A"),  # against the majority of the last round
    ("ABB BBA CCB", "B"), ("AAB BBB CAA", "B"), ("AAAA BABA BBBB", "A")])
def test_the_highest_score_wins(rows, key):
    decision = decide(rows)
    assert (decision.key, decision.agreed, decision.tie) == (key, True, False)


def test_54_of_729_debates_of_three_tie():
    ties = 0
    for cells in product("ABC", repeat=6):
        found = trajectory_scores([cells[:2], cells[2:4], cells[4:]])
        ties += list(found.values()).count(max(found.values())) > 1
    assert ties == 54


keys = st.lists(st.lists(st.sampled_from("ABC"), min_size=3, max_size=3), min_size=1, max_size=5)


@given(keys, st.randoms())
def test_the_order_of_agents_is_irrelevant(rows, rng):
    shuffled = rng.sample(rows, len(rows))
    assert trajectory_scores(shuffled) == trajectory_scores(rows)


@given(keys)
def test_keeping_an_answer_once_more_raises_its_score(rows):
    longer = trajectory_scores([[*row, row[-1]] for row in rows])
    before = trajectory_scores(rows)
    assert all(longer[row[-1]] > before[row[-1]] for row in rows)


# Missing answers

def test_having_no_answer_can_win():
    decision = decide("-- -- AA", on_none="as_answer")
    assert (decision.key, decision.agreed, decision.reason) == (None, False, "having no answer has the highest score")


def test_without_any_answer_the_debate_is_undecided():
    for on_none in ("carry", "skip", "as_answer"):
        assert decide("-- --", on_none=on_none).key is None


def test_only_voters_count():
    people = [Persona("a"), Persona("b", votes=False), Persona("c", votes=False)]
    assert Score().at_end(debate_from("AA BB BB", personas=people)).key == "A"


def test_scores_are_recorded_by_answer():
    assert decide("AA BA BB").scores == {"A": 45.0, "B": 37.5}


@pytest.mark.parametrize(("rows", "agreed"), [("AA -- --", False), ("AA -A --", True), ("AA AB --", True)])
def test_one_voter_of_three_that_can_be_read_is_no_agreement(rows, agreed):
    decision = Score().at_end(debate_from(rows))
    assert (decision.key, decision.agreed) == ("A", agreed)
