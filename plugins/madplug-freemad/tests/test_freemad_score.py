from fractions import Fraction as F
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madplug import Persona
from madplug.testing import debate_from
from madplug_freemad import Score, trajectory_scores


def scores(rows, **options):
    table = [[None if key == "-" else key for key in row] for row in rows.split()]
    return trajectory_scores(table, **options)


def decide(rows, seed=0, **options):
    return Score(**options).at_end(debate_from(rows, seed=seed))


@pytest.mark.parametrize(("rows", "expected"), [
    ("AA BA BB", {"A": F(45), "B": F(75, 2)}),
    ("AA BC BC", {"A": F(30), "B": F(15), "C": F(30)}),
    ("AA AB AB", {"A": F(45), "B": F(30)}),
    ("ABB BBA CCB", {"A": F(35, 2), "B": F(160, 3), "C": F(65, 3)}),
    ("AAB BBB CAA", {"A": F(130, 3), "B": F(140, 3), "C": F(15, 2)}),
    ("AAAA BABA BBBB", {"A": F(335, 6), "B": F(635, 12)}),
])
def test_scores_are_exact(rows, expected):
    assert scores(rows) == expected


@pytest.mark.parametrize(("rows", "key"), [
    ("AA BA BB", "A"), ("AA AB AB", "A"), ("ABB BBA CCB", "B"), ("AAB BBB CAA", "B"), ("AAAA BABA BBBB", "A")])
def test_the_highest_score_wins(rows, key):
    decision = decide(rows)
    assert (decision.key, decision.agreed, decision.tie) == (key, True, False)


def test_the_score_may_overrule_the_majority_of_the_last_round():
    assert decide("AA AB AB").key == "A"


def test_a_tie_is_drawn():
    drawn = {decide("AA BC BC", seed=seed).key for seed in range(20)}
    assert drawn == {"A", "C"}
    assert decide("AA BC BC").tie


def test_the_same_seed_draws_the_same():
    assert len({decide("AA BC BC", seed=5).key for _ in range(5)}) == 1


@pytest.mark.parametrize(("tie", "key"), [("first", "C"), ("lexical", "A"), ("undecided", None)])
def test_a_tie_can_be_settled_otherwise(tie, key):
    decision = decide("CC BA BA", tie=tie)
    assert (decision.key, decision.tie) == (key, True)


def test_54_of_729_debates_of_three_tie():
    ties = 0
    for cells in product("ABC", repeat=6):
        found = trajectory_scores([cells[:2], cells[2:4], cells[4:]])
        ties += list(found.values()).count(max(found.values())) > 1
    assert ties == 54


keys = st.lists(st.lists(st.sampled_from("ABC"), min_size=3, max_size=3), min_size=1, max_size=5)


@given(keys, st.sampled_from(list(permutations("ABC"))))
def test_renaming_answers_renames_scores(rows, names):
    to = dict(zip("ABC", names, strict=True))
    renamed = trajectory_scores([[to[k] for k in row] for row in rows])
    assert renamed == {to[a]: s for a, s in trajectory_scores(rows).items()}


@given(keys, st.randoms())
def test_the_order_of_agents_is_irrelevant(rows, rng):
    shuffled = rng.sample(rows, len(rows))
    assert trajectory_scores(shuffled) == trajectory_scores(rows)


@given(keys)
def test_keeping_an_answer_once_more_raises_its_score(rows):
    longer = trajectory_scores([[*row, row[-1]] for row in rows])
    before = trajectory_scores(rows)
    assert all(longer[row[-1]] > before[row[-1]] for row in rows)


def test_normalised_by_contributors():
    assert scores("AA BA BB", normalize=True) == {"A": F(45, 2), "B": F(75, 4)}


@pytest.mark.parametrize(("decay", "expected"), [
    ("none", {"A": F(70), "B": F(35)}), ("halving", {"A": F(45), "B": F(75, 2)}),
    ("inverse", {"A": F(45), "B": F(75, 2)})])
def test_decay(decay, expected):
    assert scores("AA BA BB", decay=decay) == expected


def test_weights_are_taken_as_written():
    assert scores("AA BA BB", weights=(0.1, 0, 0, 0)) == {"A": F(1, 10), "B": F(1, 5)}


# Missing answers

@pytest.mark.parametrize(("on_none", "expected"), [
    ("carry", {"A": 30 + F(20, 3)}), ("skip", {"A": 20 + F(20, 3)}),
    ("as_answer", {"A": 20 - F(25, 2) + 10, "": 15 - F(25, 3)})])
def test_an_unreadable_answer_in_the_middle(on_none, expected):
    assert scores("A-A", on_none=on_none) == expected


@pytest.mark.parametrize(("on_none", "expected"), [
    ("carry", {"A": F(10) + F(20, 3)}), ("skip", {"A": F(10) + F(20, 3)}),
    ("as_answer", {"": 20 - F(25, 2), "A": 15 + F(20, 3)})])
def test_an_unreadable_first_answer_gives_nothing(on_none, expected):
    assert scores("-AA", on_none=on_none) == expected


def test_a_change_across_a_skipped_turn_is_a_change():
    assert scores("A-B", on_none="skip") == {"A": 20 - F(25, 3), "B": F(10)}


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


def test_one_agent_that_keeps_its_answer_for_three_rounds():
    assert scores("xxx") == {"x": 20 + 10 + F(20, 3)}


@pytest.mark.parametrize(("rows", "agreed"), [("AA -- --", False), ("AA -A --", True), ("AA AB --", True)])
def test_one_voter_of_three_that_can_be_read_is_no_agreement(rows, agreed):
    decision = Score().at_end(debate_from(rows))
    assert (decision.key, decision.agreed) == ("A", agreed)
