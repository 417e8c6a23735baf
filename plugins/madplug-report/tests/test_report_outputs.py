"""The report for a terminal, as Markdown, LaTeX and a page: nothing in a name can act."""

import csv
import json
import os
import re
import subprocess
import sys
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner

from madplug.cli.program import main
from madplug_report import report
from madplug_report.escape import distinct, in_html, in_latex, in_markdown, line, shortened, width
from madplug_report.page import SCRIPT

EVIL = ["<script>alert(1)</script>", "a|b\\c{}_%#~`*[x](http://e.org) --", "esc\x1b[31m\u202eevil\nline", "' onload='x",
        '"q"', "[x]", "$x$ & ^y"]


def test_what_metrics_say_of_whole_cells_is_on_the_page(study, kit, madplug, tmp_path):
    folder = study([kit.Drawn("a"), kit.Drawn("b")])
    summary = json.loads((folder / "summary.json").read_text())
    summary["cells"][0]["figures"] = {"qa.accuracy": {"accuracy_decided": 0.625, "debates": 40, "names": ["x"]}}
    (folder / "summary.json").write_text(json.dumps(summary))
    assert madplug("report", folder, "--output", tmp_path / "out").exit_code == 0
    for name in ("report.md", "report.html"):
        text = (tmp_path / "out" / name).read_text(encoding="utf-8").replace("\\", "")
        assert "qa.accuracy.accuracy_decided" in text
        assert "0.625" in text


def test_a_terminal_leaves_out_a_metric_of_many_figures_and_says_where_they_are(study, kit, madplug, tmp_path):
    more = {**{f"kit.few.{i}": 0.5 for i in range(6)}, **{f"kit.many.{i}": 0.5 for i in range(7)}}
    folder = study([kit.Drawn("a")], change=lambda d: kit.replace(d, metrics={**d.metrics, **more}))
    printed = madplug("report", folder, "--output", tmp_path / "out").stdout
    assert ("kit.few.5" in printed, "kit.many.5" in printed) == (True, False)
    assert "kit.many: 7 figures, with --output and --json" in printed
    assert "kit.many.5" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8").replace("\\", "")


@pytest.fixture(scope="module")
def written(kit, tmp_path_factory):
    """A report of a study with evil names: the files' texts by name, and what was printed."""
    def change(d):
        said = tuple(kit.replace(m, content="<script>alert(2)</script>", answer="<b>") for m in d.messages)
        return kit.replace(d, messages=said, metrics={**d.metrics, "<i>x": 1.0})
    cells = [kit.Drawn(n, undecided=0.2, failed=0.1, oracle=True, settings={"<u>": n}) for n in EVIL]
    folder = tmp_path_factory.mktemp("evil")
    kit.write(folder / "s", map(change, kit.draw(cells, 12)), cells, name="s")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "1000")
        done = CliRunner().invoke(main, ["report", str(folder / "s"), "--output", str(folder / "out")])
    assert done.exit_code == 0, done.output
    files = {p.name: p.read_text(encoding="utf-8") for p in (folder / "out").iterdir() if p.is_file()}
    return {**files, "printed": done.stdout}


def test_every_file_is_written_and_named(written):
    assert set(written) == {"report.md", "report.tex", "report.json", "report.html", "cells.csv", "table.csv",
                            "comparisons.csv", "printed"}
    assert written["printed"].count("written: ") == 7


def test_figures_are_files_where_asked(study, kit, madplug, refused, tmp_path):
    folder = study([kit.Drawn("a")], samples=3)
    assert madplug("report", folder, "--output", tmp_path / "out", "--figures").exit_code == 0
    assert (tmp_path / "out" / "figures" / "accuracy.pdf").is_file()
    assert "--figures: needs --output DIR" in refused(folder, "--figures")


