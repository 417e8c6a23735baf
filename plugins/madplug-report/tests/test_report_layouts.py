"""Tables as papers lay them out: metrics, families and cells by name in rows and columns, and what a std is of."""

import re
import statistics
from itertools import product

import pytest

from madplug_report.building import Wanted, build
from madplug_report.charts import charts
from madplug_report.contents import pivot

DECISIONS = {"voting.simple": 0.9, "voting.ranked": 0.7, "voting.approval": 0.5, "consensus.majority": 0.3}
DATA = ({"use": "benchmarks.mmlu"}, {"use": "benchmarks.squad_v2"})
FAMILIES = ("votes=voting.simple,voting.ranked", "consensus=consensus.majority")


@pytest.fixture
def folder(study, kit):
    """Four decisions on two data sets; every second question of one has no reference."""
    def change(d):
        squad, id = "squad" in d.cell, f"{'squad' in d.cell}{d.sample.id}"
        return kit.replace(d, sample=kit.replace(d.sample, id=id, question=id),
                           references=() if squad and int(d.sample.id[1:]) % 2 else ("A",))
    cells = [kit.Drawn(f"decision={use},dataset={data['use']}", skill=skill, rounds=3, stop_when_agreed=True,
                       settings={"debate.decision": use, "dataset": data}, table={"dataset": data})
             for (use, skill), data in product(DECISIONS.items(), DATA)]
    return study(cells, samples=12, repeats=3, change=change)


def laid_out(folder, **wanted):
    report = build([folder], Wanted(**wanted))
    (table,) = report["pivots"]
    return report, table, pivot(report, table)


def test_metrics_stand_in_columns_beside_what_is_on_record_of_every_debate(folder):
    metrics = ("ended.1", "ended.2", "ended.3", "seconds", "qa.accuracy")
    report, table, shown = laid_out(folder, rows=("decision",), columns=("metric",), metrics=metrics)
    assert [column["label"] for column in table["columns"]] == list(metrics)
    for row, line in zip(table["rows"], table["fields"], strict=True):
        own = [c for c in report["cells"] if c["factors"]["decision"] == row["levels"]["decision"]]
        ran = [sum(c["rounds"].get(n, 0) for c in own) / sum(sum(c["rounds"].values()) for c in own) for n in (1, 2, 3)]
        assert [field["mean"] for field in line[:3]] == pytest.approx(ran)
        assert line[4]["mean"] == pytest.approx(statistics.fmean(c["metrics"]["qa.accuracy"]["mean"] for c in own))
    assert table["averages"] is None
    assert shown.title == "Metrics by decision"


def test_the_best_of_a_row_is_marked_where_metrics_or_data_sets_stand_in_rows(folder):
    for rows in (("metric",), ("dataset",)):
        _, table, _ = laid_out(folder, rows=rows, columns=("decision",), metrics=("qa.accuracy", "rounds"))
        assert all(max(line, key=lambda f: f["mean"])["best"] for line in table["fields"])
        assert all(sum(f["best"] for f in line) <= sum(f["mean"] == max(g["mean"] for g in line) for f in line)
                   for line in table["fields"])


def test_the_worst_is_marked_where_asked(folder):
    report, table, shown = laid_out(folder, rows=("decision",), worst=True)
    worst = min(line[0]["mean"] for line in table["fields"])
    marked = [row[0] for row in shown.rows if "↓" in row[1]]
    assert marked == [r["label"] for r, line in zip(table["rows"], table["fields"], strict=True)
                      if line[0]["mean"] == worst]
    assert "↓ the worst" in shown.notes[0]
    assert "↓" not in str(pivot({**report, "worst": False}, table).rows)


def test_families_stand_in_columns_and_levels_of_none_are_left_out_and_named(folder):
    report, table, shown = laid_out(folder, rows=("dataset",), columns=("decision.family",), families=FAMILIES)
    assert [column["label"] for column in table["columns"]] == ["votes", "consensus"]
    mean = {(c["factors"]["decision"], c["factors"]["dataset"]): c["metrics"]["qa.accuracy"]["mean"]
            for c in report["cells"]}
    for row, (votes, consensus) in zip(table["rows"], table["fields"], strict=True):
        both = [mean[use, row["label"]] for use in ("voting.simple", "voting.ranked")]
        assert votes["mean"] == pytest.approx(statistics.fmean(both))
        assert consensus["mean"] == mean["consensus.majority", row["label"]]
    assert "without voting.approval" in shown.notes[0]


