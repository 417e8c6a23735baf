"""A study grows in its directory: what is new is paid for, what is dropped stays, and nothing recorded changes."""

import re

import pytest
from tests_support import RUN, counts, exported, paid, summary

from madplug.store import open_study
from madplug.study.compatibility import brief, conflicts, differences, refusal

LEDGER = ("--set", "models.m.ledger=calls.txt")
SWEEP = RUN + '\n[sweep]\n"debate.rounds" = [1, 2]\n'

@pytest.mark.parametrize(("text", "words", "new"), [
    (RUN, ("--set", "repeats=2"), 24), (RUN, ("--set", "dataset.size=9"), 12),
    (SWEEP, ("--set", 'sweep."debate.rounds"=[1, 2, 3]'), 12),
    (RUN + '[[cells]]\nname="a"\n', ("--set", 'cells=[{name="b", debate={agents=3}}, {name="a"}]'), 24)])
def test_the_same_command_goes_on_and_pays_only_for_what_is_new(program, write, tmp_path, text, words, new):
    assert program("run", write(text), *LEDGER).returncode == 0
    before = paid(tmp_path)
    done = program("run", write(text), *words, *LEDGER)
    assert done.returncode == 0, done.stderr
    assert paid(tmp_path) - before == new
    with open_study(tmp_path / "runs/study") as study:
        assert [cell.cell for cell in study.overview()] == study.cells() == [
            cell["cell"] for cell in summary(tmp_path)["cells"]], "as in the run file"
    assert program("run", write(text), *words, "--output", "fresh").returncode == 0
    assert exported(tmp_path / "runs/study") == exported(tmp_path / "fresh")

def test_what_is_dropped_stays_on_record_unreported(program, write, tmp_path):
    program("run", write(SWEEP), "--set", "repeats=2", *LEDGER)
    before = paid(tmp_path)
    small = ("--set", 'sweep."debate.rounds"=[2]', "--set", "repeats=1", "--set", "dataset.size=4")
    done = program("run", write(SWEEP), *small, *LEDGER)
    assert (done.returncode, paid(tmp_path)) == (0, before)
    [cell] = summary(tmp_path)["cells"]
    assert (cell["cell"], cell["done"], cell["repeats"], cell["samples"]) == ("rounds=2", 4, 1, 4)
    assert counts() == {"done": 4, "failed": 0, "left": 0, "calls": before}
    assert len(exported(tmp_path / "runs/study")) == 4
    with open_study(tmp_path / "runs/study") as study:
        assert ([cell.cell for cell in study.overview()], study.cells()) == (["rounds=2"], ["rounds=2"])
    with open_study(tmp_path / "runs/study", everything=True) as study:
        assert len(study.overview()) == 2
        assert len(list(study.debates())) == len(list(study.figures())) == 24
    program("run", write(SWEEP), "--set", "repeats=2", *LEDGER)
    assert paid(tmp_path) == before, "what comes back was recorded before"
    assert sum(cell["done"] for cell in summary(tmp_path)["cells"]) == 24

def test_what_is_dropped_is_so_from_the_beginning_of_a_run_that_is_stopped(program, write, tmp_path):
    path = write()
    program("run", path)
    before = exported(tmp_path / "runs/study")
    assert program("run", path, "--set", "dataset.size=4", "--set", "repeats=9", "--set", "models.m.max_in_flight=1",
                   "--set", "limits.calls=25").returncode == 3
    after = exported(tmp_path / "runs/study")
    assert [row for row in after if row["repeat"] == 0] == before[:4]
    assert counts()["left"] == 36 - len(after) > 0
    assert program("run", path).returncode == 0
    assert len(exported(tmp_path / "runs/study")) == 6

def test_what_is_dropped_stays_so_when_the_next_run_is_stopped_while_it_prepares(program, write, tmp_path):
    (tmp_path / "asking.py").write_text("""
from madplug import Metric
class Asking(Metric):
    async def prepare(self, setup):
        async def made():
            return (await setup.ask("?", purpose="prepare")).text
        await setup.keep("asking:made", made)
    def score(self, debate, references):
        return {}
""")
    assert program("run", write(), "--set", "repeats=2").returncode == 0
    asking = ("--set", 'metrics=["kit.right", "./asking.py:Asking"]')
    assert program("run", write(), *asking, "--set", "limits.calls=24").returncode == 3
    assert (summary(tmp_path)["reason"], summary(tmp_path)["cells"][0]["done"]) == ("limits.calls: 24 reached", 6)
    for _ in range(2):  # what has been asked before the first debate stays told where a run asks nothing
        assert program("run", write(), *asking).returncode == 0
        assert summary(tmp_path)["cells"][0]["prepared"] == {"calls": 1, "tokens": 11}

