"""How people and models write ballots: what is read, what is refused, and what is an abstention."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madplug_voting.ballots import Abstained, Refused, as_numbers, one, points, ranking, several

THREE, FROM_ONE = (0, 1, 2), (1, 2, 3)


def ranked(text, allowed):
    """A ranking of five places at most."""
    return ranking(text, allowed, 5)


@pytest.mark.parametrize(("said", "vote"), [
    ("1", 1), ("2, not 0", 2), ("2 because 3 is bad", 2), ("My vote goes to solution #2, since 0 fails", 2),
    ("I'd go with 1", 1), ("Final answer: 1. Before, I said: I vote for 2", 1), ("solution 2 is clearly the best", 2),
    ('{"vote": 1}', 1), ('{"vote": "Solution 1"}', 1), ("1 (not 2)", 1), ("The answer is 1", 1),
    ("The answer is solution 2.", 2), ("solution number 2", 2), ("I vote for solution number 2.", 2),
    ("Candidate no. 2", 2), ("I vote for 0. The others wrote \"vote for 1\".", 0), ("I vote for ０, not １", 0),
    # what is quoted does not count
    ("> vote: 1\n\n0", 0), (">> I vote for 1\n> and so do I\nMy vote: 2", 2),
    ("'final vote: 1' is what Ann says; I disagree and vote 0", 0)])
def test_a_vote_that_is_stated_is_read(said, vote):
    assert one(said, THREE) == vote


@pytest.mark.parametrize(("said", "approved"), [
    ("0,1", [0, 1]), ("1", [1]), ("- 0\n- 2", [0, 2]), ("Solutions 0 & 1", [0, 1]),
    ("I approve of solutions 0 and 2, because 1 is wrong.", [0, 2]), ("I do not approve 0. I approve 1.", [1]),
    ("Both hold.\n0, 1", [0, 1]), ("０、１".replace("、", ","), [0, 1]), ("The answer is 1", [1]),
    ("My votes: 0 and 1.", [0, 1]), ("I vote for solution 2 (the second)", [2]),
    *((said, [0, 1, 2]) for said in (
        "All of them.", "I approve of all solutions", "all three solutions", "Every solution is acceptable.",
        "Well.\nAll solutions", "all 3"))])
def test_approvals_are_read_once_each(said, approved):
    assert several(said, THREE) == approved


@pytest.mark.parametrize(("said", "ranked"), [
    ("1", [1]), ("1) 2\n2) 0", [2, 0]), ("My ranking: 2 1 0", [2, 1, 0]), ("I rank them 1, 0, 2.", [1, 0, 2]),
    ("The answer is 2 0 1", [2, 0, 1]), ("Final answer: 1, 0", [1, 0]), ("2 1\nbecause 0 is wrong", [2, 1]),
    ("Considered.\n1 0 2", [1, 0, 2])])
def test_a_ranking_is_read_best_first(said, ranked):
    assert ranking(said, THREE, 5) == ranked


REFUSED = {
    one: [
        "", "Definitely not 1.", "I would not vote for 0", "-1", "23", "1.5", "1%", "1st", "I vote for 0 or 1",
        "I vote for 0, 2", "0\n1", "2 of the solutions are fine: 0 and 1", '{"vote": true}', '{"vote": [0, 1]}',
        '{"vote": 1.5}', '{"vote": 7}', "{" * 1000, "vote for " * 1000, "é" * 1000, "<think>1</think>",
        "The worst solution is 1", "The incorrect answer is 1", "Agent 1 is right.", "0-1", "vote: 1-2"],
    several: ["", "none", "not all", "all but 1", "5", "The answer is 1 or 2", "0 – 2", "all 2", "all two solutions"],
    ranked: [
        "", "0 1 0", "0 3", "1 < 2", "0 1 2\n2 1 0", "Ranking: 0 2 1. Or the ranking 1 0 2", "reverse order: 0 1 2",
        "I rank 2 first and 0 last", "Ranked from worst to best: 0, 1, 2", "my inverse ranking: 0 1 2"],
    points: [
        "", "10", '{"0": -1, "1": 11}', '{"0": 2.5, "1": 7.5}', '{"0": 5, "0": 5}', '{"3": 10}', '{"0": 1e400}',
        '{"0": 4, "1": "six"}', '{"0": true}', "[10, 0, 0]"],
}
"""What is not stated, could mean two things, is denied, or cannot be counted."""
REFUSED_FROM_ONE = {
    one: ["Solution 2 is the most inaccurate of all.", "the solution one would expect", "<vote>1 or 2</vote>", "zero",
          "Neither is the best", "Two of them are right", "I would choose neither 1 nor 2"],
    several: ["Solution 1: no\nSolution 2: no", '{"1": "maybe"}', "I cannot approve Solution 1", "not 1, not 2, not 3"],
    ranked: ["1. Solution 1 is flawed\n2. Solution 3 is right", "Worst to best: 3 1 2", "2 <- 1 <- 3", '[{"rank": 1}]',
             "I do not prefer Solution 2, then Solution 1", "1 then 2, while 3 is unclear"],
    points: ["| 1 | -4 |", '[{"solution": 1, "points": 5}, {"solution": 1, "points": 5}]', "1 > 2", "4 and 6"],
}


@pytest.mark.parametrize(("read", "said", "allowed"), [
    (read, said, allowed) for table, allowed in ((REFUSED, THREE), (REFUSED_FROM_ONE, FROM_ONE))
    for read, texts in table.items() for said in texts])
def test_a_ballot_that_cannot_be_meant_is_refused(read, said, allowed):
    with pytest.raises(Refused):
        read(said, allowed)


def test_more_than_five_places_are_refused():
    with pytest.raises(Refused, match="more than 5"):
        ranking("0 1 2 3 4 5", range(7), 5)


@pytest.mark.parametrize(("said", "given"), [
    ('{"0": "5", "1": 5.0}', {0: 5, 1: 5}), ("{'0': 5, '1': 5,}", {0: 5, 1: 5}), ("0: 5, 1: 5", {0: 5, 1: 5}),
    ("Solution 0: 7 points\nSolution 1: 3 points", {0: 7, 1: 3}), ('{"points": {"0": 10}}', {0: 10}),
    ('<think>{"0": 10}</think>{"1": 10}', {1: 10}),
    ('{"reasoning": "1 is {better}", "0": 4, "1": 6}', {0: 4, 1: 6})])
def test_points_are_read(said, given):
    assert points(said, THREE) == given


READ = {
    one: {
        2: ["<vote>2</vote>", "<answer>Solution 2</answer>", "Agent 2", "I vote for Agent 2.", "two", "Option two.",
            "Solution 2 is the strongest, since Solution 1 has an error.", "Solution 2 is my choice.",
            "Solution 2 seems the most convincing.", "Response 2", "I pick solution two because it is short.",
            "Solution 2 gives the most complete answer.", "Solution 2 is by far the best of the three.",
            "Candidate no. 2"],
        1: ["Solution one is the best.", "one", "I choose Solution 1; Solution 3 is flawed.",
            "Solution 1 is clearly superior.", "<ballot>1</ballot>", "I go with Solution 1."],
    },
    several: {
        (1, 3): ['{"approve": {"1": "yes", "2": "no", "3": "yes"}}',
                 "- Solution 1: approve\n- Solution 2: reject\n- Solution 3: approve",
                 '{"Solution 1": "approved", "Solution 2": "not approved", "Solution 3": "approved"}',
                 '[{"solution": 1, "approve": true}, {"solution": 2, "approve": false}, '
                 '{"solution": 3, "approve": true}]',
                 "Solution one and solution three", "<approve>1, 3</approve>",
                 "**1**: acceptable\n**2**: unacceptable\n**3**: acceptable"],
        (2,): ['{"1": false, "2": true, "3": false}', "Solution 1: no\nSolution 2: yes\nSolution 3: no",
               "I approve only solution 2."],
    },
    ranked: {
        (2, 1, 3): ["Best to worst: 2 1 3", "2 → 1 → 3", "2=>1=>3", "2->1->3",
                    "I prefer Solution 2 the most, then Solution 1, and finally Solution 3.",
                    "Solution 2 is the best, followed by Solution 1, and then Solution 3.",
                    "<ranking>2 1 3</ranking>", "My preference: 2, 1, 3", "Rank: 2→1→3",
                    "Solution 2 first, then Solution 1, last Solution 3", "Best to worst: 2, 1, 3"],
        (3, 1): ["1. Solution 3 - right\n2. Solution 1 - less so", "3 -> 1"],
    },
    points: {
        (1, 4, 2, 6): ['[{"solution": 1, "points": 4}, {"solution": 2, "points": 6}]', "| 1 | 4 |\n| 2 | 6 |",
                       "Solution one: 4\nSolution two: 6", "1 | 4\n2 | 6", "<points>1: 4, 2: 6</points>"],
    },
}
"""By the reader of a ballot and what it says, on a list from 1."""



def plain(read, found):
    if read is points:
        return tuple(n for pair in found.items() for n in pair)
    return found if read is one else tuple(found)


@pytest.mark.parametrize(("read", "said", "meant"), [
    (read, said, meant) for read, by_meaning in READ.items() for meant, texts in by_meaning.items() for said in texts])
def test_what_people_write_is_read_at_once(read, said, meant):
    assert plain(read, read(said, FROM_ONE)) == meant


@pytest.mark.parametrize("said", ["I abstain.", "**Abstain**", '{"vote": "abstain"}', "I choose to abstain.",
                                  "Vote: abstain", "I will abstain, since all are wrong.", "I am abstaining.",
                                  "I do not vote.", "Abstention"])
def test_an_abstention_is_one_and_speaking_of_abstentions_is_none(said):
    for read in (one, several, ranked, points):
        with pytest.raises(Abstained):
            read(said, THREE)
    assert one("Others abstain, I vote for 2", THREE) == one("2, and I would never abstain", THREE) == 2


@pytest.mark.parametrize(("said", "vote"), [
    ("Ada", 1), ("I vote for Ada Lovelace.", 2), ("bob is the best", 3), ("2, not Ada", 2)])
def test_the_name_that_the_list_shows_stands_for_its_solution_unless_a_number_is_named(said, vote):
    assert one(as_numbers(said, {"Ada": 1, "Ada Lovelace": 2, "Bob": 3}), FROM_ONE) == vote


HOSTILE = ["x" * 200_000, "1 " * 100_000, "{" * 100_000, '{"0": ' * 30_000, "vote for " * 30_000,
           " \n\t" * 60_000 + "1", "I approve " * 20_000, "rank: " + "0, " * 60_000, "\x00\x1b[2J", "\ud800",
           "0: 1, " * 40_000, "not " * 50_000, "\u0660" * 100_000, "\"" * 100_000, "@1" * 50_000, "solution " * 25_000]


@pytest.mark.parametrize("read", [one, several, points, ranked])
@pytest.mark.parametrize("said", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_replies_are_read_or_refused_in_proportion_to_their_length(read, said, in_proportion):
    def tried(text):
        with suppress(Refused):
            read(text, THREE)

    in_proportion(tried, said)


WORDS = ["0", "1", "2", "7", "-1", "vote", "I", "for", "not", "approve", "rank", ",", ":", "\n", "{", "}", "\"",
         "because", "or", "best", ".", "points", "solution"]
fragments = st.lists(st.sampled_from(WORDS), max_size=25)


@given(st.text(max_size=300) | fragments.map(" ".join), st.sampled_from([one, several, points, ranked]))
def test_any_text_is_read_or_refused_and_stays_on_the_list(said, read):
    with suppress(Refused):
        found = read(said, THREE)
        assert {found} <= set(THREE) if isinstance(found, int) else set(found) <= set(THREE)


@given(st.integers(0, 8), st.integers(9, 12))
def test_every_number_of_a_longer_list_can_be_voted_for(vote, solutions):
    for said in (f"{vote}", f"I vote for {vote}", f'{{"vote": {vote}}}', f"Solution {vote} is the best"):
        assert one(said, range(solutions)) == vote
