"""How people and models write ballots: what is read at once, and what must not be read."""

from fractions import Fraction

import pytest

from madplug_voting.ballots import Abstained, Refused, as_numbers, one, points, ranking, several
from madplug_voting.base import scores
from madplug_voting.nominees import Nominee
from madplug_voting.tally import Tally

THREE = (1, 2, 3)


def ranked(text, allowed):
    return ranking(text, allowed, 5)


READ = {
    one: {
        2: ["**Solution 2** is the most accurate.", "<vote>2</vote>", "<answer>Solution 2</answer>", "Solution two",
            "Agent 2", "I vote for Agent 2.", "two", "```json\n{\"vote\": 2}\n```", "```\n2\n```", "Option two.",
            "Solution 2 is the strongest, since Solution 1 has an error.", "My vote: **Solution 2**",
            "Solution 2 is my choice.", "Solution 2 seems the most convincing.", "Number 2", "Response 2",
            "I pick solution two because it is short.", "Solution 2 gives the most complete answer.",
            "Solution 2 is by far the best of the three.", "Vote: Solution two", "#2", "Candidate no. 2"],
        1: ["Solution one is the best.", "Solution one.", "one", "I choose Solution 1; Solution 3 is flawed.",
            "Solution 1 is clearly superior.", "<ballot>1</ballot>", "I go with Solution 1."],
    },
    several: {
        (1, 3): ['{"1": true, "2": false, "3": true}', '{"approve": {"1": "yes", "2": "no", "3": "yes"}}',
                 "Solution 1: yes\nSolution 2: no\nSolution 3: yes", "1. Solution 1\n2. Solution 3",
                 "- Solution 1: approve\n- Solution 2: reject\n- Solution 3: approve", "```json\n[1, 3]\n```",
                 '{"Solution 1": "approved", "Solution 2": "not approved", "Solution 3": "approved"}',
                 '[{"solution": 1, "approve": true}, {"solution": 2, "approve": false}, '
                 '{"solution": 3, "approve": true}]', "Solution one and solution three", "<approve>1, 3</approve>",
                 "1: yes, it is right\n2: no, it is wrong\n3: yes", "Solutions 1 and 3",
                 '{"approved": ["Solution 1", "Solution 3"]}', "**1**: acceptable\n**2**: unacceptable\n"
                 "**3**: acceptable"],
        (2,): ['{"1": false, "2": true, "3": false}', "Solution 1: no\nSolution 2: yes\nSolution 3: no", "Solution two",
               "I approve only solution 2."],
    },
    ranked: {
        (2, 1, 3): ["1. Solution 2: best reasoning\n2. Solution 1: right, but short\n3. Solution 3: wrong",
                    "Best to worst: 2 1 3", "2 -> 1 -> 3", "2 → 1 → 3", "2 > 1 > 3", "2=>1=>3", "2->1->3",
                    "```json\n{\"ranking\": [2, 1, 3]}\n```", "```json\n[2, 1, 3]\n```", "[2, 1, 3]",
                    "I prefer Solution 2 the most, then Solution 1, and finally Solution 3.",
                    "Solution 2 is the best, followed by Solution 1, and then Solution 3.",
                    "Ranking: 2, then 1, then 3", "From best to worst: Solution 2, Solution 1, Solution 3",
                    "1. **Solution 2** because it is complete\n2. **Solution 1** because it is close\n"
                    "3. **Solution 3** because it is off", "<ranking>2 1 3</ranking>", "My preference: 2, 1, 3",
                    "Solution two > Solution one > Solution three",
                    "1) Solution 2 (clear)\n2) Solution 1\n3) Solution 3",
                    '{"ranking": ["Solution 2", "Solution 1", "Solution 3"]}', "Rank: 2→1→3",
                    "Solution 2 first, then Solution 1, last Solution 3", "Best to worst: 2, 1, 3",
                    "1. 2: it is right\n2. 1: nearly\n3. 3: no"],
        (3, 1): ["1. Solution 3 - right\n2. Solution 1 - less so", "3 -> 1", "Solution 3, then Solution 1."],
    },
    points: {
        (1, 4, 2, 6): ["| Solution | Points |\n|---|---|\n| Solution 1 | 4 |\n| Solution 2 | 6 |",
                       '[{"solution": 1, "points": 4}, {"solution": 2, "points": 6}]', "| 1 | 4 |\n| 2 | 6 |",
                       '{"votes": [{"solution": 1, "points": 4}, {"solution": 2, "points": 6}]}',
                       '{"Solution 1": 4, "Solution 2": 6}', "Solution one: 4\nSolution two: 6",
                       "1: 4 points\n2: 6 points",
                       '```json\n[{"solution": "Solution 1", "points": 4}, '
                       '{"solution": "Solution 2", "points": 6}]\n```',
                       "**Solution 1**: 4\n**Solution 2**: 6", "1 | 4\n2 | 6", "<points>1: 4, 2: 6</points>",
                       '[{"candidate": 1, "score": 4}, {"candidate": 2, "score": 6}]'],
    },
}
"""By the reader of a ballot and what it says."""

FORMS = [(read, said, meant) for read, by_meaning in READ.items() for meant, texts in by_meaning.items()
         for said in texts]


def plain(read, found):
    if read is points:
        return tuple(n for pair in found.items() for n in pair)
    return found if read is one else tuple(found)


