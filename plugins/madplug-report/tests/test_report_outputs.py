"""The report for a terminal, as Markdown, LaTeX and a page: nothing in a name can act."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from io import StringIO

import pytest
from click.testing import CliRunner

from madplug.cli.program import main
from madplug_report import report
from madplug_report.escape import distinct, in_html, in_latex, in_markdown, line, shortened, width
from madplug_report.page import SCRIPT

EVIL = ["<script>alert(1)</script>", "a|b\\c{}_%#~`*[x](http://e.org) --", "esc\x1b[31m\u202eevil\nline", "' onload='x",
        '"q"', "[x]", "$x$ & ^y", "=1+1", "@x"]
FIGURES = {f"kit.{kind}.{i}": 0.5 for kind, n in (("few", 6), ("many", 7)) for i in range(n)}


def test_what_metrics_say_of_whole_cells_is_on_the_page(study, kit, program, tmp_path):
    found = {"qa.accuracy": {"accuracy_decided": 0.625, "debates": 40, "names": ["x"]}}
    program("report", study([kit.Drawn("a")], summary={"cells": [{"cell": "a", "figures": found}]}),
            "--output", tmp_path / "out", status=0)
    for name in ("report.md", "report.html"):
        text = (tmp_path / "out" / name).read_text(encoding="utf-8").replace("\\", "")
        assert "qa.accuracy.accuracy_decided" in text
        assert "0.625" in text


@pytest.fixture(scope="module")
def written(kit, tmp_path_factory):
    """A report of a study with evil names: the files' texts by name, and what was printed."""
    cells = [kit.Drawn(n, undecided=0.2, failed=0.1, oracle=True, settings={"<u>": n}) for n in EVIL]
    debates = (kit.debate(cell, sample) for cell in cells for sample in range(12))
    folder = tmp_path_factory.mktemp("evil")
    kit.write(folder / "s", (kit.replace(d, metrics={**d.metrics, "<i>x": 1.0, **FIGURES}, messages=tuple(kit.replace(
        m, content="<script>alert(2)</script>", answer="<b>") for m in d.messages)) for d in debates), cells)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "1000")
        done = CliRunner().invoke(main, ["report", str(folder / "s"), "--output", str(folder / "out")])
    assert done.exit_code == 0, done.output
    files = {p.name: p.read_text(encoding="utf-8") for p in (folder / "out").iterdir() if p.is_file()}
    return {**files, "printed": done.stdout}


def test_every_file_is_written_and_named_and_says_how_its_figures_were_made(written):
    assert set(written) == {"report.md", "report.tex", "report.json", "report.html", "cells.csv", "table.csv",
                            "comparisons.csv", "printed"}
    assert written["printed"].count("written: ") == 7
    for name in ("report.md", "report.html"):
        text = written[name].replace("\\", "")
        assert all(part in text for part in ("undecided ones included", "Holm", "Wilson"))


def test_figures_are_files_where_asked_and_an_output_that_cannot_be_written_is_a_clear_message(study, kit, program,
                                                                                             refused, tmp_path):
    folder = study([kit.Drawn("a")], samples=3)
    program("report", folder, "--output", tmp_path / "out", "--figures", status=0)
    assert (tmp_path / "out" / "figures" / "accuracy.pdf").is_file()
    assert "--figures: needs --output DIR" in refused(folder, "--figures")
    assert "--fit: needs --output DIR" in refused(folder, "--fit", "log")
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refused(folder, "--output", tmp_path / "file" / "out")


def test_a_terminal_leaves_out_a_metric_of_many_figures_and_says_where_they_are(written):
    assert ("kit.few.5" in written["printed"], "kit.many.5" in written["printed"]) == (True, False)
    assert "kit.many: 7 figures, with --output and --json" in written["printed"]
    assert "kit.many.5" in written["report.md"].replace("\\", "")


