"""Right or wrong, and how much of it."""

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from madplug import AnswerFormat, Decision, DecisionProtocol, Sample
from madplug.debate.state import change
from madplug.testing import debate_from, play
from madplug_qa import F1, Accuracy, Answerability, ExactMatch, Includes, Oracle
from madplug_qa.spans import normalised, overlap, span, wanted

TRACES = Path(__file__).resolve().parents[4] / "shared" / "data" / "traces"


class Letters(AnswerFormat):
    """One letter; small and capital ones are equal."""

    name = "letters"

    def instruction(self, sample):
        return "A letter."

    def canonical(self, text, sample):
        return text.strip().upper()[:1] if len(text.strip()) == 1 else None


class Within(Letters):
    """Whole numbers; neighbours are the same answer."""

    name = "within"

    def canonical(self, text, sample):
        return text if text.lstrip("-").isdigit() else None

    def same(self, a, b, sample):
        return abs(int(a) - int(b)) <= 1


def ended(rows, key, *, answer=None, **more):
    """A debate with these answers that was decided for `key`."""
    debate = debate_from(rows, **more)
    change(debate, decision=Decision(key, answer) if key is not None else Decision.undecided("no agreement"))
    return debate


def accuracy(rows, key, references, *, answers=None, **options):
    return Accuracy(**options).score(ended(rows, key, answers=answers or Letters()), references)


class TestAccuracy:
    def test_the_decision_is_right_when_it_equals_a_reference(self):
        assert accuracy("A B B", "B", ["B"]) == 1.0
        assert accuracy("A B B", "A", ["B"]) == 0.0

    def test_references_are_brought_to_the_canonical_form(self):
        assert accuracy("A B B", "B", [" b "]) == 1.0

    def test_any_of_several_references_is_enough(self):
        assert accuracy("A B B", "B", ["A", "B"]) == 1.0

    def test_equality_is_the_answer_format_s(self):
        assert accuracy([["4"]], "4", ["5"], answers=Within()) == 1.0
        assert accuracy([["4"]], "4", ["6"], answers=Within()) == 0.0

    def test_an_undecided_debate_is_wrong(self):
        assert accuracy("A B C", None, ["A"]) == 0.0

    def test_without_references_it_does_not_apply(self):
        assert accuracy("A B C", "A", []) is None

    def test_references_that_cannot_be_read_are_an_error(self):
        played = play(replies=["A"] * 3, references=["forty-two"], answers=Letters(), expect_failure=True,
                      metrics={"accuracy": Accuracy()})
        assert "no reference of sample 'q1' is an answer" in played.result.error

    def test_of_the_plurality_of_a_round(self):
        rows = "AB BB BA"
        assert accuracy(rows, None, ["B"], of="plurality") == 1.0
        assert accuracy(rows, None, ["A"], of="plurality", round=1) == 0.0
        assert accuracy("AB BA", None, ["A"], of="plurality", round=1) == 1.0  # the first of equals
        assert accuracy("- -", None, ["A"], of="plurality") == 0.0

    def test_of_single_agents(self):
        assert accuracy("AB BB -A B-", None, ["B"], of="agents") == 0.5
        assert accuracy("AB BB -A B-", None, ["A"], of="agents", round=1) == 0.25

    def test_the_cell_s_figures_tell_decided_from_undecided(self):
        class Unanimous(DecisionProtocol):
            name = "unanimous"

            def at_end(self, debate):
                keys = {m.key for m in debate.transcript.messages}
                return Decision(keys.pop()) if len(keys) == 1 else Decision.undecided("no")

        said = {"q0": "AA", "q1": "AB", "q2": "BB", "q3": "AA"}
        played = play(sample=[Sample(name, words) for name, words in said.items()], agents=2, decision=Unanimous(),
                      references=["A"], answers=Letters(), metrics={"accuracy": Accuracy()},
                      replies=lambda r: r.messages[0]["content"].split("\n")[1][r.agent])
        cell = played.summary["cells"][0]
        assert cell["metrics"]["accuracy"]["mean"] == 0.5
        assert cell["figures"]["accuracy"] == {
            "accuracy_all": 0.5, "accuracy_decided": pytest.approx(2 / 3), "debates": 4, "undecided": 1}


