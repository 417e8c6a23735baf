import csv
import json
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from madplug import UserError
from madplug_files import Table

ROOT = Path(__file__).parents[4] / "shared" / "data" / "benchmarks"
real = pytest.mark.skipif(not ROOT.is_dir(), reason="the benchmark rows are not beside this checkout")


def jsonl(folder: Path, *rows: object, name: str = "rows.jsonl") -> Path:
    path = folder / name
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), "utf-8")
    return path


def text(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(path: Path, **options):
    return list(Table(path=path, **options).samples())


def refused(path: Path, **options) -> str:
    with pytest.raises(UserError) as caught:
        read(path, **options)
    return str(caught.value)


def row(**more):
    return {"question": "2+2?", "reference": "4", **more}


# What a row becomes

CHOICES = {"option1": "Ann", "option2": "Bob", "reference": "2"}


@pytest.mark.parametrize(("made", "options", "expected", "references"), [
    (row(id="q7", context="some facts", group="sums"), {},
     {"id": "q7", "question": "2+2?", "context": ("some facts",), "group": "sums"}, ("4",)),
    ({"qid": 3, "data": {"text": "why?"}, "answers": {"text": ["so", "thus"]}},
     {"columns": {"id": "qid", "question": "data.text", "reference": "answers.text"}}, {"id": "3", "question": "why?"},
     ("so", "thus")),
    ({"data": {"text": "why?"}, "answers": {"text": ["so", "thus"]}},
     {"columns": {"question": "data.text", "reference": "answers.text.1"}}, {}, ("thus",)),
    ({"ID": "q7", "Question": "2+2?", "Choices": ["3", "4"], "reference": "4", "Reference": "no"}, {},
     {"id": "q7", "question": "2+2?", "choices": ("3", "4")}, ("B",)),
    # A column whose name has a dot comes first.
    ({"q.text": "why?", "reference": "so"}, {"columns": {"question": "q.text"}}, {"question": "why?"}, ("so",)),
    (row(**CHOICES), {"columns": {"choices": ["option1", "option2"]}, "reference_as": "position"},
     {"choices": ("Ann", "Bob")}, ("B",)),
    # Labels of the file are meant before an index, and a whole number beside choices as text is one.
    (row(choices={"label": ["1", "2", "3"], "text": ["x", "y", "z"]}, reference="2"), {}, {}, ("B",)),
    (row(choices=["3", "2", "1", "0"], reference=2), {}, {}, ("C",)),
    (row(choices=["x", "y", "z"], reference=[0, 2]), {}, {}, ("A", "C")),
    (row(choices=["x", "y"], reference="y"), {"reference_as": "verbatim"}, {}, ("y",)),
    *((row(choices=["blue", "green", "red"], reference=written), {"reference_as": "set"}, {}, right)
      for written, right in [*((several, ("AC",)) for several in (
          ["C", "A"], [2, 0], ["A", "red"], "AC", "C, A", "(A); (C)", "['A', 'C']")),
          ("B", ("B",)), ("green", ("B",)), ([], ())]),
    *((row(reference=value), {}, {}, kept) for value, kept in (
        (18, ("18",)), (18.0, ("18",)), (-3.5, ("-3.5",)), (True, ("true",)), (" so ", ("so",)),
        ("[0, 1)", ("[0, 1)",)), ("[-2,7]", ("[-2,7]",)), ([], ()))),
    *((row(context=written), {}, {"context": kept}, ("4",)) for written, kept in (
        (["one", "two"], ("one", "two")), ("[1] a note", ("[1] a note",)), (None, ()))),
    (row(solution="it is 4", source="a book"), {}, {"metadata": {}}, ("4",)),
    (row(solution="it is 4", source="a book"), {"metadata": ["source"]}, {"metadata": {"source": "a book"}}, ("4",)),
])
def test_a_row_becomes_a_sample_with_references(tmp_path, made, options, expected, references):
    (sample, found), = read(jsonl(tmp_path, made), **options)
    assert {name: getattr(sample, name) for name in expected} == expected
    assert found == references


def test_without_an_id_a_row_is_named_by_its_number_wherever_the_file_is(tmp_path):
    path = jsonl(tmp_path, row(), "", row())
    before = read(path)
    assert [s.id for s, _ in before] == ["row-1", "row-2"]
    (tmp_path / "elsewhere").mkdir()
    assert read(path.rename(tmp_path / "elsewhere" / "renamed.jsonl")) == before


@pytest.mark.parametrize("written", [
    ["x", "y", "z"], {"A": "x", "B": "y", "C": "z"}, '["x", "y", "z"]', "['x', 'y', 'z']",
    '{"A": "x", "B": "y", "C": "z"}',
    {"label": ["A", "B", "C"], "text": ["x", "y", "z"]}])
@pytest.mark.parametrize("reference", ["B", "b", "(B)", "y", "Y", 1, "1", ["B"], [1], "[1]"])
def test_choices_and_references_in_every_form(tmp_path, written, reference):
    (sample, references), = read(jsonl(tmp_path, row(choices=written, reference=reference)))
    assert (sample.choices, references) == (("x", "y", "z"), ("B",))


def test_alternatives_are_refused_where_the_answer_is_a_set(tmp_path):
    path = jsonl(tmp_path, row(choices=["x", "y"], reference="A"), row(choices=["x", "y"], reference=["A", "B"]))
    cell = SimpleNamespace(answers=SimpleNamespace(full_name="answers.choice", options=SimpleNamespace(several=True)))
    (problem,) = Table(path=path).check(cell)
    assert "line 2, column 'reference': has 2 references, any of which would be right" in problem
    assert 'reference_as = "set"' in problem
    assert list(Table(path=path, reference_as="set").check(cell)) == []
    cell.answers.options.several = False
    assert list(Table(path=path).check(cell)) == []


def test_an_empty_choice_among_several_columns_moves_no_letter(tmp_path):
    path = text(tmp_path, "rows.csv", "question,a,b,c,reference\nq,w,x,,A\nr,w,,y,B\n")
    said = refused(path, columns={"choices": ["a", "b", "c"]})
    assert "line 3" in said
    assert "choice 2 is empty" in said
    assert "line 2" not in said


def test_a_reference_with_two_readings_is_refused_and_both_are_named(tmp_path):
    path = jsonl(tmp_path, row(choices=["3", "2", "1", "0"], reference="3"))
    assert "line 1, column 'reference': the reference '3' can be read as text A or index D" in refused(path)
    assert read(path, reference_as="text")[0][1] == ("A",)
    assert read(path, reference_as="index")[0][1] == ("D",)
    assert "can be read as" in refused(jsonl(tmp_path, row(choices=[2, 4, 5], reference=2)))


# Which rows

def test_limit_and_size(tmp_path):
    path = jsonl(tmp_path, *[row(id=i) for i in range(5)])
    assert [s.id for s, _ in read(path, limit=2)] == ["0", "1"]
    assert [Table(path=path, limit=limit).size() for limit in (2, 9, None)] == [2, 5, 5]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "json", "parquet"])
