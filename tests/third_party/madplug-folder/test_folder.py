"""Text files become questions."""

from pathlib import Path

import pytest

from madplug import UserError
from madplug_folder import Texts
from madplug_testing.contracts import DatasetContract

QUESTIONS = Path(__file__).parent / "questions"


def test_files_are_read_in_order_and_the_last_line_is_the_reference():
    rows = [(sample.id, sample.question.splitlines()[-1], references) for sample, references in
            Texts(path=QUESTIONS).samples()]
    assert rows == [("cube", "How many sides has a cube?", ("6",)),
                    ("norway", "What is the capital of Norway?", ("Oslo",)),
                    ("riddle", "What has keys and opens no door?", ("a piano",))]


def test_a_file_without_an_answer_is_named(tmp_path):
    (tmp_path / "bad.txt").write_text("What?")
    with pytest.raises(UserError, match=r"bad\.txt: has no line that begins with 'Answer:'"):
        list(Texts(path=tmp_path).samples())


def test_other_files_are_other_data(tmp_path):
    (tmp_path / "a.txt").write_text("What?\nAnswer: that")
    before = Texts(path=tmp_path).fingerprint()
    (tmp_path / "a.txt").write_text("What?\nAnswer: this")
    assert Texts(path=tmp_path).fingerprint() != before


def test_an_empty_folder_is_a_problem_before_the_run(tmp_path):
    assert list(Texts(path=tmp_path).check(None)) == [f"{tmp_path} has no files '*.txt'"]


class TestTexts(DatasetContract):
    component = Texts
    options = {"path": QUESTIONS}
