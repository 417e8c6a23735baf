"""Recorded debates scored again, and studies decided again from the command line, as they grow."""

import json

import pytest
from tests_support import RUN, exported, paid, summary

from madplug.config import load
from madplug.store import open_study

LEDGER = ("--set", "models.m.ledger=calls.txt")
SWEEP = RUN + '\n[sweep]\n"debate.rounds" = [1, 2]\n'
GRADED = ("--set", 'metrics=["kit.right", "kit.graded"]')


@pytest.fixture
def write(tmp_path):
    """Writes a run file; its path."""
    def write(text=RUN):
        (tmp_path / "study.toml").write_text(text)
        return tmp_path / "study.toml"

    return write


FLAKY = """
from madplug import Completion, Model, ModelError

class Flaky(Model):
    \"\"\"Has no answer to two of the questions.\"\"\"

    name = "flaky"

    async def complete(self, request):
        if request.purpose != "grade" and any(f"question {n}?" in str(request.messages) for n in (2, 4)):
            raise ModelError("no answer")
        return Completion("A")
"""


def written_data(folder):
    """The data sets as the run file has them."""
    return json.loads((folder / "runs/study/manifest.json").read_text())["data"]


def test_rescore_computes_the_metrics_again_in_place(program, write, tmp_path, monkeypatch):
    import madplug_kit

    program("run", write(SWEEP.replace("kit.numbered", "numbered")), *GRADED, *LEDGER, status=0)
    before, data = paid(tmp_path), written_data(tmp_path)
    monkeypatch.setattr(madplug_kit.Right, "score", lambda self, debate, references: 0.25)
    program("rescore", "runs/study", status=0)
    assert (paid(tmp_path), written_data(tmp_path)) == (before, data)
    after = exported(tmp_path / "runs/study")
    assert {row["metrics"]["kit.right"] for row in after} == {0.25}
    monkeypatch.undo()


def test_rescore_with_another_metric_adds_it_to_the_study(program, write, tmp_path):
    program("run", write(), "--set", "limits.calls=13", "--set", "models.m.max_in_flight=1", *LEDGER)
    half = json.loads(program("status", "runs/study", "--json").stdout)
    done = program("rescore", "runs/study", "--metric", '{use = "kit.graded", rubric = "strictly"}', status=0)
    assert 'rubric = "strictly"} only if `metrics` in the run file has it' in done.stderr
    [cell] = (scored := summary(tmp_path))["cells"]
    assert (scored["status"], scored["ending"]) == ("stopped", "unfinished")
    assert f"stopped: {half['left']} debates left to run; everything so far is saved\n" in done.stderr
    assert list(cell["metrics"]) == ["kit.right", "kit.graded.grade", "kit.graded.length"]
    status = json.loads(program("status", "runs/study", "--json").stdout)
    assert (status["done"], status["left"]) == (half["done"], half["left"]), "no debate was run"
    with open_study(tmp_path / "runs/study") as study:
        asked = {call.key.hex() for call in study.call_figures() if call.purpose == "grade"}
        assert {key for result in study.results() for key in result.other_calls} == asked
    assert "strictly" in (tmp_path / "runs/study/study.toml").read_text()
    same = ("--set", 'metrics=["kit.right", {use="kit.graded", rubric="strictly"}]')
    before = paid(tmp_path)
    assert program("run", write(), *same, *LEDGER).exit_code == 0
    assert paid(tmp_path) - before == 24 + 6 - half["calls"] - half["done"]


@pytest.mark.parametrize(("metric", "rubrics"), [
    ("kit.graded", ["", "b"]), ('{use = "kit.graded", rubric = "b"}', ["a", "b"]),
    ('{use = "kit.graded", rubric = "c"}', ["c", "b"])])
def test_rescore_keeps_the_other_metrics_of_the_same_name(program, write, tmp_path, metric, rubrics):
    two = 'metrics=[{use = "kit.graded", rubric = "a"}, "kit.right", {use = "kit.graded", rubric = "b"}]'
    program("run", write(), "--set", two)
    names = list(summary(tmp_path)["cells"][0]["metrics"])
    assert program("rescore", "runs/study", "--metric", metric).exit_code == 0
    assert list(summary(tmp_path)["cells"][0]["metrics"]) == names
    cell, = load(tmp_path / "runs/study/study.toml").plan.cells
    assert [m.options.rubric for m in cell.metrics.values() if m.full_name == "kit.graded"] == rubrics


@pytest.mark.parametrize(("metric", "words"), [
    ("kit.rihgt", "did you mean 'kit.right'?"), ("3", "--metric 3: expected a name"), ("{x = 1}", 'add use = "..."')])
def test_a_wrong_metric_is_refused(program, write, metric, words):
    program("run", write())
    done = program("rescore", "runs/study", "--metric", metric, status=2)
    assert words in done.stderr


def test_a_decided_study_has_its_own_name_and_the_cells_asked_for(program, write, tmp_path):
    program("run", write(SWEEP))
    done = program("decide", "runs/study", "--decision", "kit.last_round", "--cell", "*=2", "--cell", "*=1",
                   "--output", "runs/again")
    assert done.exit_code == 0, done.stderr
    found = summary(tmp_path, "again")
    assert (found["study"], [cell["cell"] for cell in found["cells"]]) == ("again", ["rounds=1", "rounds=2"])