def test_a_dropped_cell_is_told_once_and_cannot_come_back_as_another_one(program, write):
    cells = ('cells=[{name="a"}]', 'cells=[{name="b", debate={agents=3}}]', 'cells=[{name="a", debate={rounds=1}}]')
    assert program("run", write(), "--set", cells[0]).returncode == 0
    told = [program("run", write(), "--set", cells[1]).stderr for _ in range(2)]
    assert ["cells that the run file no longer has: a;" in text for text in told] == [True, False]
    done = program("run", write(), "--set", cells[2])
    assert done.returncode == 2
    assert "debate.rounds was 2 and is now 1" in done.stderr

@pytest.mark.parametrize(("change", "words"), [
    ("seed=3", "seed was 0 and is now 3"), ("oracle=true", "oracle was false and is now true"),
    ("models.m.letters=ABC", "models.m.letters was AB and is now ABC"),
    ("debate.turns=kit.one_by_one", "debate.turns was kit.everybody and is now kit.one_by_one"),
    ("debate.visibility.window=1", "debate.visibility.window was 2 and is now 1"),
    ('extensions=["kit.shout"]', "extensions was [] and is now [kit.shout]")])
def test_what_would_change_a_recorded_debate_is_refused_in_words(program, write, change, words):
    assert program("run", write()).returncode == 0
    done = program("run", write(), "--set", change)
    assert done.returncode == 2
    assert f"runs/study: its debates were run with other settings:\n  {words}\nA study can get further" in done.stderr
    assert program("run", write()).returncode == 0, "and nothing has happened to it"

def test_another_price_is_told_once_and_changes_nothing_on_record(program, write, tmp_path):
    price = "models.m.price={{prompt={},completion=0}}"
    assert program("run", write(), "--set", price.format(1e5)).returncode == 0
    before = summary(tmp_path)["paid"]
    done = program("run", write(), "--set", price.format(2e5))
    assert "the price of m has changed; calls on record keep what they cost" in done.stderr
    assert summary(tmp_path)["paid"] == before
    assert "the price" not in program("run", write(), "--set", price.format(2e5)).stderr


def test_a_difference_names_its_cells_once():
    def study(*rounds):
        return {"seed": 1, "cells": {f"c{i}": {"debate": {"rounds": n}, "metrics": [i]} for i, n in enumerate(rounds)}}

    assert conflicts(study(1, 1), study(2, 2)) == ["debate.rounds was 1 and is now 2 in every cell"]
    assert conflicts(study(1, 1, 1), study(2, 2, 1)) == ["debate.rounds was 1 and is now 2 in cells 'c0' and 'c1'"]
    assert conflicts(study(1, 1, 1, 1), study(2, 2, 2, 1)) == ["debate.rounds was 1 and is now 2 in 3 of 4 cells"]
    assert conflicts(study(1, 1), study(1)) == conflicts(study(1), study(1, 1)) == []

def test_each_difference_has_a_line_and_shows_where_long_texts_part():
    def study(rounds, prompt):
        return {"cells": {"c": {"debate": {"rounds": rounds, "styles": [{"use": "s", "prompt": prompt}]}}}}

    frame = "You are one of several agents who solve the task together.\n\n"
    found = conflicts(study(1, f"{frame}{{question}}"), study(2, f"{frame}Task: {{question}}"))
    assert refusal(found).splitlines() == [
        "its debates were run with other settings:", "  debate.rounds was 1 and is now 2",
        '  debate.styles[0].prompt was "...the task together.\\n\\n{question}" and is now '
        '"...the task together.\\n\\nTask: {question}"',
        "A study can get further cells, repeats, samples and metrics; for anything else choose another directory with "
        "--output, or give the changed cell another name"]

def test_another_name_for_a_cell_is_no_way_out_of_another_seed():
    assert refusal(conflicts({"seed": 1, "cells": {}}, {"seed": 2, "cells": {}})).endswith("directory with --output")


def test_differences_of_lists_and_components():
    old = {"styles": [{"use": "a.b", "x": 1}], "personas": [{"use": "p"}], "decision": {"use": "one", "k": 1}}
    new = {"styles": [{"use": "a.b", "x": 2}], "personas": [{"use": "p"}, {"use": "q"}], "decision": {"use": "two"}}
    found = [(place, brief(a), brief(b)) for place, a, b in differences(old, new)]
    assert found == [("styles[0].x", "1", "2"), ("personas", "[p]", "[p, q]"), ("decision", "one", "two")]
    assert len(brief("x" * 100)) == 60

# Metrics

GRADED = ("--set", 'metrics=["kit.right", "kit.graded"]')

def without_calls(rows):
    """Keys of calls and prompts' order aside, what a debate is."""
    return [{k: v for k, v in row.items() if k != "metrics"} | {"metrics": dict(sorted(row["metrics"].items()))}
            for row in rows]

