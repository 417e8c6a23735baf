from fractions import Fraction as F
from itertools import product

import pytest
from tests_support import made

from madplug import Persona, Visibility
from madplug_freemad import AntiConformity, Score, trajectory_scores
from madplug_testing import debate_from, play


def decide(rows, **options):
    return Score(**options).at_end(debate_from(rows))


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
    table = [[None if key == "-" else key for key in row] for row in rows.split()]
    assert trajectory_scores(table, **options) == expected


@pytest.mark.parametrize(("rows", "key"), [
    ("AA BA BB", "A"), ("AA AB AB", "A"),  # against the majority of the last round
    ("ABB BBA CCB", "B"), ("AAB BBB CAA", "B"), ("AAAA BABA BBBB", "A")])
def test_the_highest_score_wins(rows, key):
    decision = decide(rows)
    assert (decision.key, decision.agreed, decision.tie) == (key, True, False)
    assert rows != "AA BA BB" or decision.scores == {"A": 45.0, "B": 37.5}


def test_54_of_729_debates_of_three_tie_in_whatever_order_the_agents_are():
    ties = 0
    for cells in product("ABC", repeat=6):
        rows = [cells[:2], cells[2:4], cells[4:]]
        found = trajectory_scores(rows)
        assert found == trajectory_scores(rows[::-1])
        ties += list(found.values()).count(max(found.values())) > 1
    assert ties == 54


def test_having_no_answer_can_win_and_without_any_answer_the_debate_is_undecided():
    decision = decide("-- -- AA", on_none="as_answer")
    assert (decision.key, decision.agreed, decision.reason) == (None, False, "having no answer has the highest score")
    assert {decide("-- --", on_none=on_none).key for on_none in ("carry", "skip", "as_answer")} == {None}


@pytest.mark.parametrize(("rows", "agreed"), [("AA -- --", False), ("AA -A --", True), ("AA AB --", True)])
def test_one_voter_of_three_that_can_be_read_is_no_agreement_and_only_voters_count(rows, agreed):
    assert (decide(rows).key, decide(rows).agreed) == ("A", agreed)
    debate = debate_from(rows)
    Score().at_end(debate)
    assert debate.notes.get("freemad") == ({"unparsed": True} if "-" in rows else None)
    people = [Persona("a"), Persona("b", votes=False), Persona("c", votes=False)]
    assert Score().at_end(debate_from("AA BB BB", personas=people)).key == "A"


# The style

MARKED = {"first": "<q>", "exchange": "{answers}<c>", "block": "{content}", "verify": "<verify>", "critique": "<x>"}


def test_an_agent_that_sees_no_one_is_not_asked_to_examine_others():
    own = made(Visibility, view=lambda self, debate, turn: debate.transcript.by(turn.agent))
    played = play(styles=[AntiConformity(**MARKED)], replies=list("abcdef"), rounds=2, visibility=own)
    assert played.requests[3].messages[-1]["content"] == "<verify>"


def test_a_summary_is_examined_as_answers_are_and_the_wording_of_the_paper_can_be_pasted(run_debate):
    def last(more):
        requests = run_debate(f'paradigm = "freemad.n"\nrounds = 3\n{more}', lambda request: "Final answer: B")[1]
        return requests[-1].messages[-1]["content"]

    summarised = last('[[extensions]]\nuse = "som.summary"')
    assert summarised.startswith("Several agents worked on the same question. A summary of all their answers:\n\n")
    assert "Restate your own reasoning" in summarised
    assert "advice" not in summarised
    assert summarised.count("end your reply with one line") == 1
    pasted = last('styles = [{use = "freemad.anti_conformity", exchange = "P {answers}", critique = "C {format}"}]')
    assert pasted.startswith("P --- an agent's answer ---\nFinal answer: B\n\n")
    assert "\n\nC When you have decided" in pasted