def test_where_every_other_metric_has_many_figures_those_of_the_shortest_are_shown(study, kit, program):
    scores = {f"kit.{kind}.{i}": 0.5 for kind, n in (("ten", 10), ("many", 7)) for i in range(n)}
    printed = program("report", study([kit.Drawn("a")], samples=3, metrics=scores), status=0).stdout
    assert ("kit.many.6" in printed, "kit.ten.5" in printed) == (True, False)
    assert "kit.ten: 10 figures, with --output and --json" in printed


def test_no_name_is_a_formula_in_a_spreadsheet(written):
    names = {row["cell"][:3] for row in csv.DictReader(StringIO(written["cells.csv"]))}
    assert {"'=1", "'@x"} <= names
    assert not {name[0] for name in names} & set("=@")


def test_every_table_shows_the_share_of_undecided_and_failed_debates(written):
    for name, tables in (("printed", 4), ("report.md", 5)):
        heads = [row for row in written[name].splitlines() if re.match(r"\|? ?cell\b", row)]
        assert len(heads) == tables, name
        assert all("undecided" in row and "failed" in row for row in heads)
    tables = written["report.tex"].split(r"\caption{")[1:]  # each may be in parts
    assert len(tables) == 5
    assert all("undecided" in table and "failed" in table for table in tables if "Marginal means" not in table)


def test_no_escape_of_a_name_reaches_the_terminal(written):
    assert not {"\x1b", "\u202e"} & set(written["printed"])


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.data = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.data.append(data)


def test_the_page_loads_nothing_runs_only_its_own_script_and_has_names_as_text(written):
    page = Page(written["report.html"].replace(f"<script>{SCRIPT}</script>", ""))
    assert not page.tags & {"script", "img", "iframe", "object", "embed", "link", "image", "foreignobject", "b", "u",
                            "i"}
    assert not [k for k, _ in page.attributes if k.startswith("on")]
    assert all(v.startswith("#") for k, v in page.attributes if k in ("href", "src", "xlink:href"))
    hashed = b64encode(sha256(SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hashed}'"
    assert ("content", policy) in page.attributes
    assert not re.search(r"@import|url\((?!#)", written["report.html"])
    assert all(f"{line(name)} (oracle)" in "".join(page.data) for name in EVIL)


def test_no_name_is_markup_in_markdown(written):
    text = written["report.md"]
    assert r"\<script\>" in text
    assert not re.search(r"(?<!\\)\]\(|://", text)
    rows = [row for row in text.splitlines() if row.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows[:len(EVIL) + 2]}) == 1


def test_no_name_is_a_command_in_latex(written):
    assert r"\begin{tabular}" in written["report.tex"]
    for table in re.findall(r"\\midrule\n(.*?)\\bottomrule", written["report.tex"], re.DOTALL):
        rows = table.strip().splitlines()
        assert all(row.endswith(r" \\") and not re.search(r"(?<!\\)[#%_^~]", row) for row in rows)
        assert len({len(re.findall(r"(?<!\\)&", row)) for row in rows}) == 1


def test_a_long_latex_table_runs_over_pages_with_its_head_on_each(study, kit, program, tmp_path):
    program("report", study([kit.Drawn(f"c{i}") for i in range(45)], samples=2), "--output", tmp_path / "out")
    text = (tmp_path / "out" / "report.tex").read_text()
    assert text.count(r"\begin{longtable}") == text.count(r"\endhead") > 0


def test_json_is_json_and_the_same_on_screen_in_the_file_and_from_python(study, kit, program, tmp_path):
    folder = study([kit.Drawn("a"), kit.Drawn("b")])
    found = json.loads(program("report", folder, "--json", "--output", tmp_path / "out").stdout,
                       parse_constant=lambda c: pytest.fail(c))
    assert found == json.loads((tmp_path / "out" / "report.json").read_text()) == json.loads(json.dumps(report(folder)))
    assert set(found) >= {"studies", "metric", "baseline", "cells", "comparisons", "notes", "groups", "factors",
                          "pivots", "marginals", "surfaces"}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name of a directory is text")
