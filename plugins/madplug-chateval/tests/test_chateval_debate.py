"""ChatEval: who sees what, verdicts, calibration, and what they cost."""

import pytest
from tests_support import OneLetter

from madplug import Sample, StudyError
from madplug_chateval import (
    Calibrated,
    Referee,
    Referees,
    Scores,
    Summarised,
    Summariser,
    SummariserPersona,
    Summary,
    Swapped,
    calibrated,
    majority,
    verdict,
)
from madplug_chateval.referee import read_scores
from madplug_testing import play

PAIR = Sample("q1", "Which is the capital?", metadata={"responses": ["It is Paris.", "It is Rome."]})
BOTH = [Referee(), Summariser()]


def scored(first, second):
    return f"Because.\nScore of Assistant 1: {first}\nScore of Assistant 2: {second}"


def simultaneous(replies, rounds=2, agents=2, **options):
    return play(**{"styles": [Referee()], "personas": [Referees()], "visibility": Summary(scope="append"),
        "decision": Scores(), "agents": agents, "rounds": rounds, "sample": PAIR, "replies": replies, **options})


def summarised(replies, rounds=2, agents=3, **options):
    return play(**{"styles": BOTH, "personas": [SummariserPersona(), Referees()], "turns": Summarised(),
                   "visibility": Summary(), "decision": Scores(), "agents": agents, "rounds": rounds, "sample": PAIR,
                   "replies": replies, **options})


def judged(*scores, **options):
    """A debate of one round in which each referee gave these scores."""
    return simultaneous({i: [scored(*s)] for i, s in enumerate(scores)}, 1, len(scores), **options).decision


@pytest.mark.parametrize(("scope", "seen"), [
    ("replace_peers", [(0, 2), (1, 2)]), ("replace_all", [(2,), (2,)]), ("append", [(0, 1, 2), (0, 1, 2)])])
def test_a_summary_stands_in_the_place_of_the_others_messages(scope, seen):
    played = summarised({0: ["the summary"], 1: ["a1", "a2"], 2: ["b1", "b2"]}, visibility=Summary(scope=scope))
    assert [m.seen for m in played.messages[3:]] == seen
    assert "the summary" in played.prompts[3]
    assert ("b1" in played.prompts[3]) == (scope == "append")


def test_the_summariser_sees_this_round_and_its_summary_so_far_and_the_others_only_the_latest():
    played = summarised({0: ["s1", "s2"], 1: ["a1", "a2", "a3"], 2: ["b1", "b2", "b3"]}, rounds=3)
    first, second = (p for r, p in zip(played.requests, played.prompts, strict=True) if r.purpose == "summarise")
    assert all(text in first for text in ("a1", "b1"))
    assert all(text in second for text in ("a2", "b2", "s1"))
    assert "a1" not in second
    assert ("s1" in played.prompts[-1], "s2" in played.prompts[-1]) == (False, True)


def test_there_is_no_summary_after_the_last_round_and_the_summariser_does_not_vote():
    played = summarised({0: ["s1"], 1: ["a", scored(9, 2)], 2: ["b", scored(8, 2)]})
    assert [m.move for m in played.messages] == ["draft", "draft", "summarise", "improve", "improve"]
    assert [a.persona.role for a in played.debate.voters] == ["referee", "referee"]
    assert played.decision.key == "1"


@pytest.mark.parametrize(("verdict", "answers"), [("last_round", ["", "", "2", "2"]), ("every_round", ["2"] * 4)])
def test_verdicts_are_asked_for_in_the_last_round_or_in_every_one(verdict, answers):
    played = simultaneous(lambda r: scored(7, 8), styles=[Referee(verdict=verdict)])
    assert [m.answer for m in played.messages] == answers
    asked = [p.split("What has been said")[0] + p.partition("It is your turn")[2] for p in played.prompts]
    assert ["Score of Assistant 1" in prompt for prompt in asked] == list(map(bool, answers))