class TestOracle:
    def test_one_right_voter_in_any_round_is_enough(self):
        assert Oracle().score(ended("AB BB CB", "B", answers=Letters()), ["A"]) == 1.0
        assert Oracle().score(ended("AB BB CB", "B", answers=Letters()), ["D"]) == 0.0

    def test_of_the_last_round_only(self):
        assert Oracle(rounds="last").score(ended("AB BB CB", "B", answers=Letters()), ["A"]) == 0.0
        assert Oracle(rounds="first").score(ended("AB BB CB", "B", answers=Letters()), ["A"]) == 1.0

    def test_who_does_not_vote_does_not_count(self):
        from madplug import Persona

        people = [Persona("Ada"), Persona("judge", votes=False)]
        assert Oracle().score(ended("B A", "B", answers=Letters(), personas=people), ["A"]) == 0.0


GOLDEN = [  # answer, reference, F1
    ("Southampton Choral Society", "Southampton Philharmonic Choir", Fraction(1, 3)),
    ("The Southampton Philharmonic Choir.", "Southampton Philharmonic Choir", Fraction(1)),
    ("Southampton Philharmonic Choir and Southampton Choral Society", "Southampton Philharmonic Choir",
        Fraction(3, 5)),
    ("", "", Fraction(1)),
    ("x", "", Fraction(0)),
]


@pytest.mark.parametrize(("answer", "reference", "f1"), GOLDEN)
def test_f1_of_the_worked_examples(answer, reference, f1):
    assert overlap(normalised(answer), normalised(reference)) == pytest.approx(float(f1), abs=1e-12)


def text_scores(answer, references, key="k"):
    debate = ended([[answer or "-"]], key, answer=answer)
    return ExactMatch().score(debate, references), F1().score(debate, references)


class TestSpans:
    def test_the_best_reference_counts(self):
        assert text_scores("10th centuries", ["in the 10th and 11th centuries", "the 10th centuries"]) == (1.0, 1.0)

    def test_exact_match_looks_past_case_articles_and_punctuation(self):
        assert text_scores("  An  ANSWER!", ["the answer"]) == (1.0, 1.0)

    def test_half_a_match(self):
        assert text_scores("one two", ["one three"]) == (0.0, 0.5)

    def test_saying_unknown_is_right_where_there_is_no_answer(self):
        assert text_scores("That is unknown.", []) == (1.0, 1.0)
        assert text_scores("That is unknown.", ["[UNKNOWN]"]) == (1.0, 1.0)
        assert text_scores("Paris", []) == (0.0, 0.0)
        assert text_scores("unknown", ["Paris"]) == (0.0, 0.0)

    def test_unknown_can_be_a_word_like_any_other(self):
        debate = ended([["k"]], "k", answer="the unknown soldier")
        assert ExactMatch(unknown=False).score(debate, ["Unknown Soldier"]) == 1.0
        assert ExactMatch().score(debate, ["soldier"]) == 0.0

    def test_an_undecided_debate_is_wrong_even_where_there_is_no_answer(self):
        assert text_scores("", [], key=None) == (0.0, 0.0)
        assert Answerability().score(ended("A", None), []) == 0.0

    def test_a_reference_without_words_is_none(self):
        assert wanted([".", "The words!"], False) == ["words"]
        assert wanted(["."], False) == wanted([], False) == [""]

    def test_the_key_is_scored_where_the_decision_has_no_text(self):
        assert ExactMatch().score(ended([["paris"]], "paris"), ["Paris"]) == 1.0

    def test_answerability(self):
        for answer, references, right in (("unknown", [], 1), ("Paris", [], 0), ("unknown", ["Paris"], 0),
                                          ("Rome", ["Paris"], 1), ("UNKNOWN to me", ["[UNKNOWN]"], 1)):
            assert Answerability().score(ended([["k"]], "k", answer=answer), references) == right

    def test_includes(self):
        includes = Includes()
        assert includes.score(ended([["k"]], "k", answer="It was Mackenzie, I think"), ["mackenzie"]) == 1.0
        assert includes.score(ended([["k"]], "k", answer="It was Ana"), ["Mackenzie", "ana"]) == 1.0
        assert includes.score(ended([["k"]], "k", answer="It was Ana"), ["Mackenzie"]) == 0.0
        assert includes.score(ended([["k"]], None), ["Mackenzie"]) == 0.0
        assert includes.score(ended([["k"]], "k", answer="x"), []) is None
        assert includes.score(ended([["k"]], "k", answer="x"), [""]) == 0.0


@pytest.mark.skipif(not TRACES.is_dir(), reason="the recorded answers (../shared/data/traces) are not here")
@pytest.mark.parametrize(("agent", "exact", "f1"), [
    (0, 75.52, 78.35), (1, 78.92, 81.70), (2, 65.17, 67.40), (None, 77.00, 79.46)])
