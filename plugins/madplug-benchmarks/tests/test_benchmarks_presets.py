"""Every preset reads its benchmark's rows as they are, and tells which cannot be."""

import json
from collections import Counter
from pathlib import Path

import pytest

from madplug import UserError
from madplug_benchmarks import PRESETS

ROOT = Path(__file__).resolve().parents[4] / "shared" / "data" / "benchmarks"
real = pytest.mark.skipif(not ROOT.is_dir(), reason="the benchmark rows are not beside this checkout")

CATALOGUE = """mmlu mmlu_pro gpqa strategyqa musr quality squad_v2 winogrande gsm8k gsm_ranges math500 aime_2024
aime_2025 bbh aicrypto etpc xsum simple_ethical_questions math_vision real_world_qa""".split()  # noqa: SIM905
FILES = {
    "mmlu": ["mmlu", "mmlu_logical_fallacies"], "mmlu_pro": ["mmlu_pro"], "gpqa": ["gpqa.standin"],
    "strategyqa": ["strategyqa"], "squad_v2": ["squad_v2"], "winogrande": ["winogrande"], "gsm8k": ["gsm8k"],
    "musr": ["musr_murder_mysteries", "musr_object_placements", "musr_team_allocation"],
    "gsm_ranges": ["gsm_ranges_style_level4", "gsm_ranges_style_level6"], "math500": ["math500"],
    "aime_2024": ["aime_2024_HuggingFaceH4.standin", "aime_2024_Maxwell-Jia.standin"],
    "aime_2025": ["aime_2025_math-ai.standin"], "aicrypto": ["aicrypto_mcq.standin"], "etpc": ["etpc.standin"],
    "bbh": ["bbh_geometric_shapes", "bbh_logical_deduction_three_objects", "bbh_logical_deduction_five_objects",
            "bbh_logical_deduction_seven_objects"],
    "xsum": ["xsum_EdinburghNLP.standin", "xsum_GEM.standin", "scitldr_abstract"],
    "simple_ethical_questions": ["bigbench_simple_ethical_questions"]}
CASES = [(name, file) for name, files in FILES.items() for file in files]


def raw(file: str) -> list[dict]:
    return [json.loads(line) for line in (ROOT / f"{file}.jsonl").read_text("utf-8").split("\n") if line]


def read(name: str, file: str, **options):
    return list(PRESETS[name](path=ROOT / f"{file}.jsonl", **options).samples())


def local(folder: Path, *rows: dict) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def one(name: str, folder: Path, row: dict, **options):
    (found,) = PRESETS[name](path=local(folder, row), **options).samples()
    return found


def test_every_name_of_the_catalogue_is_there():
    assert sorted(PRESETS) == sorted(CATALOGUE)


def answer_format(name: str):
    """The answer format of a preset."""
    import madplug_answers

    answers = PRESETS[name]().answers
    table = {"use": answers} if isinstance(answers, str) else dict(answers)
    formats = {f"answers.{f.name}": f for f in madplug_answers.madplug_register_answers()}
    use = table.pop("use")
    return formats[use](**{k: formats[v]() if v in formats else v for k, v in table.items()})


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_preset_says_where_it_is_from_how_it_is_scored_and_what_the_task_is(name):
    said = PRESETS[name].__doc__
    for word in ("On the hub:", "Answer format:", "Metric:", "Licence:"):
        assert word in " ".join(said.split())
    assert "\n" not in said.partition("\n\n")[0]
    assert PRESETS[name].source
    assert PRESETS[name]().options.instruction
    assert answer_format(name)


@real
@pytest.mark.parametrize(("name", "file"), CASES)
def test_the_rows_of_each_file_load_and_their_references_can_be_read(name, file):
    found, form, instruction = read(name, file), answer_format(name), PRESETS[name]().options.instruction
    assert len(found) == len([row for row in raw(file) if name != "etpc" or row["etpc_label"] == 1])
    assert len({sample.id for sample, _ in found}) == len(found)
    for sample, references in found:
        assert name == "squad_v2" or references
        assert all(form.canonical(reference, sample) is not None for reference in references), (sample.id, references)
        assert form.name != "choice" or sample.choices
        assert sample.metadata == {"instruction": instruction}, "answers stay out of it"


