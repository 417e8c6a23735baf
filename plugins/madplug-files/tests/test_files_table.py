"""Rows of a file as samples: every format, every way to write choices and references, and all mistakes at once."""

import csv
import json
import tracemalloc
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from madplug import UserError
from madplug_files import Table
from madplug_files.cells import as_metadata


def text(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def jsonl(folder: Path, *rows: object, name: str = "rows.jsonl") -> Path:
    lines = (row.encode() if isinstance(row, str) else row if isinstance(row, bytes) else json.dumps(row).encode()
             for row in rows)
    return text(folder, name, b"".join(line + b"\n" for line in lines))


def written(path: Path, rows: list[dict]) -> Path:
    """The rows in the format of the path's ending."""
    if path.suffix == ".jsonl":
        return jsonl(path.parent, *rows, name=path.name)
    if path.suffix == ".json":
        return text(path.parent, path.name, json.dumps(rows))
    if path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        return parquet(path, pyarrow.Table.from_pylist(rows))
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]), delimiter="\t" if path.suffix == ".tsv" else ",")
        table.writeheader()
        table.writerows(rows)
    return path


def parquet(path, table):
    from pyarrow.parquet import write_table

    write_table(table, path)
    return path


def read(path: Path, **options):
    return list(Table(path=path, **options).samples())


def problems(path, **options):
    with pytest.raises(UserError) as caught:
        read(path, **options)
    return [str(p).removeprefix(f"{path}: ") for p in caught.value.problems]


def refused(path: Path, **options) -> str:
    return "\n".join(problems(path, **options))


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
        ("[0, 1)", ("[0, 1)",)), ("[-2,7]", ("[-2,7]",)), ([], ()), ("[]", ()), ('["50", "fifty"]', ("50", "fifty")),
        ("[50", ("[50",)))),
    (row(reference='["50", "fifty"]'), {"reference_as": "verbatim"}, {}, ('["50", "fifty"]',)),
    *((row(context=written), {}, {"context": kept}, ("4",)) for written, kept in (
        (["one", "two"], ("one", "two")), ("[1] a note", ("[1] a note",)), (None, ()))),
    (row(solution="it is 4", source="a book"), {}, {"metadata": {}}, ("4",)),
    (row(source="a book"), {"metadata": ["source"], "instruction": "Add."},
     {"metadata": {"source": "a book", "instruction": "Add."}}, ("4",)),
    # A lone surrogate, which no store can keep.
    ('{"question": "\\ud800?", "reference": "4"}', {}, {"question": "??"}, ("4",)),
])
def test_a_row_becomes_a_sample_with_references(tmp_path, made, options, expected, references):
    (sample, found), = read(jsonl(tmp_path, made), **options)
    assert {name: getattr(sample, name) for name in expected} == expected
    assert found == references


@pytest.mark.parametrize("written", [
    ["x", "y", "z"], {"A": "x", "B": "y", "C": "z"}, '["x", "y", "z"]', "['x', 'y', 'z']",
    '{"A": "x", "B": "y", "C": "z"}', {"label": ["A", "B", "C"], "text": ["x", "y", "z"]}])
def test_choices_and_references_in_every_form(tmp_path, written):
    references = ["B", "b", "(B)", "y", "Y", 1, "1", ["B"], [1], "[1]"]
    found = read(jsonl(tmp_path, *(row(choices=written, reference=reference) for reference in references)))
    assert [(sample.choices, right) for sample, right in found] == [(("x", "y", "z"), ("B",))] * len(references)


def test_alternatives_are_refused_where_the_answer_is_a_set(tmp_path):
    path = jsonl(tmp_path, row(choices=["x", "y"], reference="A"), row(choices=["x", "y"], reference=["A", "B"]))
    cell = SimpleNamespace(answers=SimpleNamespace(full_name="answers.choice", options=SimpleNamespace(several=True)))
    (problem,) = Table(path=path).check(cell)
    assert "line 2, column 'reference': has 2 references, any of which would be right" in problem
    assert 'reference_as = "set"' in problem
    assert list(Table(path=path, reference_as="set").check(cell)) == []
    cell.answers.options.several = False
    assert list(Table(path=path).check(cell)) == []


