"""`madplug decide` and `madplug rescore`, also as functions: studies decided and scored again as they grow."""

import asyncio
import json
import re
import sqlite3
from contextlib import closing

import pytest
from damage import HOSTILE
from tests_support import RUN, exported, paid, summary

import madplug
from madplug.store import open_study
from madplug_redecide import decide, rescore

LEDGER = ("--set", "models.m.ledger=calls.txt")
SWEEP = RUN + '\n[sweep]\n"debate.rounds" = [1, 2]\n'
AGAIN = ("decide", "runs/study", "--output", "runs/again")
MINE = """
import madplug_kit
from madplug import Completion, Decision, DecisionProtocol, Metric, Model, ModelError

class Judge(DecisionProtocol):
    '''Asks a model, up to three times.'''
    def calls(self, plan):
        return 3
    async def at_end(self, debate):
        return Decision((await debate.ask("who is right?", purpose="judge")).text)

class Peek(DecisionProtocol):
    '''Knows what is right.'''
    needs = frozenset({"references"})
    def at_end(self, debate):
        return Decision(debate.references[0])

class Graded(Metric):
    '''Asks a model.'''
    def calls(self, plan):
        return 1
    async def score(self, debate, references):
        return float((await debate.ask("right?", purpose="grade")).text != "")

class Half(Metric):
    '''Scores.'''
    def score(self, debate, references):
        return 0.5

class Flaky(Model):
    '''Has no answer to two of the questions.'''
    async def complete(self, request):
        if request.purpose != "grade" and any(f"question {n}?" in str(request.messages) for n in (2, 4)):
            raise ModelError("no answer")
        return Completion("A")

class Shown(madplug_kit.Style):
    '''Looks at examples before the study.'''
    def prepare(self, setup):
        assert len(list(setup.samples())) > 5
"""


@pytest.fixture
def write(program, tmp_path):
    """Writes a run file beside `mine.py`; its path."""
    def write(text=RUN):
        (tmp_path / "mine.py").write_text(MINE)
        (tmp_path / "study.toml").write_text(text)
        return tmp_path / "study.toml"

    return write


# Decided again

def test_decide_makes_a_study_like_any_other_without_a_call(program, write, tmp_path):
    program("run", write(), *LEDGER, status=0)
    calls = paid(tmp_path)
    with closing(sqlite3.connect(tmp_path / "runs/study/study.db")) as db, db:
        db.execute("UPDATE debates SET record = json_set(record, '$.seconds', 90.5)")
    done = program(*AGAIN, "--decision", '{use = "kit.last_round", keep = 2}', "--quiet", status=0)
    assert (done.stderr, paid(tmp_path)) == ("", calls)
    found = summary(tmp_path, "again")
    assert (found["study"], found["cells"][0]["done"], found["paid"]["calls"]) == ("again", 6, 0)
    assert found["cells"][0]["seconds"] > 6 * 90
    assert json.loads(program("status", "runs/again", "--json").stdout)["cost_usd"] == 0, "the calls have no price"


def test_a_study_that_used_the_calls_of_another_has_their_tokens_when_it_is_decided_again(program, write, tmp_path):
    program("run", write(), "--output", "runs/first", status=0)
    program("run", write(), "--set", 'reuse=["runs/first"]', status=0)
    program(*AGAIN, "--decision", "kit.last_round", status=0)
    program("decide", "runs/again", "--output", "runs/twice", status=0)
    tokens = [summary(tmp_path, name)["cells"][0]["tokens"] for name in ("first", "again", "twice")]
    assert tokens[1:] == tokens[:1] * 2


