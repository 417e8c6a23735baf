"""What tells that a file's samples are as they were, without reading its rows."""

import json

import pytest

from madplug.study.unchanged import stamp
from madplug_files import Table


@pytest.fixture
def table(tmp_path):
    """Makes the data set of a file, with these questions."""
    path = tmp_path / "rows.jsonl"

    def make(*questions, **options):
        path.write_text("".join(json.dumps({"question": q, "reference": "A", "picture": "x.png"}) + "\n"
                                for q in questions))
        return Table(path=path, **options)

    return make


def test_a_stamp_is_that_of_the_content_and_the_options(table):
    first = stamp(table("one", "two"))
    assert first
    assert stamp(table("one", "two")) == first
    assert len({first, stamp(table("one", "too")), stamp(table("one", "two", limit=1))}) == 3


def test_rows_with_images_are_always_read_since_these_are_in_other_files(table):
    assert stamp(table("one", columns={"images": "picture"})) == ""


def test_a_file_that_is_not_there_has_no_stamp(table):
    dataset = table("one")
    dataset.options.path.unlink()
    assert stamp(dataset) == ""