@pytest.mark.parametrize(("scores", "options", "key"), [
    ([(7, 8), (8, 8)], {}, "2"),
    # equal sums are a tie unless the first is preferred; halves and tenths are exact
    ([(7, 8), (8, 7)], {}, "tie"), ([(7, 8), (8, 7)], {"even": "first"}, "1"), ([(1.1, 1.3), (2.2, 2.0)], {}, "tie"),
    # labels are counted when asked for
    *((scores, {"combine": "labels"}, key) for scores, key in (
        ([(8, 7), (7, 8), (7, 7)], "tie"), ([(8, 7), (9, 1), (1, 9)], "1"), ([(8, 7), (7, 8)], "1"))),
    ([(8, 7), (7, 8)], {"combine": "labels", "tie": "undecided"}, None)])
def test_verdicts_are_combined(scores, options, key):
    decision = judged(*scores, decision=Scores(**options))
    assert decision.key == key
    assert options or decision.scores == pytest.approx({"1": sum(a for a, _ in scores), "2": sum(b for _, b in scores)})


@pytest.mark.parametrize(("labels", "winner"), [
    ([0, 1, 2], 2), ([0, 0, 1], 0), ([0, 1], 0), ([2], 2), ([1, 2, 2], 2), ([1, 2], 1), ([], None)])
def test_majority_of_labels(labels, winner):
    assert majority(labels) == winner


def test_labels_may_have_the_words_of_the_references():
    labels = ("A", "B", "T")
    played = simultaneous(lambda r: scored(3, 9), styles=[Referee(labels=labels)], decision=Scores(labels=labels),
                          answers=OneLetter())
    assert played.decision.key == "B"
    assert played.messages[-1].key == "B"


@pytest.mark.parametrize("combine", ["average", "labels"])
def test_an_unreadable_verdict_does_not_count_and_is_flagged_and_the_only_other_one_is_no_agreement(combine):
    played = simultaneous({0: [scored(7, 8)], 1: ["both are fine"], 2: ["neither"]}, 1, 3,
                          decision=Scores(combine=combine))
    assert played.messages[1].data["chateval"] == {"unparsed": True}
    assert (played.decision.key, played.decision.agreed) == ("2", False)
    assert simultaneous(lambda r: "{" * 100, 1, decision=Scores(combine=combine)).decision.key is None


@pytest.mark.parametrize(("text", "scores"), [
    ("Assistant 1: 7\nAssistant 2: 8", (7, 8)),
    ("**Score of Assistant 1:** 7/10\n**Score of Assistant 2:** 8.5/10", (7, 8.5)),
    ("The score of Assistant 1 is 9.\nThe score of Assistant 2 is 3.", (9, 3)),
    ("Assistant 1: 3\nAssistant 2: 4\nno:\nAssistant 1: 5\nAssistant 2: 6", (5, 6)),
    ("Assistant 1: 0\nAssistant 2: 8", None), ("Assistant 1: 11\nAssistant 2: 8", None), ("Assistant 1: 7", None),
    ("Assistant 1 - 7\nAssistant 2 - 8", (7, 8)), ("Assistant 1: -7\nAssistant 2: - 8", None),
    ("Assistant 1: 7-8\nAssistant 2: 9", None), ("Assistant 1: 7\nAssistant 2: 7.5–10", None),
    ("Score of Assistant 1: 9\nScore of Assistant 2: 3\nAssistant 1 made 1 slip, Assistant 2: 4 large ones.", (9, 3)),
    ("Assistant 1 made 1 small slip, while Assistant 2 made 4 large ones, so I will", None),
    ("Assistant 1 (Paris): 7. Assistant 2's score is 8/10", (7, 8)), ("Assistant 1 gets a 6, Assistant 2 a 5.", (6, 5)),
    ("7 8", None), ("", None), ("Assistant 1: seven\nAssistant 2: eight", None),
    ("Assistant 12: 7\nAssistant 2: 8", None), ("assistant " * 5000, None), ("Assistant 1: " + "9" * 5000, None)])
def test_scores_are_read_leniently_and_only_from_one_to_ten(text, scores):
    assert read_scores(text) == scores


