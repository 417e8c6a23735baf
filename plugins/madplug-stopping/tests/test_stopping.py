"""Studies that end when they are decided, and how often the method is wrong."""

import json
import random
from contextlib import closing

import pytest

import madplug
from madplug import DebateFinished, DebateId, DebateResult, DebateStarted, Decision, Run, Sample
from madplug.store import open_recorder
from madplug_stopping.decided import Decided
from madplug_stopping.sequences import bounds
from madplug_testing import wait_for
from madplug_testing.endpoint import completion, running_endpoint

ALPHA, RUNS, QUESTIONS = 0.1, 200, 200
SAME = {"share": ((0, 1), (0.3, 0.7), 0.7), "difference": ((0, 0.5, 1), (0.15, 0.7, 0.15), 0.5)}


@pytest.mark.parametrize("kind", SAME)
def test_after_any_question_the_mean_is_outside_in_fewer_runs_than_is_said(kind):
    values, weights, mean = SAME[kind]
    drawn = (random.Random(run).choices(values, weights, k=QUESTIONS) for run in range(RUNS))
    # A bound is never withdrawn, so that the last interval tells whether any was wrong.
    wrong = sum(not low <= mean <= high for low, high in (bounds(values, ALPHA) for values in drawn))
    assert 0 < wrong <= ALPHA * RUNS


def test_a_difference_is_found_and_the_interval_narrows():
    values = random.Random(0).choices((0, 0.5, 1), (0.1, 0.6, 0.3), k=1000)
    intervals = [bounds(values[:n], ALPHA) for n in (50, 200, 1000)]
    assert intervals[-1][0] > 0.5
    assert [low for low, _ in intervals] == sorted(low for low, _ in intervals)
    assert intervals[-1][1] - intervals[-1][0] < 0.1


RUN = """
name = "s"
dataset = {{use = "files.table", path = "q.jsonl", answers = "answers.choice", shuffle = 1}}
metrics = ["qa.accuracy", "dynamics.output_tokens"]
debate = {{paradigm = "baselines.io"}}
observers = [{{use = "stopping.decided", {aim}}}]
[models]
good = {{use = "openai.chat", model = "A", base_url = "{url}", max_in_flight = 4}}
bad = {{use = "openai.chat", model = "B", base_url = "{url}", max_in_flight = 4}}
[[cells]]
name = "good"
debate.models = ["good"]
[[cells]]
name = "bad"
debate.models = ["bad"]
"""


@pytest.fixture
def run(tmp_path):
    """Runs a study of 150 questions in which one cell is always right and the other never."""
    for plugin in ("files", "openai", "baselines", "qa", "answers", "dynamics"):
        pytest.importorskip(f"madplug_{plugin}")
    rows = ({"id": f"q{i}", "question": f"Question {i}?", "choices": ["x", "y"], "reference": "A"} for i in range(150))
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with running_endpoint(lambda asked: completion(f"Final answer: ({asked['model']})"),
                          latency_ms=20) as endpoint:
        def run(aim, more=""):
            (tmp_path / "s.toml").write_text(RUN.format(aim=aim, url=endpoint.url) + more)
            return madplug.run(tmp_path / "s.toml", output=tmp_path / "out", quiet=True).summary

        yield run


@pytest.mark.parametrize(("aim", "said"), [
    ('baseline = "bad"', "good - bad in [+"), ("width = 0.2", "good in [0.8"),
    ('baseline = "good", within = 0.5', "bad - good in [-1.000, -")])
def test_a_study_ends_when_it_is_decided_and_stays_decided(run, aim, said):
    summary = run(aim)
    assert (summary["status"], summary["ending"]) == ("stopped", "decided")
    assert said in summary["reason"]
    assert 40 <= summary["paid"]["calls"] < 250
    again = run(aim)
    assert (again["ending"], again["paid"]["calls"] - summary["paid"]["calls"]) == ("decided", 0)


def test_a_cell_that_is_decided_gets_no_further_debates_while_the_others_go_on(run):
    more = '[[cells]]\nname = "same"\ndebate = {models = ["bad"], rounds = 2}'
    summary = run('baseline = "bad"', more)
    done = {cell["cell"]: cell["done"] for cell in summary["cells"]}
    assert done["bad"] == done["same"] == 150
    assert 20 <= done["good"] < 100
    assert summary["ending"] == "decided"
    assert "good - bad in [+" in summary["reason"]
    assert "same" not in summary["reason"]
    again = run('baseline = "bad"', more)
    assert (again["ending"], again["paid"]) == ("decided", summary["paid"])


@pytest.mark.parametrize(("aim", "said"), [
    ('metric = "dynamics.output_tokens.total"', "is 3 in a debate, and has to be between 0 and 1"),
    ('metric = "qa.accuracy.all"', "no score is called 'qa.accuracy.all'; did you mean 'qa.accuracy'")])
def test_what_cannot_be_looked_at_is_a_problem_of_a_study_that_goes_on(run, aim, said):
    summary = run(aim)
    assert (summary["ending"], summary["paid"]["calls"]) == (None, 300)
    assert said in summary["problems"][0]


@pytest.mark.parametrize(("aim", "said"), [
    ('metric = "qa.acuracy"', "metric: .*'qa.acuracy'; did you mean 'qa.accuracy'"),
    ('baseline = "god"', "baseline: there is no cell 'god'; did you mean 'good'")])
def test_what_the_study_does_not_have_is_refused_before_anything_is_paid(run, aim, said):
    with pytest.raises(madplug.UserError, match=f"^observers: {said}"):
        run(aim)


def test_questions_behind_one_that_is_not_finished_do_not_count(tmp_path):
    first, *others = (Sample(f"q{number}", "?") for number in range(60))
    stopped, watch = [], Decided(width=0.3)

    def end(sample):
        wait_for(store.finish_debate(DebateResult("c", 0, sample, ("A",), decision=Decision("A"),
                                                  metrics={"qa.accuracy": 1.0})))
        watch.debate_finished(DebateFinished(DebateId("c", 0, sample.id), "done"))

    with closing(open_recorder(tmp_path)) as store:
        wait_for(store.keep_fact("settings", {"c": {}}))
        watch.open(Run("s", tmp_path, 1, None, lambda: None, lambda why, cells: stopped.append(why)))
        for sample in (first, *others):
            watch.debate_started(DebateStarted(DebateId("c", 0, sample.id), sample))
        for sample in others:
            end(sample)
        assert not stopped
        end(first)
        for sample in others[:9]:  # there is another look soon
            watch.debate_finished(DebateFinished(DebateId("c", 0, sample.id), "done"))
    assert "decided after 60 questions" in stopped[0]
