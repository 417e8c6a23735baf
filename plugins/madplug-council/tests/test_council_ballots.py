"""The worked examples of rankings, computed by hand."""

import pytest

from madplug_council.ballots import agreement, mean_places, order, read_ranking, scores

A, B, C = 0, 1, 2
LABELS = {"A": A, "B": B, "C": C}
THREE = [[A, B, C], [B, A, C], [B, C, A]]


def test_mean_places_and_agreement_of_three_complete_rankings():
    assert mean_places(THREE) == {A: 2.0, B: pytest.approx(4 / 3), C: pytest.approx(8 / 3)}
    assert agreement(THREE) == pytest.approx(4 / 9)
    assert [mean_places(THREE)[i] for i in (A, B, C)] == pytest.approx([2.0, 1.3333, 2.6667], abs=1e-4)


def test_partial_rankings_count_where_they_rank_and_equals_are_a_group():
    partial = [[A, B, C], [B], [C, A]]
    assert mean_places(partial) == {A: 1.5, B: 1.5, C: 2.0}
    assert order(partial, "mean") == [[A, B], [C]]  # one first place each, so the first seat comes first


@pytest.mark.parametrize(("rank", "expected"), [
    ("borda", {A: 0.5, B: 5 / 6, C: 1 / 6}), ("copeland", {A: 0.0, B: 2.0, C: -2.0})])
def test_other_ways_to_add_rankings_up(rank, expected):
    assert scores(THREE, rank) == pytest.approx(expected)
    assert order(THREE, rank) == [[B], [A], [C]]


def test_a_cycle_of_majorities_is_a_shared_first_place():
    assert order([[A, B, C], [B, C, A], [C, A, B]], "copeland") == [[A, B, C]]


def test_without_two_complete_rankings_there_is_no_agreement():
    assert agreement([[A, B, C], [A, B]]) is None


@pytest.mark.parametrize(("text", "ranking", "odd"), [
    ("Answer A macht gro\u00dfen Spa\u00df.\nFINAL RANKING:\n1. Answer A\n2. Answer B\n3. Answer C", [A, B, C], []),
    ("Answer C is bad.\nFINAL RANKING:\n1. Answer A\n2. Answer B\n3. Answer C", [A, B, C], []),
    ("FINAL RANKING:\n1. Answer C\nOn reflection:\n**Final Ranking:**\n1. **Answer B**\n2) Answer A\n3. Answer C",
     [B, A, C], []),
    ("FINAL RANKING:\n1. Answer C\n2. Answer C\n3. Answer A", [C, A], ["a repeat", "not all are ranked"]),
    ("FINAL RANKING: Answer B, then Answer C, then Answer A", [B, C, A], []),
    ("Answer B beats Answer A, and Answer C comes last.", [B, A, C], ["no heading"]),
    ("FINAL RANKING:\n1. Answer Z\n2. Answer B", [None, B], ["an unknown letter", "not all are ranked"]),
    ("I cannot rank them.", [], ["no ranking"])])
def test_how_a_ranking_is_read(text, ranking, odd):
    assert read_ranking(text, LABELS) == (ranking, odd)


def test_an_unknown_letter_keeps_its_place():
    assert mean_places([[None, B]]) == {B: 2.0}