@pytest.mark.parametrize(("said", "tie", "expected"), [
    ("ABB", "first", ("B", True, False)), ("CAB", "first", ("C", False, True)), ("CAB", "lexical", ("A", False, True)),
    ("CAB", "undecided", (None, False, True))])
def test_a_question_with_one_answer_is_answered_in_the_last_round_and_decided_by_plurality(said, tie, expected):
    played = simultaneous({i: ["x", key] for i, key in enumerate(said)}, sample="what is it?", answers=OneLetter(),
                          agents=3, decision=Scores(tie=tie), extensions=[Swapped()],
                          metrics={"chateval.calibrated": Calibrated()})
    assert (played.decision.key, played.decision.agreed, played.decision.tie) == expected
    assert ["Answer with a single letter." in p for p in played.prompts] == [False] * 3 + [True] * 3
    assert [m.key for m in played.messages] == [None] * 3 + list(said)
    assert len(list(played.store.results())) == 1  # nothing to swap
    assert "figures" not in played.summary["cells"][0]


def test_two_choices_are_a_question_unless_they_are_said_to_be_replies():
    sample = Sample("q1", "?", choices=("yes", "no"))
    asked = simultaneous(lambda r: "A", sample=sample, answers=OneLetter())
    assert "Assistant 1" not in asked.prompts[0]
    pair = simultaneous(lambda r: scored(9, 1), sample=sample, styles=[Referee(form="pair")],
                        decision=Scores(form="pair"))
    assert Swapped(form="pair").twin(sample).choices == ("no", "yes")
    assert "The reply of Assistant 1:\nyes" in pair.prompts[0]
    assert "(A) yes" not in pair.prompts[0]
    assert pair.decision.key == "1"


def in_both_orders(forward, swapped, references=("2",), samples=(PAIR,)):
    """Two debates of one round; the scores by referee, for the reply shown first and the one shown second."""
    def say(request):
        text = request.messages[0]["content"]
        first = text.index("It is Paris.") < text.index("It is Rome.")
        return scored(*(forward if first else swapped)[request.agent])

    return simultaneous(say, 1, sample=list(samples), references=references, extensions=[Swapped()],
                        metrics={"chateval.calibrated": Calibrated()})


def figures(played):
    return played.summary["cells"][0]["figures"]["chateval.calibrated"]


def test_both_debates_of_the_worked_example_favour_the_second_reply_together():
    assert (calibrated((15, 16), (15, 13)), verdict((28, 31))) == ((28, 31), 1)
    played = in_both_orders([(7, 8), (8, 8)], [(8, 6), (7, 7)])
    first, second = played.store.results()
    assert [r.notes["chateval"]["totals"] for r in (first, second)] == [[15, 16], [15, 13]]
    assert figures(played) == {"accuracy": 1.0, "ties": 0.0, "consistent": 1.0, "first_favoured": 0.5, "pairs": 1}
    assert (second.sample.id, second.sample.metadata["pair"]) == ("q1~swapped", "q1")
    assert second.sample.metadata["responses"] == ["It is Rome.", "It is Paris."]
    assert (first.references, second.references) == (("2",), ("1",))


@pytest.mark.parametrize(("forward", "swapped", "found"), [
    ([(9, 3)] * 2, [(9, 3)] * 2, {"accuracy": 0, "ties": 1, "consistent": 0, "first_favoured": 1, "pairs": 1}),
    ([(7, 8)] * 2, [("?", "?")] * 2, {"accuracy": 0, "pairs": 1})])
def test_a_position_bias_cancels_out_and_a_pair_with_an_unreadable_debate_counts_as_wrong(forward, swapped, found):
    assert figures(in_both_orders(forward, swapped)).items() >= found.items()


def test_a_reference_that_is_no_label_cannot_be_swapped_and_is_told():
    with pytest.raises(StudyError, match=r"the reference 'A' of sample 'q1' is none of '1', '2', 'tie'; say how"):
        in_both_orders({0: (9, 3)}, {0: (3, 9)}, references=("A",))