def test_debates_of_an_unfinished_study_are_no_finished_one_and_by_what_they_are_decided_is_told(program, write,
                                                                                                tmp_path):
    program("run", write(), "--set", "limits.calls=12", "--set", "models.m.max_in_flight=1", status=3)
    done = program(*AGAIN, "--decision", '{use = "kit.last_round", keep = 2}', status=0)
    assert "decided by kit.last_round(keep=2); cells have the names that they were run with" in done.stderr
    found = summary(tmp_path, "again")
    left = 6 - summary(tmp_path)["cells"][0]["done"]
    assert (found["status"], found["reason"]) == ("stopped", f"{left} debates in runs/study left to run")
    program("rescore", "runs/again", status=0)
    program("decide", "runs/again", "--decision", "kit.last_round", "--output", "runs/twice", status=0)
    assert [summary(tmp_path, name)["reason"] for name in ("again", "twice")] == [found["reason"]] * 2
    told = program("status", "runs/twice", status=0).stdout
    assert "decided again by kit.last_round(keep=2), then by kit.last_round from again; " in told
    assert f"; {left} debates in runs/study left to run" in told
    listed = program("status", "runs", status=0).stdout
    assert ("runs/twice (again decided again) " in listed, "runs/study  " in listed) == (True, True)


def test_decide_and_rescore_return_studies_also_where_a_loop_runs(program, write):
    program("run", write(), status=0)

    async def in_a_notebook():
        return decide("runs/study", "again", {"use": "kit.last_round", "keep": 2}, settings=["debate.rounds=1"],
                      cell=["*"])

    again = asyncio.run(in_a_notebook())
    assert (again.status, again.summary["study"], again.summary["paid"]["calls"]) == ("finished", "again", 0)
    assert {debate.rounds for debate in again.debates()} == {1}
    for metrics in ([], ["kit.right"]):
        assert rescore("again", *metrics).metrics.keys() == again.metrics.keys()
    with pytest.raises(madplug.UserError, match="is the study itself"):
        decide("runs/study", "runs/study")


class Firmest(madplug.DecisionProtocol):
    """Of a Python session, as is the next one."""

    def at_end(self, debate):
        return madplug.Decision("firm")


class Steady(madplug.Metric):
    def score(self, debate, references):
        return float(debate.decision.answer == "firm")


def test_classes_of_a_python_session_decide_and_score_recorded_debates(program, write):
    madplug.run(write(), settings={"metrics": ["Steady"]}, components=[Steady], output="first", quiet=True)
    decided = decide("first", "again", "Firmest", components=[Firmest, Steady])
    assert decided.metrics == {"main": {"python:Steady": 1.0}}
    assert rescore("again", ["Steady"], components=[Firmest, Steady]).metrics == decided.metrics
    with pytest.raises(madplug.UserError, match="components="):
        rescore("again")


@pytest.mark.parametrize(("words", "text"), [
    (("decide", "--set", "debate.decision.keeep=2", "--output", "again"), "did you mean 'keep'?"),
    (("decide", "--set", "debat.rounds=2", "--output", "again"), "did you mean 'debate'?"),
    (("decide", "--set", "dataset.limit=2", "--set", "seed=3", "--output", "again"),
     "--set dataset: recorded debates are decided again with their own questions and seed\nmadplug: --set seed: "),
    (("decide", "--set", "debate.agents=7", "--set", "debate.rounds=9", "--output", "again"),
     "--set debate.agents: recorded debates keep what was said, and by whom; another decision, fewer rounds, phases "
     "and metrics can be set\nmadplug: --set debate.rounds: recorded debates of cell 'main' end after 2 rounds"),
    (("decide", "--set", "models.m.latensy=3", "--output", "again"), "did you mean 'latency'?"),
    (("decide", "--set", "oracle=true", "--output", "again"), "madplug: oracle: belongs to the study that was run"),
    (("decide", "--decision", "./mine.py:Peek", "--output", "again"), "madplug: oracle: belongs to the study that was"),
    (("rescore", "--metric", '{use = "qa.graded", model = "judge"}'),
     "there is no [models.judge]; there is only m\nmadplug: a metric goes into the run file together with the model"),
    (("decide", "--cell", "other", "--output", "again"), "no cell has such a name"),
    (("decide", "--output", "runs/study"), "is the study itself"),
    (("rescore", "--metric", "kit.rihgt"), "did you mean 'kit.right'?"),
    (("rescore", "--metric", "3"), "--metric 3: expected a name"),
    (("rescore", "--metric", "{x = 1}"), 'add use = "..."')])