def test_shuffling_loses_no_row_and_depends_on_the_seed(tmp_path, ending):
    rows = [row(id=f"r{i}", question=f"line\nbreak, \"quoted\" ä {i}?") for i in range(50)]
    path = written(tmp_path / f"rows.{ending}", rows)
    plain = read(path)
    orders = [[s.id for s, _ in read(path, shuffle=seed)] for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(read(path, shuffle=1), key=lambda r: int(r[0].id[1:])) == plain
    assert [s.id for s, _ in read(path, shuffle=1, limit=7)] == orders[0][:7]


def test_a_shuffled_row_keeps_the_name_it_has_in_the_file(tmp_path):
    path = jsonl(tmp_path, *[row(question=f"{i}?") for i in range(1, 20)])
    assert all(s.id == f"row-{s.question[:-1]}" for s, _ in read(path, shuffle=3))


def test_metadata_may_be_in_the_training_rows_only(tmp_path):
    path, train = jsonl(tmp_path, row()), jsonl(tmp_path, row(why="so"), name="train.jsonl")
    table = Table(path=path, train=train, metadata=["why"])
    assert [sample.metadata for split in (None, "train") for sample, _ in table.samples(split)] == [{}, {"why": "so"}]
    assert "has no column 'wy'" in "".join(Table(path=path, train=train, metadata=["wy"]).check(None))


def test_training_rows_come_from_their_own_file(tmp_path):
    path, train = jsonl(tmp_path, row()), jsonl(tmp_path, row(question="3+3?"), name="train.jsonl")
    assert [s.question for s, _ in Table(path=path, train=train).samples("train")] == ["3+3?"]
    with pytest.raises(UserError, match="is not set"):
        list(Table(path=path).samples("train"))
    with pytest.raises(UserError, match="no split 'test'"):
        list(Table(path=path).samples("test"))


def test_rows_are_read_as_they_are_consumed(tmp_path):
    path = jsonl(tmp_path, *[row(context="x" * 2000) for _ in range(10_000)])
    tracemalloc.start()
    assert sum(1 for _ in Table(path=path, shuffle=1).samples()) == 10_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size / 4


# Formats

def written(path: Path, rows: list[dict]) -> Path:
    if path.suffix == ".jsonl":
        return jsonl(path.parent, *rows, name=path.name)
    if path.suffix == ".json":
        path.write_text(json.dumps(rows), "utf-8")
    elif path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, list(rows[0]), delimiter="\t" if path.suffix == ".tsv" else ",")
            table.writeheader()
            table.writerows(rows)
    return path


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), min_size=1).filter(str.strip)


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "tsv", "parquet"])
@given(questions=st.lists(cells, min_size=1, max_size=6))
def test_every_format_gives_the_same_text_back(tmp_path_factory, ending, questions):
    path = tmp_path_factory.mktemp("rows") / f"rows.{ending}"
    table = written(path, [row(id=f"r{i}", question=q) for i, q in enumerate(questions)])
    assert [s.question for s, _ in read(table)] == questions
    assert Table(path=table).size() == len(questions)


