"""The tables and figures of docs/reproductions: rehearsed, laid out as their pages say, with the published numbers.

A rehearsal runs the item's run files on a few made-up questions against a scripted endpoint, in one process.
"""

import csv
import json
import sys
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner
from small_rows import answers

from madplug import run
from madplug.cli.program import main as program
from madplug.config.read import overlay, read
from madplug_report.charts import bars, curves, layout, pictures, style
from madplug_report.sizes import sample_size
from madplug_testing.endpoint import running_endpoint

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "tools"))
import reproductions as tool  # noqa: E402

PUBLISHED = ROOT.parent / "shared" / "data" / "published"
# A table of the paper has three agents, too, of whom each is shown two answers.
pytestmark = pytest.mark.filterwarnings("ignore:.*whose order 'most_last' never changes:UserWarning")
ITEMS = [item for paper in tool.papers() for item in paper.items]
SEVEN = "Qwen2.5-7B-Instruct"
REHEARSED = [item for item in ITEMS if item.run]
ONE_QUESTION = {"mallm/t4.toml", "madc/scaling.toml"}
"""Files with more than a hundred cells."""
SMALLER = {"t4.toml": {"sweep": {"debate.rounds": [2]}}, "scaling.toml": {"repeats": 1},
           "solutions.toml": {"debate": {"agents": 12}}}
"""What else is smaller than in the paper."""


@pytest.fixture(scope="module")
def endpoint():
    with running_endpoint(answers) as running:
        yield running


@pytest.fixture(scope="module")
def studies(tmp_path_factory, endpoint):
    """The rehearsal of a run file with a model, run once."""
    rows = tmp_path_factory.mktemp("rows")

    @cache
    def study(paper, name, model=""):
        folder = tmp_path_factory.mktemp(f"{paper}-{name}")
        shown = {"pool": study(paper, "solutions.toml", SEVEN)} if name == "scaling.toml" else {}
        table = tool.rehearsed(tool.FOLDER / paper / name, rows, endpoint.url,
                               questions=1 if f"{paper}/{name}" in ONE_QUESTION else 2, **shown)
        table = overlay(table, SMALLER.get(name, {}) | ({"models": {"agent": {"model": model}}} if model else {}))
        done = run(table, output=folder / table["name"], quiet=True)
        assert done.status == "finished", done.summary
        return done.folder
    return study


@pytest.fixture(scope="module")
def reports(studies, tmp_path_factory):
    """What the report command of an item finds about its rehearsal."""
    @cache
    def report(name):
        item = next(item for item in REHEARSED if str(item) == name)
        models = item.models[:tool.REHEARSED] if len(item.models) > 1 else [""]
        folders = [studies(item.paper, file, model) for file in item.run for model in models]
        words = [*item.words, "--json"]
        if item.chart:
            words += ["--output", str(tmp_path_factory.mktemp("report"))]
        if item.published:
            words += ["--compare", str(tool.FOLDER / item.paper / item.published)]
        done = CliRunner().invoke(program, ["report", *map(str, folders), *words])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)
    return report


def base(text):
    """A name without a model's owner."""
    return text.rpartition("/")[2]


@pytest.mark.parametrize("item", REHEARSED, ids=str)
def test_an_item_has_the_rows_columns_and_metrics_of_the_paper_in_its_order(item, reports):
    report = reports(str(item))
    numbers = item.placed()[0]
    wanted = {by: {(row, column) for table, row, column in numbers if table == by} for by in item.lines("--by")}
    assert report["pivots"]
    for table in report["pivots"]:
        by = ", ".join(base(level) for level in table["by"].values())
        assert by in wanted
        rows, columns = ([base(line["label"]) for line in table[part]] for part in ("rows", "columns"))
        assert rows == item.lines("--rows")
        assert columns == [base(c) for c in item.lines("--columns")]
        metrics = {field["metric"] for line in table["fields"] for field in line if field}
        assert metrics == {name.rpartition("=")[2] for name in item.option("--metric")} or not item.option("--metric")
        for row, line in zip(rows, table["fields"], strict=True):
            for column, field in zip(columns, line, strict=True):
                # Of challenges, of which there may be none in so few debates, there is no share.
                absent = str(item) == "voting figure 7" or (wanted[by] and (row, column) not in wanted[by])
                assert field is not None or absent, (row, column)
    assert all(cell["failed"] == 0 for cell in report["cells"])


