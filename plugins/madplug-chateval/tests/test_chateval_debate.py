"""ChatEval: who sees what, verdicts, calibration, and what they cost."""

import pytest

from madplug import AnswerFormat, Sample, StudyError
from madplug.testing import play
from madplug_chateval import (
    Calibrated,
    OneByOne,
    Referee,
    Referees,
    Scores,
    Simultaneous,
    Summarised,
    SummarisedDebate,
    Summariser,
    SummariserPersona,
    Summary,
    Swapped,
    calibrated,
    majority,
    verdict,
)
from madplug_chateval.referee import read_scores

PAIR = Sample("q1", "Which is the capital?", metadata={"responses": ["It is Paris.", "It is Rome."]})
BOTH = [Referee(), Summariser()]


class OneLetter(AnswerFormat):
    """Reads a single capital letter and nothing else."""

    name = "one_letter"

    def instruction(self, sample):
        return "A single letter."

    def canonical(self, text, sample):
        return text.strip() if len(text.strip()) == 1 and text.strip().isupper() else None


class OneByOneOrder(Summarised):
    """Everybody after everybody else."""

    name = "one_after_the_other"

    def waves(self, debate):
        from madplug import Turn

        for agent in debate.agents:
            yield [Turn(agent, "improve")]


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


# Calls

def test_two_referees_and_two_rounds_cost_four_calls():
    assert len(simultaneous(lambda r: scored(7, 8)).requests) == 4
    assert len(simultaneous(lambda r: scored(7, 8), turns=OneByOneOrder()).requests) == 4


def test_a_summariser_costs_one_more_call_for_each_round_but_the_last():
    assert len(summarised(lambda r: scored(7, 8)).requests) == 5
    assert len(summarised(lambda r: scored(7, 8), rounds=3).requests) == 3 * 2 + 2


def test_calibration_doubles_the_calls():
    assert len(simultaneous(lambda r: scored(7, 8), extensions=[Swapped()]).requests) == 8


# Who sees what

@pytest.mark.parametrize(("scope", "seen"), [
    ("replace_peers", [(0, 2), (1, 2)]), ("replace_all", [(2,), (2,)]), ("append", [(0, 1, 2), (0, 1, 2)])])
def test_a_summary_stands_in_the_place_of_the_others_messages(scope, seen):
    played = summarised({0: ["the summary"], 1: ["a1", "a2"], 2: ["b1", "b2"]}, visibility=Summary(scope=scope))
    assert [m.seen for m in played.messages[3:]] == seen
    assert "the summary" in played.prompts[3]
    assert ("b1" in played.prompts[3]) == (scope == "append")


def test_the_summariser_sees_this_round_and_its_summary_so_far():
    played = summarised({0: ["s1", "s2"], 1: ["a1", "a2", "a3"], 2: ["b1", "b2", "b3"]}, rounds=3)
    first, second = (p for r, p in zip(played.requests, played.prompts, strict=True) if r.purpose == "summarise")
    assert all(text in first for text in ("a1", "b1"))
    assert all(text in second for text in ("a2", "b2", "s1"))
    assert "a1" not in second


def test_only_the_latest_summary_is_shown():
    played = summarised({0: ["s1", "s2"], 1: ["a1", "a2", "a3"], 2: ["b1", "b2", "b3"]}, rounds=3)
    assert "s2" in played.prompts[-1]
    assert "s1" not in played.prompts[-1]


def test_there_is_no_summary_after_the_last_round_and_the_summariser_does_not_vote():
    played = summarised({0: ["s1"], 1: ["a", scored(9, 2)], 2: ["b", scored(8, 2)]})
    assert [m.move for m in played.messages] == ["draft", "draft", "summarise", "improve", "improve"]
    assert [a.persona.role for a in played.debate.voters] == ["referee", "referee"]
    assert played.decision.key == "1"


# Prompts

def test_referees_have_different_roles_and_the_same_task_first():
    played = simultaneous(lambda r: "x", agents=3)
    assert [a.persona.name for a in played.debate.agents] == ["General public", "Critic", "News author"]
    starts = {p.split("You are one of the referees")[0] for p in played.prompts[:3]}
    assert len(starts) == 1
    start = starts.pop()
    assert all(text in start for text in ("It is Paris.", "It is Rome.", "Assistant 1"))


def test_the_form_of_the_verdict_is_asked_for_in_the_last_round_only():
    played = simultaneous(lambda r: scored(7, 8), rounds=3)
    assert ["Score of Assistant 1" in p.split("What has been said")[0] + p.split("It is your turn")[1]
            for p in played.prompts] == [False] * 4 + [True] * 2


