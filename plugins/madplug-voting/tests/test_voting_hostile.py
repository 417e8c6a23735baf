"""Ballots that say something else than they seem to: no vote is read from them, and the agent is asked again."""

import pytest

from madplug_voting.ballots import Refused, one, ranking, several


@pytest.mark.parametrize(("text", "vote"), [
    ("> vote: 1\n\n0", 0), (">> I vote for 1\n> and so do I\nMy vote: 2", 2),
    ("'final vote: 1' is what Ann says; I disagree and vote 0", 0), ("> 1", 1),
    ("I don't vote for 'solution 1'; it's wrong. My vote: 2", 2)])
def test_a_quoted_ballot_does_not_count(text: str, vote: int) -> None:
    assert one(text, range(3)) == vote


@pytest.mark.parametrize(("read", "text"), [
    (several, "approve: 0-2"), (several, "0 – 2"), (several, "all 2"), (several, "all two solutions"),
    (several, "Ann approves 0, 1 and 2."), (one, "0-1"), (one, "vote: 1-2")])
def test_what_can_mean_two_things_is_refused(read, text: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(Refused):
        read(text, range(3))


@pytest.mark.parametrize(("text", "found"), [
    ("Ann approves 0, 1 and 2. I approve 1", [1]), ("all 3", [0, 1, 2]), ("all three solutions", [0, 1, 2])])
def test_only_ones_own_approval_counts(text: str, found: list[int]) -> None:
    assert several(text, range(3)) == found


@pytest.mark.parametrize("text", [
    "reverse order: 0 1 2", "I rank the worst 0, then 1, then 2", "Ranked from worst to best: 0, 1, 2",
    "my order, worst first: 0 1 2", "my inverse ranking: 0 1 2"])
def test_a_ranking_that_begins_with_the_worst_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        ranking(text, range(3), 5)


def test_a_remark_about_the_worst_does_no_harm() -> None:
    assert ranking("2 0 1\nSolution 1 is the worst.", range(3), 5) == [2, 0, 1]
