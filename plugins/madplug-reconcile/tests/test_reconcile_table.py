"""ReConcile: weights, groups, what is sent, and when the table rises."""

import json
from fractions import Fraction

import pytest
from tests_support import OneLetter, Reviews, made

from madplug import Dataset, Review, Sample
from madplug_reconcile import Discussion, Grouped, Weighted, recalibrated
from madplug_reconcile.reply import read, share
from madplug_testing import debate_from, play


def said(answer, confidence=0.9, reasoning="because"):
    return json.dumps({"reasoning": reasoning, "answer": answer, "confidence": confidence})


def table(replies, rounds=3, **options):
    return play(**{"styles": [Discussion()], "visibility": Grouped(), "decision": Weighted(), "agents": 3,
                   "rounds": rounds, "replies": replies, **options})


@pytest.mark.parametrize(("weight", "confidences"), [
    ("0.1", (0.6, 0.0, None, -1)), ("0.3", (0.61, 0.79)), ("0.5", (0.8, 0.89)), ("0.8", (0.9, 0.99)), ("1", (1, 1.7))])
def test_recalibration_table(weight, confidences):
    assert {recalibrated(p) for p in confidences} == {Fraction(weight)}


@pytest.mark.parametrize(("keys", "confidences", "options", "winner", "tie", "scores"), [
    (("yes", "no", "no"), (.95, .70, .75), {}, "yes", False, {"yes": .8, "no": .6}),
    (("yes", "no", "no"), (.95, .70, .75), {"recalibrate": False}, "no", False, {"yes": .95, "no": 1.45}),
    (("yes", "no", "no"), (.9, .85, .7), {}, "yes", True, {"yes": .8, "no": .8}),
    ("ABB", (.8, .6, .65), {}, "A", False, {"A": .5, "B": .4}),
    ("ABC", (.5, .6, .2), {}, "A", True, {"A": .1, "B": .1, "C": .1}),
    ("ABBB", (.7, .5, .5, .5), {}, "A", True, {"A": .3, "B": .3}),
    ((None, "A", "B"), (1.0, .5, .7), {}, "B", False, {"A": .1, "B": .3})])  # what was not read has no weight
def test_worked_votes(keys, confidences, options, winner, tie, scores):
    debate = debate_from([[k] for k in keys], confidence=list(confidences))
    decision = Weighted(**options).at_end(debate)
    assert (decision.key, decision.tie, decision.scores) == (winner, tie, scores)
    assert [v.valid for v in decision.votes] == [k is not None for k in keys]
    assert "no" not in keys or debate.notes["reconcile"]["majority"] == "no"


def test_who_was_not_asked_in_the_last_round_casts_no_vote():
    assert [v.agent for v in Weighted().at_end(debate_from([["A"], [], []])).votes] == [0]
    assert [v.agent for v in Weighted().at_end(debate_from("AB B BB", confidence=0.9)).votes] == [0, 2]


@pytest.mark.parametrize(("answers", "options"), [(("", "B", "B"), {}), ("AAA", {"early": False})])
def test_an_unread_answer_is_not_unanimity_and_the_early_stop_can_be_switched_off(answers, options):
    played = table({i: [said(a) if a else ""] * 2 for i, a in enumerate(answers)}, 2, decision=Weighted(**options))
    assert len(played.requests) == 6


def test_groups_stand_largest_first_hold_the_own_message_and_those_that_cannot_be_read_come_last():
    played = table({0: [said("A", .9, "r0")] * 2, 1: [said("B", .8, "r1")] * 2, 2: [said("B", .7, "r2")] * 2}, 2)
    assert {m.seen for m in played.messages if m.round == 2} == {(1, 2, 0)}
    places = [played.prompts[3].index(text) for text in (
        "2 participants with the answer B", "r1", "Confidence: 0.8", "r2", "1 participant with the answer A", "r0",
        "Confidence: 0.9")]
    assert places == sorted(places)
    played = table({0: ["no idea {"] * 2, 1: [said("B")] * 2, 2: [said("B")] * 2}, 2, answers=OneLetter())
    assert played.messages[3].seen == (1, 2, 0)
    assert "(none that can be read)" in played.prompts[3]