def test_earlier_rounds_give_no_answer():
    played = simultaneous(lambda r: scored(7, 8))
    assert [m.answer for m in played.messages] == ["", "", "2", "2"]


def test_verdicts_may_be_asked_for_in_every_round():
    played = simultaneous(lambda r: scored(7, 8), styles=[Referee(verdict="every_round")])
    assert [m.answer for m in played.messages] == ["2"] * 4


def test_references_and_braces_stay_out():
    played = simultaneous(lambda r: "{first} {0} {messages}", references=("the-secret",))
    assert not any("the-secret" in p for p in played.prompts)
    assert "{first} {0} {messages}" in played.prompts[-1]


# Verdicts

def test_scores_are_added_up():
    decision = judged((7, 8), (8, 8))
    assert (decision.key, decision.scores, decision.agreed) == ("2", {"1": 15, "2": 16}, True)


def test_equal_sums_are_a_tie_unless_the_first_is_preferred():
    assert judged((7, 8), (8, 7)).key == "tie"
    assert judged((7, 8), (8, 7), decision=Scores(even="first")).key == "1"


def test_halves_and_tenths_are_exact():
    assert judged((1.1, 1.3), (2.2, 2.0)).key == "tie"


@pytest.mark.parametrize(("labels", "winner"), [([0, 1, 2], 2), ([0, 0, 1], 0), ([0, 1], 0), ([2], 2), ([1, 2, 2], 2),
                                                ([1, 2], 1), ([], None)])
def test_majority_of_labels(labels, winner):
    assert majority(labels) == winner


@pytest.mark.parametrize(("scores", "key"), [
    ([(8, 7), (7, 8), (7, 7)], "tie"), ([(8, 7), (9, 1), (1, 9)], "1"), ([(8, 7), (7, 8)], "1")])
def test_labels_are_counted_when_asked_for(scores, key):
    assert judged(*scores, decision=Scores(combine="labels")).key == key


@pytest.mark.parametrize(("tie", "key"), [("first", "1"), ("undecided", None), ("lexical", "1")])
def test_ties_between_two_labels(tie, key):
    decision = judged((8, 7), (7, 8), decision=Scores(combine="labels", tie=tie))
    assert (decision.key, decision.tie) == (key, True)


def test_random_ties_follow_the_seed():
    def chosen(seed):
        return judged((8, 7), (7, 8), decision=Scores(combine="labels", tie="random"), seed=seed).key

    assert {chosen(s) for s in range(30)} == {"1", "2"}
    assert chosen(2) == chosen(2)


def test_labels_may_have_the_words_of_the_references():
    labels = ("A", "B", "T")
    played = simultaneous(lambda r: scored(3, 9), styles=[Referee(labels=labels)], decision=Scores(labels=labels),
                          answers=OneLetter())
    assert played.decision.key == "B"
    assert played.messages[-1].key == "B"


def test_an_unreadable_verdict_does_not_count_and_is_flagged():
    played = simultaneous({0: [scored(7, 8)], 1: ["both are fine"]}, 1)
    assert played.messages[1].data["chateval"] == {"unparsed": True}
    assert (played.decision.key, played.decision.scores) == ("2", {"1": 7, "2": 8})


@pytest.mark.parametrize("combine", ["average", "labels"])
def test_one_readable_verdict_of_three_is_no_agreement(combine):
    played = simultaneous({0: [scored(7, 8)], 1: ["both are fine"], 2: ["neither"]}, 1, 3,
                          decision=Scores(combine=combine))
    assert (played.decision.key, played.decision.agreed) == ("2", False)


def test_no_readable_verdict_is_undecided():
    assert simultaneous(lambda r: "{" * 100, 1).decision.key is None


@pytest.mark.parametrize(("text", "scores"), [
    ("Assistant 1: 7\nAssistant 2: 8", (7, 8)), ("**Score of Assistant 1:** 7/10\n**Score of Assistant 2:** 8.5/10",
    (7, 8.5)), ("The score of Assistant 1 is 9.\nThe score of Assistant 2 is 3.", (9, 3)),
    ("Assistant 1: 3\nAssistant 2: 4\nno:\nAssistant 1: 5\nAssistant 2: 6", (5, 6)),
    ("Assistant 1: 0\nAssistant 2: 8", None), ("Assistant 1: 11\nAssistant 2: 8", None), ("Assistant 1: 7", None),
    ("7 8", None), ("", None), ("Assistant 1: seven\nAssistant 2: eight", None),
    ("Assistant 12: 7\nAssistant 2: 8", None), ("assistant " * 5000, None), ("Assistant 1: " + "9" * 5000, None)])
def test_scores_are_read_leniently_and_only_from_one_to_ten(text, scores):
    assert read_scores(text) == scores