def test_mistakes_on_the_command_line_are_named(program, write, words, text):
    program("run", write())
    assert text in program(words[0], "runs/study", *words[1:], status=2).stderr


def test_a_decision_that_knows_what_is_right_decides_a_study_whose_run_file_allows_it(program, write, tmp_path):
    program("run", write(), *LEDGER, status=0)
    calls = paid(tmp_path)
    program("run", write(), "--set", "oracle=true", "--set", 'reuse=["runs/study"]', "--output", "runs/told", status=0)
    program("decide", "runs/told", "--decision", "./mine.py:Peek", "--output", "again", status=0)
    assert (paid(tmp_path), summary(tmp_path, "../again")["cells"][0]["metrics"]["kit.right"]["mean"]) == (calls, 1.0)


def test_what_is_not_decided_again_is_told_and_cells_decided_alike_are_not(program, write):
    cells = '[[cells]]\nname = "a b"\n[[cells]]\nname = "c"\ndebate.decision = "voting.plurality"\n'
    for words in (("--set", "repeats=2"), ()):
        program("run", write(RUN + cells), *words, status=0)
    said = program(*AGAIN, "--set", "debate.decision=kit.last_round", status=0).stderr
    assert said.startswith("12 debates on record left out: of cells, repeats or samples that the run file no")
    assert "same debate" not in said
    said = program(*AGAIN, "--set", "debate.decision.keep=2").stderr
    assert said.endswith("the other cells can be decided: '--cell=a b'\n")


def test_a_model_whose_name_begins_like_that_of_a_missing_one_is_kept(program, write, tmp_path):
    program("run", write(RUN + '\n[models.m-large]\nuse = "kit.hash"\n'), "--set", 'debate.models=["m", "m-large"]',
            status=0)
    path = tmp_path / "runs/study/study.toml"
    text = re.sub(r'(models\.m-large\]\s*use = )"kit.hash"', r'\1"gone.model"', path.read_text())
    assert "gone.model" in text
    path.write_text(text)
    program(*AGAIN, "--decision", "kit.last_round", "--yes", status=0)
    assert (tmp_path / "runs/again/study.toml").read_text().count("redecide.absent") == 1


def test_a_call_that_is_not_on_record_is_made_only_with_pay(program, write, tmp_path):
    program("run", write(), *LEDGER)
    calls = paid(tmp_path)
    words = (*AGAIN, "--decision", "./mine.py:Judge")
    done = program(*words, "--set", "models.m.price={prompt=0, completion=1e4}", status=2)
    assert ("calls that are not on record are needed, about 6 ($6.00 with replies of 100 tokens) if every reply can be "
            "read and agrees, at most 18, which is all that the decision,") in done.stderr
    assert done.stderr.rstrip().endswith("--pay")
    more = program(*AGAIN, "--decision", "kit.last_round", "--set", 'metrics=["./mine.py:Graded"]', status=2)
    assert "can ask in every debate (metrics that ask: mine.py:Graded)" in more.stderr
    assert (paid(tmp_path), (tmp_path / "runs/again").exists()) == (calls, False)
    assert "at most 18 model calls" in program(*words, "--pay", status=0).stderr
    assert paid(tmp_path) == calls + 6
    program("decide", "runs/again", "--output", "third", status=0)  # each call is on record now
    graded = ("decide", "runs/again", "--output", "fourth", "--set", 'metrics=["./mine.py:Graded"]')
    assert "needed, about 6 if every reply can be read and agrees, at most 24," in program(*graded, status=2).stderr