@pytest.mark.parametrize(("groups", "shown"), [(None, "r0 r1 r2"), (2, "r0 r1")])
def test_three_answers_are_all_shown_in_agent_order_unless_the_two_largest_groups_are_asked_for(groups, shown):
    replies = {i: [said(k, reasoning=f"r{i}")] * 2 for i, k in enumerate("CAB")}
    played = table(replies, 2, visibility=Grouped(groups=groups) if groups else Grouped())
    assert [" ".join(r for r in ("r0", "r1", "r2") if r in prompt) for prompt in played.prompts[3:]] == [shown] * 3


@pytest.mark.parametrize(("value", "number"), [
    (0.8, .8), ("0.8", .8), ("85%", .85), ("85 %", .85), (85, .85), (1.2, 1.0), (-3, 0.0), ("about .7", .7),
    ("high", None), (None, None), (True, None), ([], None), (float("nan"), None), (float("inf"), None),
    (10 ** 400, None), (1, 1.0)])
def test_confidences_in_the_wild(value, number):
    assert share(value) == number


TRAIN = [Sample(f"t{i}", f"train {i}?", metadata={"explanation": f"why {i}"}) for i in range(6)]


class Both(Dataset):
    """A question, and a part to train on."""

    name = "both"

    def samples(self, split=None):
        if split == "train":
            return iter([(sample, ("A",)) for sample in TRAIN])
        return iter([(Sample("q1", "the question"), ("A",))])


def learner(request):
    """Errs on every training question but the first, and believes explanations but the second's."""
    text = str(request.messages)
    right = "train 0?" in text or ("An expert explains" in text and "why 1" not in text)
    if request.purpose == "convince":
        return said("A" if right else "B")
    return said("C", .5, f"I am {request.model}")


def convinced(**options):
    return play(styles=[Discussion(convincing=2, **options)], visibility=Grouped(), decision=Weighted(), agents=2,
                models=("one", "two"), dataset=Both(), answers=OneLetter(), replies=learner)


def test_samples_whose_explanation_corrected_a_model_are_shown_to_the_others_and_no_more_are_tried_than_wanted():
    played = convinced()
    for prompt in [p for r, p in zip(played.requests, played.prompts, strict=True) if r.purpose == "discuss"]:
        assert [i for i in range(6) if f"why {i}" in prompt] == [2, 3]
    assert sum(r.purpose == "convince" for r in played.requests) == 2 * (1 + 2 + 2 + 2)
    assert played.result.calls == 2  # they are no part of the debate
    assert sum(r.purpose == "convince" for r in convinced(look_at=2).requests) == 2 * (1 + 2)


def test_a_convincing_sample_is_never_shown_for_its_own_question():
    played = play(styles=[Discussion(convincing=1)], agents=1, models=("one",), answers=OneLetter(),
                  dataset=made(Dataset, samples=lambda self, split=None: iter([(TRAIN[2], ("A",))])), replies=learner)
    assert "why 2" not in played.prompts[-1]


def test_a_note_is_shown_before_the_groups_and_is_nobodys_answer():
    note = Reviews(lambda debate: Review(say="mind the units"))
    played = table({0: ["?"] * 2, 1: [said("B")] * 2, 2: [said("C")] * 2}, 2, extensions=[note], answers=OneLetter())
    prompt = played.prompts[3]
    assert prompt.index("mind the units") < prompt.index("1 participant")
    assert prompt.count("1 participant with") == 3


@pytest.mark.parametrize(("text", "answer"), [
    ('{"reasoning": "cut off at', ""), ('{"confidence": 0.9}', ""), ('{"steps": [1, 2], "confidence": 7}', ""),
    ("It is B.", None), ("Sure: {'answer': 'B', 'confidence': '85%', 'reasoning': 'x',}", "B")])
def test_broken_json_is_read_prose_is_flagged_and_a_confidence_is_never_taken_for_the_answer(text, answer):
    assert (read(text).answer, read(text).data) == (answer, {} if answer else {"reconcile": {"unparsed": True}})


@pytest.mark.parametrize("sure", [0.9, "very"])
def test_a_confidence_that_cannot_be_read_makes_the_debate_unread(sure):
    played = table({i: [json.dumps({"reasoning": "r", "answer": "B", "confidence": sure})] for i in range(3)}, 1)
    assert (played.decision.key, played.result.unread) == ("B", sure == "very")