@pytest.mark.parametrize(("spread", "said"), [
    ("repeats", "is over repeats"), ("mean", "the mean of the averaged cells' own"), ("cells", "over the averaged")])
def test_the_std_of_an_average_is_the_one_asked_for_and_named(folder, spread, said):
    report, table, shown = laid_out(folder, rows=("dataset",), columns=("decision.family",), families=FAMILIES,
                                    spread=spread)
    (votes, _), _ = table["fields"]
    own = [c["metrics"]["qa.accuracy"] for c in report["cells"] if c["cell"] in votes["cells"]]
    wanted = {"repeats": lambda: statistics.stdev(statistics.fmean(pair) for pair in zip(
                  *(m["per_repeat"] for m in own), strict=True)),
              "mean": lambda: statistics.fmean(m["std"] for m in own),
              "cells": lambda: statistics.stdev(m["mean"] for m in own)}
    assert votes["std"] == pytest.approx(wanted[spread]())
    assert said in shown.notes[0]


def test_cells_by_name_in_columns_are_a_table_of_one_row(study, kit):
    _, table, shown = laid_out(study([kit.Drawn("CoT", agents=1), kit.Drawn("Debate")], samples=4), columns=("cell",))
    assert [column["label"] for column in table["columns"]] == ["CoT", "Debate"]
    assert [row[0] for row in shown.rows] == ["qa.accuracy"]


def test_questions_with_and_without_an_answer_are_metrics_of_their_own(folder):
    parts = ("qa.accuracy", "qa.accuracy.answerable", "qa.accuracy.unanswerable")
    _, table, _ = laid_out(folder, rows=("dataset",), columns=("metric",), metrics=parts)
    (mmlu, squad) = table["fields"]
    assert (mmlu[0]["mean"], mmlu[2]) == (pytest.approx(mmlu[1]["mean"]), None)
    assert squad[0]["mean"] == pytest.approx((squad[1]["mean"] + squad[2]["mean"]) / 2)


def test_studies_of_one_file_with_two_models_are_a_factor_and_never_averaged(study, kit):
    def of(name, skill):
        models = {"small": {"use": "openai.chat", "model": f"org/{name}", "temperature": 1.0}}
        return study([kit.Drawn(f"decision={d}", skill=skill, settings={"debate.decision": d}, table={"models": models})
                      for d in ("voting.simple", "consensus.majority")], samples=4, name="same/" + name)
    folders = [of("a", 0.9), of("b", 0.2)]
    report = build(folders, Wanted(rows=("decision",)))
    assert [f["levels"] for f in report["factors"] if f["name"] == "model"] == [["org/a", "org/b"]]
    assert [table["by"] for table in report["pivots"]] == [{"model": "org/a"}, {"model": "org/b"}]
    assert all(len(f["cells"]) == 1 for table in report["pivots"] for line in table["fields"] for f in line)
    assert len({c["label"] for c in report["cells"]}) == 4


def test_directories_that_differ_in_nothing_else_are_a_factor(study, kit):
    folders = [study([kit.Drawn("a"), kit.Drawn("b")], samples=4, name=f"{n}/same") for n in "xy"]
    report = build(folders, Wanted(rows=("cell",)))
    assert [f["name"] for f in report["factors"]] == ["study"]


def test_a_study_decided_again_is_compared_with_the_one_that_was_run_and_rows_name_their_study(study, kit):
    run = [kit.Drawn("a", rounds=1, settings={"debate.rounds": 1}), kit.Drawn("b", settings={"debate.agents": 3})]
    again = [kit.replace(cell, table={**cell.table, "dataset": None}) for cell in run]
    source = {"recorded_from": {"cells": {cell.name: cell.resolved() for cell in run}}}
    report = build([study(run, samples=4, name="run"), study(again, samples=4, name="again", source=source)])
    assert "dataset" not in [f["name"] for f in report["factors"]]
    labels = [row["label"] for table in report["pivots"] for row in table["rows"]]
    assert labels == ["run/a", "run/b", "again/a", "again/b"]


