"""Studies and debates in a notebook: pages without an import, progress as a line, and everything escaped."""

import subprocess
import sys
from dataclasses import replace
from importlib.metadata import distribution
from importlib.util import find_spec

import pytest

import madplug
from madplug import Agent, DebateResult, Decision, Message, Persona, Sample
from madplug_read import conclusion, madplug_register_progress, summary_rows
from madplug_read.bar import Terminal
from madplug_read.markup import debate_page, figure, reader_page, study_page

EVIL = "<script>alert(1)</script>\u202e"


@pytest.fixture
def result(program):
    """A study that was run."""
    return madplug.run("study.toml", settings={"models.m.letters": "<A"})


def test_a_debate_and_a_study_are_shown_escaped(result):
    debate = result.debates()[0]
    debate = replace(debate, cell=EVIL, sample=replace(debate.sample, question=EVIL, choices=(EVIL,)),
                     references=(EVIL,), decision=replace(debate.decision, answer=EVIL),
                     messages=tuple(replace(m, content=EVIL, key=EVIL) for m in debate.messages))
    summary = {**result.summary, "study": EVIL, "problems": [EVIL]}
    pages = [debate_page(debate), debate_page(replace(debate, error=EVIL)),
             study_page(replace(result, summary=summary))]
    for page in pages:
        assert ("<script" in page, "\u202e" in page, "&lt;script&gt;" in page) == (False, False, True)
    assert "Round 2" in pages[0]


def test_a_study_is_shown_with_the_table_and_the_conclusion_of_the_terminal(result):
    page = study_page(result)
    for row in summary_rows(result.summary)[0]:
        assert "".join(f"<td>{value}</td>" for value in row.values()) in page
    assert conclusion(result.summary) in page
    with result.open() as study:
        pages = [page, reader_page(study)]
    (name, found), = result.summary["cells"][0]["metrics"].items()
    assert f"<th>cell</th><th>{name}</th>" in pages[1]
    assert "<th>calls</th><th>tokens</th>" in page, "means"
    assert "<th>all calls</th><th>all tokens</th>" in pages[1], "sums"
    assert f"<td>main</td><td>{figure(found, 6)}</td><td>6</td>" in pages[1]
    if find_spec("madplug_view"):
        assert all(f"madplug view {result.folder}</p>" in page for page in pages)


def test_a_debate_has_letters_models_and_marks_changes_of_mind_and_what_is_right():
    messages = tuple(Message(i, i + 1, 0, 0, "draft", "text", answer=key, key=key) for i, key in enumerate("ABB"))
    page = debate_page(DebateResult("c", 1, Sample("q", "?", ("red", "blue")), ("B",), (Agent(0, Persona("Ann"), "m"),),
                                    messages, Decision("B"), metrics={"qa.accuracy": 1.0}))
    assert "A) red<br>B) blue" in page
    assert page.count("changed from A to <b>B</b>") == 1
    assert "c, repeat 1</p>" in page
    assert page.count("Ann (m)") == 3
    assert page.count("<b>B</b> (right)") == 3


@pytest.mark.parametrize(("references", "marks"), [(("B",), 2), (("blue",), 0), ((), 0)])
def test_letters_of_choices_are_wrong_where_the_reference_is_another_letter(references, marks):
    page = debate_page(DebateResult("c", 0, Sample("q", "?", ("red", "blue", "green")), references,
                                    (Agent(0, Persona("Ann"), "m"),), tuple(
        Message(i, 1, 0, 0, "draft", "text", answer=key, key=key) for i, key in enumerate("AC")), None))
    assert page.count("(wrong)") == marks


NOTEBOOK = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(history_manager=None)
html = shell.display_formatter.formatters["text/html"]
html.enabled = True
{begin}
import madplug
result = madplug.run("study.toml", quiet={quiet})
with result.open() as study:
    for record in (result, study, next(study.debates())):
        print("page", (html(record) or "none")[:8])
"""


def in_notebook(begin, quiet=False):
    """What the cells of a notebook print; what is displayed is printed as text."""
    pytest.importorskip("IPython")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", NOTEBOOK.format(begin=begin, quiet=quiet)], text=True,
                          capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_in_a_notebook_a_study_shows_its_progress_and_records_are_pages(program):
    printed = in_notebook("shell.kernel = object()")
    assert "IPython.core.display.HTML" in printed
    assert printed.count("page <div><p>") == 3


def test_a_quiet_study_shows_no_progress_and_without_the_extension_there_are_no_pages(program):
    assert in_notebook("shell.kernel = object()", quiet=True) == "page none\n" * 3
    assert [type(observer) for observer in madplug_register_progress()] == [Terminal]  # outside a notebook


def test_ipython_loads_the_extension_when_it_starts(program):
    """By the file that the distribution installs: nothing has to be imported."""
    file, = (path for path in distribution("madplug-read").files if "ipython/startup" in str(path))
    assert in_notebook(f"shell.safe_execfile({str(file.locate())!r}, shell.user_ns)").count("page <div><p>") == 3
