"""Right or wrong, and how much of it."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from tests_support import Letter

from madplug import ComponentError, DebateResult, Decision, DecisionProtocol, Persona, Sample
from madplug.debate.state import change
from madplug_qa import F1, Accuracy, Answerability, ExactMatch, Includes, Oracle
from madplug_qa.spans import overlap, span, wanted
from madplug_testing import debate_from, play

TRACES = Path(__file__).resolve().parents[4] / "shared" / "data" / "traces"
needs_traces = pytest.mark.skipif(not TRACES.is_dir(),
                                  reason="the recorded answers (../shared/data/traces) are not here")


class Letters(Letter):
    """One letter; small and capital ones are equal."""

    def canonical(self, text, sample):
        return text.strip().upper()[:1] if len(text.strip()) == 1 else None


class Within(Letters):
    """Whole numbers; neighbours are the same answer."""

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


@pytest.mark.parametrize(("rows", "key", "references", "score", "options"), [
    # the decision is right when it equals one of the references in canonical form, by the format's own equality
    ("A B B", "B", ["B"], 1.0, {}), ("A B B", "A", ["B"], 0.0, {}), ("A B B", "B", [" b "], 1.0, {}),
    ("A B B", "B", ["A", "B"], 1.0, {}), ([["4"]], "4", ["5"], 1.0, {"answers": Within()}),
    ([["4"]], "4", ["6"], 0.0, {"answers": Within()}),
    # an undecided debate is wrong; without references accuracy does not apply
    ("A B C", None, ["A"], 0.0, {}), ("A B C", "A", [], None, {}),
    # of the plurality of a round, where the first of equals counts, and of single agents
    ("AB BB BA", None, ["B"], 1.0, {"of": "plurality"}), ("- -", None, ["A"], 0.0, {"of": "plurality"}),
    ("AB BB BA", None, ["A"], 0.0, {"of": "plurality", "round": 1}),
    ("AB BA", None, ["A"], 1.0, {"of": "plurality", "round": 1}), ("AB BB -A B-", None, ["B"], 0.5, {"of": "agents"}),
    ("AB BB -A B-", None, ["A"], 0.25, {"of": "agents", "round": 1})])
def test_accuracy(rows, key, references, score, options):
    assert accuracy(rows, key, references, **options) == score


def test_references_that_cannot_be_read_are_an_error():
    with pytest.raises(ComponentError, match="no reference of sample 'q1' is an answer"):
        accuracy("A A A", "A", ["forty-two"])


def test_the_cell_s_figures_tell_decided_from_undecided():
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


@pytest.mark.parametrize(("rows", "reference", "score", "options"), [
    ("AB BB CB", "A", 1.0, {}), ("AB BB CB", "D", 0.0, {}), ("AB BB CB", "A", 0.0, {"rounds": "last"}),
    ("AB BB CB", "A", 1.0, {"rounds": "first"})])
def test_one_right_voter_in_any_round_is_enough_for_the_oracle(rows, reference, score, options):
    assert Oracle(**options).score(ended(rows, "B", answers=Letters()), [reference]) == score


def test_the_last_round_is_the_last_in_which_voters_were_to_answer():
    debate = ended("A A", "A", answers=Letters())
    debate.transcript.append(replace(debate.transcript.messages[-1], round=2, answer="", key=None))
    metrics = [Accuracy(of="plurality"), Accuracy(of="agents"), Oracle(rounds="last")]
    assert [metric.score(debate, ["A"]) for metric in metrics] == [1.0, 1.0, 1.0]


def test_an_answer_changed_in_its_own_round_counts_for_the_oracle_of_any_round_and_only_voters_do():
    debate = ended("A", "B", answers=Letters())
    debate.transcript.append(replace(debate.transcript.messages[-1], key="B"))
    assert [Oracle(rounds=n).score(debate, ["A"]) for n in ("any", "first", "last")] == [1.0, 0.0, 0.0]
    people = [Persona("Ada"), Persona("judge", votes=False)]
    assert Oracle().score(ended("B A", "B", answers=Letters(), personas=people), ["A"]) == 0.0


def test_a_final_answer_that_a_vote_asked_for_counts_for_the_oracle_but_not_as_one_of_the_first_round():
    debate = ended("BB", "A", answers=Letters())
    debate.notes["final_answers"] = [{"agent": 0, "text": "B", "key": "B"}, {"agent": 1, "text": "A", "key": "A"}]
    assert [Oracle(rounds=n).score(debate, ["A"]) for n in ("any", "first", "last")] == [1.0, 0.0, 1.0]


CHOIR = "Southampton Philharmonic Choir"


def text_scores(answer, references, key="k"):
    debate = ended([[answer or "-"]], key, answer=answer)
    return ExactMatch().score(debate, references), F1().score(debate, references)


@pytest.mark.parametrize(("answer", "references", "exact", "f1"), [
    # the worked examples
    ("Southampton Choral Society", [CHOIR], 0.0, 1 / 3), ("The Southampton Philharmonic Choir.", [CHOIR], 1.0, 1.0),
    ("Southampton Philharmonic Choir and Southampton Choral Society", [CHOIR], 0.0, 3 / 5),
    ("10th centuries", ["in the 10th and 11th centuries", "the 10th centuries"], 1.0, 1.0),  # the best reference counts
    ("  An  ANSWER!", ["the answer"], 1.0, 1.0), ("one two", ["one three"], 0.0, 0.5),
    # saying unknown is right where there is no answer
    ("That is unknown.", [], 1.0, 1.0), ("That is unknown.", ["[UNKNOWN]"], 1.0, 1.0), ("Paris", [], 0.0, 0.0),
    ("unknown", ["Paris"], 0.0, 0.0),
    # the letter of a choice is no article
    ("A", ["A"], 1.0, 1.0), ("B", ["A"], 0.0, 0.0), ("A", [], 0.0, 0.0)])
def test_exact_match_and_f1(answer, references, exact, f1):
    assert text_scores(answer, references) == (exact, pytest.approx(f1, abs=1e-12))


def test_an_undecided_debate_is_wrong_even_where_there_is_no_answer():
    assert text_scores("", [], key=None) == (0.0, 0.0)
    assert Answerability().score(ended("A", None), []) == Includes().score(ended("A", None), ["Mackenzie"]) == 0.0


def test_a_reference_without_words_is_none():
    assert wanted([".", "The words!"], False) == ["words"]
    assert wanted(["."], False) == wanted([], False) == [""]


@pytest.mark.parametrize(("metric", "answer", "references", "score"), [
    # unknown can be a word like any other, and the key is scored where the decision has no text
    (ExactMatch(unknown=False), "the unknown soldier", ["Unknown Soldier"], 1.0),
    (ExactMatch(), "the unknown soldier", ["soldier"], 0.0), (ExactMatch(), None, ["k"], 1.0),
    *((Answerability(), answer, references, right) for answer, references, right in (
        ("unknown", [], 1), ("Paris", [], 0), ("unknown", ["Paris"], 0), ("Rome", ["Paris"], 1),
        ("UNKNOWN to me", ["[UNKNOWN]"], 1))),
    *((Includes(), answer, references, score) for answer, references, score in (
        ("It was Mackenzie, I think", ["mackenzie"], 1.0), ("It was Ana", ["Mackenzie", "ana"], 1.0),
        ("It was Ana", ["Mackenzie"], 0.0), ("x", [], None), ("x", [""], 0.0)))])
def test_scores_of_a_text(metric, answer, references, score):
    assert metric.score(ended([["k"]], "k", answer=answer), references) == score


@needs_traces
@pytest.mark.parametrize(("agent", "exact", "f1"), [
    (0, 75.52, 78.35), (1, 78.92, 81.70), (2, 65.17, 67.40), (None, 77.00, 79.46)])
def test_scores_of_published_predictions(agent, exact, f1):
    """SQuAD 2.0 dev: three systems, and the majority of them; figures of the official script."""
    pairs = []
    for row in trajectories("squad_models"):
        answers = row["answers"][0]
        text = max(answers, key=Counter(answers).__getitem__) if agent is None else answers[agent]
        pairs.append((span(text, False), wanted(row["ref"], False)))
    assert round(100 * fmean(words in references for words, references in pairs), 2) == exact
    assert round(100 * fmean(max(overlap(words, r) for r in references) for words, references in pairs), 2) == f1


def trajectories(name):
    with open(TRACES / f"{name}.trajectories.jsonl", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@needs_traces
@pytest.mark.parametrize(("task", "format"), [("mmlu", "Choice"), ("gsm", "Number")])
def test_accuracy_of_each_round_of_recorded_debates(task, format):
    """The plurality's accuracy by round, as the authors' code and their logs have it, for every run."""
    answers = getattr(pytest.importorskip("madplug_answers"), format)()
    expected = {e["run"]: e["majority_acc_by_round"] for e in json.loads((TRACES / "expected.json").read_text("utf-8"))
                if e["set"] == f"som-{task}"}
    rows = trajectories(f"som_{task}")
    for run, accuracies in expected.items():
        debates = [(ended([[key and answers.canonical(key, Sample("", "")) for key in row] for row in zip(*r["answers"],
            strict=True)], None, answers=answers), r["ref"]) for r in rows if r["run"] == run]
        found = [round(fmean(Accuracy(of="plurality", round=k).score(debate, [reference])
                             for debate, reference in debates), 4) for k in range(1, len(accuracies) + 1)]
        assert found == accuracies, run


def test_figures_tell_answerable_questions_from_others():
    results = [DebateResult("c", 0, Sample(str(i), "?"), references, metrics={"f1": score, "exact_match": score == 1})
               for i, (references, score) in enumerate([((CHOIR,), 1 / 3), (("Southampton",), 1.0), (("unknown",), 1.0),
                                                        ((), 0.0)])]
    assert F1().summarise(results) == {
        "all": pytest.approx((1 / 3 + 1 + 1 + 0) / 4), "answerable": pytest.approx(2 / 3), "unanswerable": 0.5,
        "answerable_debates": 2, "unanswerable_debates": 2}
    assert ExactMatch().summarise(results)["answerable"] == 0.5
    assert F1().summarise(results[:2]) == {}