def test_a_level_that_a_paradigm_brings_along_is_no_part_of_a_label(study, kit):
    rows = ({"debate.paradigm": "madc.cot"}, {"debate.paradigm": "madc.debate", "debate.visibility.strategy": "fixed"},
            {"debate.paradigm": "madc.debate", "debate.visibility.strategy": "most_last"})
    cells = [kit.Drawn(",".join(f"{k}={v}" for k, v in own.items()), settings=own, table={"debate": {
        "agents": 3, "rounds": 2, "visibility": {"use": "madc.ordered", "strategy": "most_last"}}}) for own in rows]
    folder = study(cells, samples=4)
    _, table, _ = laid_out(folder, rows=("paradigm", "strategy"))
    assert [row["label"] for row in table["rows"]] == ["cot", "debate, fixed", "debate, most_last"]


def test_a_table_that_is_asked_for_is_a_chart_with_its_numbers(folder):
    report, table, _ = laid_out(folder, rows=("decision",), columns=("dataset",))
    (chart,) = (c for c in charts(report) if c.name == "table")
    assert [(row["row"], row["column"], row["mean"]) for row in chart.rows] == [
        (row["label"], column["label"], field["mean"])
        for row, line in zip(table["rows"], table["fields"], strict=True)
        for column, field in zip(table["columns"], line, strict=True)]
    assert "std over repeats" in chart.caption
    assert not [c.name for c in charts(build([folder])) if c.name == "table"]


def test_rounds_are_a_violin_with_the_mean(folder):
    report = build([folder])
    (chart,) = (c for c in charts(report) if c.name == "rounds")
    for cell in report["cells"]:
        own = [row for row in chart.rows if row["cell"] == cell["label"]]
        assert {row["rounds"]: row["debates"] for row in own} == cell["rounds"]
        assert own[0]["mean"] == pytest.approx(sum(row["rounds"] * row["debates"] for row in own) / cell["debates"])
    assert re.search("mean", chart.svg)


def test_factors_can_be_averaged_over_and_cells_are_named_without_them(study, kit):
    cells = [kit.Drawn(f"{form}, {use}", skill=0.3 + 0.2 * k, settings={"debate.decision": use, "debate.form": form})
             for k, (form, use) in enumerate(product(("plain", "critical"), ("voting.simple", "voting.ranked")))]
    folder = study(cells, samples=9, repeats=2)
    metrics = ("rounds", "qa.accuracy", "difference.plain", "relative.plain")
    report, table, _ = laid_out(folder, rows=("metric",), columns=("cell",), over=("decision",), metrics=metrics)
    assert [column["label"] for column in table["columns"]] == ["plain", "critical"]
    mean = {c["cell"]: c["metrics"]["qa.accuracy"]["mean"] for c in report["cells"]}
    plain, critical = (statistics.fmean(mean[f"{form}, voting.{v}"] for v in ("simple", "ranked"))
                       for form in ("plain", "critical"))
    _, (_, own), (none, change), (_, part) = table["fields"]
    assert (own["mean"], change["mean"]) == (pytest.approx(critical), pytest.approx(critical - plain))
    assert (none["mean"], part["mean"]) == (0.0, pytest.approx(critical / plain - 1))
    left = build([folder], Wanted(cells=("!critical*",)))
    assert [c["cell"] for c in left["cells"]] == ["plain, voting.simple", "plain, voting.ranked"]


def test_a_sum_is_of_the_debates_of_a_repeat(study, kit):
    folder = study([kit.Drawn("a"), kit.Drawn("b")], samples=7, repeats=2,
                   change=lambda d: kit.replace(d, metrics={**d.metrics, "x.log2": -1.5 if d.repeat else None}))
    _, table, _ = laid_out(folder, rows=("cell",), metrics=("x.log2.sum",))
    assert [[f["mean"] for f in line] for line in table["fields"]] == [[-5.25], [-5.25]]
    assert table["fields"][0][0]["per_repeat"] == [0.0, -10.5]


def test_a_table_is_in_the_order_of_the_paper_that_it_is_compared_with(folder, tmp_path):
    path = tmp_path / "paper.csv"
    path.write_text("decision,value\nconsensus.majority,0.1\nvoting.ranked,0.2\n")
    _, table, _ = laid_out(folder, rows=("decision",), published=path)
    assert [row["label"] for row in table["rows"]] == [
        "consensus.majority", "voting.ranked", "voting.simple", "voting.approval"]