@real
@pytest.mark.parametrize(("name", "file", "expected"), [
    ("mmlu", "mmlu", lambda row, sample, references: (sample.choices, sample.group, references) == (
        tuple(map(str.strip, row["choices"])), row["subject"], ("ABCD"[row["answer"]],))),
    ("gsm8k", "gsm8k", lambda row, sample, references: references == (
        row["answer"].split("####")[-1].strip().replace(",", ""),)),
    ("strategyqa", "strategyqa", lambda row, sample, references: references == ("yes" if row["answer"] else "no",)),
    ("squad_v2", "squad_v2", lambda row, sample, references: row["id"] in (None, sample.id) and (
        sample.context == (row["context"],)
        and references == tuple(dict.fromkeys(map(str.strip, row["answers"]["text"]))))),
    ("bbh", "bbh_geometric_shapes", lambda row, sample, references: "Options:" not in sample.question and (
        f"{row['target']} {sample.choices[ord(references[0]) - 65]}" in row["input"])),
    ("simple_ethical_questions", "bigbench_simple_ethical_questions", lambda row, sample, references: (
        [sample.choices["ABCD".index(references[0])]] == [text.strip() for text in row["targets"]]
        and not any(line.strip().startswith(("choice:", "Q:")) for line in sample.question.splitlines()))),
    ("winogrande", "winogrande", lambda row, sample, references: (
        references == ("AB"[int(row["answer"]) - 1],) and sample.question == row["sentence"])),
    ("etpc", "etpc.standin", lambda row, sample, references: (sample.context, references) == (
        ("Paraphrase types: " + ", ".join(sorted(set(row["paraphrase_types"]))),), (row["sentence2"],)))])
def test_questions_choices_and_references_are_those_of_the_rows(name, file, expected):
    rows = [row for row in raw(file) if row.get("etpc_label", 1) == 1]
    for (sample, references), row in zip(read(name, file, instruction=""), rows, strict=True):
        assert expected(row, sample, references), (row, sample, references)
        assert sample.metadata == {}


@real
def test_a_subset_may_be_a_value_of_a_column():
    found = read("mmlu", "mmlu", subset="world_religions")
    assert {sample.group for sample, _ in found} == {"world_religions"}
    assert found == [pair for pair in read("mmlu", "mmlu") if pair[0].group == "world_religions"]
    with pytest.raises(UserError, match="there is no 'world_religion'; did you mean 'world_religions'"):
        read("mmlu", "mmlu", subset="world_religion")


def test_a_subset_may_be_a_configuration_or_a_split_and_is_checked_before_anything_is_loaded():
    assert PRESETS["gpqa"](subset="gpqa_diamond").where(None).config == "gpqa_diamond"
    assert PRESETS["musr"](subset="team_allocation").where(None).split == "team_allocation"
    assert PRESETS["mmlu"](subset="astronomy").where(None).config == "all"
    (said,) = PRESETS["gpqa"](subset="gpqa_diamnd").check(None)
    assert said.startswith("subset: there is no 'gpqa_diamnd'; did you mean 'gpqa_diamond'?")


# GPQA

GPQA = {"Record ID": "r1", "Question": "which?", "Correct Answer": "right\n", "Incorrect Answer 1": "wrong 1",
        "Incorrect Answer 2": "wrong 2", "Incorrect Answer 3": "wrong 3", "High-level domain": "Physics"}


def test_the_right_answer_of_gpqa_stands_where_the_reference_says(tmp_path):
    places = Counter()
    for seed in range(200):
        sample, (reference,) = one("gpqa", tmp_path, GPQA, choice_seed=seed)
        assert sample.choices["ABCD".index(reference)] == "right"
        assert sorted(sample.choices) == ["right", "wrong 1", "wrong 2", "wrong 3"]
        places[reference] += 1
    assert set(places) == set("ABCD")
    assert min(places.values()) > 25


def test_the_order_of_choices_depends_on_the_seed_and_the_row_alone(tmp_path):
    rows = [{**GPQA, "Record ID": f"r{i}"} for i in range(40)]
    path = local(tmp_path, *rows)
    order = {s.id: s.choices for s, _ in PRESETS["gpqa"](path=path).samples()}
    again = {s.id: s.choices for s, _ in PRESETS["gpqa"](path=path, shuffle=3, limit=20).samples()}
    other = {s.id: s.choices for s, _ in PRESETS["gpqa"](path=path, choice_seed=1).samples()}
    assert again.items() <= order.items()
    assert other != order
    assert len(set(order.values())) > 10


# Unusual rows

FIGURE = {"id": "1", "question": "<image1> which?", "options": ["1", "2"], "image": "https://x.org/1.png",
          "answer": "B", "subject": "algebra"}