def test_parquet_keeps_nested_columns_numbers_and_images(tmp_path):
    rows = [{"question": "2+2?", "answers": {"text": ["4"]}, "choices": ["3", "four"],
             "image": {"bytes": b"\x89PNG\r\n\x1a\n"}},
            {"question": "2+3?", "answers": {"text": []}, "choices": None, "image": None}]
    path = written(tmp_path / "rows.parquet", rows)
    (first, _), (second, references) = read(
        path, columns={"reference": "answers.text", "images": "image"}, reference_as="verbatim")
    assert first.choices == ("3", "four")
    assert first.images[0].startswith("data:image/png;base64,")
    assert (second.choices, second.images, references) == ((), (), ())


def test_missing_numbers_of_a_parquet_column_are_missing(tmp_path):
    path = written(tmp_path / "rows.parquet", [{"question": "a", "reference": 18.0},
                                               {"question": "b", "reference": float("nan")}])
    assert "row 2, column 'reference': is empty" in refused(path)


def test_a_long_field_is_read(tmp_path):
    path = text(tmp_path, "rows.csv", f"question,reference\n{'x' * 300_000},4\n")
    assert len(read(path)[0][0].question) == 300_000


# Mistakes

@pytest.mark.parametrize(("name", "hint"), [
    ("question.jsonl", "; did you mean 'questions.jsonl'?"), ("sums.jsonl", "")])
def test_a_missing_file_names_its_neighbour_but_not_for_its_ending_alone(tmp_path, name, hint):
    jsonl(tmp_path, row(), name="questions.jsonl")
    assert refused(tmp_path / name).endswith(f"there is no such file{hint}")


def test_a_wrong_column_is_named_with_the_nearest_and_all_there_are(tmp_path):
    path = jsonl(tmp_path, {"Qestion": "2+2?", "target": "4", "ID": 1, "Id": 2})
    said = refused(path, columns={"reference": "targt"})
    assert "has no column 'targt' for the reference; did you mean 'target'? (it has Qestion, target, ID, Id)" in said
    assert "has no column 'question' for the question; did you mean 'Qestion'?" in said
    assert 'columns.question = "..."' in said
    assert "has no column 'id' for the id; did you mean 'Id'?" in said, "two are called so"
    assert "has no column 'sourc' for the metadata; did you mean 'source'?" in refused(
        jsonl(tmp_path, row(source="x")), metadata=["sourc"])