def test_the_name_of_a_directory_may_be_any_bytes(study, kit, program, tmp_path):
    folder = study([kit.Drawn("a")]).rename(tmp_path / os.fsdecode(b"st\xffudy"))
    program("report", folder, "--output", tmp_path / "out", status=0)
    assert "st?udy" in (tmp_path / "out" / "report.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(("escape", "text", "escaped"), [
    (in_html, "a<b>&'\"", "a&lt;b&gt;&amp;&#x27;&quot;"), (in_markdown, "a|b*c_d", r"a\|b\*c\_d"),
    (in_markdown, "http://x www.y", r"http:\//x www\.y"),
    (in_latex, r"50% \x_{1} --[", r"50\% \textbackslash{}x\_\{1\} -{}-{[}"),
    (line, "a\n b\x00c\u202e", "a b\ufffdc\ufffd"), (width, "漢字", 4)])
def test_escaping_by_hand(escape, text, escaped):
    assert escape(text) == escaped


def test_names_are_shortened_in_the_middle_and_stay_different():
    assert shortened("decision=consensus.majority,agents=3", 22) == "decision=…,agents=3"
    assert width(shortened("x" * 99, 30)) <= 30
    assert distinct(["style=simple,decision=majority", "style=simple,decision=voting", "cot"], 20) == [
        "simple, majority", "simple, voting", "cot"]
    assert len(set(distinct(["x" * 50 + "a" + "x" * 50, "x" * 50 + "b" + "x" * 50, "c"], 20))) == 3


def test_looking_for_the_command_loads_nothing_heavy():
    code = ("import sys; from madplug.cli.program import main; main(['report', '--help'], standalone_mode=False); "
            "print({'numpy', 'scipy', 'matplotlib', 'msgspec'} & set(sys.modules))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("set()\n")
    assert "DIR..." in done.stdout


def test_a_pipe_in_the_place_of_a_summary_is_not_waited_for(study, kit, tmp_path):
    folder = study([kit.Drawn("a")], samples=4, summary=None)
    os.mkfifo(folder / "summary.json")
    command = [sys.executable, "-m", "madplug", "report", str(folder), "--output", str(tmp_path / "out")]
    assert subprocess.run(command, capture_output=True, timeout=100).returncode == 0


DOCUMENT = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage{booktabs,longtable,graphicx}
\begin{document}
\input{report.tex}
\end{document}
"""


def test_every_kind_of_table_compiles_and_fits_on_the_page_or_runs_over_pages(study, kit, program, tmp_path):
    tool = shutil.which("pdflatex")
    if tool is None:
        pytest.skip("no LaTeX is installed")
    evil = r"voting.\x_{1}$%#&~^ [x] -- «ü»"
    cells = [kit.Drawn(f"{d}, {data}, {a}", agents=a, undecided=0.1, rounds=1,
                       settings={"debate.decision": d, "dataset": data, "debate.agents": a},
                       table={"match": {"cell": "voting.a, bench.one, 3", "by": "calls"}} if d == evil else {})
             for d in ("voting.a", "voting.b", "voting.c", evil) for a in (3, 5, 7)
             for data in ("bench.one", "bench.two", "bench.three", "bench.four", "bench.five")]
    (tmp_path / "paper.toml").write_text(
        'source = "A paper"\n[[values]]\nname = "a_b"\nmean = 0.5\nlevels = {agents = "3"}')
    folder = study(cells, samples=4, repeats=2, metrics={"qa.f1": 0.5, "dynamics.rounds": 2.0})
    program("report", folder, "--output", tmp_path / "out", "--compare", tmp_path / "paper.toml", "--price", "x=1/2",
            status=0)
    (tmp_path / "out" / "document.tex").write_text(DOCUMENT)
    done = subprocess.run([tool, "-interaction=nonstopmode", "-halt-on-error", "document.tex"], cwd=tmp_path / "out",
                          capture_output=True, text=True, errors="replace", check=False, timeout=300)
    if missing := re.search(r"File `(booktabs|longtable|graphicx)\.sty' not found", done.stdout):
        pytest.skip(f"LaTeX has no {missing[1]}")
    assert done.returncode == 0, done.stdout[-2000:]
    assert re.findall(r"Overfull \\hbox \(([\d.]+)pt too wide\)", done.stdout) == []