def test_a_cell_is_added_to_those_that_a_directory_has(program, write, tmp_path):
    program("run", write(SWEEP))
    for cell in ("rounds=2", "rounds=1"):
        program("decide", "runs/study", "--cell", cell, "--output", "runs/again", status=0)
    assert [cell["cell"] for cell in summary(tmp_path, "again")["cells"]] == ["rounds=1", "rounds=2"]


def test_a_decided_study_grows_with_the_one_it_was_decided_from(program, write, tmp_path):
    again = ("decide", "runs/study", "--decision", "kit.last_round", "--output", "runs/again")
    program("run", write(), "--set", "dataset.size=2")
    program(*again)
    program("run", write(), "--set", "repeats=2")
    program(*again, status=0)
    assert summary(tmp_path, "again")["cells"][0]["done"] == 12


def test_rescoring_and_deciding_again_keep_what_sets_the_cells_apart(program, write, tmp_path):
    program("run", write(SWEEP))
    settings = [cell["settings"] for cell in summary(tmp_path)["cells"]]
    assert program("rescore", "runs/study").exit_code == 0
    assert [cell["settings"] for cell in summary(tmp_path)["cells"]] == settings
    program("decide", "runs/study", "--decision", "kit.last_round", "--output", "runs/again")
    assert [cell["settings"] for cell in summary(tmp_path, "again")["cells"]] == [
        {**own, "debate.decision": {"use": "kit.last_round"}} for own in settings]


def test_a_study_decided_again_tells_the_data_of_every_cell_where_one_has_its_own(program, write, tmp_path):
    program("run", write(RUN + '\n[[cells]]\nname = "a"\n[[cells]]\nname = "b"\ndataset.size = 2\n'))
    program("decide", "runs/study", "--output", "runs/again")
    assert [cell["settings"] for cell in summary(tmp_path, "again")["cells"]] == [
        {"dataset.size": 6}, {"dataset.size": 2}]


def test_rescoring_keeps_failed_debates_and_scores_them_as_a_run_does(program, write, tmp_path):
    (tmp_path / "mine.py").write_text(FLAKY)
    model = ("--set", "models.m.use=./mine.py:Flaky", "--set", "models.m.attempts=1", "--set", "repeats=2")
    for name, metrics in (("all", '["kit.right", "kit.graded"]'), ("one", '["kit.right"]')):
        program("run", write(), *model, "--set", f"metrics={metrics}", "--set", f"name={name}")
    [whole], [before] = summary(tmp_path, "all")["cells"], summary(tmp_path, "one")["cells"]
    assert before["failed"] == 4
    done = program("rescore", "runs/one", "--metric", "kit.graded")
    assert done.exit_code == 1, "as of a run in which debates failed"
    [after] = summary(tmp_path, "one")["cells"]
    assert (after["done"], after["failed"], after["samples"]) == (before["done"], before["failed"], before["samples"])
    assert after["metrics"] == whole["metrics"]
    assert len(exported(tmp_path / "runs/one")) == before["done"] + 4


EXAMPLES = """
import madplug_kit

class Shown(madplug_kit.Style):
    \"\"\"Looks at examples before the study.\"\"\"

    name = "shown"

    def prepare(self, setup):
        assert len(list(setup.samples())) > 5
"""


def test_a_study_whose_components_looked_at_its_data_can_be_decided_again(program, write, tmp_path):
    (tmp_path / "mine.py").write_text(EXAMPLES)
    assert program("run", write(), "--set", 'debate.styles=["./mine.py:Shown"]').exit_code == 0
    program("decide", "runs/study", "--decision", "kit.last_round", "--output", "runs/again", status=0)
    assert summary(tmp_path, "again")["cells"][0]["done"] > 5


def test_what_is_dropped_stays_so_when_scored_again(program, write, tmp_path):
    program("run", write())
    assert program("run", write(), "--set", "dataset.size=4").exit_code == 0
    before = exported(tmp_path / "runs/study")
    assert program("rescore", "runs/study").exit_code == 0
    assert exported(tmp_path / "runs/study") == before
    assert program("run", write()).exit_code == 0
    assert len(exported(tmp_path / "runs/study")) == 6


MINE = """
from madplug import Metric
from madplug_testing import LastRound

class Firmest(LastRound):
    \'\'\'Decides.\'\'\'

class Half(Metric):
    \'\'\'Scores.\'\'\'
    def score(self, debate, references):
        return 0.5
"""


def test_local_files_are_relative_to_the_current_directory(program, write, tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    program("run", write())
    program("decide", "runs/study", "--decision", "./mine.py:Firmest", "--output", "runs/d", status=0)
    assert program("rescore", "runs/study", "--metric", "./mine.py:Half").exit_code == 0
    assert list(summary(tmp_path)["cells"][0]["metrics"]) == ["kit.right", "mine.py:Half"]
