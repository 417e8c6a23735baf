import base64
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


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))


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
    found, form = read(name, file), answer_format(name)
    assert len(found) == len([row for row in raw(file) if name != "etpc" or row["etpc_label"] == 1])
    assert len({sample.id for sample, _ in found}) == len(found)
    for sample, references in found:
        assert name == "squad_v2" or references
        assert all(form.canonical(reference, sample) is not None for reference in references), (sample.id, references)
        assert form.name != "choice" or sample.choices


@real
@pytest.mark.parametrize(("name", "file"), CASES)
def test_a_wrong_column_is_refused_with_its_name(name, file, tmp_path):
    recipe = PRESETS[name].recipe
    column = recipe.layouts[0]["question"]
    rows = raw(file)[:3]
    for layout in recipe.layouts:
        rows = [{(k + "x" if k == layout["question"] else k): v for k, v in row.items()} for row in rows]
    (said, *_) = PRESETS[name](path=local(tmp_path, *rows)).check(None)
    assert "has no column '" in said
    assert any(f"'{layout['question']}'" in said for layout in recipe.layouts), column
    assert "(it has " in said


@real
def test_a_stream_gives_the_same(tmp_path):
    assert read("mmlu", "mmlu") == read("mmlu", "mmlu", streaming=True)
    assert read("gpqa", "gpqa.standin", shuffle=1) == read("gpqa", "gpqa.standin", shuffle=1, streaming=True)


@real
@pytest.mark.parametrize(("name", "expected"), [
    ("mmlu", lambda row: ("ABCD"[row["answer"]], tuple(map(str.strip, row["choices"])), row["subject"])),
    ("gsm8k", lambda row: (row["answer"].split("####")[-1].strip().replace(",", ""), (), "")),
    ("strategyqa", lambda row: ("yes" if row["answer"] else "no", (), ""))])
def test_references_choices_and_groups_are_those_of_the_rows(name, expected):
    for (sample, (reference,)), row in zip(read(name, name), raw(name), strict=True):
        assert (reference, sample.choices, sample.group) == expected(row)


@real
def test_a_subset_by_column():
    found = read("mmlu", "mmlu", subset="world_religions")
    assert {sample.group for sample, _ in found} == {"world_religions"}
    assert found == [pair for pair in read("mmlu", "mmlu") if pair[0].group == "world_religions"]
    with pytest.raises(UserError, match="there is no 'world_religion'; did you mean 'world_religions'"):
        read("mmlu", "mmlu", subset="world_religion")


def test_an_unknown_subset_is_refused_before_anything_is_loaded():
    (said,) = PRESETS["gpqa"](subset="gpqa_diamnd").check(None)
    assert said.startswith("subset: there is no 'gpqa_diamnd'; did you mean 'gpqa_diamond'?")


def test_where_a_subset_is_on_the_hub():
    assert PRESETS["gpqa"](subset="gpqa_diamond").where(None).config == "gpqa_diamond"
    assert PRESETS["musr"](subset="team_allocation").where(None).split == "team_allocation"
    assert PRESETS["mmlu"](subset="astronomy").where(None).config == "all"


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


# SQuAD 2.0

@real
def test_squad_has_each_span_once_and_none_where_there_is_no_answer():
    found = read("squad_v2", "squad_v2")
    for (sample, references), row in zip(found, raw("squad_v2"), strict=True):
        assert references == tuple(dict.fromkeys(t.strip() for t in row["answers"]["text"]))
        assert sample.context == (row["context"],)
        assert row["id"] in (None, sample.id)
    assert any(not references for _, references in found)
    assert any(len(references) > 1 for _, references in found)


# Numbers

@pytest.mark.parametrize(("written", "meant"), [
    ("033", "33"), (" 7 ", "7"), ("$204$", "204"), ("336^\\circ", "336"), ("336^{\\circ}", "336"), ("000", "0")])
def test_aime_answers_are_whole_numbers(tmp_path, written, meant):
    assert one("aime_2025", tmp_path, {"id": "1", "problem": "?", "answer": written})[1] == (meant,)


@pytest.mark.parametrize(("name", "row", "reference", "made"), [
    # options of BBH without letters
    ("bbh", {"input": "So?\nOptions:\n- Yes\n- No", "target": "No"}, "B",
     {"question": "So?", "choices": ("Yes", "No")}),
    # several right answers are one set
    ("aicrypto", {"id": 1, "question": "?", "choice": ["w", "x", "y"], "answer": [2, 0], "label": "math"}, "AC", {}),
    # an id with half a character
    ("strategyqa", {"qid": "a\ud800", "question": "?", "answer": True}, "yes", {"id": "a?"}),
    # no id in the row
    ("gsm8k", {"question": "?", "answer": "#### 1"}, "1", {"id": "gsm8k-1"})])