def test_another_metric_or_other_options_of_one_score_what_is_recorded_and_ask_only_what_they_ask(
        program, write, tmp_path):
    program("run", write(), *LEDGER)
    assert paid(tmp_path) == 24
    done = program("run", write(), *GRADED, *LEDGER)
    assert done.returncode == 0, done.stderr
    assert paid(tmp_path) == 30
    before = summary(tmp_path)["cells"][0]
    assert {name: found["ci_method"] for name, found in before["metrics"].items()} == {
        "kit.right": "Wilson", "kit.graded.grade": "Wilson", "kit.graded.length": "Student's t"}
    assert program("run", write(), *GRADED, "--output", "fresh").returncode == 0
    assert without_calls(exported(tmp_path / "runs/study")) == without_calls(exported(tmp_path / "fresh"))
    program("run", write(), *GRADED, *LEDGER)
    assert paid(tmp_path) == 30
    other = ("--set", 'metrics=["kit.right", {use="kit.graded", rubric="strictly"}]')
    assert program("run", write(), *other, *LEDGER).returncode == 0
    after = summary(tmp_path)["cells"][0]
    assert (paid(tmp_path), list(after["metrics"])) == (36, list(before["metrics"]))
    assert after["calls"] == before["calls"] == 24, "the calls of metrics do not count as the debate's"

def test_a_dropped_metric_stays_on_record_unreported_and_comes_back_free(program, write, tmp_path):
    program("run", write(), *GRADED, *LEDGER)
    told = [program("run", write(), "--set", "repeats=2", *LEDGER).stderr for _ in (1, 2)]
    assert ["metrics that the run file no longer has: kit.graded; their scores stay" in text for text in told] == [
        True, False]
    assert paid(tmp_path) == 30 + 24
    assert list(summary(tmp_path)["cells"][0]["metrics"]) == ["kit.right"]
    assert list(exported(tmp_path / "runs/study")[0]["metrics"]) == ["kit.right"]
    with open_study(tmp_path / "runs/study") as study:
        assert {name for row in study.figures() for name in row["metrics"]} == {"kit.right"}
        assert {name for result in study.debates() for name in result.metrics} == {"kit.right"}
    with open_study(tmp_path / "runs/study", everything=True) as study:
        assert "kit.graded.grade" in next(study.debates()).metrics
    assert program("run", write(), *GRADED, "--set", "repeats=2", *LEDGER).returncode == 0
    assert paid(tmp_path) == 30 + 24 + 6, "only the second repeat was not graded"

@pytest.mark.parametrize("fewer", ["dataset.size=4", "repeats=1"])
def test_what_was_dropped_while_a_metric_was_added_is_scored_when_it_comes_back(program, write, tmp_path, fewer):
    whole = ("--set", "repeats=2")
    program("run", write(), *whole)
    assert program("run", write(), *whole, *GRADED, "--set", fewer).returncode == 0
    assert program("run", write(), *whole, *GRADED).returncode == 0
    assert program("run", write(), *whole, *GRADED, "--output", "fresh").returncode == 0
    assert without_calls(exported(tmp_path / "runs/study")) == without_calls(
        exported(tmp_path / "fresh"))

def test_a_study_of_which_nothing_was_answered_can_still_be_corrected(program, write, tmp_path):
    assert program("run", write(), "--set", "models.m.fault=refuse", "--set", "seed=1").returncode in (1, 3)
    assert summary(tmp_path)["paid"]["calls"] == 0
    assert program("run", write()).returncode == 0
    assert summary(tmp_path)["cells"][0]["done"] == 6


def test_a_study_of_which_no_debate_has_ended_can_be_corrected_also_where_calls_were_answered(program, write, tmp_path):
    one = ("--set", "models.m.max_in_flight=1")
    assert program("run", write(), *one, "--set", "limits.calls=1").returncode == 3
    assert program("run", write(), *one, "--set", "seed=1").returncode == 0
    assert summary(tmp_path)["cells"][0]["done"] == 6
    assert "other settings" in program("run", write(), *one).stderr


def test_a_cell_of_which_no_debate_has_ended_can_be_corrected_beside_one_that_is_finished(program, write, tmp_path):
    one = write(f"{RUN}[[cells]]\nname = 'one'\n")
    assert program("run", one).returncode == 0
    two = write(f"{RUN}[[cells]]\nname = 'one'\n[[cells]]\nname = 'two'\ndebate.rounds = 3\n")
    assert program("run", two, "--set", "limits.calls=25", "--set", "models.m.max_in_flight=1").returncode == 3
    done = program("run", two, "--set", "cells.two.debate.rounds=4")
    assert (done.returncode, [cell["done"] for cell in summary(tmp_path)["cells"]]) == (0, [6, 6]), done.stderr
    assert "in cell 'two'" in program("run", two, "--set", "cells.two.debate.rounds=5").stderr