@pytest.mark.parametrize("item", [item for item in REHEARSED if item.published], ids=str)
def test_every_published_number_stands_beside_one_of_ours(item, reports):
    found = reports(str(item))["published"]
    numbers = [line for line in item.numbers if not item.models or line["model"] in item.models[:tool.REHEARSED]]
    assert [row["theirs"] for row in found["rows"]] == [float(line["value"]) for line in numbers]
    assert item.models or not found["missing"]


@pytest.mark.parametrize("item", [item for item in REHEARSED if item.chart], ids=str)
def test_the_chart_of_an_item_has_a_number_for_everything_in_it(item, reports):
    report = reports(str(item))
    rounds = [{**cell, "rounds": {int(n): k for n, k in cell["rounds"].items()}} for cell in report["cells"]]
    draw = {"table": layout.pictured, "over": lambda r: curves.curves(r, "linear"), "picture": pictures.pictures,
            "rounds": lambda r: [bars.rounds(r)]}[item.chart.partition("-")[0]]
    with style.settings():
        made = {chart.name: chart for chart in draw({**report, "cells": rounds})}
    shown = {f"{value:g}" if isinstance(value, float) else base(value) for row in made[item.chart].rows
             for value in row.values() if isinstance(value, str | float)}
    if item.chart == "picture-1":
        assert len(made) == len(item.lines("--rows"))  # one for each question
    else:
        assert set(item.lines("--rows")) <= shown


def test_the_pages_are_those_of_the_files():
    """If this fails: `python tests/tools/reproductions.py`, and look at what has changed."""
    for path, text in tool.pages().items():
        assert path.read_text(encoding="utf-8") == text, path


def test_runs_that_replicate_independent_debates_share_nothing_and_ask_for_final_answers():
    for paper in tool.papers()[:2]:
        for path in paper.files:
            table = read(path, environ={})
            assert table["share_completions"] is False
            said = json.dumps(table)
            assert said.count('"use": "voting.') + said.count('"use": "consensus.') == said.count('"final": "ask"')


# The published numbers

def lines(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def shipped(name):
    """The lines of a published file that are in a file of ours."""
    paper, item = name.split("-")
    folder = tool.FOLDER / paper
    if (folder / f"{item}.csv").exists():
        return lines(folder / f"{item}.csv")
    file = "scaling.csv" if item == "f9" or int(item[1:]) > 5 else "agents.csv"
    return [line for line in lines(folder / file) if item == "f9" or line["source"].endswith(f"table {item[1:]}")]


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published numbers are not beside this checkout")
def test_the_numbers_are_the_published_ones_one_by_one():
    claimed = [line["value"] for line in lines(tool.FOLDER / "claims.csv")]
    files = [path for path in PUBLISHED.glob("*.csv") if path.stem not in ("claims", "mallm-t5")]
    assert len(files) == 35
    for path in files:
        theirs = lines(path)
        if path.stem in ("voting-f6", "voting-f7", "voting-f8", "voting-f9", "freemad-f5", "madc-exA1", "madc-exA2"):
            assert all(line["value"] in claimed for line in theirs), path.stem
            continue
        stated = [line for line in theirs if path.stem == "voting-f2" and line["decision"].startswith("mean of ")]
        assert all(line["value"] in claimed for line in stated)
        theirs = [line for line in theirs if line not in stated]
        ours = [line for line in shipped(path.stem) if line.get("metric") != "difference.fixed"]
        assert [(o["value"], o.get("std", "")) for o in ours] == [(t["value"], t["std"]) for t in theirs], path.stem
    gains = [line["gain_over_MAD"] for line in lines(PUBLISHED / "madc-t1.csv") if line["gain_over_MAD"]]
    assert [line["value"] for line in shipped("madc-t1") if line["metric"] == "difference.fixed"] == gains
    assert all(any(line["claim"] == claim["claim"] and line["value"] == claim["value"] for claim in lines(
        tool.FOLDER / "claims.csv")) for line in lines(PUBLISHED / "claims.csv"))


def test_the_sample_sizes_of_a_paper_are_recomputed():
    sizes = {}
    for line in lines(tool.FOLDER / "voting" / "t3.csv"):
        sizes.setdefault(line["dataset"], []).append(int(line["value"]))
    assert {name for name, (population, studied) in sizes.items() if sample_size(population) != studied} == {"GPQA"}