# Questions with one answer

def question(replies, **options):
    return simultaneous(replies, sample="what is it?", answers=OneLetter(), agents=3, **options)


@pytest.mark.parametrize(("said", "tie", "expected"), [
    ("ABB", "first", ("B", True, False)), ("CAB", "first", ("C", False, True)), ("CAB", "lexical", ("A", False, True)),
    ("CAB", "undecided", (None, False, True))])
def test_a_question_with_one_answer_is_decided_by_plurality(said, tie, expected):
    decision = question({i: ["x", key] for i, key in enumerate(said)}, decision=Scores(tie=tie)).decision
    assert (decision.key, decision.agreed, decision.tie) == expected


def test_answers_are_asked_for_in_the_last_round_in_the_form_of_the_answers():
    played = question({0: ["x", "A"], 1: ["x", "A"], 2: ["x", "A"]})
    assert ["A single letter." in p for p in played.prompts] == [False] * 3 + [True] * 3
    assert [m.key for m in played.messages] == [None] * 3 + ["A"] * 3


def test_two_choices_are_a_question_unless_they_are_said_to_be_replies():
    sample = Sample("q1", "?", choices=("yes", "no"))
    asked = simultaneous(lambda r: "A", sample=sample, answers=OneLetter())
    assert "Assistant 1" not in asked.prompts[0]
    pair = simultaneous(lambda r: scored(9, 1), sample=sample, styles=[Referee(form="pair")],
                        decision=Scores(form="pair"))
    assert "The reply of Assistant 1:\nyes" in pair.prompts[0]
    assert "(A) yes" not in pair.prompts[0]
    assert pair.decision.key == "1"


# Calibration

def test_the_worked_calibration():
    assert calibrated((15, 16), (15, 13)) == (28, 31)
    assert verdict(calibrated((15, 16), (15, 13))) == 1


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
    played = in_both_orders([(7, 8), (8, 8)], [(8, 6), (7, 7)])
    totals = [r.notes["chateval"]["totals"] for r in played.store.results()]
    assert totals == [[15, 16], [15, 13]]
    assert figures(played) == {"accuracy": 1.0, "ties": 0.0, "consistent": 1.0, "first_favoured": 0.5, "pairs": 1}


def test_a_position_bias_cancels_out():
    played = in_both_orders([(9, 3), (9, 3)], [(9, 3), (9, 3)])
    assert figures(played) == {"accuracy": 0.0, "ties": 1.0, "consistent": 0.0, "first_favoured": 1.0, "pairs": 1}


def test_the_second_debate_has_everything_swapped():
    played = in_both_orders([(7, 8)] * 2, [(8, 7)] * 2)
    first, second = played.store.results()
    assert (second.sample.id, second.sample.metadata["pair"]) == ("q1~swapped", "q1")
    assert second.sample.metadata["responses"] == ["It is Rome.", "It is Paris."]
    assert (first.references, second.references) == (("2",), ("1",))


def test_a_pair_with_an_unreadable_debate_counts_as_wrong():
    played = simultaneous(lambda r: scored(7, 8) if r.messages[0]["content"].index("Paris") <
                          r.messages[0]["content"].index("Rome") else "?", 1, references=("2",), extensions=[Swapped()],
                          metrics={"chateval.calibrated": Calibrated()})
    assert figures(played)["accuracy"] == 0.0
    assert figures(played)["pairs"] == 1


def test_questions_are_presented_once_and_have_no_figures():
    played = question(lambda r: "A", extensions=[Swapped()], metrics={"chateval.calibrated": Calibrated()})
    assert len(list(played.store.results())) == 1
    assert "figures" not in played.summary["cells"][0]


def test_choices_are_swapped_where_they_are_the_replies():
    twin = Swapped(form="pair").twin(Sample("q1", "?", choices=("yes", "no")))
    assert twin.choices == ("no", "yes")


def test_a_reference_that_is_no_label_cannot_be_swapped_and_is_told():
    with pytest.raises(StudyError, match=r"the reference 'A' of sample 'q1' is none of '1', '2', 'tie'; say how"):
        in_both_orders({0: (9, 3)}, {0: (3, 9)}, references=("A",))


@pytest.mark.parametrize("text", ["", "\x00", "{" * 3000, "Assistant 1: -3\nAssistant 2: nan"])
def test_hostile_replies_never_end_a_debate(text):
    assert summarised(lambda r: text).result.error is None


def test_paradigms_have_two_rounds_and_two_referees():
    for preset, agents in ((OneByOne, 2), (Simultaneous, 2), (SummarisedDebate, 3)):
        assert (preset.debate["rounds"], preset.debate["agents"]) == (2, agents)