def test_a_reference_with_two_readings_is_refused_and_both_are_named(tmp_path):
    path = jsonl(tmp_path, row(choices=["3", "2", "1", "0"], reference="3"))
    assert problems(path) == ["line 1, column 'reference': the reference '3' can be read as text A or index D; "
                              "say which with reference_as"]
    assert [read(path, reference_as=how)[0][1] for how in ("text", "index")] == [("A",), ("D",)]
    assert "can be read as" in refused(jsonl(tmp_path, row(choices=[2, 4, 5], reference=2)))


@pytest.mark.parametrize(("written", "is_refused"), [
    ([1, 2, 2], True), (["2", "1", "1"], True), ([[1], "[1, 2]", 1], True), ([1, 2, 0], False),
    (["1", "B", "2"], False)])
def test_numbers_of_which_none_is_zero_are_refused_since_they_may_count_from_1(tmp_path, written, is_refused):
    path = jsonl(tmp_path, *(row(choices=["x", "y", "z"], reference=one) for one in written))
    found = list(Table(path=path, limit=1).check(None))
    assert bool(found) == is_refused
    assert all("no row says 0; say reference_as = \"position\" (from 1) or \"index\"" in text for text in found)
    assert list(Table(path=path, reference_as="index").check(None)) == []


# Which rows

@pytest.mark.parametrize("ending", ["jsonl", "csv", "json", "parquet"])
def test_shuffling_loses_no_row_and_depends_on_the_seed(tmp_path, ending):
    rows = [row(id=f"r{i}", question=f"line\nbreak, \"quoted\" ä {i}?") for i in range(50)]
    path = written(tmp_path / f"rows.{ending}", rows)
    plain = read(path)
    orders = [[s.id for s, _ in read(path, shuffle=seed)] for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(read(path, shuffle=1), key=lambda r: int(r[0].id[1:])) == plain
    assert [s.id for s, _ in read(path, shuffle=1, limit=7)] == orders[0][:7]
    assert [Table(path=path, limit=limit).size() for limit in (2, 99, None)] == [2, 50, 50]


def test_a_row_without_an_id_is_named_by_its_number_and_nothing_depends_on_the_place_of_the_file(tmp_path):
    rows = ["", *(row(question=f"{i}?", level=str(i % 2)) for i in range(1, 50))]
    (tmp_path / "other").mkdir()
    one, two = jsonl(tmp_path, *rows), jsonl(tmp_path / "other", *rows, name="renamed.jsonl")
    for options in ({}, {"shuffle": 3}, {"limit": 10, "stratify": "level", "shuffle": 1}, {"limit": "90% +- 10%"}):
        first, second = (Table(path=path, **options) for path in (one, two))
        assert list(first.samples()) == list(second.samples())
        assert all(s.id == f"row-{s.question[:-1]}" for s, _ in first.samples())
        assert first.fingerprint() == second.fingerprint() == sha256(one.read_bytes()).hexdigest()


def test_training_rows_come_from_their_own_file_and_may_alone_have_metadata(tmp_path):
    path, train = jsonl(tmp_path, row()), jsonl(tmp_path, row(question="3+3?", why="so"), name="train.jsonl")
    table = Table(path=path, train=train, metadata=["why"])
    assert [(sample.question, sample.metadata) for split in (None, "train") for sample, _ in table.samples(split)] == [
        ("2+2?", {}), ("3+3?", {"why": "so"})]
    assert "has no column 'wy'" in "".join(Table(path=path, train=train, metadata=["wy"]).check(None))
    for split, said in (("train", "is not set"), ("test", "no split 'test'")):
        with pytest.raises(UserError, match=said):
            list(Table(path=path).samples(split))


def test_rows_are_read_as_they_are_consumed(tmp_path):
    path = jsonl(tmp_path, *[row(context="x" * 2000) for _ in range(10_000)])
    tracemalloc.start()
    assert sum(1 for _ in Table(path=path, shuffle=1).samples()) == 10_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size / 4


# Formats

cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), min_size=1).filter(str.strip)


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "tsv", "parquet"])
@given(questions=st.lists(cells, min_size=1, max_size=6))
def test_every_format_gives_the_same_text_back(tmp_path_factory, ending, questions):
    path = tmp_path_factory.mktemp("rows") / f"rows.{ending}"
    table = written(path, [row(id=f"r{i}", question=q) for i, q in enumerate(questions)])
    assert [s.question for s, _ in read(table)] == questions
    assert Table(path=table).size() == len(questions)


