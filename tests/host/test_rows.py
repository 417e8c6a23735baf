"""Data that changes under a study: rows are read before anything is paid for, and samples count by id and content."""

import pytest
from tests_support import RUN, exported, paid

LINES = '''
from madplug import Dataset, Options, RunPath, Sample, hookimpl
from pydantic import Field
class LinesOptions(Options):
    """Options."""
    path: RunPath = Field(description="a question a line, after its id and a tab")
class Lines(Dataset):
    """A question a line."""
    name = "lines"
    answers = "kit.stripped"
    Options = LinesOptions
    def samples(self, split=None):
        for line in self.options.path.read_text().splitlines():
            id, question = line.split("\\t")
            yield Sample(id, question), ("A",)
@hookimpl
def madplug_register_datasets():
    return [Lines]
'''


@pytest.fixture
def lines(madplug_plugin, write, tmp_path):
    """A study of questions in a file, and a way to write the file."""
    madplug_plugin("lines", LINES)
    write(RUN.replace('use = "kit.numbered"\nsize = 6', 'use = "lines.lines"\npath = "q.txt"'))

    def put(**questions):
        (tmp_path / "q.txt").write_text("".join(f"{id}\t{text}\n" for id, text in questions.items()))

    return put


RUN_IT = ("run", "study.toml", "--set", "models.m.ledger=calls.txt")


def test_a_bad_row_far_down_costs_no_call_and_mending_it_resumes_the_study(program, lines, tmp_path):
    good = {f"q{i}": f"question {i}?" for i in range(300)}
    lines(**good)
    with (tmp_path / "q.txt").open("a") as file:
        file.write("q7\tagain?\n")
    done = program(*RUN_IT)
    assert done.returncode == 1
    assert "two samples have the id 'q7'" in done.stderr
    assert paid(tmp_path) == 0
    lines(**good)
    assert program(*RUN_IT).returncode == 0
    assert paid(tmp_path) == 300 * 4


def test_a_changed_sample_is_run_again_and_the_others_are_not(program, lines, tmp_path):
    lines(a="one?", b="two?")
    assert program(*RUN_IT).returncode == 0
    lines(a="one?", b="another?", c="three?")
    done = program(*RUN_IT)
    assert done.returncode == 0, done.stderr
    assert "1 sample" in done.stderr
    assert paid(tmp_path) == 4 * 4
    assert [(r["sample"]["id"], r["sample"]["question"]) for r in exported(tmp_path / "runs/study")] == [
        ("a", "one?"), ("b", "another?"), ("c", "three?")]


def test_debates_that_failed_before_are_run_last(program, lines, tmp_path):
    lines(a="1?", b="2?", c="3?")
    narrow = ("--set", "models.m.max_in_flight=1")
    first = program(*RUN_IT, *narrow, "--set", "models.m.fault=refuse", "--set", "limits.calls=100")
    assert first.returncode == 1
    lines(a="1?", b="2?", c="3?", d="4?")
    done = program(*RUN_IT, *narrow, "--observe", "kit.starts")
    assert done.returncode == 0, done.stderr
    assert [line.split()[1] for line in done.stderr.splitlines() if line.startswith("started ")] == ["d", "a", "b", "c"]
