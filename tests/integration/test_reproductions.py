"""The run files of papers' tables and figures: each runs on a scripted model, and its report has the paper's layout.

The layout is that of the index in docs/reproductions/README.md: rows and columns by name, and a value in every field.
"""

import json
import re
import shlex
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner
from scripted_replies import replies

from madplug.cli.program import main as program
from madplug.config import load
from madplug.config.read import cells, read
from madplug.config.shape import tables
from madplug_testing.endpoint import running_endpoint

CELL_KEYS = tables().cell.model_fields
FOLDER = Path(__file__).parents[2] / "docs" / "reproductions"
INDEX = (FOLDER / "README.md").read_text(encoding="utf-8")
FILES = sorted(p for p in FOLDER.glob("*.toml") if not p.name.endswith(".paper.toml"))
PAPERS = sorted(FOLDER.glob("*.paper.toml"))
SOLUTIONS = Path(__file__).parents[2] / "examples" / "data" / "solutions.jsonl"
"""Recorded solutions of the puzzle that takes the place of a data set."""
ASKED_FOR = {"MALLM": [*(f"table {n}" for n in range(1, 5)), *(f"figure {n}" for n in range(7, 11))],
             "Voting or Consensus": ["table 1", "table 2", "table 4", *(f"figure {n}" for n in range(2, 8))],
             "Free-MAD": ["figure 3", "figure 4", "figure 5", "appendix D"],
             "MADC": [*(f"table {n}" for n in range(1, 6)), *(f"figure {n}" for n in range(3, 10))],
             "Meta-Debate": ["table 1", "table 2"]}
"""What the index has a row for, by paper."""


@dataclass(frozen=True)
class Item:
    """A table or figure as the index describes it."""

    paper: str
    name: str
    stem: str
    words: tuple[str, ...]
    shown: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    known: str

    def __str__(self):
        return f"{self.paper} {self.name}"


def read_index():
    for section in re.split(r"^## ", INDEX, flags=re.MULTILINE)[1:]:
        paper = section.split(" (")[0]
        for line in section.splitlines():
            fields = [field.strip() for field in line.strip("|").split("|")]
            if len(fields) == 8 and fields[0] not in ("item", "---"):
                name, file, words, shown, rows, columns, _, known = fields
                rows, columns = (tuple(filter(None, text.split("; "))) for text in (rows, columns))
                stem = file.strip("`").removesuffix(".toml")
                yield Item(paper, name, stem, tuple(shlex.split(words.strip("`"))), shown, rows, columns, known)


ITEMS = list(read_index())


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


def data_sets(path):
    """What a report calls the file's data sets, and what it calls the puzzles that take their place."""
    from madplug_report.factors import label_levels

    data = read(path, environ={}).get("sweep", {}).get("dataset", [])
    return {name: f"seed={i}" for i, name in enumerate(label_levels(data))} if data else {}


@pytest.fixture(scope="module")
def studies(tmp_path_factory, endpoint):
    """The small study of a run file, by its name, run once."""
    @cache
    def study(stem):
        path, folder = FOLDER / f"{stem}.toml", tmp_path_factory.mktemp(stem) / "study"
        settings = [word for setting in smaller(path, endpoint.url) for word in ("--set", setting)]
        done = CliRunner().invoke(program, ["run", str(path), *settings, "--quiet", "--output", str(folder)])
        assert done.exit_code == 0, done.output
        return folder
    return study


