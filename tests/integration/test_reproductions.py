"""The run files of papers' tables and figures: each runs on a scripted model, and its report has the paper's layout."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from scripted_replies import madplug, replies

from madplug.config.read import cells, read
from madplug.testing.endpoint import running_endpoint

FOLDER = Path(__file__).parents[2] / "docs" / "reproductions"
FILES = sorted(p for p in FOLDER.glob("*.toml") if not p.name.endswith(".paper.toml"))
PAPERS = sorted(FOLDER.glob("*.paper.toml"))
SOLUTIONS = Path(__file__).parents[2] / "examples" / "data" / "solutions.jsonl"
"""Recorded solutions of the puzzle that takes the place of a data set."""
LAYOUT = {
    "freemad-ablation": (["n", "c", "baseline1", "baseline2"], 3),
    "freemad-attack": (["n", "c", "baseline1", "baseline2"], 2),
    "freemad-rounds": (["n", "c", "baseline1", "baseline2"], 2),
    "madc-injected": (["right_first", "wrong_first", "alternating"], 11),
    "madc-strategies": (["fixed", "random", "most_first", "most_last", "truth_first", "truth_last"], 2),
    "mallm-paradigms": (["memory", "relay", "report", "debate"], 5),
    "mallm-personas": (["none", "expert", "ipip"], 2),
    "metadebate-dmad": (["uniform", "random", "reviewed"], 1),
    "metadebate-mad": (["uniform", "random", "reviewed"], 1),
    "voting-decisions": (["consensus.majority", "consensus.supermajority", "consensus.unanimity", "voting.simple",
                          "voting.approval", "voting.ranked", "voting.cumulative"], 6),
    "voting-diversity": (["baseline", "all agents drafting", "collective improvement", "critical", "reasoning"], 1)}
"""The labels of rows, and how many columns; the other files are figures."""


@pytest.fixture(scope="module")
def endpoint():
    with running_endpoint(replies) as running:
        yield running


def smaller(path, url):
    """One question of a puzzle for each data set, one repeat, a scripted model; everything else as it is."""
    table = read(path, environ={})
    for name in table["models"]:
        yield f'models.{name}={{use="openai.chat", model="m", base_url="{url}", temperature={0.1 * len(name):.1f}}}'
    yield 'dataset={use="puzzles.ordering", size=1}'
    data = table.get("sweep", {}).get("dataset", [])
    if data:
        levels = ", ".join(f'{{use="puzzles.ordering", size=1, seed={i}}}' for i in range(len(data)))
        yield f"sweep.dataset=[{levels}]"
    for i, extension in enumerate(table.get("extensions", [])):
        if "study" in extension:
            yield f'extensions.{i}.study="{SOLUTIONS}"'
    yield "repeats=1"


def report_words(path):
    """The words of the report command at the head of a file, without what depends on the true data."""
    line = next(line for line in path.read_text().splitlines() if line.startswith("#     madplug report"))
    words = [w.replace("docs/reproductions", str(FOLDER)) for w in shlex.split(line.removeprefix("#     madplug "))]
    return [w for i, w in enumerate(words)
            if not any(x == "--metric" for x in (w, words[i - 1])) and w not in ("--output", "out", "--figures")]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_table_of_a_paper_has_its_layout(path, tmp_path, endpoint):
    settings = [word for setting in smaller(path, endpoint.url) for word in ("--set", setting)]
    done = madplug("run", path, *settings, "--quiet", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    done = madplug(*report_words(path), "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert len(report["cells"]) == len(list(cells(read(path, environ={}))))
    assert all(c["failed"] == 0 for c in report["cells"])
    if path.stem not in LAYOUT:
        return
    rows, columns = LAYOUT[path.stem]
    (table,) = report["pivots"]
    labels = [row["label"] for row in table["rows"]]
    assert all(label.endswith(row) for label, row in zip(labels, rows, strict=True)), labels
    assert len(table["columns"]) == columns
    assert all(field is not None for line in table["fields"] for field in line)


@pytest.mark.parametrize("path", PAPERS, ids=lambda p: p.stem)
def test_the_numbers_of_a_paper_are_of_cells_of_its_run_file(path):
    from madplug_report.published import read_paper

    paper = read_paper(path)
    table = read(path.with_name(path.name.replace(".paper", "")), environ={})
    names = {cell["name"] for cell in table.get("cells", [])}
    for value in paper.values:
        if value.cell is not None:
            assert value.cell in names
        for name, level in value.levels.items():
            (key,) = (k for k in table["sweep"] if k.rpartition(".")[2] == name)
            assert any(level in str(v) for v in table["sweep"][key])


@pytest.mark.parametrize("path", [p for p in FILES if p.stem.startswith(("mallm-", "voting-"))], ids=lambda p: p.stem)
def test_replications_of_independent_debates_share_nothing_and_ask_for_final_answers(path):
    assert read(path, environ={})["share_completions"] is False
    for _, _, cell in cells(read(path, environ={})):
        assert cell["debate"]["decision"]["final"] == "ask"


def test_every_file_is_listed_and_says_how_to_run_it():
    listed = (FOLDER / "README.md").read_text(encoding="utf-8")
    for path in FILES:
        assert f"`{path.name}`" in listed
        assert f"#     madplug run docs/reproductions/{path.name}" in path.read_text()
        assert read(path, environ={})["name"] == path.stem
    for path in PAPERS:
        assert f"`{path.name}`" in listed


def test_the_sample_sizes_of_a_paper_are_recomputed():
    from madplug_report.sizes import sample_size

    listed = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w[\w .-]*) \| ([\d,]+) \| (\d+) \| (\d+) \|", listed, re.MULTILINE)
    assert len(rows) == 6
    for name, population, ours, _ in rows:
        assert sample_size(int(population.replace(",", ""))) == int(ours), name