def test_a_decided_study_has_its_own_name_the_cells_asked_for_and_what_sets_them_apart(program, write, tmp_path):
    program("run", write(SWEEP))
    settings = [cell["settings"] for cell in summary(tmp_path)["cells"]]
    decide = (*AGAIN, "--decision", "kit.last_round", "--cell")
    program(*decide, "*=2", status=0)
    assert [cell["cell"] for cell in summary(tmp_path, "again")["cells"]] == ["rounds=2"]
    program(*decide, "*=1", status=0)
    found = summary(tmp_path, "again")
    assert (found["study"], [cell["cell"] for cell in found["cells"]]) == ("again", ["rounds=1", "rounds=2"])
    assert [cell["settings"] for cell in found["cells"]] == [
        {**own, "debate.decision": {"use": "kit.last_round"}} for own in settings]


def test_a_study_decided_again_tells_the_data_of_every_cell_where_one_has_its_own(program, write, tmp_path):
    program("run", write(RUN + '\n[[cells]]\nname = "a"\n[[cells]]\nname = "b"\ndataset.size = 2\n'))
    program(*AGAIN)
    assert [cell["settings"] for cell in summary(tmp_path, "again")["cells"]] == [
        {"dataset.size": 6}, {"dataset.size": 2}]


def test_a_study_whose_components_looked_at_its_data_can_be_decided_again_as_it_grows(program, write, tmp_path):
    for size, repeats, done in ((6, 1, 6), (7, 2, 14)):
        program("run", write(), "--set", 'debate.styles=["./mine.py:Shown"]', "--set", f"dataset.size={size}", "--set",
                f"repeats={repeats}", status=0)
        program(*AGAIN, "--decision", "kit.last_round", status=0)
        program("rescore", "runs/again", status=0)  # nor does a study without data need them to be scored
        assert summary(tmp_path, "again")["cells"][0]["done"] == done


@pytest.mark.parametrize("damage", ["wrong type", "deep", "metrics", b"\x89PNG" * 3000, b""])
def test_a_hostile_study_is_a_message(program, write, tmp_path, damage):
    program("run", write())
    database = tmp_path / "runs/study/study.db"
    if isinstance(damage, bytes):
        database.write_bytes(damage)
    else:
        with closing(sqlite3.connect(database)) as db, db:
            db.execute(HOSTILE[damage].replace("sample = 'q'", "sample = 'q0000'"))
    done = program(*AGAIN, "--decision", "kit.last_round", "--yes")
    assert done.exit_code in (1, 2)
    assert ("runs/study" if isinstance(damage, bytes) else "sample 'q0000' cannot be read") in done.stderr


# Scored again

def test_rescore_computes_the_metrics_again_in_place(program, write, tmp_path, monkeypatch):
    import madplug_kit

    def lasting():
        """What scoring leaves alone: the calls, the data as the run file has them, and what sets the cells apart."""
        manifest = json.loads((tmp_path / "runs/study/manifest.json").read_text())
        return paid(tmp_path), manifest["data"], [cell["settings"] for cell in summary(tmp_path)["cells"]]

    graded = ("--set", 'metrics=["kit.right", "kit.graded"]')
    program("run", write(SWEEP.replace("kit.numbered", "numbered")), *graded, *LEDGER, status=0)
    before = lasting()
    with monkeypatch.context() as patch:
        patch.setattr(madplug_kit.Right, "score", lambda self, debate, references: 0.25)
        program("rescore", "runs/study", status=0)
    assert lasting() == before
    assert {row["metrics"]["kit.right"] for row in exported(tmp_path / "runs/study")} == {0.25}