@pytest.mark.parametrize(("name", "row", "reference", "made"), [
    *(("aime_2025", {"id": "1", "problem": "?", "answer": written}, meant, {}) for written, meant in (
        ("033", "33"), (" 7 ", "7"), ("$204$", "204"), ("336^\\circ", "336"), ("336^{\\circ}", "336"), ("000", "0"))),
    # options of BBH without letters
    ("bbh", {"input": "So?\nOptions:\n- Yes\n- No", "target": "No"}, "B",
     {"question": "So?", "choices": ("Yes", "No")}),
    # several right answers are one set
    ("aicrypto", {"id": 1, "question": "?", "choice": ["w", "x", "y"], "answer": [2, 0], "label": "math"}, "AC", {}),
    # an id with half a character
    ("strategyqa", {"qid": "a\ud800", "question": "?", "answer": True}, "yes", {"id": "a?"}),
    # no id in the row
    ("gsm8k", {"question": "?", "answer": "#### 1"}, "1", {"id": "gsm8k-1"}),
    ("math_vision", FIGURE, "B", {"choices": ("1", "2"), "images": ("https://x.org/1.png",)}),
    ("math_vision", {**FIGURE, "options": [], "answer": "\\frac{1}{2}"}, "\\frac{1}{2}", {"choices": ()})])
def test_unusual_rows_are_samples(tmp_path, name, row, reference, made):
    sample, references = one(name, tmp_path, row, instruction="Think.")
    assert references == (reference,)
    assert {field: getattr(sample, field) for field in made} == made
    assert sample.metadata == {"instruction": "Think."}


# RealWorldQA

LETTER = "Please answer directly with only the letter of the correct option and nothing else."
WORD = "Please answer directly with a single word or number."


@pytest.mark.parametrize(("question", "answer", "asked", "choices", "reference"), [
    (f"Which way does it face?\n\nA. Left\nB. Straight on\nC. Right\n{LETTER}", "C", "Which way does it face?",
     ("Left", "Straight on", "Right"), "C"),
    (f"Which is nearer?\n(A) 1\n(B) 2 {LETTER}", "B", "Which is nearer?", ("1", "2"), "B"),
    (f"How many cars are there?\n{WORD}", "3", "How many cars are there?", (), "3"),
    (f"Is there a crossing? {WORD}", "Yes", "Is there a crossing?", (), "Yes"),
    ("What does the sign say?", "Stop", "What does the sign say?", (), "Stop"),
    (f"Which plan is better, A. or B.?\nB. the second\n{WORD}", "B",
     "Which plan is better, A. or B.?\nB. the second", (), "B")])
def test_options_of_real_world_qa_become_choices(tmp_path, question, answer, asked, choices, reference):
    row = {"image": "https://x.org/1.jpg", "question": question, "answer": answer}
    sample, references = one("real_world_qa", tmp_path, row)
    assert (sample.question, sample.choices, references) == (asked, choices, (reference,))
    assert "directly" not in sample.question


KINDS = {
    "math_vision": [FIGURE, {**FIGURE, "id": "2", "options": [], "answer": "7"}],
    "real_world_qa": [{"image": "https://x.org/1.jpg", "question": question, "answer": answer} for question, answer in (
        (f"Which?\nA. x\nB. y\n{LETTER}", "A"), (f"How many?\n{WORD}", "3"), (f"Is it?\n{WORD}", "No"),
        (f"What colour?\n{WORD}", "Red"))]}


@pytest.mark.parametrize(("name", "subset", "answers", "form"), [
    ("math_vision", None, ["B", "7"], {"use": "answers.mixed", "other": "answers.math"}),
    ("math_vision", "choice", ["B"], "answers.choice"), ("math_vision", "open", ["7"], "answers.math"),
    ("real_world_qa", None, ["A", "3", "No", "Red"], "answers.mixed"),
    ("real_world_qa", "choice", ["A"], "answers.choice"), ("real_world_qa", "open", ["3", "No", "Red"], "answers.text"),
    ("real_world_qa", "verifiable", ["A", "3", "No"], "answers.mixed")])
def test_subsets_by_kind_of_question(tmp_path, name, subset, answers, form):
    data = PRESETS[name](path=local(tmp_path, *KINDS[name]), subset=subset)
    assert [references[0] for _, references in data.samples()] == answers
    assert (data.answers, data.size()) == (form, len(answers))


# All presets

