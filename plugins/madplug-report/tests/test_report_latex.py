"""The LaTeX of a report compiles, and nothing in it is wider than the page."""

import re
import shutil
import subprocess

import pytest

DOCUMENT = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage{booktabs,longtable,graphicx}
\begin{document}
\input{report.tex}
\end{document}
"""


@pytest.fixture
def compiled(madplug, tmp_path):
    """Compile the report of a study; what LaTeX says of it."""
    tool = shutil.which("pdflatex")
    if tool is None:
        pytest.skip("no LaTeX is installed")

    def compiled(folder, *words):
        assert madplug("report", folder, "--output", tmp_path / "out", *words).exit_code == 0
        (tmp_path / "out" / "document.tex").write_text(DOCUMENT)
        done = subprocess.run([tool, "-interaction=nonstopmode", "-halt-on-error", "document.tex"],
                              cwd=tmp_path / "out", capture_output=True, text=True, errors="replace", check=False,
                              timeout=300)
        if missing := re.search(r"File `(booktabs|longtable|graphicx)\.sty' not found", done.stdout):
            pytest.skip(f"LaTeX has no {missing[1]}")
        assert done.returncode == 0, done.stdout[-2000:]
        return done.stdout
    return compiled


def too_wide(said):
    return [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt too wide\)", said)]


def test_every_kind_of_table_compiles_and_fits_on_the_page(study, kit, compiled, tmp_path):
    def change(d):
        return kit.replace(d, metrics={**d.metrics, "qa.f1": 0.5, "dynamics.rounds": 2.0})
    evil = r"voting.\x_{1}$%#&~^ [x] -- «ü»"
    budget = {"match": {"cell": "voting.a, bench.one, 3", "by": "calls"}}
    cells = [kit.Drawn(f"{d}, {data}, {a}", agents=a, undecided=0.1,
                       settings={"debate.decision": d, "dataset": data, "debate.agents": a},
                       table=budget if (d, data, a) == ("voting.b", "bench.one", 3) else {})
             for d in ("voting.a", "voting.b", evil) for a in (3, 5)
             for data in ("bench.one", "bench.two", "bench.three", "bench.four", "bench.five")]
    (tmp_path / "paper.toml").write_text(
        'source = "A paper"\n[[values]]\nname = "a_b"\nmean = 0.5\nlevels = {agents = "3"}')
    said = compiled(study(cells, samples=4, repeats=2, change=change), "--compare", tmp_path / "paper.toml",
                    "--price", "x=1/2")
    assert too_wide(said) == []


def test_a_table_over_pages_repeats_its_head_and_fits_on_them(study, kit, compiled, tmp_path):
    cells = [kit.Drawn(f"decision=voting.{d},agents={a}", agents=1, rounds=1,
                       settings={"debate.decision": f"voting.{d}", "debate.agents": a})
             for d in ("simple", "approval", "cumulative", "plurality") for a in range(1, 15)]
    said = compiled(study(cells, samples=2))
    assert too_wide(said) == []
    text = (tmp_path / "out" / "report.tex").read_text(encoding="utf-8")
    assert r"\endhead" in text
    assert text.count(r"\begin{longtable}") > 1