def test_scoring_that_is_stopped_is_resumed(program, write, tmp_path):
    program("run", write(), *LEDGER)
    done = program("run", write(), *GRADED, *LEDGER, "--set", "limits.calls=27", "--set", "models.m.max_in_flight=1")
    assert (done.returncode, paid(tmp_path)) == (3, 27)
    assert counts()["done"] == 6, "no debate is lost"
    done = program("run", write(), *GRADED, *LEDGER)
    assert (done.returncode, paid(tmp_path)) == (0, 30)
    assert summary(tmp_path)["cells"][0]["calls"] == 24

@pytest.mark.parametrize("first", [(), GRADED])
def test_a_metric_that_fails_leaves_the_debate_as_it_is(program, write, tmp_path, first):
    odd = ("--set", "models.m.letters=CAB")
    program("run", write(), *odd, *first, *LEDGER)
    done = program("run", write(), *odd, *GRADED, *LEDGER)
    assert done.returncode == 1
    assert "problem: metric kit.graded: ValueError: C is not a grade" in done.stderr
    assert (summary(tmp_path)["cells"][0]["done"], paid(tmp_path)) == (6, 30)
    again = program("run", write(), *odd, *GRADED, *LEDGER)
    assert (again.returncode, paid(tmp_path)) == (1, 30), "it is tried again, and asks nothing twice"
    assert re.search(r"C is not a grade", again.stderr)


def test_a_model_that_only_a_metric_names_is_not_what_was_debated():
    def cell(graders, temperature):
        return {"debate": {"models": ["m"]}, "metrics": [{"use": "kit.graded", "grader": "g"}] if graders else [],
                "models": {"m": {"use": "x", "temperature": temperature}} | {n: {"use": "x", "t": 1} for n in graders}}

    def found(old, new):
        return conflicts({"cells": {"c": old}}, {"cells": {"c": new}})

    assert found(cell([], 0), cell(["g"], 0)) == found(cell(["g"], 0), cell([], 0)) == []
    assert found(cell([], 0), cell(["g"], 1)) == ["models.m.temperature was 0 and is now 1"]


# Calls of other studies

def test_calls_of_another_study_are_used_before_one_is_paid_for(program, write, tmp_path):
    program("run", write(), "--output", "runs/first", *LEDGER)
    write(RUN.replace("[dataset]", 'reuse = ["runs/first"]\n[dataset]'), "second.toml")
    done = program("run", "second.toml", "--output", "runs/second", "--set", "dataset.size=8", *LEDGER)
    assert done.returncode == 0, done.stderr
    assert paid(tmp_path) == 24 + 8
    cell = summary(tmp_path, "second")["cells"][0]
    assert (cell["done"], cell["calls"], summary(tmp_path, "second")["paid"]["calls"]) == (8, 32, 8)
    program("run", write(), "--output", "runs/fresh", "--set", "dataset.size=8")
    assert without_calls(exported(tmp_path / "runs/second")) == without_calls(
        exported(tmp_path / "runs/fresh"))


@pytest.mark.parametrize("change", ["seed=3", "models.m.letters=CD", "dataset.size=0"])
def test_other_seeds_and_models_share_nothing(program, write, tmp_path, change):
    program("run", write(), "--output", "runs/first", *LEDGER)
    before = paid(tmp_path)
    program("run", write(), "--set", 'reuse=["runs/first"]', "--set", change, *LEDGER)
    assert paid(tmp_path) == before * (1 if change == "dataset.size=0" else 2)


@pytest.mark.parametrize("shared", ["true", "false"])
def test_a_study_that_shares_otherwise_is_told_to_have_no_call_to_reuse(program, write, shared):
    other = "false" if shared == "true" else "true"
    program("run", write(), "--output", "runs/first", "--set", f"share_completions={other}", *LEDGER)
    done = program("run", write(), "--set", 'reuse=["runs/first"]', "--set", f"share_completions={shared}", *LEDGER)
    assert f"runs/first was run with share_completions = {other}, so none of its calls is" in done.stderr


def test_a_study_with_another_seed_is_told_to_have_no_call_to_reuse(program, write):
    program("run", write(), "--output", "runs/first", *LEDGER)
    done = program("run", write(), "--set", 'reuse=["runs/first"]', "--set", "seed=77", *LEDGER)
    assert "runs/first was run with seed = 0, so none of its calls is" in done.stderr


def test_a_study_to_reuse_that_does_not_exist_is_named(program, write, tmp_path):
    done = program("run", write(), "--set", 'reuse=["runs/frist"]')
    assert done.returncode == 2
    assert f"reuse[0]: there is no study in {tmp_path}/runs/frist" in done.stderr
