"""Files that are not what they seem: nothing is taken silently for something else."""

from __future__ import annotations

import pytest

from madplug import UserError
from madplug_files import Table


def test_a_map_of_parquet_is_a_table_of_label_to_text(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    choices = pyarrow.array([[("A", "Paris"), ("B", "Rome")]], pyarrow.map_(pyarrow.string(), pyarrow.string()))
    parquet.write_table(pyarrow.table({"question": ["Where?"], "reference": ["B"], "choices": choices}),
                        tmp_path / "rows.parquet")
    [(sample, references)] = Table(path=tmp_path / "rows.parquet").samples()
    assert (sample.choices, references) == (("Paris", "Rome"), ("B",))


def test_a_map_with_the_same_key_twice_is_told_with_its_row(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    choices = pyarrow.array([[("A", "Paris"), ("A", "Rome")]], pyarrow.map_(pyarrow.string(), pyarrow.string()))
    parquet.write_table(pyarrow.table({"question": ["Where?"], "reference": ["B"], "choices": choices}),
                        tmp_path / "rows.parquet")
    with pytest.raises(UserError, match=r"rows\.parquet: row 1, column 'choices': cannot be read"):
        list(Table(path=tmp_path / "rows.parquet").samples())


def test_two_columns_of_one_name_are_refused_in_parquet_too(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = [pyarrow.array([text]) for text in ("one", "two", "A")]
    parquet.write_table(pyarrow.Table.from_arrays(columns, names=["question", "question", "reference"]),
                        tmp_path / "rows.parquet")
    with pytest.raises(UserError, match="has two columns named 'question'"):
        list(Table(path=tmp_path / "rows.parquet").samples())


def test_many_columns_take_time_in_proportion(tmp_path, in_proportion):
    def read(header):
        path = tmp_path / f"{len(header)}.csv"
        path.write_text(f"{header}question,reference\n{',' * header.count(',')}q,a\n")
        assert len(list(Table(path=path).samples())) == 1

    in_proportion(read, "".join(f"c{i:07}," for i in range(16_000)))


def test_a_path_that_is_too_long_is_told(tmp_path):
    with pytest.raises(UserError, match="cannot be read: File name too long"):
        list(Table(path=tmp_path / ("x" * 300 + ".jsonl")).samples())