@pytest.mark.parametrize(("name", "content", "options"), [
    ("rows.csv", "\ufeffquestion,reference\n2+2?,4\n", {}), ("rows.jsonl", "\ufeff" + json.dumps(row()), {}),
    ("rows.csv", "question;reference\n2+2?;4\n", {"delimiter": ";"}),
    ("rows.csv", f"question,reference\n{'x' * 300_000},4\n", {})])
def test_byte_order_marks_other_delimiters_and_long_fields_are_read(tmp_path, name, content, options):
    (sample, references), = read(text(tmp_path, name, content), **options)
    assert sample.question in ("2+2?", "x" * 300_000)
    assert references == ("4",)


def test_parquet_keeps_nested_columns_numbers_images_and_maps(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    rows = [{"question": "2+2?", "answers": {"text": ["4"]}, "choices": ["3", "four"],
             "image": {"bytes": b"\x89PNG\r\n\x1a\n"}},
            {"question": "2+3?", "answers": {"text": []}, "choices": None, "image": None}]
    path = written(tmp_path / "rows.parquet", rows)
    (first, _), (second, references) = read(
        path, columns={"reference": "answers.text", "images": "image"}, reference_as="verbatim")
    assert first.choices == ("3", "four")
    assert first.images[0].startswith("data:image/png;base64,")
    assert (second.choices, second.images, references) == ((), (), ())
    missing = written(path, [{"question": "a", "reference": 18.0}, {"question": "b", "reference": float("nan")}])
    assert problems(missing) == ["row 2, column 'reference': is empty"]

    def with_map(choices, names=("question", "reference", "choices")):
        columns = [["Where?"], ["B"], pyarrow.array([choices], pyarrow.map_(pyarrow.string(), pyarrow.string()))]
        return parquet(path, pyarrow.Table.from_arrays([pyarrow.array(c) for c in columns], names=list(names)))

    assert [(s.choices, right) for s, right in read(with_map([("A", "Paris"), ("B", "Rome")]))] == [
        (("Paris", "Rome"), ("B",))]
    assert "row 1, column 'choices': cannot be read" in refused(with_map([("A", "Paris"), ("A", "Rome")]))
    assert "has two columns named 'question'" in refused(with_map([], ("question", "question", "reference")))


@pytest.mark.parametrize(("value", "kept"), [
    (date(2024, 5, 1), "2024-05-01"), (datetime(2024, 5, 1, 12, tzinfo=timezone.utc), "2024-05-01T12:00:00+00:00"),
    (time(12, 30), "12:30:00"), (timedelta(minutes=1), 60.0), (Decimal("1.50"), "1.50"), (float("nan"), None),
    (Decimal("NaN"), None), ({1: [Decimal(2)]}, {"1": ["2"]}), ((1, "\ud800"), [1, "?"])])
def test_metadata_becomes_what_json_can_say(value, kept):
    assert as_metadata(value) == kept
    json.dumps(as_metadata(value), allow_nan=False)


def test_metadata_that_json_cannot_say_is_named(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    path = written(tmp_path / "rows.parquet", [row(raw=b"\x00", size=float("inf"), cost=Decimal("1.5"))])
    assert problems(path, metadata=["raw", "size"]) == [
        "row 1, column 'raw': is bytes; metadata may be text, numbers, dates, and lists and tables of them",
        "row 1, column 'size': is infinite, which JSON cannot express"]
    assert read(path, metadata=["cost"])[0][0].metadata == {"cost": "1.5"}
    table = pyarrow.table({"question": ["a", "b"], "reference": ["1", "2"],
                           "at": pyarrow.array([0, 2**62], pyarrow.timestamp("us"))})
    (found,) = problems(parquet(path, table), metadata=["at"])
    assert found.startswith("row 2, column 'at': cannot be read: ")


# Mistakes: all of them are named in one pass, before anything is paid for

BAD = [row(id="a"), row(id="b", reference=None), row(id="a"), b"{not JSON", b"[1]", {"id": "e", "reference": "4"},
       row(id="f", choices=["x", "y"]), b'{"question": "\xff"}', row(id="h", choices="no list", question=" "),
       row(id="i")]
SAID = ["line 2, column 'reference': is empty", "line 3, column 'id': the id 'a' is taken by line 1; ids must differ",
        "line 4: is not JSON: Expecting property name enclosed in double quotes (column 2)",
        "line 5: is a list; expected one JSON object per line", "line 6, column 'question': is missing",
        "line 7, column 'reference': the reference '4' is not a choice of this row (A to B: x; y)",
        "line 8: is not UTF-8 (byte 15 of the line); save the file as UTF-8",
        "line 9, column 'choices': the choices are 'no list'; expected a list, a table of label to text, or either as "
        "JSON", "line 9, column 'question': is empty"]


def test_all_problems_of_a_file_are_named_at_once_in_whatever_order_it_is_read(tmp_path):
    path = jsonl(tmp_path, *BAD)
    assert problems(path) == SAID
    assert len(problems(path, shuffle=1)) == len(SAID)
    found = problems(path, stratify="id", limit=9)
    assert SAID[2] in found
    assert len(found) == len(set(found))
    first_is_bad = jsonl(tmp_path, *BAD[1:])
    assert [*Table(path=first_is_bad).check(None)] == []
    assert len(problems(first_is_bad)) == len(SAID) - 1, "no id is taken"


def test_samples_come_as_they_are_read_and_the_problems_at_the_end_or_after_twenty(tmp_path):
    path = jsonl(tmp_path, row(id="a"), b"{", row(id="c"))
    reading = Table(path=path).samples()
    assert [next(reading)[0].id, next(reading)[0].id] == ["a", "c"]
    with pytest.raises(UserError, match="line 2"):
        next(reading)
    assert len(read(path, limit=1)) == 1, "a row beyond the limit is not read"
    found = problems(jsonl(tmp_path, *[row(reference=None) for _ in range(1000)]))
    assert found[19:] == ["line 20, column 'reference': is empty", "reading stopped after 20 problems"]


@pytest.mark.parametrize(("line", "said"), [
    ("[" * 100_000, "line 2: is not JSON"),
    (row(choices=["p"]), "line 2, column 'choices': has 1 choices; expected 2 to 26"),
    (row(choices=["p", "q", "p"], reference="p"), "the reference 'p' is choice A and C of this row; write the letter"),
    (row(choices=["p", "q"], reference=2), 'reference_as = "position" counts from 1'),
    (row(choices={"label": ["a"], "text": ["p", "q"]}), "has 1 labels for 2"),
    (row(choices={"label": ["A", "a "], "text": ["p", "q"]}), "column 'choices': the label 'A' occurs twice"),
    (row(choices=["p", "q"], reference="A,B"), 'reference_as = "set", and several = true of the answers, where all'),
    (row(choices=["p", "q"], reference=1.5), "the reference 1.5 is not a choice of this row"),
    (row(choices=["p", "q"], reference=0.9), "the reference 0.9 is not a choice of this row"),
    (row(choices={"label": 5, "text": ["p", "q"]}), "the choices are"),
    (row(choices=["p", None]), "choice 2 is empty")])
def test_a_row_that_is_wrong_is_named_by_its_line(tmp_path, line, said):
    assert said in refused(jsonl(tmp_path, row(), line))


@pytest.mark.parametrize(("name", "content", "said"), [
    *((f"rows.{ending}", content, "has no rows") for ending in ("jsonl", "csv", "json") for content in ("", "\n\n")),
    *((f"rows.{ending}", (mark + "question,reference").encode(encoding), "is UTF-16; save the file as UTF-8")
      for ending in ("csv", "jsonl") for encoding, mark in (("utf-16", ""), ("utf-16-be", "\ufeff"))),
    # A record of CSV is named by the line it begins on, and a bad one hides no other.
    ("rows.csv", b'question,reference\na\0b,1\nb,\xff2\n"two\nli\xffnes",3\nd,4\n"open,5\n',
     "line 2: contains a NUL character, which CSV does not allow; the file may be damaged\n"
     "line 3: is not UTF-8 (byte 3 of the line); save the file as UTF-8\n"
     "line 5: is not UTF-8 (byte 3 of the line); save the file as UTF-8\n"
     "line 7: is not CSV: unexpected end of data"),
    ("rows.csv", 'question,reference\n"two\nlines",4\n\nx,5,6\n', "line 5: has 3 fields, and the header has 2"),
    ("rows.csv", '"question";"reference"\nx;4\n', "name what does with delimiter"),
    ("rows.csv", "a,a\n1,2\n", "names 'a' twice"),
    ("rows.csv", "question;reference\na, b, c?;4\n", 'has 3 fields, and the header has 1; with delimiter = ";"'),
    ("rows.csv", "question|reference\n2+2?|4\n", "question|reference'; with delimiter = \"|\" it has several"),
    ("rows.json", json.dumps([row(), 5, row(reference=""), "x"]),
     "row 2: is a int; expected a JSON object\nrow 3, column 'reference': is empty\n"
     "row 4: is a str; expected a JSON object"),
    ("rows.parquet", "question", "is not a Parquet file"),
    ("rows.xlsx", "", "has the ending '.xlsx'; expected .jsonl")])
def test_a_file_that_cannot_be_read_is_refused(tmp_path, name, content, said):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    assert said in refused(text(tmp_path, name, content))


@pytest.mark.parametrize(("name", "said"), [
    ("question.jsonl", "there is no such file; did you mean 'questions.jsonl'?"),
    ("sums.jsonl", "there is no such file"), ("x" * 300 + ".jsonl", "cannot be read: File name too long")])
def test_a_missing_file_names_its_neighbour_but_not_for_its_ending_alone(tmp_path, name, said):
    jsonl(tmp_path, row(), name="questions.jsonl")
    assert refused(tmp_path / name).endswith(said)


def test_a_wrong_column_is_named_with_the_nearest_and_all_there_are(tmp_path):
    path = jsonl(tmp_path, {"Qestion": "2+2?", "target": "4", "ID": 1, "Id": 2})
    said = refused(path, columns={"reference": "targt"}, metadata=["trget"])
    assert "has no column 'targt' for the reference; did you mean 'target'? (it has Qestion, target, ID, Id)" in said
    assert "has no column 'question' for the question; did you mean 'Qestion'?" in said
    assert 'columns.question = "..."' in said
    assert "has no column 'id' for the id; did you mean 'Id'?" in said, "two are called so"
    assert "has no column 'trget' for the metadata; did you mean 'target'?" in said
    with pytest.raises(ValidationError, match=r"no 'refernce' in a sample; did you mean 'reference'\?"):
        Table(path=path, columns={"refernce": "x"})


def test_an_empty_choice_among_several_columns_moves_no_letter(tmp_path):
    path = text(tmp_path, "rows.csv", "question,a,b,c,reference\nq,w,x,,A\nr,w,,y,B\n")
    (said,) = problems(path, columns={"choices": ["a", "b", "c"]})
    assert said.startswith("line 3, columns")
    assert "choice 2 is empty" in said


def test_checking_reads_only_the_beginning_and_tells_what_is_wrong(tmp_path):
    good = jsonl(tmp_path, *[row() for _ in range(200)], "not JSON")
    assert list(Table(path=good).check(None)) == []
    bad = jsonl(tmp_path, {"question": "x"}, name="bad.jsonl")
    assert "has no column 'reference'" in "".join(Table(path=good, train=bad).check(None))


def test_many_columns_take_time_in_proportion(tmp_path, in_proportion):
    def read_one(header):
        table = f"{header}question,reference\n{',' * header.count(',')}q,a\n"
        assert len(read(text(tmp_path, f"{len(header)}.csv", table))) == 1

    in_proportion(read_one, "".join(f"c{i:07}," for i in range(16_000)))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["text", "label", "bytes", "path", "a"]), inner, max_size=3), max_leaves=6)
COLUMNS = ["id", "question", "choices", "reference", "context", "images", "group", "note"]


@given(st.lists(st.dictionaries(st.sampled_from(COLUMNS), json_values), min_size=1, max_size=5))
def test_any_rows_become_samples_or_named_problems(tmp_path_factory, rows):
    path = jsonl(tmp_path_factory.mktemp("rows"), row(note=1, images=None), *rows)
    try:
        found = read(path, metadata=["note"], columns={"images": "images"})
    except UserError:
        return
    for sample, references in found:
        json.dumps([sample.id, sample.question, sample.metadata, references], allow_nan=False).encode()


@pytest.mark.parametrize("ending", ["csv", "json", "jsonl", "tsv"])
@given(content=st.binary(max_size=60))
def test_any_bytes_become_samples_or_named_problems(tmp_path_factory, ending, content):
    head = {"csv": b"question,reference\n", "tsv": b"question\treference\n"}.get(ending, b"")
    path = text(tmp_path_factory.mktemp("rows"), f"rows.{ending}", head + content)
    try:
        read(path)
        Table(path=path).size()
    except UserError:
        return
