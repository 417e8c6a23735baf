"""A file with mistakes: all of them are named in one pass, before anything is paid for."""

import json
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madplug import UserError
from madplug_files import Table
from madplug_files.cells import as_metadata


def lines(folder, *rows, name="rows.jsonl"):
    path = folder / name
    path.write_bytes(b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows))
    return path


def row(**more):
    return {"question": "2+2?", "reference": "4", **more}


def problems(path, **options):
    with pytest.raises(UserError) as caught:
        list(Table(path=path, **options).samples())
    return [str(p).removeprefix(f"{path}: ") for p in caught.value.problems]


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


def test_all_problems_of_a_file_are_named_at_once(tmp_path):
    assert problems(lines(tmp_path, *BAD)) == SAID


def test_a_bad_first_row_leaves_the_others_to_be_named_with_it(tmp_path):
    path = lines(tmp_path, *BAD[1:])
    assert [*Table(path=path).check(None)] == []
    assert len(problems(path)) == len(SAID) - 1  # no id is taken


def test_a_shuffled_or_stratified_pass_names_the_same_problems(tmp_path):
    path = lines(tmp_path, *BAD)
    assert len(problems(path, shuffle=1)) == len(SAID)
    found = problems(path, stratify="id", limit=9)
    assert "line 4: is not JSON: Expecting property name enclosed in double quotes (column 2)" in found
    assert len(found) == len(set(found))


def test_samples_come_as_they_are_read_and_the_problems_at_the_end(tmp_path):
    reading = Table(path=lines(tmp_path, row(id="a"), b"{", row(id="c"))).samples()
    assert [next(reading)[0].id, next(reading)[0].id] == ["a", "c"]
    with pytest.raises(UserError, match="line 2"):
        next(reading)


def test_after_twenty_problems_the_file_is_not_read_on(tmp_path):
    found = problems(lines(tmp_path, *[row(reference=None) for _ in range(1000)]))
    assert len(found) == 21
    assert found[19:] == ["line 20, column 'reference': is empty", "reading stopped after 20 problems"]


def test_a_row_beyond_the_limit_is_not_read(tmp_path):
    assert len(list(Table(path=lines(tmp_path, row(), b"{"), limit=1).samples())) == 1


def csv(folder, content):
    path = folder / "rows.csv"
    path.write_bytes(content)
    return path


def test_nul_and_bad_utf8_in_a_csv_file(tmp_path):
    path = csv(tmp_path, b'question,reference\na\0b,1\nb,\xff2\n"two\nli\xffnes",3\nd,4\n"open,5\n')
    assert problems(path) == [
        "line 2: contains a NUL character, which CSV does not allow; the file may be damaged",
        "line 3: is not UTF-8 (byte 3 of the line); save the file as UTF-8",
        "line 5: is not UTF-8 (byte 3 of the line); save the file as UTF-8",
        "line 7: is not CSV: unexpected end of data"]


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf16_is_named(tmp_path, name, encoding):
    path = tmp_path / name
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    path.write_bytes((mark + "question,reference").encode(encoding))
    assert problems(path) == ["is UTF-16; save the file as UTF-8"]


def test_rows_of_an_array_that_are_not_objects(tmp_path):
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([row(), 5, row(reference=""), "x"]))
    assert problems(path) == ["row 2: is a int; expected a JSON object", "row 3, column 'reference': is empty",
                              "row 4: is a str; expected a JSON object"]


def test_values_of_parquet_that_python_has_no_type_for(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table({"question": ["a", "b"], "reference": ["1", "2"],
                           "at": pyarrow.array([0, 2**62], pyarrow.timestamp("us"))})
    parquet.write_table(table, tmp_path / "rows.parquet")
    (found,) = problems(tmp_path / "rows.parquet", metadata=["at"])
    assert found.startswith("row 2, column 'at': cannot be read: ")


# Metadata

@pytest.mark.parametrize(("value", "kept"), [
    (date(2024, 5, 1), "2024-05-01"), (datetime(2024, 5, 1, 12, tzinfo=timezone.utc), "2024-05-01T12:00:00+00:00"),
    (time(12, 30), "12:30:00"), (timedelta(minutes=1), 60.0), (Decimal("1.50"), "1.50"), (float("nan"), None),
    (Decimal("NaN"), None), ({1: [Decimal(2)]}, {"1": ["2"]}), ((1, "\ud800"), [1, "?"])])
def test_metadata_becomes_what_json_can_say(value, kept):
    assert as_metadata(value) == kept
    json.dumps(as_metadata(value), allow_nan=False)


def test_metadata_that_json_cannot_say_is_named(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.Table.from_pylist([row(raw=b"\x00", size=float("inf"), day=date(2024, 5, 1), cost=Decimal("1.5"))])
    parquet.write_table(table, tmp_path / "rows.parquet")
    assert problems(tmp_path / "rows.parquet", metadata=["raw", "size"]) == [
        "row 1, column 'raw': is bytes; metadata may be text, numbers, dates, and lists and tables of them",
        "row 1, column 'size': is infinite, which JSON cannot express"]
    ((sample, _),) = Table(path=tmp_path / "rows.parquet", metadata=["day", "cost"]).samples()
    assert sample.metadata == {"day": "2024-05-01", "cost": "1.5"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["text", "label", "bytes", "path", "a"]), inner, max_size=3), max_leaves=6)


COLUMNS = ["id", "question", "choices", "reference", "context", "images", "group", "note"]


@given(st.lists(st.dictionaries(st.sampled_from(COLUMNS), json_values), min_size=1, max_size=5))
def test_any_rows_become_samples_or_named_problems(tmp_path_factory, rows):
    path = lines(tmp_path_factory.mktemp("rows"), row(note=1, images=None), *rows)
    try:
        found = list(Table(path=path, metadata=["note"], columns={"images": "images"}).samples())
    except UserError:
        return
    for sample, references in found:
        json.dumps([sample.id, sample.question, sample.metadata, references], allow_nan=False).encode()


@pytest.mark.parametrize("ending", ["csv", "json", "jsonl", "tsv"])
@given(content=st.binary(max_size=60))
def test_any_bytes_become_samples_or_named_problems(tmp_path_factory, ending, content):
    path = tmp_path_factory.mktemp("rows") / f"rows.{ending}"
    head = {"csv": b"question,reference\n", "tsv": b"question\treference\n"}.get(ending, b"")
    path.write_bytes(head + content)
    try:
        list(Table(path=path).samples())
        Table(path=path).size()
    except UserError:
        return


# The task and the identity

def test_an_instruction_is_on_every_sample(tmp_path):
    path = lines(tmp_path, row(), row())
    assert [s.metadata for s, _ in Table(path=path, instruction="Add.").samples()] == [{"instruction": "Add."}] * 2
    assert next(Table(path=path).samples())[0].metadata == {}


def test_nothing_depends_on_the_place_of_the_file(tmp_path):
    rows = [row(question=str(i), level=str(i % 2)) for i in range(50)]
    (tmp_path / "other").mkdir()
    one, two = lines(tmp_path, *rows), lines(tmp_path / "other", *rows, name="renamed.jsonl")
    for options in ({}, {"shuffle": 3}, {"limit": 10, "stratify": "level", "shuffle": 1}, {"limit": "90% +- 10%"}):
        first, second = (Table(path=path, **options) for path in (one, two))
        assert list(first.samples()) == list(second.samples())
        assert first.fingerprint() == second.fingerprint() == sha256(one.read_bytes()).hexdigest()
