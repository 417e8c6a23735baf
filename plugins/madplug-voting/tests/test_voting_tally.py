from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madplug_voting.base import scores as scores_by_answer
from madplug_voting.nominees import Nominee
from madplug_voting.tally import Tally, by_place, by_rank, count, equal, within


def scores(tally):
    return [float(s) for s in tally.scores]


@pytest.mark.parametrize(("ballots", "sums", "leading"), [
    (map(equal, [[0], [1], [1]]), [1, 2, 0], (1,)), (map(equal, [[0], [1], [2]]), [1, 1, 1], (0, 1, 2)),
    ([], [0, 0, 0], ()), (map(equal, [[0, 1], [1], [1, 2]]), [1, 3, 1], (1,)),
    (map(equal, [[0, 1, 2]] * 3), [3, 3, 3], (0, 1, 2)),
    ([within(b, 10, exact=True, rescale=False) for b in (
        {1: 9, 2: 1}, {0: 2, 1: 4, 2: 4}, {0: 1, 1: 2, 2: 7})], [3, 15, 12], (1,))])
def test_votes_approvals_and_points_are_added_up(ballots, sums, leading):
    tally = count(ballots, 3)
    assert (scores(tally), tally.leading) == (sums, leading)


@pytest.mark.parametrize(("ballots", "solutions", "voters", "sums", "leading"), [
    ([[0, 2, 1], [1, 0, 2], [0, 1, 2]], 3, 3, [8, 6, 4], (0,)),
    ([[0, 1, 2], [1, 2, 0], [2, 0, 1]], 3, 3, [6, 6, 6], (0, 1, 2)),
    ([[0], [1, 0], [1, 0]], 2, 3, [7, 6], (0,)),
    ([[1, 0, 2], [1, 2, 0]], 3, 3, [3, 6, 3], (1,)),
    ([[0, 1, 2, 3, 4]] * 4 + [[6, 5, 4, 3, 2]] * 3, 7, 7, [20, 16, 15, 14, 13, 12, 15], (0,)),
])
def test_ranked_points(ballots, solutions, voters, sums, leading):
    tally = count([by_place(b, voters) for b in ballots], solutions)
    assert (scores(tally), tally.leading) == (sums, leading)


def test_a_solution_that_nobody_ranks_does_not_win_by_the_sum_of_ranks():
    assert count([by_rank([1]), by_rank([0, 1])], 3, lowest=True).leading == (0,)


@given(st.lists(st.permutations(range(4)), min_size=1, max_size=6))
def test_points_and_ranks_agree_on_complete_ballots_where_places_are_worth_something(ballots):
    assert count([by_place(b, 4) for b in ballots], 4).leading == count(map(by_rank, ballots), 4, lowest=True).leading


def test_too_many_points_are_rejected_or_rescaled():
    over = {0: 20, 1: 6}
    assert within(over, 25, exact=False, rescale=False) is None
    assert within(over, 25, exact=False, rescale=True) == {0: Fraction(500, 26), 1: Fraction(150, 26)}
    assert [round(float(w), 2) for w in within(over, 25, exact=False, rescale=True).values()] == [19.23, 5.77]


def test_fewer_points_are_valid_only_in_a_budget_of_up_to():
    assert within({0: 5, 1: 3}, 10, exact=True, rescale=True) is None
    assert within({0: 5, 1: 3}, 25, exact=False, rescale=False) == {0: 5, 1: 3}
    assert within({0: 0}, 25, exact=False, rescale=True) is None


def test_rescaled_points_tie_exactly():
    thirds = within({0: 7, 1: 7, 2: 7}, 10, exact=True, rescale=True)
    assert count([thirds] * 3, 3).leading == (0, 1, 2)


@pytest.mark.parametrize(("lowest", "counts", "expected"), [
    (False, [3, 2, 2], {"a": 3, "b": 2}), (True, [1, 3, 2], {"a": 1, "b": 2})])
def test_the_score_of_an_answer_is_that_of_its_best_solution(lowest, counts, expected):
    """Two solutions with the answer b share its votes; their sum would seem to beat the a that won."""
    slate = [Nominee("a", "a", (0,)), Nominee("b", "b", (1,)), Nominee("b", "b", (2,))]
    assert scores_by_answer(slate, Tally(tuple(map(Fraction, counts)), (0,)), lowest=lowest) == expected
