"""The tables of docs/tables.md come out as it says, from its run file, its commands and its lines of pandas."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from scripted_replies import replies

from madplug.cli.program import main as program
from madplug_testing.endpoint import running_endpoint

DOCUMENT = Path(__file__).parents[2] / "docs" / "tables.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
CELLS = ["consensus.majority", "judge.synthesis", "voting.simple"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Follow the document; the tables it makes, in its order."""
    pytest.importorskip("pandas", reason="pandas is not installed")
    folder, made = tmp_path_factory.mktemp("tables"), []
    with pytest.MonkeyPatch.context() as patch, running_endpoint(replies) as endpoint:
        patch.chdir(folder)
        for language, text in BLOCKS:
            if language == "toml":
                Path("tables.toml").write_text(text.replace("http://127.0.0.1:8000/v1", endpoint.url))
            elif language == "csv":
                Path("questions.csv").write_text(text)
            elif language == "sh":
                done = CliRunner().invoke(program, shlex.split(text)[1:])
                assert done.exit_code == 0, done.output
            else:
                found = {}
                exec(text, found)
                made.append(found["table"])
    return made


def test_what_each_role_writes(tables):
    assert list(tables[0].index) == CELLS
    assert list(tables[0].columns) == ["judge", "participant", "vote"]
    assert (tables[0] > 0).to_numpy().tolist() == [[False, True, False], [True, True, False], [False, True, True]]


def test_accuracy_by_category_and_method(tables):
    assert list(tables[1].index) == ["algebra", "anatomy"]
    assert list(tables[1].columns) == CELLS
    assert ((tables[1] >= 0) & (tables[1] <= 1)).all(axis=None)


def test_changed_answers_by_round_and_place(tables):
    assert list(tables[2].index) == [2, 3]
    assert list(tables[2].columns) == [0, 1, 2]
    assert ((tables[2] >= 0) & (tables[2] <= 1)).all(axis=None)
