"""`madplug read`: debates in the terminal, as far as they went."""

import json
import os
import pty
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace

import pytest
from click.testing import CliRunner
from damage import HOSTILE as HOSTILE_STUDIES
from damage import HOSTILE_ROWS

from madplug import Agent, DebateResult, Decision, Message, Persona, Sample, Vote
from madplug.cli.program import main
from madplug.store import Reader, open_recorder, open_study
from madplug_read.endings import told
from madplug_testing import wait_for

HOSTILE = "\x1b[31mred\x1b[0m\u202eturned <script>alert(1)</script>"


def debate(sample, keys=("A", "B", "B"), then=("B", "B", "B"), decision="B", cell="c", **more):
    said = [Message(i, 1, 0, i, "draft", f"I say {k}", answer=k, key=k) for i, k in enumerate(keys)]
    said += [Message(3 + i, 2, 0, i, "improve", f"Now {k}", answer=k, key=k, seen=(0, 1, 2))
             for i, k in enumerate(then)]
    agents = tuple(Agent(i, Persona(name), "m") for i, name in enumerate(("Ann", "Ben", "Cy")))
    made = Decision(decision) if decision else Decision.undecided("a tie")
    question = Sample(sample, f"Question {sample}?", ("yes", "no"))
    parts = {"repeat": 0, "agents": agents, "messages": tuple(said), "decision": made} | more
    return DebateResult(cell=cell, sample=question, references=("A",), **parts)


@pytest.fixture
def read(program):
    """Run `madplug read` in this process: `read(folder, "q1")`."""
    return lambda *words, **more: program("read", *words, **more)


def written(folder, *debates):
    """A study with these debates."""
    with closing(open_recorder(folder)) as recorder:
        for found in debates:
            wait_for(recorder.finish_debate(found))
    return folder


@pytest.fixture
def study(tmp_path):
    return written(tmp_path / "study", debate("q1"), debate("q2", then=("A", "B", "B"), decision="A"),
                   debate("q3", decision=None), debate("q1", repeat=1, decision="A"),
                   debate("q10", decision=None, error=f"ModelError: {HOSTILE}", messages=()),
                   debate("q1", cell="d", then=("A", "A", "A"), decision="A"))


def test_a_debate_is_told_from_the_question_to_the_cost(read, study):
    done = read(study, "q1", "--cell", "c", "--repeat", 0, status=0)
    for text in ("Question q1?", "A) yes", "reference: A", "Ann", "Round 1", "I say A", "[A] right",
                 "was shown round 1: Ann, Ben, Cy",
                 "round 2: Ann went from [A] right to [B] wrong, the answer of Ben and Cy, which it was shown",
                 "answers after round 2: B 3", "Decision [B] wrong", "0 calls"):
        assert text in done.stdout
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(("said", "seen", "told"), [
    ("ABB BAB", (0, 1, 2, 3, 4, 5), ", the answer of Ben, which it was shown"),
    ("BAA BBB", (0, 1, 2, 3, 4, 5), ", once the answer of Ben and Cy, but no longer of any agent that it was shown"),
    ("ABB BBB", (0, 1, 2, 3, 4, 5), ", an earlier answer of its own, which no other agent that it was shown gave"),
    ("BBB BBB", (0, 1), ", an answer that nothing it was shown gave"),
    ("BBB BBB", (), "")])