@pytest.fixture(scope="module")
def reports(studies):
    """The report of a run file's study, by its name and further words of the command."""
    @cache
    def report(stem, words):
        own = data_sets(FOLDER / f"{stem}.toml")
        words = [_translated(w, own) for w in _without_files(words)]
        done = CliRunner().invoke(program, ["report", str(studies(stem)), *words, "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)
    return report


def _without_files(words):
    """The words without those that write files, and with the folder's place."""
    return [w.replace("docs/reproductions", str(FOLDER)) for w, before in zip(words, (None, *words), strict=False)
            if w not in ("--output", "--figures", "--fit", "--tokenizer")
            and before not in ("--output", "--fit", "--tokenizer")]


def _translated(word, own):
    return re.sub(r"\w+", lambda m: own.get(m[0], m[0]), word) if "=" in word else word


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_run_file_runs_and_its_report_command_works(path, reports):
    line = next(line for line in path.read_text().splitlines() if line.startswith("#     madplug report"))
    report = reports(path.stem, tuple(shlex.split(line)[4:]))
    assert len(report["cells"]) == len(list(cells(read(path, environ={}), CELL_KEYS)))
    assert all(c["failed"] == 0 for c in report["cells"])


@pytest.mark.parametrize("item", [i for i in ITEMS if i.shown in ("table", "rounds", "margins")], ids=str)
def test_a_table_of_a_paper_has_its_rows_and_columns(item, reports):
    from madplug_report import contents

    report, own = reports(item.stem, item.words), data_sets(FOLDER / f"{item.stem}.toml")
    if item.shown == "margins":
        assert set(item.rows) <= {row["level"] for row in report["marginals"]}
        return
    (table,) = report["pivots"]
    assert tuple(row["label"] for row in table["rows"]) == item.rows
    if item.shown == "rounds":
        made = contents.rounds(report)
        assert tuple(row[0] for row in made.rows) == item.rows
        assert set(made.head[1:-2]) <= set(item.columns)
        return
    columns = tuple(column["label"] for column in table["columns"])
    assert columns == (tuple(own.get(name, name) for name in item.columns) or ("",))
    assert all(field is not None for line in table["fields"] for field in line)


@pytest.fixture(scope="module")
def drawn(studies):
    """The charts of a run file's report, by their names."""
    from madplug_report.building import build
    from madplug_report.charts import charts

    return cache(lambda stem: {chart.name: chart for chart in charts(build([studies(stem)]), "linear")})


@pytest.mark.parametrize("item", [i for i in ITEMS if i.shown.startswith("chart ")], ids=str)
def test_a_figure_of_a_paper_has_its_axis_and_its_lines(item, drawn, reports):
    chart = drawn(item.stem)[item.shown.removeprefix("chart ")]
    data = [row for row in chart.rows if "fit" not in row]
    if chart.name.startswith("over-"):
        name = chart.name.removeprefix("over-")
        assert {f"{row[name]:g}" for row in data} == set(item.rows)
        assert tuple(dict.fromkeys(row["line"] for row in data)) == (item.columns or ("",))
        assert any("fit" in row for row in chart.rows)
    elif item.rows[0] in ("every cell", "cells with answers that can be read"):
        every = {cell["label"] for cell in reports(item.stem, ())["cells"]}
        shown = {row["cell"] for row in data}
        assert shown == every if item.rows[0] == "every cell" else shown and shown <= every
        assert set(item.columns) <= data[0].keys()
    else:
        assert {row["setting"] for row in data} == set(item.rows)


def test_the_index_has_every_table_and_figure_and_says_how_far_it_is_known():
    assert {paper: [i.name for i in ITEMS if i.paper == paper and i.name in names] for paper, names in ASKED_FOR.items()
            } == ASKED_FOR
    assert {i.stem for i in ITEMS} - {"no run"} <= {p.stem for p in FILES}
    assert {i.known for i in ITEMS} == {"given", "inferred", "open"}


def test_the_index_says_what_each_file_costs(endpoint):
    rows = dict(re.findall(r"^\| `([\w-]+)\.toml` \| ([\d,]+ \|[^|]*\|[^|]*)\|$", INDEX, re.MULTILINE))
    assert rows.keys() == {p.stem for p in FILES}
    for path in FILES:
        each, questions, most = (field.strip() for field in rows[path.stem].split("|"))
        plan = load(path, list(smaller(path, endpoint.url)), environ={}).plan
        calls = sum(cell.worst_calls() for cell in plan.cells) // max(1, len(data_sets(path)))
        assert int(each.replace(",", "")) == calls, path.stem
        repeats = read(path, environ={}).get("repeats", 1)
        number = 1 if questions.startswith("all") else int(questions.split()[0].replace(",", ""))
        assert questions.endswith(f"\N{MULTIPLICATION SIGN} {repeats}")
        assert int(most.split()[0].replace(",", "")) == calls * number * repeats, path.stem


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
    for _, _, cell in cells(read(path, environ={}), CELL_KEYS):
        assert cell["debate"]["decision"]["final"] == "ask"


def test_every_file_is_listed_and_says_how_to_run_it():
    for path in FILES:
        assert f"`{path.name}`" in INDEX
        assert f"#     madplug run docs/reproductions/{path.name}" in path.read_text()
        assert read(path, environ={})["name"] == path.stem
    for path in PAPERS:
        assert f"`{path.name}`" in INDEX


def test_the_sample_sizes_of_a_paper_are_recomputed():
    from madplug_report.sizes import sample_size

    rows = re.findall(r"^\| (\w[\w .-]*) \| ([\d,]+) \| (\d+) \| (\d+) \|", INDEX, re.MULTILINE)
    assert len(rows) == 6
    for name, population, ours, _ in rows:
        assert sample_size(int(population.replace(",", ""))) == int(ours), name
