"""A study in MLflow's own store, read by MLflow's own client."""

import pytest

from madplug_mlflow import Runs
from madplug_mlflow.runs import allowed
from madplug_testing import play

pytestmark = pytest.mark.filterwarnings("ignore::Warning:mlflow", "ignore::Warning:sqlalchemy",
                                        "ignore:.*noload.*")
KEY = "sk-mlflow-0123456789"
mlflow = pytest.mark.skipif("not __import__('importlib.util').util.find_spec('mlflow')",
                            reason="mlflow is not installed: tox run -e integrations")


def test_without_mlflow_the_study_says_what_to_install(monkeypatch):
    from madplug_mlflow import runs

    monkeypatch.setattr(runs, "find_spec", lambda name: None)
    played = play(replies=lambda request: "A", observers=[Runs()])
    assert "pip install 'madplug-mlflow[mlflow]'" in played.problems[0]
    assert played.result.error is None


def test_names_have_only_characters_that_mlflow_allows():
    assert allowed("qa.accuracy#2") == "qa.accuracy_2"
    assert allowed("debate/a b.c-d") == "debate/a b.c-d"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, run_tracked):
    folder = tmp_path_factory.mktemp("mlflow")
    environ = {"OPENAI_API_KEY": KEY, "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
    run_tracked(folder, f'use = "mlflow.runs"\nuri = "sqlite:///{folder}/m.db"', 4, environ, (6, 3), (1000, 0))
    return folder


@mlflow
def test_a_study_is_a_run_with_a_run_for_each_cell_the_report_as_artefacts_and_no_key(folder):
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{folder}/m.db")
    experiment = client.get_experiment_by_name("small")
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert set(runs) == {"small", "one", "two"}, "the resumed study continued its runs"
    assert {run.info.status for run in runs.values()} == {"FINISHED"}
    one, two, study = runs["one"], runs["two"], runs["small"]
    assert one.data.tags["mlflow.parentRunId"] == two.data.tags["mlflow.parentRunId"] == study.info.run_id
    assert (one.data.params["debate.rounds"], two.data.params["debate.rounds"]) == ("1", "2")
    assert two.data.params["dataset.use"] == "puzzles.ordering"
    assert (one.data.metrics["debates"], one.data.metrics["calls"], two.data.metrics["calls"]) == (4, 8, 16)
    assert 0 <= two.data.metrics["qa.accuracy"] <= 1
    steps = [m.step for m in client.get_metric_history(two.info.run_id, "debates")]
    assert sorted(set(steps)) == list(range(5 - len(set(steps)), 5)), "debate by debate"
    assert len(set(steps)) >= 3
    assert {a.path for a in client.list_artifacts(study.info.run_id)} == {"report", "study.toml", "summary.json"}
    assert "report/report.html" in {a.path for a in client.list_artifacts(study.info.run_id, "report")}
    for path in [folder / "m.db", *(p for p in (folder / "mlruns").rglob("*") if p.is_file())]:
        assert KEY.encode() not in path.read_bytes(), path


@mlflow
def test_a_store_that_cannot_be_reached_is_a_problem_and_the_debate_goes_on(monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    played = play(replies=lambda request: "A", observers=[Runs(uri="http://127.0.0.1:9")])
    assert played.result.error is None
    assert len(played.problems) == 1
    assert "observer runs: open: MlflowException" in played.problems[0]