@pytest.mark.parametrize(("read", "said", "meant"), FORMS)
def test_what_people_write_is_read_at_once(read, said, meant):
    assert plain(read, read(said, THREE)) == meant


UNREAD = {
    one: ["Agent 1 is right.", "Solution 2 is the most flawed.", "Solution 2 is the most inaccurate of all.",
          "Solution 1 is the most accurate, and Solution 2 is the most complete.", "the solution one would expect",
          "I agree with solution two and solution three", "<vote>1 or 2</vote>", "<vote>7</vote>", "<vote></vote>",
          "two or three", "Agent 1 or Agent 2", "Agents 1 and 2 agree", "Solution 2 is not the most accurate.",
          "Neither is the best", "There is no best solution; 1 and 2 are equal.", "Solution four", "zero",
          "One could say that all are wrong", "Two of them are right", "Solution 2 is wrong", "I like 2 and 3",
          "ten", "Solution 1 is right. Solution 2 is right.", "I would choose neither 1 nor 2",
          "[1, 2]", '[{"vote": 1}, {"vote": 2}]', "Which is the best solution? 1, 2 or 3?"],
    several: ["Solution 1: no\nSolution 2: no\nSolution 3: no", '{"1": false, "2": false}', '{"1": "maybe"}',
              '{"1": 5, "2": "perhaps"}', "Solution nine", "<approve>9</approve>", "I cannot approve Solution 1",
              "neither 1 nor 2", '[{"solution": 1}]', "all but 2", "Solution 1: perhaps\nSolution 2: hardly",
              '{"approve": {"7": true}}', "not 1, not 2, not 3", "[]", "{}", "8, 9"],
    ranked: ["1. Solution 1: wrong\n2. Solution 2: good\n3. Solution 3: best",
             "1. Solution 1 is flawed\n2. Solution 3 is right", "Worst to best: 3 1 2", "from worst to best: 1, 2, 3",
             "I prefer Solution 2 the most, then Solution 2", "2 then 1 or 3", "2 <- 1 <- 3", "2 1 9",
             "I do not prefer Solution 2, then Solution 1", "Solution 2 is the worst, then Solution 1",
             "I like Solution 2 the least, then Solution 3", "Best: 2", "2 -> 2", "2 -> 1 -> 9",
             "1. Solution 9\n2. Solution 1", "[2, 2, 1]", "[1, 9]", '[{"rank": 1}]', "First 2 then 1. Or 1 then 2.",
             "1. I read all\n2. I compared them", "1 then 2, while 3 is unclear", "ranking: none",
             "2. Solution 1\n1. Solution 2", "Solution 1 was written first, then Solution 2 and 3 agreed"],
    points: ["| Solution | Points |\n|---|---|\n| 1 | four |", '[{"solution": 1}]', '[{"points": 5}]',
             '[{"solution": 1, "points": "many"}]', '[{"solution": 1, "points": 5}, {"solution": 1, "points": 5}]',
             '[{"solution": 9, "points": 10}]', "| 1 | -4 |", "| 1 | 4.5 |\n| 2 | 5.5 |", "Solution one gets most",
             '[{"solution": 1, "points": true}]', "1 > 2", "<points>all to 1</points>", "[5, 5]", "| 9 | 10 |",
             '[{"solution": 1, "points": 4, "score": 6}]', "4 and 6"],
}


@pytest.mark.parametrize(("read", "said"), [(read, said) for read, texts in UNREAD.items() for said in texts])
def test_what_could_mean_something_else_is_not_read(read, said):
    with pytest.raises(Refused):
        read(said, THREE)


@pytest.mark.parametrize("read", [one, several, ranked, points])
@pytest.mark.parametrize("said", ["I abstain.", "Abstain", "**Abstain**", '{"vote": "abstain"}', "I choose to abstain.",
                                  "Vote: abstain", "My vote: abstain", "I will abstain, since all are wrong.",
                                  "I am abstaining.", "I do not vote.", "Abstention"])
def test_an_abstention_is_one(read, said):
    with pytest.raises(Abstained):
        read(said, THREE)


@pytest.mark.parametrize("said", ["Others abstain, I vote for 2", "2, and I would never abstain"])
def test_speaking_of_abstentions_is_none(said):
    assert one(said, THREE) == 2


@pytest.mark.parametrize(("said", "vote"), [("Ada", 1), ("I vote for Ada Lovelace.", 2), ("bob is the best", 3)])
def test_the_name_that_the_list_shows_stands_for_its_solution(said, vote):
    assert one(as_numbers(said, {"Ada": 1, "Ada Lovelace": 2, "Bob": 3}), THREE) == vote


def test_a_ballot_with_a_number_is_read_by_its_number():
    assert one(as_numbers("2, not Ada", {"Ada": 1}), THREE) == 2


@pytest.mark.parametrize(("lowest", "counts", "expected"), [
    (False, [3, 2, 2], {"a": 3, "b": 2}), (True, [1, 3, 2], {"a": 1, "b": 2})])
def test_the_score_of_an_answer_is_that_of_its_best_solution(lowest, counts, expected):
    """Two solutions with the answer b share its votes; their sum would seem to beat the a that won."""
    slate = [Nominee("a", "a", (0,)), Nominee("b", "b", (1,)), Nominee("b", "b", (2,))]
    assert scores(slate, Tally(tuple(map(Fraction, counts)), (0,)), lowest=lowest) == expected
