"""One answer where it is sure enough, and any debate behind it; the pair that escalates; curves and classifiers."""

import json
from types import SimpleNamespace

import pytest

from madplug import Completion, ComponentError, ModelError, Sample, UserError
from madplug_gate import Behind, Curve, Escalation, First, Majority, Panel, Rated
from madplug_gate.command import _examples, fitted
from madplug_gate.curve import Held, curve, reached
from madplug_gate.features import NAMES, Classifier, features, question_digest
from madplug_gate.pair import is_over
from madplug_testing import debate_from, play, wait_for
from madplug_turns import RoundRobin, Simultaneous
from madplug_voting import Plurality

MARKED = {"first": "<q>", "exchange": "{answers}", "block": "{content}", "verify": "<verify>"}


def gated(replies, answers=1, turns=None, **options):
    """Three agents, three rounds, behind a gate."""
    return play(styles=[Rated(**MARKED)], turns=First(inner=turns or Simultaneous(), answers=answers), rounds=3,
                decision=Behind(inner=Plurality(), **options), replies=replies, metrics={"curve": Curve()},
                references=["A"])


def test_an_answer_that_is_sure_enough_costs_one_call():
    assert gated(["A\nConfidence: 0.95"]).result.calls == 1
    played = gated(["A\nConfidence: 95"])
    assert (played.result.calls, played.decision.agreed) == (1, True)
    assert played.decision.reason == "the first answer stands: 0.950 > 0.8"
    assert played.metrics == {"curve.sure": 0.95, "curve.first": 0, "curve.first_tokens": 2}


def test_a_confidence_that_cannot_be_read_is_told_of_and_the_question_debated():
    played = gated(["A"] * 9)
    assert (played.result.unread, played.result.notes["gate"]["sure"]) == (True, None)
    assert not gated(["A\nConfidence: 0.95"]).result.unread
    assert gated(["I am not sure at all: A\nConfidence: 1", *"BCDEFGHI"]).messages[0].confidence == 0.01
    assert gated(["A"] * 9).result.notes["gate"]["unparsed"]


@pytest.mark.parametrize(("first", "order"), [
    ("A\nConfidence: 80", Simultaneous), ("A", Simultaneous), ("A\nConfidence: 300", RoundRobin)])
def test_any_other_answer_is_debated_and_not_asked_for_again(first, order):
    played = gated([first, *"BBCCBABB"], turns=order())
    assert [(m.round, m.agent) for m in played.messages] == [(k, i) for k in (1, 2, 3) for i in (0, 1, 2)]
    assert (played.result.calls, played.decision.key) == (9, "B")


def test_first_answers_are_independent_and_then_shown_with_their_confidences():
    played = gated(["A\nConfidence: 60", "B\nConfidence: 70", "C", *"DEFGHI"])
    assert [r.messages[-1]["content"] for r in played.requests[:3]] == ["<q>"] * 3
    assert [m["content"] for m in played.requests[5].messages] == ["<q>", "C", "A\nConfidence: 60\n\nB\nConfidence: 70"]


def test_the_mean_probability_of_the_tokens_is_a_confidence_of_its_own():
    from math import log

    sure = Completion("A", logprobs=tuple(map(log, (0.9, 0.8, 0.95, 0.6))))
    played = gated(lambda r: sure if r.agent == 0 else Completion("B"), by="probability", threshold=0.812)
    assert (played.result.calls, played.messages[0].confidence) == (1, pytest.approx(0.8125))
    assert played.requests[0].params == {"logprobs": True}
    played = gated(lambda r: sure if r.agent == 0 else Completion("B"), by="probability", threshold=0.813)
    assert "A\n(confidence: 81 %)" in played.requests[4].messages[-1]["content"]
    played = gated(["A"] * 9, by="probability")
    assert (played.result.calls, played.result.unread, played.result.notes["gate"]["unparsed"]) == (9, True, True)