def test_no_name_is_a_formula_in_a_spreadsheet(study, kit, madplug, tmp_path):
    madplug("report", study([kit.Drawn("=1+1"), kit.Drawn("@x")]), "--output", tmp_path / "out")
    rows = list(csv.DictReader((tmp_path / "out" / "cells.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["cell"] for row in rows] == ["'=1+1", "'@x"]


def test_every_table_shows_the_share_of_undecided_and_failed_debates(written):
    for name, tables in (("printed", 4), ("report.md", 5)):
        heads = [row for row in written[name].splitlines() if re.match(r"\|? ?cell\b", row)]
        assert len(heads) == tables, name
        assert all("undecided" in row and "failed" in row for row in heads)
    tables = written["report.tex"].split(r"\caption{")[1:]  # each may be in parts
    assert len(tables) == 5
    assert all("undecided" in table and "failed" in table for table in tables if "Marginal means" not in table)


def test_no_escape_of_a_name_reaches_the_terminal(written):
    assert "\x1b" not in written["printed"]
    assert "\u202e" not in written["printed"]


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


def test_the_page_loads_nothing_and_runs_only_its_own_script(written):
    page = Page(written["report.html"].replace(f"<script>{SCRIPT}</script>", ""))
    assert not page.tags & {"script", "img", "iframe", "object", "embed", "link", "image", "foreignobject", "b", "u",
                         "i"}
    assert not [k for k, _ in page.attributes if k.startswith("on")]
    links = [v for k, v in page.attributes if k in ("href", "src", "xlink:href")]
    assert all(v.startswith("#") for v in links)
    hashed = b64encode(sha256(SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hashed}'"
    assert ("content", policy) in page.attributes
    assert "@import" not in written["report.html"]
    assert not re.search(r"url\((?!#)", written["report.html"])


def test_names_are_on_the_page_as_text(written):
    text = "".join(Page(written["report.html"]).data)
    for name in EVIL:
        assert f"{line(name)} (oracle)" in text


def test_no_name_is_markup_in_markdown(written):
    text = written["report.md"]
    assert r"\<script\>" in text
    assert not re.search(r"(?<!\\)\]\(", text)
    assert "://" not in text
    rows = [row for row in text.splitlines() if row.startswith("|")]
    columns = {len(re.findall(r"(?<!\\)\|", row)) for row in rows[:len(EVIL) + 2]}
    assert len(columns) == 1


def test_no_name_is_a_command_in_latex(written):
    text = written["report.tex"]
    body = re.findall(r"\\midrule\n(.*?)\\bottomrule", text, re.DOTALL)
    for table in body:
        for row in table.strip().splitlines():
            assert row.endswith(r" \\")
            assert not re.search(r"(?<!\\)[#%_^~]", row)
            assert len(re.findall(r"(?<!\\)&", row)) == len(re.findall(r"(?<!\\)&", table.splitlines()[0]))
    assert r"\begin{tabular}" in text


def test_a_long_latex_table_runs_over_pages(study, kit, madplug, tmp_path):
    folder = study([kit.Drawn(f"c{i}") for i in range(45)], samples=2)
    madplug("report", folder, "--output", tmp_path / "out")
    assert r"\begin{longtable}" in (tmp_path / "out" / "report.tex").read_text()


def test_json_is_json_and_the_same_on_screen_and_in_the_file(study, kit, madplug, tmp_path):
    folder = study([kit.Drawn("a"), kit.Drawn("b")])
    shown = madplug("report", folder, "--json", "--output", tmp_path / "out").stdout
    assert json.loads(shown) == json.loads(json.dumps(report(folder)))
    found = json.loads(shown, parse_constant=lambda c: pytest.fail(c))
    assert found == json.loads((tmp_path / "out" / "report.json").read_text())
    assert set(found) >= {"studies", "metric", "baseline", "cells", "comparisons", "notes", "groups", "factors",
                          "pivots", "marginals", "surfaces"}


def test_the_report_says_how_its_figures_were_made(written):
    for name in ("report.md", "report.html"):
        text = written[name].replace("\\", "")
        assert "undecided ones included" in text
        assert "Holm" in text
        assert "Wilson" in text


def test_an_output_that_cannot_be_written_is_a_clear_message(study, kit, refused, tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refused(study([kit.Drawn("a")]), "--output", tmp_path / "file" / "out")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name of a directory is text")
def test_the_name_of_a_directory_may_be_any_bytes(study, kit, madplug, tmp_path):
    folder = study([kit.Drawn("a")]).rename(tmp_path / os.fsdecode(b"st\xffudy"))
    done = madplug("report", folder, "--output", tmp_path / "out")
    assert done.exit_code == 0
    assert "st?udy" in (tmp_path / "out" / "report.json").read_text(encoding="utf-8")


def test_escaping_by_hand():
    assert in_html("a<b>&'\"") == "a&lt;b&gt;&amp;&#x27;&quot;"
    assert in_markdown("a|b*c_d") == r"a\|b\*c\_d"
    assert in_markdown("http://x www.y") == r"http:\//x www\.y"
    assert in_latex(r"50% \x_{1} --[") == r"50\% \textbackslash{}x\_\{1\} -{}-{[}"
    assert line("a\n b\x00c\u202e") == "a b\ufffdc\ufffd"


def test_names_are_shortened_in_the_middle_and_stay_different():
    assert shortened("decision=consensus.majority,agents=3", 22) == "decision=…,agents=3"
    assert width(shortened("x" * 99, 30)) <= 30
    assert width("漢字") == 4
    assert distinct(["style=simple,decision=majority", "style=simple,decision=voting", "cot"], 20) == [
        "simple, majority", "simple, voting", "cot"]
    short = distinct(["x" * 50 + "a" + "x" * 50, "x" * 50 + "b" + "x" * 50, "c"], 20)
    assert len(set(short)) == 3


def test_looking_for_the_command_loads_nothing_heavy():
    code = ("import sys; from madplug.cli.program import main; main(['report', '--help'], standalone_mode=False); "
            "print({'numpy', 'scipy', 'matplotlib', 'msgspec'} & set(sys.modules))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("set()\n")
    assert "DIR..." in done.stdout


def test_a_pipe_in_the_place_of_a_summary_is_not_waited_for(study, kit, tmp_path):
    folder = study([kit.Drawn("a")], samples=4)
    (folder / "summary.json").unlink()
    os.mkfifo(folder / "summary.json")
    command = [sys.executable, "-m", "madplug", "report", str(folder), "--output", str(tmp_path / "out")]
    assert subprocess.run(command, capture_output=True, timeout=100).returncode == 0
