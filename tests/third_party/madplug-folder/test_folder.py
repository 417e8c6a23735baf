"""Text files become questions."""

from pathlib import Path

import pytest

from madplug import UserError
from madplug_folder import Texts
from madplug_testing.contracts import DatasetContract

QUESTIONS = Path(__file__).parent / "questions"


def test_other_files_are_other_data_and_what_cannot_be_read_is_named(tmp_path):
    assert list(Texts(path=tmp_path).check(None)) == [f"{tmp_path} has no files '*.txt'"]
    prints = set()
    for answer in ("that", "this"):
        (tmp_path / "a.txt").write_text(f"What?\nAnswer: {answer}")
        prints.add(Texts(path=tmp_path).fingerprint())
    assert len(prints) == 2
    (tmp_path / "bad.txt").write_text("What?")
    with pytest.raises(UserError, match=r"bad\.txt: has no line that begins with 'Answer:'"):
        list(Texts(path=tmp_path).samples())


class TestTexts(DatasetContract):
    component = Texts
    options = {"path": QUESTIONS}