@pytest.mark.parametrize(("written", "is_refused"), [
    ([1, 2, 2], True), (["2", "1", "1"], True), ([[1], "[1, 2]", 1], True), ([1, 2, 0], False),
    (["1", "B", "2"], False)])
def test_numbers_of_which_none_is_zero_are_refused_since_they_may_count_from_1(tmp_path, written, is_refused):
    path = jsonl(tmp_path, *(row(choices=["x", "y", "z"], reference=one) for one in written))
    problems = list(Table(path=path, limit=1).check(None))
    assert bool(problems) == is_refused
    assert all("no row says 0; say reference_as = \"position\" (from 1) or \"index\"" in text for text in problems)
    assert list(Table(path=path, reference_as="index").check(None)) == []


def test_an_unknown_part_of_a_sample_is_refused(tmp_path):
    with pytest.raises(ValidationError, match=r"no 'refernce' in a sample; did you mean 'reference'\?"):
        Table(path=tmp_path, columns={"refernce": "x"})


@pytest.mark.parametrize(("line", "said"), [
    ('{"question": "x", ', "line 2: is not JSON: "), ("[1, 2]", "line 2: is a list; expected one JSON object per line"),
    ("[" * 100_000, "line 2: is not JSON"), ('{"question": "x"}', "line 2, column 'reference': is missing"),
    ('{"question": " ", "reference": "4"}', "line 2, column 'question': is empty"),
    ('{"question": "x", "reference": null}', "line 2, column 'reference': is empty"),
    ('{"question": "x", "reference": "y", "choices": "p or q"}', "line 2, column 'choices': the choices are 'p or q'"),
    ('{"question": "x", "reference": "y", "choices": ["p"]}',
     "line 2, column 'choices': has 1 choices; expected 2 to 26"),
    ('{"question": "x", "reference": "y", "choices": ["p", "q"]}',
     "line 2, column 'reference': the reference 'y' is not a choice of this row (A to B: p; q)"),
    ('{"question": "x", "reference": "p", "choices": ["p", "q", "p"]}',
     "the reference 'p' is choice A and C of this row; write the letter of one"),
    ('{"question": "x", "reference": 2, "choices": ["p", "q"]}', 'reference_as = "position" counts from 1'),
    ('{"question": "x", "reference": "y", "choices": {"label": ["a"], "text": ["p", "q"]}}', "has 1 labels for 2"),
    ('{"question": "x", "reference": "A", "choices": {"label": ["A", "a "], "text": ["p", "q"]}}',
     "column 'choices': the label 'A' occurs twice"),
    ('{"question": "x", "reference": 1.5, "choices": ["p", "q"]}', "the reference 1.5 is not a choice of this row"),
    ('{"question": "x", "reference": 0.9, "choices": ["p", "q"]}', "the reference 0.9 is not a choice of this row"),
    ('{"question": "x", "reference": "y", "choices": {"label": 5, "text": ["p", "q"]}}', "the choices are"),
    ('{"question": "x", "reference": "y", "choices": ["p", null]}', "choice 2 is empty"),
])
def test_a_row_that_is_wrong_is_named_by_its_line(tmp_path, line, said):
    assert said in refused(jsonl(tmp_path, row(), line))