def test_unusual_rows_are_samples(tmp_path, name, row, reference, made):
    sample, references = one(name, tmp_path, row)
    assert references == (reference,)
    assert {field: getattr(sample, field) for field in made} == made


def test_an_instruction_of_one_s_own(tmp_path):
    sample, _ = one("gsm8k", tmp_path, {"question": "?", "answer": "#### 18"}, instruction="Count.")
    assert (sample.question, sample.metadata) == ("?", {"instruction": "Count."})


# The others

@real
def test_bbh_options_become_choices_and_leave_the_question():
    for (sample, (reference,)), row in zip(
            read("bbh", "bbh_geometric_shapes"), raw("bbh_geometric_shapes"), strict=True):
        assert f"({reference})" == row["target"]
        assert "Options:" not in sample.question
        assert f"({reference}) {sample.choices[ord(reference) - 65]}" in row["input"]


@real
def test_simple_ethical_questions_do_not_repeat_their_choices():
    for (sample, (reference,)), row in zip(read("simple_ethical_questions", "bigbench_simple_ethical_questions"),
                                           raw("bigbench_simple_ethical_questions"), strict=True):
        assert [sample.choices["ABCD".index(reference)]] == [text.strip() for text in row["targets"]]
        assert not any(line.strip().startswith(("choice:", "Q:")) for line in sample.question.splitlines())


@real
def test_winogrande_twins_have_one_pair_of_options():
    found = read("winogrande", "winogrande")
    for (sample, references), row in zip(found, raw("winogrande"), strict=True):
        assert references == ("AB"[int(row["answer"]) - 1],)
        assert sample.question.endswith(row["sentence"])
    assert read("winogrande", "winogrande", instruction="")[0][0].question == raw("winogrande")[0]["sentence"]


@real
def test_etpc_names_its_kinds_of_paraphrase_once_and_in_order():
    rows = [row for row in raw("etpc.standin") if row["etpc_label"] == 1]
    for (sample, references), row in zip(read("etpc", "etpc.standin"), rows, strict=True):
        assert sample.context == ("Paraphrase types: " + ", ".join(sorted(set(row["paraphrase_types"]))),)
        assert references == (row["sentence2"],)


@real
def test_answers_stay_out_of_the_metadata():
    for name, file in CASES:
        instruction = PRESETS[name]().options.instruction
        assert all(sample.metadata == {"instruction": instruction} for sample, _ in read(name, file))
        assert all(sample.metadata == {} for sample, _ in read(name, file, instruction=""))


# Images

PNG = b"\x89PNG\r\n\x1a\n0"


def test_a_figure_of_math_vision_becomes_an_address(tmp_path):
    (tmp_path / "1.png").write_bytes(PNG)
    row = {"id": "1", "question": "<image1> which?", "options": ["1", "2"], "image": "1.png", "answer": "B",
           "subject": "algebra"}
    sample, references = one("math_vision", tmp_path, row)
    assert sample.images == ("data:image/png;base64," + base64.b64encode(PNG).decode(),)
    assert (sample.choices, references) == (("1", "2"), ("B",))
    sample, references = one("math_vision", tmp_path, {**row, "options": [], "answer": "\\frac{1}{2}"})
    assert (sample.choices, references) == ((), ("\\frac{1}{2}",))


def test_real_world_qa_takes_addresses_and_stored_bytes(tmp_path):
    import datasets
    Image = pytest.importorskip("PIL.Image")

    row = {"image": "https://x.org/1.jpg", "question": "what?", "answer": "Two"}
    assert one("real_world_qa", tmp_path, row)[0].images == ("https://x.org/1.jpg",)
    data = datasets.Dataset.from_dict(
        {"question": ["what?"], "answer": ["Two"], "image": [Image.new("RGB", (2, 2), "red")]},
        features=datasets.Features({"question": datasets.Value("string"), "answer": datasets.Value("string"),
                                    "image": datasets.Image()}))
    data.to_parquet(tmp_path / "rows.parquet")
    ((sample, references),) = PRESETS["real_world_qa"](path=tmp_path / "rows.parquet").samples()
    assert sample.images[0].startswith("data:image/png;base64,")
    assert references == ("Two",)


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