@pytest.mark.parametrize(("name", "row", "said"), [
    ("gsm8k", {"question": "?", "answer": None}, "column 'answer': is empty"),
    ("gsm8k", {"question": "", "answer": "#### 1"}, "column 'question': is empty"),
    ("gsm8k", {"question": "?", "answer": "18"}, "column 'answer': the answer has no line '#### N'"),
    ("strategyqa", {"qid": "1", "question": "?", "answer": "perhaps"},
     "column 'answer': the answer 'perhaps' is neither"),
    ("gpqa", {**GPQA, **{f"Incorrect Answer {i}": None for i in (1, 2, 3)}},
     "columns 'Correct Answer' and 'Incorrect Answer 1' and"),
    ("aicrypto", {"id": 1, "question": "?", "choice": ["w", "x"], "answer": [7], "label": "m"}, "column 'answer': the"),
    ("simple_ethical_questions", {"inputs": "?", "multiple_choice_targets": ["a", "b"], "multiple_choice_scores": "1"},
     "column 'multiple_choice_scores': the scores are '1'"),
    ("etpc", {"idx": 1, "sentence1": "a", "paraphrase_types": [5], "sentence2": "b", "etpc_label": 1},
     "column 'paraphrase_types': the kinds"),
    ("mmlu", {"question": "?", "choices": ["a", "b"], "answer": 5, "subject": "x"},
     "column 'answer': the reference 5 is not the index of a choice"),
    ("real_world_qa", {"image": "/proc/self/environ", "question": "what?", "answer": "Two"},
     "column 'image': the image '/proc/self/environ' is not below"),
    ("real_world_qa", {"image": "https://x.org/1.jpg", "question": f"Which?\nA. x\nB. y\n{LETTER}", "answer": "C"},
     "column 'answer': the reference 'C' is not a choice of this row"),
    ("aime_2025", {"id": "1", "problem": "?", "answer": "x+1"}, "column 'answer': the answer 'x+1' is not a whole"),
    ("bbh", {"input": "So?", "target": "42"}, "column 'input': has no block of options")])
def test_a_row_that_cannot_be_a_sample_is_named(tmp_path, name, row, said):
    with pytest.raises(UserError) as caught:
        one(name, tmp_path, row)
    assert f"line 1, {said}" in str(caught.value)


def test_bad_rows_far_down_are_all_named_and_a_wrong_column_is_refused_at_once(tmp_path):
    good, bad = {"question": "?", "answer": "#### 18"}, {"question": "?", "answer": "18"}
    reading = PRESETS["gsm8k"](path=local(tmp_path, good, bad, good, bad)).samples()
    next(reading)
    with pytest.raises(UserError) as caught:
        list(reading)
    assert [problem.place.rpartition(": ")[2].partition(",")[0] for problem in caught.value.problems] == [
        "line 2", "line 4"]
    (said,) = PRESETS["xsum"](path=local(tmp_path, {"id": 1, "documents": "Long.", "summary": "Short."})).check(None)
    assert "has no column 'document' for the question; did you mean 'documents'? (it has id, " in said


GOOD = {"question_unique_id": "s1_1", "title": "The Lever", "source": "Gutenberg", "article": "A\xa0long\u2028 story.",
        "question": "Who pulls it?", "options": ["Ada", "Ben", "Cleo", "Dan"], "gold_label": 2, "writer_label": 2,
        "difficult": 1, "speed_validation": [{"speed_answer": a} for a in ("2", "1", "3")],
        "validation": [{"untimed_answer": "2", "untimed_best_distractor": d, "untimed_eval1_answerability": 1,
                        "untimed_eval2_context": 2} for d in (4, 2, 3)]}


def untimed(**changed):
    return {"validation": [GOOD["validation"][0] | changed, *GOOD["validation"][1:]]}


@pytest.mark.parametrize("changed", [
    {"source": "Slate"}, {"difficult": 0}, {"writer_label": 1}, {"title": " MONICA! "},
    {"title": "Judas Ram", "question": "Name their remarkable abilities EXCEPT one."},
    {"options": ["Ada", "Ben", "Ben", "Dan"]},
    {"options": ["Ada", "Ben", "None of the above", "Dan"]}, untimed(untimed_answer="1"),
    untimed(untimed_eval1_answerability=2), {"speed_validation": [{"speed_answer": "2"}]},
    {"validation": [GOOD["validation"][1]] * 3},
    {"validation": [row | {"untimed_eval2_context": 1} for row in GOOD["validation"]]}])
def test_quality_leaves_out_what_the_authors_of_the_debates_do(tmp_path, changed):
    rows = [GOOD, GOOD | changed | {"question_unique_id": "s1_2", "title": changed.get("title", "Another")}]
    (found,) = PRESETS["quality"](path=local(tmp_path, *rows)).samples()
    assert found[0].id == "s1_1"


def test_quality_asks_for_the_right_answer_or_the_best_wrong_one(tmp_path):
    rows = [GOOD | {"question_unique_id": f"s{i % 10}_{i}", "title": f"Story {i % 10}"} for i in range(20)]
    found = list(PRESETS["quality"](path=local(tmp_path, *rows)).samples())
    assert len(found) == 10
    assert {tuple(sorted(sample.choices)) for sample, _ in found} == {("Ben", "Cleo")}  # 3 and 4 are equals
    assert {sample.choices["AB".index(reference)] for sample, (reference,) in found} == {"Ben"}
    assert {reference for _, (reference,) in found} == {"A", "B"}
    assert {sample.context for sample, _ in found} == {("A long story.",)}
    assert len(list(PRESETS["quality"](path=local(tmp_path, *rows), per_group=5).samples())) == 20
