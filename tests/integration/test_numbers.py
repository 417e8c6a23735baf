"""A figure has the same value wherever it is shown: by `run`, in `summary.json`, in `report` and in an export."""

import csv
import json

import pytest
from scripted_replies import madplug, replies

from madplug_testing.endpoint import running_endpoint

RUN_FILE = """
name = "numbers"
repeats = 2
dataset = {{use = "puzzles.ordering", size = 3}}
models.small = {{use = "openai.chat", model = "m", base_url = "{url}"}}
metrics = ["qa.accuracy", "qa.graded", "dynamics.conformity", "dynamics.flips", "dynamics.log_likelihood"]
[debate]
paradigm = "mallm.memory"
rounds = 3
personas = ["personas.expert"]
phases = [{{use = "challenge.final", settings = ["only_solution"]}}]
[sweep]
"debate.decision" = [{{use = "voting.simple", final = "ask"}}, {{use = "judge.synthesis", final = "ask"}}]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A study with every kind of call: personas, messages, final answers, votes, a judge, a phase, a metric."""
    folder = tmp_path_factory.mktemp("numbers")
    with running_endpoint(replies) as endpoint:
        (folder / "numbers.toml").write_text(RUN_FILE.format(url=endpoint.url))
        done = madplug("run", "numbers.toml", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "printed.txt").write_text(done.stdout)
    return folder


@pytest.fixture(scope="module")
def summary(folder):
    return json.loads((folder / "runs" / "numbers" / "summary.json").read_text())


@pytest.fixture(scope="module")
def report(folder):
    done = madplug("report", "runs/numbers", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_run_prints_the_figures_of_the_summary(folder, summary):
    printed = " ".join((folder / "printed.txt").read_text().split())
    for cell in summary["cells"]:
        for name in ("qa.accuracy", "dynamics.conformity.rate"):
            found = cell["metrics"][name]
            assert f"{found['mean']:.3f} [{found['ci95'][0]:.2f}, {found['ci95'][1]:.2f}]" in printed


def test_the_report_has_the_figures_of_the_summary(summary, report):
    for ours, cell in zip(report["cells"], summary["cells"], strict=True):
        assert ours["slug"] == cell["cell"]
        assert ours["metrics"].keys() == cell["metrics"].keys()
        for name, theirs in cell["metrics"].items():
            for part in ("mean", "std", "n"):
                assert ours["metrics"][name][part] == pytest.approx(theirs[part]), (name, part)
            assert ours["metrics"][name]["ci95"] == pytest.approx(theirs["ci95"]), name
        assert ours["figures"] == cell["figures"]


def test_an_export_has_the_scores_whose_means_these_are(folder, summary):
    done = madplug("export", "runs/numbers", "--output", "debates.csv", folder=folder)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader((folder / "debates.csv").read_text(encoding="utf-8").splitlines()))
    for cell in summary["cells"]:
        own = [row for row in rows if row["cell"] == cell["cell"]]
        scores = [float(row["metric.qa.accuracy"]) for row in own]
        assert sum(scores) / len(scores) == pytest.approx(cell["metrics"]["qa.accuracy"]["mean"])
        assert sum(int(row["calls"]) for row in own) == cell["calls"]


def test_no_figure_of_all_debates_together_has_the_name_of_a_mean_over_samples(summary):
    for cell in summary["cells"]:
        pooled = {f"{metric}.{name}" for metric, figures in cell["figures"].items() for name in figures}
        assert {"dynamics.conformity.pooled_rate", "dynamics.flips.pooled_to_right"} <= pooled
        assert not pooled & cell["metrics"].keys()


def test_every_call_of_a_cell_is_charged_to_a_role_or_to_what_it_was_for(report):
    every = set()
    for cell in report["cells"]:
        rows = cell["spending"]["rows"]
        every |= {row["value"] for row in rows if row["by"] == "role"}
        for amount in ("calls", "read", "written"):
            graded = sum(row[amount] for row in rows if (row["by"], row["value"]) == ("role", "grade"))
            for kind in ("role", "round", "model"):
                found = sum(row[amount] for row in rows if row["by"] == kind)
                assert found == cell["spending"][amount] + graded, (kind, amount)
    assert {"participant", "persona", "extract", "vote", "judge", "challenge", "grade"} <= every