@pytest.mark.parametrize(("replies", "threshold", "calls"), [("AAB", 0.6, 3), ("AAB", 0.7, 9), ("ABC", 0.3, 3)])
def test_the_agreement_of_several_first_answers_opens_or_shuts_the_gate(replies, threshold, calls):
    played = gated([*replies, *"AAAAAA"], answers=3, by="agreement", threshold=threshold)
    assert (played.result.calls, played.decision.key) == (calls, "A")


@pytest.mark.parametrize(("options", "refused"), [
    ({"by": "agreement"}, True), ({"by": "agreement", "threshold": 1}, False), ({}, False)])
def test_one_first_answer_whose_agreement_is_asked_for_is_refused(options, refused):
    cell = SimpleNamespace(wanted=3, decision=Behind(inner=Plurality(), **options))
    assert ["agrees with itself" in said for said in First(inner=Simultaneous()).check(cell)] == [True] * refused
    assert not [*First(inner=Simultaneous(), answers=2).check(cell)]


def test_agents_that_take_turns_do_not_take_the_first_one_twice():
    assert [m.agent for m in gated([*"ABC" * 3], turns=RoundRobin(), answers=2).transcript.of_round(1)] == [0, 1, 2]


def decided_again(recorded, threshold):
    from madplug_redecide.following import follow

    cell = gated(["x"] * 9, threshold=threshold).debate.cell
    again = type(recorded.debate)(cell, recorded.result.sample, client=recorded.debate.client)
    return wait_for(follow(again, recorded.result)).key, len(again.transcript.messages)


def test_a_recorded_debate_is_decided_at_any_threshold_unless_the_gate_saved_it():
    recorded = gated([f"A\nConfidence: {c}" for c in (70, 1, 2)] + list("BBBBBB"), threshold=1.0)
    assert (recorded.decision.key, recorded.result.notes["gate"]["tokens"]) == ("B", 18)
    assert [decided_again(recorded, threshold) for threshold in (0.6, 0.8)] == [("A\nConfidence: 70", 1), ("B", 9)]
    with pytest.raises(ModelError, match="no debate to decide; run the study with threshold = 1"):
        decided_again(gated(["A\nConfidence: 90"], threshold=0.8), 0.95)


SURE, FIRST, LAST = (0.95, 0.9, 0.7, 0.6, 0.4), (1, 1, 0, 1, 0), (1, 0, 1, 1, 1)
HELD = [Held(*row, 100, 1000) for row in zip(SURE, FIRST, LAST, strict=True)]


@pytest.mark.parametrize(("threshold", "accuracy", "tokens"), [
    (0, 0.6, 500), (0.5, 0.8, 1400), (0.65, 0.8, 2300), (0.8, 1.0, 3200), (1, 0.8, 5000)])
def test_a_threshold_has_an_accuracy_and_a_price(threshold, accuracy, tokens):
    assert reached(HELD, threshold)[:2] == (accuracy, tokens)


def test_the_figures_of_a_cell_have_every_threshold_that_makes_a_difference():
    rows = [{"metrics": {f"curve.{name}": value for name, value in one._asdict().items()}} for one in HELD]
    figures = Curve().summarise_figures([*rows, {"metrics": {"curve.sure": 0.99, "curve.first": 1.0}}])
    assert (figures["debates"], figures["pictures"][0].caption[:9]) == (5, "5 debates")
    assert figures["curve"] == curve(HELD)
    assert [point["threshold"] for point in curve(HELD)] == [0, 0.4, 0.6, 0.7, 0.9, 0.95]
    assert Curve().summarise_figures([]) == {}


def examples(n=40):
    """Questions whose first answers hedge where a debate mends them."""
    for i in range(n):
        debate = debate_from("A", content="Maybe it is A, but I am not sure." if i % 2 else "Clearly it is A.")
        sample = Sample(f"q{i}", f"Question {i}?")
        yield question_digest(sample), features(sample, debate.transcript.messages, "A"), bool(i % 2)


