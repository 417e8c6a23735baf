"""The worked examples of rankings, computed by hand."""

import pytest

from madplug_council.ballots import agreement, mean_places, order, read_ranking, scores

A, B, C = 0, 1, 2
LABELS = {"A": A, "B": B, "C": C}
THREE = [[A, B, C], [B, A, C], [B, C, A]]


@pytest.mark.parametrize(("rankings", "places"), [
    (THREE, {A: 2.0, B: 4 / 3, C: 8 / 3}), ([[A, B, C], [B], [C, A]], {A: 1.5, B: 1.5, C: 2.0}),
    ([[None, B]], {B: 2.0})])  # an unknown letter keeps its place
def test_mean_places_of_rankings_that_may_be_partial(rankings, places):
    assert mean_places(rankings) == pytest.approx(places)


@pytest.mark.parametrize(("rankings", "found"), [(THREE, pytest.approx(4 / 9)), ([[A, B, C], [A, B]], None)])
def test_agreement_is_among_complete_rankings_of_which_there_are_two(rankings, found):
    assert agreement(rankings) == found


@pytest.mark.parametrize(("rank", "expected"), [
    ("borda", {A: 0.5, B: 5 / 6, C: 1 / 6}), ("copeland", {A: 0.0, B: 2.0, C: -2.0})])
def test_other_ways_to_add_rankings_up(rank, expected):
    assert scores(THREE, rank) == pytest.approx(expected)
    assert order(THREE, rank) == [[B], [A], [C]]


@pytest.mark.parametrize(("rankings", "rank", "groups"), [
    ([[A, B, C], [B, C, A], [C, A, B]], "copeland", [[A, B, C]]),  # a cycle of majorities
    ([[A, B, C], [B], [C, A]], "mean", [[A, B], [C]])])  # one first place each, so the first seat comes first
def test_equals_share_a_place(rankings, rank, groups):
    assert order(rankings, rank) == groups


@pytest.mark.parametrize(("text", "ranking", "odd"), [
    ("Answer A macht gro\u00dfen Spa\u00df.\nFINAL RANKING:\n1. Answer A\n2. Answer B\n3. Answer C", [A, B, C], []),
    ("Answer C is bad.\nFINAL RANKING:\n1. Answer A\n2. Answer B\n3. Answer C", [A, B, C], []),
    ("FINAL RANKING:\n1. Answer C\nOn reflection:\n**Final Ranking:**\n1. **Answer B**\n2) Answer A\n3. Answer C",
     [B, A, C], []),
    ("FINAL RANKING:\n1. Answer C\n2. Answer C\n3. Answer A", [C, A], ["a repeat", "not all are ranked"]),
    ("FINAL RANKING: Answer B, then Answer C, then Answer A", [B, C, A], []),
    ("Answer B beats Answer A, and Answer C comes last.", [], ["no ranking"]),
    ("1. Answer A is wrong.\n2. Answer B is better.\n3. Answer C is best of all, and", [], ["no ranking"]),
    ("Fine.\n\n1. **Answer C**\n2) Answer A.\n\n3. Answer B \n", [C, A, B], ["no heading"]),
    ("1. Answer A\nNo working.\n2. Answer B\n3. Answer C", [B, C], ["no heading", "not all are ranked"]),
    ("1. Answer A", [], ["no ranking"]),
    ("FINAL RANKING:\n3. Answer C\n2. Answer B\n1. Answer A", [A, B, C], []),
    ("FINAL RANKING:\n1. Answer C\n1. Answer B\n1. Answer A", [C, B, A], []),
    ("FINAL RANKING:\n1. Answer Z\n2. Answer B", [None, B], ["an unknown letter", "not all are ranked"]),
    ("I cannot rank them.", [], ["no ranking"])])
def test_how_a_ranking_is_read(text, ranking, odd):
    assert read_ranking(text, LABELS) == (ranking, odd)
