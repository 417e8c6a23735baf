"""What a tie leads to, and who leads."""

from fractions import Fraction

import pytest

from madplug_prompting.ties import break_tie, has_clear_lead, leaders
from madplug_testing import debate_from


def broken(candidates, tie, seed=0, scope="x:tie", **more):
    return break_tie(debate_from("A", seed=seed), candidates, tie, scope, **more)


@pytest.mark.parametrize(("tie", "picked"), [("first", "C"), ("lexical", "A"), ("undecided", None)])
def test_each_policy_picks_its_own_among_candidates_or_places_with_names(tie, picked):
    assert broken(["C", "A", "B"], tie) == picked
    place = broken([0, 1, 2], tie, name=["C", "A", "B"].__getitem__)
    assert place == (None if picked is None else "CAB".index(picked))


def test_a_draw_is_the_scopes_own_from_the_sorted_candidates():
    for seed in range(10):
        drawn = debate_from("A", seed=seed).rng("x:tie").choice(["A", "B", "C"])
        assert {broken(order, "random", seed) for order in ("CAB", "ABC", "BCA")} == {drawn}
    assert {broken(["B", "A"], "random", seed) for seed in range(20)} == {"A", "B"}


@pytest.mark.parametrize("tie", ["first", "random", "undecided", "lexical"])
def test_one_candidate_wins_and_none_is_none_whatever_the_policy(tie):
    assert broken(["A"], tie) == "A"
    assert broken([], tie) is None


def test_leaders_have_the_highest_score_in_the_order_of_the_count():
    assert leaders({"C": 2, "A": 1, "B": 2}) == ["C", "B"]
    assert leaders({"x": Fraction(1, 3) * 3, "y": Fraction(1)}) == ["x", "y"]
    assert leaders({}) == []


@pytest.mark.parametrize(("counts", "unread", "leads"), [
    ({"A": 1}, 0, True), ({"A": 1}, 2, False), ({"A": 2}, 1, True), ({"A": 1, "B": 1}, 0, False), ({}, 0, False),
    ({"A": 2, "B": 1}, 2, False), ({"A": 3, "B": 2}, 2, True)])
def test_a_lead_is_clear_among_all_voters(counts, unread, leads):
    assert has_clear_lead(counts, unread) == leads