def test_a_classifier_learns_from_what_a_first_answer_looks_like(tmp_path):
    pytest.importorskip("sklearn")
    made = fitted(list(examples()), "study", 0)
    assert made.report["auc"] == 1.0
    path = tmp_path / "gate.json"
    path.write_text(json.dumps(made._asdict()))
    assert Classifier.read(path).probability([0.5] * len(NAMES)) == pytest.approx(made.probability([0.5] * len(NAMES)))
    for text, calls in (("Clearly A", 1), ("Maybe A, but I am not sure", 9)):
        played = gated(lambda r, text=text: text, by="classifier", classifier=path, threshold=0.5)
        assert played.result.calls == calls


def test_a_classifier_is_not_tried_on_what_it_was_trained_on(tmp_path):
    digest = question_digest(Sample("q1", "the question"))
    made = Classifier(NAMES, *([[1.0] * len(NAMES)] * 3), 0.0, "study", [digest], {})
    path = tmp_path / "gate.json"
    path.write_text(json.dumps(made._asdict()))
    options = {"by": "classifier", "classifier": path}
    with pytest.raises(ComponentError, match="trained on 1 questions of this study"):
        gated(["A"] * 9, **options)
    assert gated(["A"] * 9, **options, seen=True).decision.key == "A"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"names": []}'])
def test_a_file_that_is_no_classifier_is_a_problem(tmp_path, text):
    (tmp_path / "gate.json").write_text(text)
    [problem] = Behind(inner=Plurality(), by="classifier", classifier=tmp_path / "gate.json").check(None)
    assert "is no classifier of `madplug gate train`" in problem


def test_an_example_is_a_first_answer_and_whether_the_debate_mended_it():
    mended = gated(["B\nConfidence: 5", *"AAAAAAAA"]).result
    assert [(digest, label) for digest, _, label in _examples(mended)] == [(question_digest(mended.sample), True)]
    assert _examples(gated(["B\nConfidence: 95"]).result) == []
    with pytest.raises(UserError, match="0 of which mended"):
        fitted([], "", 0)


def paired(replies, agents=5, **options):
    said = {agent: iter(texts) for agent, texts in enumerate(replies.split())}
    return play(turns=Escalation(**options), visibility=Panel(), decision=Majority(), agents=agents,
                styles=[Rated(**MARKED)], replies=lambda r: next(said[r.agent]))


@pytest.mark.parametrize(("replies", "calls", "key"), [
    ("A A", 2, "A"), ("AB BB", 4, "B"), ("AAB BCB", 6, "B"), ("ABC DEF C B F", 9, "C"), ("AB BA C C C", 7, "C"),
    ("AAA BBB B A C", 9, "A"), ("AAA BBB B B C", 9, "B")])
def test_two_that_agree_end_it_and_a_panel_settles_what_they_cannot(replies, calls, key):
    played = paired(replies)
    assert (played.result.calls, played.decision.key) == (calls, key)


@pytest.mark.parametrize(("answers", "over"), [
    ("AB", False), ("AB BA", True), ("AB AB", False), ("AB AB AB", True), ("AB AC BC", False), ("AB CA AC", True)])
def test_a_debate_is_over_when_both_swap_or_stay(answers, over):
    assert is_over([tuple(pair) for pair in answers.split()], 2) is over


def test_half_of_the_panel_reads_the_question_only():
    shown = {r.agent: r.messages[-1]["content"] for r in paired("AB BA C C C").requests}
    assert shown == {0: "B", 1: "A", 2: "<q>", 3: "<q>", 4: "<q>\n\nA\n\nB\n\nB\n\nA"}


def test_weights_and_the_first_agent_break_a_tie():
    debate = debate_from("A B A B C")
    assert (Majority().at_end(debate).key, Majority().at_end(debate).tie) == ("A", True)
    assert Majority(observers=0).at_end(debate).scores == {"A": 1, "B": 1, "C": 1}
    assert Majority(reviewers=3).at_end(debate).key == "C"
    assert not debate.notes
    assert [v.agent for v in Majority().at_end(debate_from([["A"], ["B"], []])).votes] == [0, 1], "no panel was asked"
    unread = debate_from("AA A- BB")
    assert (Majority().at_end(unread).key, dict(unread.notes)) == ("A", {"gate.majority": {"unparsed": True}})