@pytest.mark.parametrize(("name", "content", "said"), [
    ("rows.jsonl", json.dumps(row()).encode() + b'\n{"question": "\xff"}\n',
     "line 2: is not UTF-8 (byte 15 of the line)"),
    ("rows.jsonl", "".join(json.dumps(row(id=id)) + "\n" for id in "aba"),
     "line 3, column 'id': the id 'a' is taken by line 1; ids must differ"),
    *((f"rows.{ending}", content, "has no rows") for ending in ("jsonl", "csv", "json") for content in ("", "\n\n")),
    # A record of CSV is named by the line it begins on.
    ("rows.csv", 'question,reference\n"two\nlines",4\n\nx,5,6\n', "line 5: has 3 fields, and the header has 2"),
    ("rows.csv", 'question,reference\nx,4\n"never closed,5\n', "line 3: is not CSV"),
    ("rows.csv", '"question";"reference"\nx;4\n', "name what does with delimiter"),
    ("rows.csv", "a,a\n1,2\n", "names 'a' twice"),
    ("rows.csv", "question|reference\n2+2?|4\n", "question|reference'; with delimiter = \"|\" it has several"),
    ("rows.parquet", "question", "is not a Parquet file"),
    ("rows.xlsx", "", "has the ending '.xlsx'; expected .jsonl")])
def test_a_file_that_cannot_be_read_is_refused(tmp_path, name, content, said):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    assert said in refused(text(tmp_path, name, content))


@pytest.mark.parametrize(("name", "content", "options"), [
    ("rows.csv", "\ufeffquestion,reference\n2+2?,4\n", {}), ("rows.jsonl", "\ufeff" + json.dumps(row()), {}),
    ("rows.csv", "question;reference\n2+2?;4\n", {"delimiter": ";"})])
def test_byte_order_marks_and_other_delimiters_are_read(tmp_path, name, content, options):
    assert read(text(tmp_path, name, content), **options)[0][1] == ("4",)


def test_checking_reads_only_the_beginning_and_tells_what_is_wrong(tmp_path):
    good = jsonl(tmp_path, *[row() for _ in range(200)], "not JSON")
    assert list(Table(path=good).check(None)) == []
    bad = jsonl(tmp_path, {"question": "x"}, name="bad.jsonl")
    assert "has no column 'reference'" in "".join(Table(path=good, train=bad).check(None))


def test_a_lone_surrogate_does_not_reach_the_store(tmp_path):
    sample = read(jsonl(tmp_path, '{"question": "\\ud800?", "reference": "4"}'))[0][0]
    assert sample.question.encode("utf-8")


# Real rows

@real
@pytest.mark.parametrize(("name", "options", "rows", "first"), [
    ("bbh_logical_deduction_three_objects", {"columns": {"question": "input", "reference": "target"}}, 50, "(A)"),
    ("gsm8k", {"columns": {"reference": "answer"}}, 150, None),
    ("mmlu", {"columns": {"reference": "answer", "group": "subject"}}, 114, "C"),
    ("mmlu_pro", {"columns": {"id": "question_id", "choices": "options", "reference": "answer"}}, 112, "H"),
    ("math500", {"columns": {"id": "unique_id", "question": "problem", "reference": "answer"}}, 120, "284"),
    ("strategyqa", {"columns": {"id": "qid", "reference": "answer", "context": "facts"}}, 120, "false"),
    ("squad_v2", {"columns": {"reference": "answers.text"}}, 120, None),
    ("winogrande", {"columns": {"question": "sentence", "choices": ["option1", "option2"], "reference": "answer"},
                    "reference_as": "position"}, 120, "B"),
    ("musr_object_placements", {"columns": {"context": "narrative", "reference": "answer_index"}}, 12, None),
    ("scitldr_abstract", {"columns": {"id": "paper_id", "question": "source", "reference": "target"}}, 60, None),
    ("gpqa.standin", {"columns": {"id": "Record ID", "question": "Question", "reference": "Correct Answer",
                                  "choices": ["Incorrect Answer 1", "Correct Answer", "Incorrect Answer 2"]}}, 6, "B"),
    ("aicrypto_mcq.standin", {"columns": {"choices": "choice", "reference": "answer"}}, 6, "A"),
])
def test_real_rows_load(name, options, rows, first):
    loaded = read(ROOT / f"{name}.jsonl", **options)
    assert len(loaded) == rows == len({s.id for s, _ in loaded})
    assert first is None or loaded[0][1][0] == first
    shuffled = read(ROOT / f"{name}.jsonl", shuffle=1, **options)
    assert sorted(map(repr, shuffled)) == sorted(map(repr, loaded))
