"""Plurality on the recorded debates beside the checkout gives every accuracy that was reported for them."""

import json
import re
from pathlib import Path

import pytest

from madplug import AnswerFormat
from madplug_replay import Personas, Recorded, Rounds, Trajectories
from madplug_testing import play

answers = pytest.importorskip("madplug_answers")
Plurality = pytest.importorskip("madplug_voting").Plurality

TRACES = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "traces"
EXPECTED = json.loads((TRACES / "expected.json").read_text()) if TRACES.is_dir() else []

pytestmark = pytest.mark.skipif(not EXPECTED, reason="the recorded debates are not beside this checkout")


class Spelling(AnswerFormat):
    """MATH answers as they were compared for this set: by spelling, with little evened out."""

    name = "spelling"

    def instruction(self, sample):
        return ""

    def canonical(self, text, sample):
        text = re.sub(r"\\[td]frac", r"\\frac", text.replace("\n", "").replace("\\!", ""))
        for gone in ("\\left", "\\right", "^{\\circ}", "^\\circ", "\\$", "\\%", "%"):
            text = text.replace(gone, "")
        text = re.sub(r"(^|[ {])\.", r"\g<1>0.", text.split("\\text{ ")[0])
        text = re.sub(r"^.{0,2}=", "", text) if text.count("=") == 1 else text
        text = re.sub(r"\\sqrt(\w)", r"\\sqrt{\1}", text).replace(" ", "")
        text = re.sub(r"\\frac(\w)\{?(\w+)\}?", r"\\frac{\1}{\2}", text.replace("\\\\", "\\"))
        text = "\\frac{1}{2}" if text == "0.5" else text
        return re.sub(r"^(-?\d+)/(-?\d+)$", r"\\frac{\1}{\2}", text) or None


def replay(file, form, rounds=1000, **select):
    """The results of all debates of a file, in its order."""
    dataset = Trajectories(path=TRACES / f"{file}.trajectories.jsonl", select=select)
    played = play(dataset=dataset, personas=[Personas()], turns=Rounds(), styles=[Recorded()], models=(), rounds=rounds,
                  decision=Plurality(tie="first"), answers=form)
    return list(played.store.results())


def is_right(result, form, key):
    keys = [form.canonical(r, result.sample) for r in result.references]
    if key is None or not keys:
        return key in (None, "unknown") and not keys
    return any(k is not None and form.same(key, k, result.sample) for k in keys)


def correct(results, form):
    return sum(is_right(r, form, r.decision.key) for r in results)


def by_agent(results, form):
    agents = range(len(results[0].agents))
    return [sum(is_right(r, form, m.key) for r in results for m in r.messages if m.agent == i) for i in agents]


def expected(name, **more):
    return next((e for e in EXPECTED if e["set"] == name and all(e.get(k) == v for k, v in more.items())), None)


@pytest.mark.parametrize("entry", [e for e in EXPECTED if e["set"].startswith("som-")],
                         ids=lambda e: f"{e['set']} {e['run']}")
def test_society_of_minds_after_every_round(entry):
    form = answers.Number() if entry["set"] == "som-gsm" else answers.Choice()
    file = entry["set"].replace("-", "_")
    found = [replay(file, form, k, run=entry["run"]) for k in range(1, entry["rounds"] + 1)]
    assert {len(results) for results in found} == {entry["n"]}
    assert [round(correct(r, form) / entry["n"], 4) for r in found] == entry["majority_acc_by_round"]
    assert {len(r.agents) for r in found[-1]} == {entry["agents"]}


@pytest.mark.parametrize("agents", [3, 4])
def test_dylan_on_mmlu(agents):
    entry = expected("dylan-mmlu", agents=agents)
    results = replay(f"dylan_mmlu_n{agents}", answers.Choice())
    assert len(results) == entry["n"]
    assert correct(results, answers.Choice()) == entry["majority_last_active_round_correct"]


def test_dylan_row_by_row():
    form = answers.Choice()
    untied = [r for r in replay("dylan_mmlu_n3", form) if not r.sample.metadata["tie"]]
    assert all(is_right(r, form, r.decision.key) == r.sample.metadata["reported_correct"] for r in untied)
    assert len(untied) == 1385 - expected("dylan-mmlu", agents=3)["ties"]
    results = replay("dylan_math500", Spelling())
    assert correct(results, Spelling()) == expected("dylan-math500")["majority_correct"]
    assert all(is_right(r, Spelling(), r.decision.key) == r.sample.metadata["majority_correct"] for r in results)


@pytest.mark.parametrize(("file", "form", "entry", "right", "each"), [
    ("models_mmlu_pro", answers.Choice(), expected("models-mmlu-pro", split="dev"), "majority_correct",
     lambda entry: list(entry["per_model_correct"].values())),
    ("openai_gsm8k", answers.Number(), expected("openai-gsm8k"), "maj",
     lambda entry: [entry[name] for name in entry["agents"]])])
def test_models_beside_each_other(file, form, entry, right, each):
    results = replay(file, form)
    assert (len(results), correct(results, form)) == (entry["n"], entry[right])
    assert by_agent(results, form) == each(entry)


def test_three_models_on_squad():
    form, entry = answers.Text(unknown=True), expected("squad-models", split="dev")
    results = replay("squad_models", form)
    percent = [round(100 * n / entry["n"], 2) for n in (*by_agent(results, form), correct(results, form))]
    assert percent == [entry["EM_F1"][name][0] for name in (*entry["agents"], "majority3")]


def test_eight_samples_on_math():
    """The reported 93 of 100 is of all rows; of those that are here, the record's own flags are the measure."""
    results = replay("qwen_math_maj8", answers.Math())
    chosen = [[m.key for m in r.messages].index(r.decision.key) for r in results]
    flags = [r.sample.metadata["reported_correct"][i] for r, i in zip(results, chosen, strict=True)]
    assert sum(flags) == correct(results, answers.Math()) == 49