FIGURE = {"id": "1", "question": "?", "options": ["1", "2"], "image": "https://x.org/1.png", "answer": "B",
          "subject": "algebra"}
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

@pytest.mark.parametrize(("name", "bad", "said"), [
    ("gsm8k", {"question": "?", "answer": None}, "column 'answer': is empty"),
    ("gsm8k", {"question": "", "answer": "#### 1"}, "column 'question': is empty"),
    ("gsm8k", {"question": "?"}, "column 'answer': is missing"),
    ("strategyqa", {"qid": "1", "question": "?", "answer": "perhaps"},
     "column 'answer': the answer 'perhaps' is neither"),
    ("gpqa", {"Record ID": "1", "Question": "?", "Correct Answer": "x", "Incorrect Answer 1": None},
     "columns 'Correct Answer' and 'Incorrect Answer 1' and"),
    ("aicrypto", {"id": 1, "question": "?", "choice": ["w", "x"], "answer": [7], "label": "m"}, "column 'answer': the"),
    ("simple_ethical_questions", {"inputs": "?", "multiple_choice_targets": ["a", "b"], "multiple_choice_scores": "1"},
     "column 'multiple_choice_scores': the scores are '1'"),
    ("etpc", {"idx": 1, "sentence1": "a", "paraphrase_types": [5], "sentence2": "b", "etpc_label": 1},
     "column 'paraphrase_types': the kinds"),
    ("mmlu", {"question": "?", "choices": ["a", "b"], "answer": 5, "subject": "x"},
     "column 'answer': the reference 5 is not the index of a choice")])
def test_bad_rows_far_down_are_all_named(tmp_path, name, bad, said):
    good = {"gsm8k": {"question": "?", "answer": "#### 18"}, "gpqa": {**GPQA, "Record ID": "0"},
            "strategyqa": {"qid": "0", "question": "?", "answer": True},
            "aicrypto": {"id": 0, "question": "?", "choice": ["w", "x"], "answer": [0], "label": "m"},
            "simple_ethical_questions": {"inputs": "?", "multiple_choice_targets": ["a", "b"],
                                         "multiple_choice_scores": [1, 0]},
            "etpc": {"idx": 0, "sentence1": "a", "paraphrase_types": ["k"], "sentence2": "b", "etpc_label": 1},
            "mmlu": {"question": "?", "choices": ["a", "b"], "answer": 1, "subject": "x"}}[name]
    path = local(tmp_path, good, bad, good if name in ("gsm8k", "mmlu", "simple_ethical_questions") else bad)
    reading = PRESETS[name](path=path).samples()
    next(reading)
    with pytest.raises(UserError) as caught:
        list(reading)
    assert f"line 2, {said}" in str(caught.value)


@pytest.mark.parametrize(("name", "row", "said"), [
    ("real_world_qa", {"image": "/proc/self/environ", "question": "what?", "answer": "Two"},
     "line 1, column 'image': the image '/proc/self/environ' is not below"),
    ("real_world_qa", {"image": "https://x.org/1.jpg", "question": f"Which?\nA. x\nB. y\n{LETTER}", "answer": "C"},
     "line 1, column 'answer': the reference 'C' is not a choice of this row"),
    ("aime_2025", {"id": "1", "problem": "?", "answer": "x+1"},
     "line 1, column 'answer': the answer 'x+1' is not a whole number"),
    ("gsm8k", {"question": "?", "answer": "18"}, "line 1, column 'answer': the answer has no line '#### N'"),
    ("bbh", {"input": "So?", "target": "42"}, "has no block of options")])
def test_a_row_that_cannot_be_a_sample_is_named(tmp_path, name, row, said):
    with pytest.raises(UserError) as caught:
        one(name, tmp_path, row)
    assert said in str(caught.value)


def test_a_preset_s_rows_do_not_depend_on_the_place_of_the_file(tmp_path):
    row = {key: value for key, value in GPQA.items() if key != "Record ID"}
    (tmp_path / "elsewhere").mkdir()
    path, other = local(tmp_path, row), tmp_path / "elsewhere" / "renamed.jsonl"
    local(tmp_path / "elsewhere", row).rename(other)
    columns = {"id": "High-level domain"}
    found = [list(PRESETS["gpqa"](path=p, columns=columns).samples()) for p in (path, other)]
    assert found[0] == found[1]


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
