"""Files that are not what they seem: nothing is taken silently for something else."""

import pytest

from madplug import UserError
from madplug_files import Table


@pytest.fixture
def parquet(tmp_path):
    """Reads a Parquet file with these columns; an answer is the letter B."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    def parquet(choices, names=("question", "reference", "choices")):
        maps = pyarrow.map_(pyarrow.string(), pyarrow.string())
        columns = [pyarrow.array(["Where?"]), pyarrow.array(["B"]), pyarrow.array([choices], maps)]
        write_table(pyarrow.Table.from_arrays(columns, names=list(names)), tmp_path / "rows.parquet")
        return list(Table(path=tmp_path / "rows.parquet").samples())

    return parquet


def test_a_map_of_parquet_is_a_table_of_label_to_text(parquet):
    [(sample, references)] = parquet([("A", "Paris"), ("B", "Rome")])
    assert (sample.choices, references) == (("Paris", "Rome"), ("B",))


def test_a_map_with_the_same_key_twice_is_told_with_its_row(parquet):
    with pytest.raises(UserError, match=r"rows\.parquet: row 1, column 'choices': cannot be read"):
        parquet([("A", "Paris"), ("A", "Rome")])


def test_two_columns_of_one_name_are_refused_in_parquet_too(parquet):
    with pytest.raises(UserError, match="has two columns named 'question'"):
        parquet([], ("question", "question", "reference"))


def test_many_columns_take_time_in_proportion(tmp_path, in_proportion):
    def read(header):
        path = tmp_path / f"{len(header)}.csv"
        path.write_text(f"{header}question,reference\n{',' * header.count(',')}q,a\n")
        assert len(list(Table(path=path).samples())) == 1

    in_proportion(read, "".join(f"c{i:07}," for i in range(16_000)))


def test_a_path_that_is_too_long_is_told(tmp_path):
    with pytest.raises(UserError, match="cannot be read: File name too long"):
        list(Table(path=tmp_path / ("x" * 300 + ".jsonl")).samples())