def test_scores_of_published_predictions(agent, exact, f1):
    """SQuAD 2.0 dev: three systems, and the majority of them; figures of the official script."""
    with open(TRACES / "squad_models.trajectories.jsonl", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    said = [_majority(r["answers"][0]) if agent is None else r["answers"][0][agent] for r in rows]
    pairs = [(span(text, False), wanted(r["ref"], False)) for text, r in zip(said, rows, strict=True)]
    assert _percent([words in references for words, references in pairs]) == exact
    assert _percent([max(overlap(words, r) for r in references) for words, references in pairs]) == f1


def _percent(scores):
    return round(100 * sum(scores) / len(scores), 2)


def _majority(answers):
    counts = Counter(answers)
    return max(answers, key=counts.__getitem__)


def test_every_metric_is_offered():
    from madplug_qa import madplug_register_metrics

    assert [m.name for m in madplug_register_metrics()] == [
        "accuracy", "exact_match", "f1", "includes", "answerability", "oracle", "graded"]


def test_golden_letters_of_upstream_extractors_are_scored_without_their_bugs():
    """`b` against the reference `B` is right here; upstream compared them with their case."""
    answers = pytest.importorskip("madplug_answers")
    played = play(replies=["final solution: b"] * 3, references=["B"], answers=answers.Choice(),
                  metrics={"accuracy": Accuracy()}, sample=Sample("q1", "?", choices=("x", "y")))
    assert played.metrics == {"accuracy": 1.0}


@pytest.mark.skipif(not TRACES.is_dir(), reason="the recorded answers (../shared/data/traces) are not here")
@pytest.mark.parametrize(("task", "format"), [("mmlu", "Choice"), ("gsm", "Number")])
def test_accuracy_of_each_round_of_recorded_debates(task, format):
    """The plurality's accuracy by round, as the authors' code and their logs have it, for every run."""
    answers = getattr(pytest.importorskip("madplug_answers"), format)()
    expected = {e["run"]: e["majority_acc_by_round"] for e in json.loads((TRACES / "expected.json").read_text("utf-8"))
                if e["set"] == f"som-{task}"}
    with open(TRACES / f"som_{task}.trajectories.jsonl", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    for run, accuracies in expected.items():
        debates = [(ended([[key and answers.canonical(key, Sample("", "")) for key in row] for row in zip(*r["answers"],
            strict=True)], None, answers=answers), r["ref"]) for r in rows if r["run"] == run]
        for k, accuracy in enumerate(accuracies, 1):
            metric = Accuracy(of="plurality", round=k)
            right = [metric.score(debate, [reference]) for debate, reference in debates]
            assert round(sum(right) / len(right), 4) == accuracy, (run, k)


SQUAD = """
dataset = {use = "files.table", path = "q.jsonl", answers = {use = "answers.text"}}
models.m = {use = "openai.chat", model = "m", base_url = "{url}"}
debate = {paradigm = "baselines.io"}
metrics = ["qa.f1", "qa.exact_match"]
"""


def test_figures_tell_answerable_questions_from_others(run_on_endpoint):
    pytest.importorskip("madplug_baselines")
    rows = [{"id": "q1", "question": "Which choir?", "reference": "Southampton Philharmonic Choir"},
            {"id": "q2", "question": "Which town?", "reference": "Southampton"},
            {"id": "q3", "question": "Which year?", "reference": "unknown"},
            {"id": "q4", "question": "Which day?", "reference": "unknown"}]

    def say(body):
        asked = body["messages"][-1]["content"]
        known = {"choir": "Southampton Choral Society", "town": "Southampton", "year": "unknown", "day": "Monday"}
        return "Final answer: " + next(answer for word, answer in known.items() if f"Which {word}" in asked)

    results, _ = run_on_endpoint(SQUAD, rows, say)
    f1, exact = F1(), ExactMatch()
    f1.name_scores("qa.f1")
    exact.name_scores("qa.exact_match")
    assert f1.summarise(results) == {
        "all": pytest.approx((1 / 3 + 1 + 1 + 0) / 4), "answerable": pytest.approx(2 / 3), "unanswerable": 0.5,
        "answerable_debates": 2, "unanswerable_debates": 2}
    assert exact.summarise(results)["answerable"] == 0.5
    assert f1.summarise(results[:2]) == {}
