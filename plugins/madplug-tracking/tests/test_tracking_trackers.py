"""What every experiment tracker reports: settings, figures as they come, and files at the end."""

import json
import sys
import time
from importlib.util import find_spec

import pytest

import madplug
from madplug import Completion, Metric, ModelError, Sample, Usage
from madplug_testing import play
from madplug_tracking import RunningFigures, Tracker, flatten


class Book(Tracker):
    """Writes down what it is asked to report."""

    name = "book"

    def __init__(self, **options):
        super().__init__(**options)
        self.cells, self.rows, self.ended, self.files = [], [], None, {}

    def connect(self, study):
        self.connected = study

    def begin(self, study, id, cells):
        self.cells = list(cells)

    def log(self, cell, figures, step):
        self.rows.append((cell, step, dict(figures)))

    def finish(self, status, files):
        self.ended = status
        self.files = {} if files is None else {
            str(p.relative_to(files)): p.read_text(errors="replace") for p in files.rglob("*") if p.is_file()}


class Right(Metric):
    """1 for A."""

    name = "right"

    def score(self, debate, references):
        return None if debate.decision.key is None else float(debate.decision.key == "A")


def reply(request):
    if "q3" in str(request.messages):
        raise ModelError("no answer")
    return Completion("A" if "q0" in str(request.messages) else "B", Usage(10, 5, cost_usd=0.25))


@pytest.mark.parametrize(("every", "steps"), [(0, [1, 2, 3, 4, 4]), (3600, [1, 4])])
def test_figures_come_after_each_debate_or_with_time_between_and_at_the_end(every, steps):
    book = Book(every=every)
    samples = [Sample(f"q{i}", f"question q{i}") for i in range(4)]
    play(replies=reply, sample=samples, agents=1, metrics={"test.right": Right()}, observers=[book],
         expect_failure=True)
    assert [step for _, step, _ in book.rows] == steps
    assert book.rows[-1][2] == {"test.right": 1 / 3, "debates": 4, "failed": 1, "undecided": 0, "calls": 3,
                                "tokens": 45, "cost_usd": 0.75}
    assert (book.connected, book.ended) == ("play", "failed")


def test_a_cost_is_known_if_every_price_is():
    figures = RunningFigures()
    row = {"error": None, "decided": True, "calls": 1, "prompt": 1, "completion": 1, "metrics": {}}
    figures.add({**row, "cost_usd": 1.0})
    assert figures.values()["cost_usd"] == 1.0
    figures.add({**row, "cost_usd": None})
    assert "cost_usd" not in figures.values()


def test_settings_are_flat_short_and_without_secrets(monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "sk-a-very-secret-key")
    flat = flatten({"debate": {"decision": {"use": "x.y"}, "styles": [{"prompt": "p" * 999}]}, "n": 3,
                    "url": "http://h?k=sk-a-very-secret-key"})
    assert flat["debate.decision.use"] == "x.y"
    assert len(flat["debate.styles.0.prompt"]) == 250
    assert (flat["n"], flat["url"]) == ("3", "http://h?k=[secret]")


@pytest.fixture
def run(tmp_path):
    """Runs a study in a directory with an observer."""
    for plugin in ("puzzles", "turns", "visibility", "simulator", "voting", "qa"):
        pytest.importorskip(f"madplug_{plugin}")

    def run(book, size=3):
        study = {"name": "tracked", "oracle": True, "dataset": {"use": "puzzles.ordering", "size": size}, "debate": {
            "agents": 3, "turns": "turns.simultaneous", "visibility": "visibility.everything",
            "styles": ["simulator.debater"], "decision": "voting.plurality"}}
        summary = madplug.run(study, output=tmp_path / "out", observers=[book], quiet=True).summary
        assert summary["problems"] == []
        return summary

    return run


def test_a_resumed_study_goes_on_with_the_same_runs_and_figures(run):
    first, second = Book(report=False), Book(report=False)
    run(first)
    run(second, size=5)
    assert first.cells[0].id == second.cells[0].id
    assert (first.rows[-1][1], second.rows[-1][1]) == (3, 5)
    assert second.rows[0][1] > 3  # how many debates ended while the records were read is a matter of time
    assert set(first.files) == {"summary.json", "study.toml"}


def test_a_debate_that_ends_before_the_records_are_read_is_counted_once(run):
    class Late(Book):
        def study_started(self, event):
            while self.progress().debates < 2:
                time.sleep(0.01)
            super().study_started(event)

        async def open(self, run):
            self.progress = run.progress
            await super().open(run)

    run(Book(report=False))
    late = Late(report=False)
    run(late, size=5)
    assert late.rows[-1][1] == 5


def test_files_are_those_of_the_study_and_no_module_in_the_current_directory_is_executed_to_make_them(
        run, tmp_path, monkeypatch):
    for name in ("json", "orjson", "pluggy", "madplug_report"):
        (tmp_path / f"{name}.py").write_text("open(__file__ + '.ran', 'w')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    book = Book()
    summary = run(book)
    assert book.cells[0].settings["debate.decision.use"] == "voting.plurality"
    assert json.loads(book.files["summary.json"])["cells"] == json.loads(json.dumps(summary))["cells"]
    assert "voting.plurality" in book.files["study.toml"]
    if find_spec("madplug_report") is not None:
        assert "<html" in book.files["report/report.html"]
    assert not list(tmp_path.glob("*.ran"))