def test_rescore_with_another_metric_adds_it_to_the_study(program, write, tmp_path):
    program("run", write(), "--set", "limits.calls=13", "--set", "models.m.max_in_flight=1", *LEDGER)
    half = json.loads(program("status", "runs/study", "--json").stdout)
    done = program("rescore", "runs/study", "--metric", '{use = "kit.graded", rubric = "strictly"}', status=0)
    assert 'rubric = "strictly"} only if it stands under `metrics` in the run file' in done.stderr
    [cell] = (scored := summary(tmp_path))["cells"]
    assert (scored["status"], scored["ending"]) == ("stopped", "unfinished")
    assert f"stopped: {half['left']} debates left to run; everything so far is saved\n" in done.stderr
    assert list(cell["metrics"]) == ["kit.right", "kit.graded.grade", "kit.graded.length"]
    status = json.loads(program("status", "runs/study", "--json").stdout)
    assert (status["done"], status["left"]) == (half["done"], half["left"]), "no debate was run"
    with open_study(tmp_path / "runs/study") as study:
        asked = {call.key.hex() for call in study.call_figures() if call.purpose == "grade"}
        assert {key for result in study.results() for key in result.other_calls} == asked
    same = ("--set", 'metrics=["kit.right", {use="kit.graded", rubric="strictly"}]')
    before = paid(tmp_path)
    program("run", write(), *same, *LEDGER, status=0)
    assert paid(tmp_path) - before == 24 + 6 - half["calls"] - half["done"]


@pytest.mark.parametrize(("metric", "rubrics"), [
    ("kit.graded", ["", "b"]), ('{use = "kit.graded", rubric = "b"}', ["a", "b"]),
    ('{use = "kit.graded", rubric = "c"}', ["c", "b"])])
def test_rescore_keeps_the_other_metrics_of_the_same_name(program, write, tmp_path, metric, rubrics):
    two = 'metrics=[{use = "kit.graded", rubric = "a"}, "kit.right", {use = "kit.graded", rubric = "b"}]'
    program("run", write(), "--set", two)
    names = list(summary(tmp_path)["cells"][0]["metrics"])
    program("rescore", "runs/study", "--metric", metric, status=0)
    assert list(summary(tmp_path)["cells"][0]["metrics"]) == names
    text = (tmp_path / "runs/study/study.toml").read_text()
    assert re.findall(r'rubric = "(.*)"', text) == rubrics


def test_rescoring_keeps_failed_debates_and_scores_them_as_a_run_does(program, write, tmp_path):
    model = ("--set", "models.m.use=./mine.py:Flaky", "--set", "models.m.attempts=1", "--set", "repeats=2")
    for name, metrics in (("all", '["kit.right", "kit.graded"]'), ("one", '["kit.right"]')):
        program("run", write(), *model, "--set", f"metrics={metrics}", "--set", f"name={name}")
    [whole], [before] = summary(tmp_path, "all")["cells"], summary(tmp_path, "one")["cells"]
    program("rescore", "runs/one", "--metric", "kit.graded", status=1)  # as of a run in which debates failed
    [after] = summary(tmp_path, "one")["cells"]
    assert (before["done"], before["failed"], before["samples"]) == (8, 4, 6)
    assert all(after[part] == before[part] for part in ("done", "failed", "samples"))
    assert after["metrics"] == whole["metrics"]
    assert len(exported(tmp_path / "runs/one")) == 12


def test_what_is_dropped_stays_so_when_scored_again(program, write, tmp_path):
    program("run", write())
    program("run", write(), "--set", "dataset.size=4", status=0)
    before = exported(tmp_path / "runs/study")
    program("rescore", "runs/study", status=0)
    assert exported(tmp_path / "runs/study") == before
    program("run", write(), status=0)
    assert len(exported(tmp_path / "runs/study")) == 6


def test_local_files_are_relative_to_the_current_directory(program, write, tmp_path):
    program("run", write())
    program("rescore", "runs/study", "--metric", "./mine.py:Half", status=0)
    assert list(summary(tmp_path)["cells"][0]["metrics"]) == ["kit.right", "mine.py:Half"]
