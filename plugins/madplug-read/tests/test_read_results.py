"""What is printed at the end of a run: a table with a conclusion."""

import os

import pytest

import madplug
from madplug_read.results import conclusion, summary_rows, summary_table


def cell(name, means, **more):
    metrics = {n: {"mean": m, "ci95": [m - 0.1, m + 0.1], "n": 20, "proportion": n in ("qa.accuracy", "x.y.sure")}
               for n, m in means.items()}
    return {"cell": name, "oracle": False, "metrics": metrics, "samples": 20, "done": 20, "failed": 0, "undecided": 1,
            "calls": 60, "tokens": {"prompt": 400, "completion": 200}, "cost_usd": 0.0, **more}


def table(*cells, width=80):
    return summary_table({"cells": cells}, width)


MEANS = {"qa.accuracy": 0.5, "dynamics.rounds": 2.0}


def test_metrics_come_first_in_the_order_of_the_run_file():
    head = table(cell("a", {"z.last": 0.1, **MEANS}), width=120).splitlines()[0]
    assert head.split() == ["cell", "z.last", "qa.accuracy", "dynamics.rounds", "debates", "undecided", "failed",
                            "calls", "tokens"]


@pytest.mark.parametrize(("cells", "first"), [
    (["a", "b"], "cell"), (["decision=a", "decision=b"], ""),
    (["decision=" + "x" * 40, "decision=" + "y" * 40], "decision=" + "x" * 40)])
def test_a_table_is_readable_at_eighty_columns(cells, first):
    means = {"qa.accuracy": 0.5} if len(cells[0]) < 3 else {**MEANS, "qa.f1.recall": 0.2, "qa.f1.precision": 0.3}
    text = table(*(cell(name, means) for name in cells))
    assert max(map(len, text.splitlines())) <= 80
    assert text.splitlines()[0].split("  ")[0] == first
    assert text.count("[0.40, 0.60]") == 2


def test_metrics_of_several_figures_make_room_for_a_row_for_each_cell():
    means = {"qa.accuracy": 0.5} | {f"dynamics.entropy.round_{i}": 0.2 for i in (1, 2, 3)}
    lines = table(*(cell(name, means) for name in "abcdefg")).splitlines()
    assert len(lines) == 1 + 7 + 1
    assert lines[-1] == "dynamics.entropy: 3 figures in summary.json"


@pytest.mark.parametrize(("cells", "words"), [
    ([cell("a", MEANS)], "qa.accuracy lies between 0.40 and 0.60, with 95% confidence, from 20 samples."),
    ([cell("a", MEANS), cell("b", {"qa.accuracy": 0.6})],
     "'b' has the highest qa.accuracy, but its interval overlaps that of 'a': on 20 samples these intervals do not "
     "tell them apart; madplug report compares them question by question."),
    ([cell("a", MEANS), cell("b", {}, metrics={"qa.accuracy": {"mean": 1.0, "n": 1, "proportion": True}})],
     "One sample of 'b' says nothing about qa.accuracy in general."),
    ([cell("a", MEANS), cell("b", {"qa.accuracy": 0.6}), cell("c", {"qa.accuracy": 0.55})], "those of 2 other cells"),
    ([cell("a", MEANS), cell("b", MEANS)], "qa.accuracy is the same in both cells: 20 samples show no difference."),
    ([cell("a", MEANS), cell("b", MEANS), cell("c", {"qa.accuracy": 0.45})], "'a' is among those with the highest"),
    ([cell("a", MEANS), cell("b", {"qa.accuracy": 0.9})], "'b' has the highest qa.accuracy, and its interval overlaps "
     "no other cell's."),
    ([cell("a", MEANS), cell("b", {"qa.accuracy": 0.9}, settings={"dataset.path": "other.csv"})],
     "Cells with different data sets have different questions"),
    ([cell("a", MEANS, oracle=True)], "Components saw the references, so this is not about models.")])
def test_it_ends_with_what_can_be_concluded(cells, words):
    assert words in conclusion({"cells": cells})


def test_without_a_share_of_right_answers_nothing_is_concluded():
    assert conclusion({"cells": [cell("a", {"dynamics.rounds": 2.0})]}) is None
    assert conclusion({"cells": [cell("a", {"x.y.sure": 0.5})]}) is None
    assert conclusion({"cells": [cell("a", {"x.y.sure": 0.5, **MEANS})]}).startswith("qa.accuracy lies")
    assert conclusion({"cells": []}) is None


def test_a_score_that_some_samples_do_not_have_says_how_many_do():
    _, a, b = table(cell("a", MEANS), cell("b", MEANS, samples=24), width=150).splitlines()
    assert ("(n=20)" in a, "[0.40, 0.60] (n=20) " in b) == (False, True)


def test_a_cell_without_a_score_is_in_the_table():
    [shown, _], _ = summary_rows({"cells": [cell("broken", {}, done=0, failed=1), cell("whole", MEANS)]})
    assert (shown["qa.accuracy"], shown["debates"], shown["failed"]) == ("-", "1", "1")


def test_a_metric_of_many_figures_does_not_widen_the_table():
    several = {f"qa.m{i}": 0.5 for i in range(7)}
    [row], more = summary_rows({"cells": [cell("c", several | {f"m.flips.{i}": 0.5 for i in range(20)})]})
    assert [name for name in row if "." in name] == list(several)
    assert more == ["m.flips: 20 figures in summary.json"]


def test_a_run_and_print_of_its_result_show_the_table_and_the_conclusion(program, monkeypatch):
    shown = program("run", "study.toml", status=0).stdout
    result = madplug.run("study.toml", quiet=True)
    assert shown.startswith(f"study: finished\n\n{summary_table(result.summary)}\n\n{conclusion(result.summary)}\n\n")
    assert shown.startswith(f"{result}\n\n")
    monkeypatch.setattr("shutil.get_terminal_size", lambda fallback: os.terminal_size((40, 24)))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert max(map(len, str(result).splitlines())) <= 40