def test_an_answer_is_that_of_agents_whose_latest_shown_one_it_was(read, tmp_path, said, seen, told):
    keys = [*said.replace(" ", ""), "A"]
    messages = [Message(i, 1 + i // 3, 0, i % 3, "draft", key, answer=key, key=key, seen=seen if i == 6 else ())
                for i, key in enumerate(keys)]
    shown = read(written(tmp_path / "s", debate("q", messages=tuple(messages))), "q").stdout
    assert f"  round 3: Ann went from [B] wrong to [A] right{told}\n" in shown


def test_that_messages_were_changed_on_their_way_to_an_agent_that_changed_its_mind_is_told(read, tmp_path):
    made = debate("q")
    messages = tuple(replace(m, altered=(1, 2)) if m.round == 2 else m for m in made.messages)
    shown = read(written(tmp_path / "s", replace(made, messages=messages)), "q").stdout
    assert "which it was shown; some of what it was shown reached it in a changed form\n" in shown


def test_an_earlier_answer_that_counts_for_an_unread_one_is_told(read, tmp_path):
    shown = read(written(tmp_path / "s", debate("q", then=("A", None, "B"))), "q").stdout
    assert "answers after round 2: B 2, A 1 (Ben unread: the answer before stands here)" in shown


def test_what_could_not_be_read_is_named(read, tmp_path):
    made = debate("q", then=("A", None, "B"))
    first = replace(made.messages[0], data={"gate": {"unparsed": True}})
    ballots = Decision("B", votes=(Vote(0, {}, valid=False), Vote(2, {"B": 1})))
    folder = written(tmp_path / "s", replace(
        made, messages=(first, *made.messages[1:]), decision=ballots,
        notes={"cast": [{"unparsed": False}, {"why": "unread", "unparsed": True}], "fine": {"unparsed": "no"}}))
    parts = ("the vote of Ann", "the last answer of Ben", "notes.cast[1]")
    assert (f"  could not be read: {'; '.join(parts)} and 1 other; --data shows what was recorded\n"
            in read(folder, "q").stdout)
    assert (f"  could not be read: {'; '.join(parts)}; data.gate, message of Ann in round 1\n"
            in read(folder, "q", "--data").stdout)
    assert "could not be read" not in read(written(tmp_path / "t", debate("q")), "q").stdout


@pytest.mark.parametrize(("words", "lines"), [
    ((), ['data: {"retrieve": {"sources": ["a b', 'notes: {"attack": {"dropped": [1]}}']),
    (("--data",), ['"sources": [', '"a book"', '"dropped": ['])])
def test_what_plugins_recorded_is_shown_on_a_line_or_in_full(read, tmp_path, words, lines):
    data = {"retrieve": {"sources": ["a book"] * 40}}
    messages = (Message(0, 1, 0, 0, "draft", "I say A", answer="A", key="A", data=data),)
    folder = written(tmp_path / "s", debate("q", messages=messages, notes={"attack": {"dropped": [1]}}))
    shown = read(folder, "q", *words).stdout
    assert all(line in shown for line in lines)
    assert (shown.count("a book") == 40) == bool(words)


@pytest.mark.parametrize(("words", "line"), [
    ((), "  m.flips: TT 2; 7 of 8 are 0 or have no value"),
    (("--data",), "  m.flips: TT 2, f0 0, f1 0, f2 0, f3 0, f4 0, f5 0, rate -")])
def test_figures_of_a_metric_are_on_a_line_of_their_own(read, tmp_path, words, line):
    flips = {"m.flips.TT": 2.0} | {f"m.flips.f{i}": 0.0 for i in range(6)} | {"m.flips.rate": None}
    folder = written(tmp_path / "s", debate("q", metrics={"qa.accuracy": 0.0, **flips, "qa.oracle": 1.0}))
    assert f"  qa.accuracy 0, qa.oracle 1\n{line}\n" in read(folder, "q", *words).stdout


@pytest.mark.parametrize(("words", "samples"), [
    ([], ["c q1", "c q2", "c q3", "c q10", "c q1 repeat 1", "d q1"]), (["--failed"], ["c q10"]), (["--tie"], []),
    (["--undecided"], ["c q3"]), (["--wrong"], ["c q1"]),
    (["--changed"], ["c q1", "c q3", "c q1 repeat 1", "d q1"]), (["--changed", "--wrong"], ["c q1"]),
    (["--cell", "d"], ["d q1"]), (["--repeat", "1"], ["c q1 repeat 1"]), (["--failed", "--cell", "d"], [])])
def test_lists_of_debates(read, study, words, samples):
    shown = read(study, *words, status=0).stdout
    listed = [" ".join(line.split()) for line in shown.splitlines() if line[:3] in ("c  ", "d  ")]
    assert len(listed) == len(samples)
    assert all(line.startswith(sample) for line, sample in zip(listed, samples, strict=True))
    assert samples or "no such debates" in shown


@pytest.mark.parametrize(("words", "lines", "said"), [
    ([], 2, "the first 2 of 6 debates; --all lists every one"), (["--cell", "d"], 1, "1 debate; madplug read DIR"),
    (["--changed"], 2, "4 of 6 debates, the first 2 here; --all lists every one"),
    (["--wrong"], 1, "1 of 6 debates; madplug read DIR"),
    (["--all"], 6, "6 debates; madplug read DIR SAMPLE shows one in full")])
def test_a_long_list_is_cut_short_and_says_so(read, study, monkeypatch, words, lines, said):
    monkeypatch.setattr("madplug_read.listing.LISTED", 2)
    shown = read(study, *words).stdout.splitlines()
    assert len(shown) == lines + 1
    assert shown[-1].startswith(said)


def test_a_list_reads_no_more_debates_than_it_shows(read, study, monkeypatch):
    looked_at = []
    debate = Reader.debate
    monkeypatch.setattr("madplug_read.listing.LISTED", 2)
    monkeypatch.setattr(Reader, "debate", lambda self, id: looked_at.append(id) or debate(self, id))
    read(study)
    assert len(looked_at) == 2
    assert len(read(study, "--json").stdout.splitlines()) == 6


def test_a_list_as_json_has_an_object_per_line_and_a_debate_is_its_outline(read, study):
    rows = [json.loads(line) for line in read(study, "--json").stdout.splitlines()]
    assert [(r["cell"], r["sample"], r["answer"], r["right"]) for r in rows][:2] == [
        ("c", "q1", "B", False), ("c", "q2", "A", True)]
    found = json.loads(read(study, "q1", "--cell", "d", "--json").stdout)
    assert found["changes"][0]["agents"] == [0]
    assert found["traits"] == ["right", "changed", "wrong_to_right", "minority_right"]
    assert read(study, "q1").stdout.count("Question q1?") == 3  # of several cells and repeats each


def test_the_only_debate_of_a_study_is_shown_in_full_but_not_where_a_list_was_asked_for(read, tmp_path):
    folder = written(tmp_path / "s", debate("question"))
    for words in ((), ("--data",), ("--prompts",), ("--cell", "c")):
        assert "Round 1" in read(folder, *words, status=0).stdout
    assert read(folder, "--wrong", status=0).stdout.endswith("madplug read DIR SAMPLE shows one in full\n")
    assert set(json.loads(read(folder, "--json", status=0).stdout)) >= {"answer", "changes", "traits"}
    with closing(open_recorder(folder)) as recorder:
        wait_for(recorder.keep_fact("planned", 2))
    assert read(folder, status=0).stdout.endswith("1 debate; madplug read DIR SAMPLE shows one in full\n")


def test_text_of_a_model_is_inert(read, study):
    for words in ((), ("q10",)):
        shown = read(study, *words).stdout
        assert "<script>alert(1)</script>" in shown
        assert not {"\x1b", "\u202e"} & set(shown)


def test_answers_are_coloured_on_a_terminal_and_nowhere_else(study):
    ours, theirs = pty.openpty()
    subprocess.run([sys.executable, "-m", "madplug", "read", str(study), "q2"], stdout=theirs, timeout=60, check=True,
                   env={**os.environ, "TERM": "xterm-256color", "NO_COLOR": ""})
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "\x1b[1;36m[A]" in shown


@pytest.mark.parametrize(("words", "said"), [
    (["q22"], "there is no debate on sample 'q22'; did you mean 'q2'?"), (["Q3"], "did you mean 'q3'?"),
    (["q2", "--cell", "d"], "in cell 'd'"),
    (["--prompts"], "--prompts: is for debates shown in full; name a SAMPLE: madplug read "),
    (["--data", "--cell", "d"], " SAMPLE --data"), (["--prompts", "--json"], "--prompts: is for debates shown in full"),
    (["q2", "--repeat", "7"], "with repeat 7"), (["--cell", "e"], "--cell e: "), (["--repeat", "-1"], "--repeat")])
def test_a_mistake_is_a_message_with_the_nearest_right_thing(read, study, words, said):
    assert said in read(study, *words, status=2).stderr


@pytest.mark.parametrize(("words", "said"), [
    (["--dry-run"], "run: no option '--dry-run'; use madplug check FILE"),
    (["--limit", "3"], "run: no option '--limit'; use --set dataset.limit=3, or dataset.size=3 where questions are "
     "generated")])
def test_run_says_what_it_has_instead_of_options_of_other_programs(program, words, said):
    assert said in program("run", "study.toml", *words, status=2).stderr


def test_what_was_sent_and_replied_is_shown_on_request(program):
    program("run", "study.toml", "--quiet", status=0)
    plain, full = (program("read", "runs/study", "q0000", *more).stdout for more in ([], ["--prompts"]))
    assert "sent to m" not in plain
    assert (full.count("sent to m, 10 + 1 tokens"), full.count("--- reply")) == (4, 4)
    assert "--- discuss, Agent 1: sent to m" in full
    assert "user:" in full
    found = json.loads(program("read", "runs/study", "q0000", "--prompts", "--json").stdout)
    assert (len(found["prompts"]), found["messages"][0]["spent"]["prompt"]) == (4, 10)


def test_a_killed_study_reads_as_far_as_it_went(program):
    slow = ("--set", "models.m.latency=3.0", "--set", "models.m.max_in_flight=1")
    run = subprocess.Popen([sys.executable, "-m", "madplug", "run", "study.toml", "--quiet", *slow])
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and "not ended" not in program("read", "runs/study").stdout:
            assert run.poll() is None
            time.sleep(0.05)
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait()
    listed = [line.split() for line in program("read", "runs/study").stdout.splitlines() if "not ended" in line]
    assert "Not decided yet" in program("read", "runs/study", listed[0][1]).stdout


def test_a_study_that_is_damaged_or_hostile_is_a_message(program, tmp_path):
    """If this fails: the exception that is raised here would have reached the user."""
    program("run", "study.toml", "--quiet")
    shutil.move(tmp_path / "runs/study", tmp_path / "whole")
    for statement in ("", *HOSTILE_STUDIES.values(), *HOSTILE_ROWS):
        shutil.copytree(tmp_path / "whole", tmp_path / "runs/study", dirs_exist_ok=True)
        if statement:
            with closing(sqlite3.connect(tmp_path / "runs/study/study.db")) as db, db:
                db.execute(statement.replace("sample = 'q'", "sample = 'q0000'"))
        else:
            (tmp_path / "runs/study/study.db").write_bytes(b"\x89PNG" * 3000)
        for words in ((), ("q0000", "--prompts")):
            done = program("read", "runs/study", *words)
            assert (done.exit_code == 2 and "runs/study: " in done.stderr) or (statement and done.exit_code == 0)


@pytest.mark.parametrize("charset", ["ascii", "latin-1", "cp1252"])
def test_a_terminal_with_fewer_characters_or_none_shows_the_others_as_question_marks(charset, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "0")  # a terminal that says it has no columns
    folder = written(tmp_path / "study", debate("q1", keys=("\u4e2d", "B", "B")))
    for words, shown in (("q1",), "I say ?"), ((), "q1"):
        done = CliRunner(charset=charset).invoke(main, ["read", str(folder), *words], prog_name="madplug")
        assert (done.exit_code, shown in done.stdout) == (0, True), done.exception


@pytest.mark.parametrize(("name", "decision", "sentence"), [
    ("undecided", "Decision.undecided('none')", "6 of 6 debates of 'main' ended undecided (none)"),
    ("fallback", "Decision(key, fallback=True, reason='odd' if debate.sample.id[-1] == '0' else 'no vote')",
     "6 of 6 debates of 'main' were decided by the fallback (most often no vote)"),
    ("unread", "Decision(key, votes=(Vote(0, {}, valid=False),))",
     "in 6 of 6 debates of 'main' a final answer, a ballot, a persona or another reply could not be read"),
    ("failed", "int(debate.sample.id)", "6 debates failed")])
def test_how_debates_ended_is_told_with_the_commonest_reason(program, tmp_path, name, decision, sentence):
    (tmp_path / "mine.py").write_text(f"""
from madplug import Decision, DecisionProtocol, Vote
class First(DecisionProtocol):
    name = "first"
    def at_end(self, debate):
        key = debate.transcript.messages[0].key
        return {decision}
""")
    done = program("run", "study.toml", "--yes", "--set", "debate.decision=./mine.py:First", "--set", "dataset.size=6")
    assert f"{sentence}; madplug read runs/study --{name} lists them" in done.stdout
    assert ("1 more failed in other ways" in done.stderr) == (name == "failed")
    assert json.loads((tmp_path / "runs/study/summary.json").read_text())["cells"][0][name] == 6
    with open_study(tmp_path / "runs/study") as study:
        assert getattr(study.overview()[0], name) == 6


def test_one_debate_was_decided_by_the_fallback_and_is_told_so_in_the_singular(tmp_path):
    end = Decision("A", fallback=True, reason="no vote")
    [sentence] = told(written(tmp_path / "study", replace(debate("q1"), decision=end), debate("q2")))
    assert sentence.startswith("1 of 2 debates of 'c' was decided by the fallback (no vote); ")


def test_a_metric_that_gave_debates_no_score_is_told(program, tmp_path):
    (tmp_path / "mine.py").write_text("""
from madplug import Metric
class Odd(Metric):
    name = "odd"
    def score(self, debate, references):
        return None if debate.sample.id[-1] in "01" else 1.0
""")
    done = program("run", "study.toml", "--yes", "--set", 'metrics=["./mine.py:Odd"]', "--set", "dataset.size=6")
    assert "mine.py:Odd has no score in 2 of 6 debates, which its means leave out" in done.stdout
