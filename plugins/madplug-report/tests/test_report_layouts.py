"""Tables as papers lay them out: metrics, families and cells by name in rows and columns, and what a std is of."""

import re
import statistics
from contextlib import closing
from itertools import product

import pytest

from madplug import UserError
from madplug.store import open_recorder
from madplug_report.building import Wanted, build
from madplug_report.charts import charts
from madplug_report.contents import figures, pivot
from madplug_report.texts import method
from madplug_testing import wait_for

FAMILIES = ("votes=voting.simple,voting.ranked", "consensus=consensus.majority")


def laid_out(folder, **wanted):
    report = build([folder], Wanted(**wanted))
    (table,) = report["pivots"]
    return report, table, pivot(report, table)


def test_metrics_stand_in_columns_beside_what_is_on_record_of_every_debate(crossed):
    metrics = ("ended.1", "ended.2", "ended.3", "seconds", "qa.accuracy")
    report, table, shown = laid_out(crossed, rows=("decision",), columns=("metric",), metrics=metrics)
    assert [column["label"] for column in table["columns"]] == list(metrics)
    for row, line in zip(table["rows"], table["fields"], strict=True):
        own = [c for c in report["cells"] if c["factors"]["decision"] == row["levels"]["decision"]]
        ran = [sum(c["rounds"].get(n, 0) for c in own) / sum(sum(c["rounds"].values()) for c in own) for n in (1, 2, 3)]
        assert [field["mean"] for field in line[:3]] == pytest.approx(ran)
        assert line[4]["mean"] == pytest.approx(statistics.fmean(c["metrics"]["qa.accuracy"]["mean"] for c in own))
    assert table["averages"] is None
    assert shown.title == "Metrics by decision"


def test_the_best_of_a_row_is_marked_where_metrics_or_data_sets_stand_in_rows(crossed):
    for rows in (("metric",), ("dataset",)):
        _, table, _ = laid_out(crossed, rows=rows, columns=("decision",), metrics=("qa.accuracy", "rounds"))
        for line in table["fields"]:
            best = (min if line[0]["metric"] == "rounds" else max)(f["mean"] for f in line)
            assert {f["mean"] for f in line if f["best"]} == {best}


def test_of_what_is_spent_the_least_is_the_best(crossed):
    report, table, _ = laid_out(crossed, rows=("decision",), metrics=("seconds",))
    for column in zip(*table["fields"], strict=True):
        means = [field["mean"] for field in column]
        assert [field["best"] for field in column] == [mean == min(means) < max(means) for mean in means]
    assert figures(report).head[-2] == "tokens/1"
    assert "all tokens for each score of 1" in " ".join(method(report))


def test_the_worst_is_marked_where_asked(crossed):
    report, table, shown = laid_out(crossed, rows=("decision",), worst=True)
    worst = min(line[0]["mean"] for line in table["fields"])
    assert [row[0] for row in shown.rows if "↓" in row[1]] == [
        r["label"] for r, line in zip(table["rows"], table["fields"], strict=True) if line[0]["mean"] == worst]
    assert "↓ the worst" in shown.notes[0]
    assert "↓" not in str(pivot({**report, "worst": False}, table).rows)


SPREADS = {  # what a note says of it, and how it is made of the averaged cells' figures
    "repeats": ("is over repeats", lambda own: statistics.stdev(
        statistics.fmean(pair) for pair in zip(*(m["per_repeat"] for m in own), strict=True))),
    "mean": ("the mean of the averaged cells' own", lambda own: statistics.fmean(m["std"] for m in own)),
    "cells": ("over the averaged", lambda own: statistics.stdev(m["mean"] for m in own))}


@pytest.mark.parametrize("spread", SPREADS)
def test_families_stand_in_columns_without_levels_of_none_with_the_std_that_is_asked_for(crossed, spread):
    report, table, shown = laid_out(crossed, rows=("dataset",), columns=("decision.family",), families=FAMILIES,
                                    spread=spread)
    assert [column["label"] for column in table["columns"]] == ["consensus", "votes"]
    own = {(c["factors"]["decision"], c["factors"]["dataset"]): c["metrics"]["qa.accuracy"] for c in report["cells"]}
    said, wanted = SPREADS[spread]
    for row, (consensus, votes) in zip(table["rows"], table["fields"], strict=True):
        both = [own[use, row["label"]] for use in ("voting.simple", "voting.ranked")]
        assert votes["mean"] == pytest.approx(statistics.fmean(metric["mean"] for metric in both))
        assert votes["std"] == pytest.approx(wanted(both))
        assert consensus["mean"] == own["consensus.majority", row["label"]]["mean"]
    assert "without consensus.unanimity" in shown.notes[0]
    assert said in shown.notes[0]


def test_cells_by_name_in_columns_are_a_table_of_one_row(study, kit):
    _, table, shown = laid_out(study([kit.Drawn("CoT", agents=1), kit.Drawn("Debate")], samples=4), columns=("cell",))
    assert [column["label"] for column in table["columns"]] == ["CoT", "Debate"]
    assert [row[0] for row in shown.rows] == ["qa.accuracy"]


def test_questions_with_and_without_an_answer_are_metrics_of_their_own(crossed):
    parts = ("qa.accuracy", "qa.accuracy.answerable", "qa.accuracy.unanswerable")
    _, table, _ = laid_out(crossed, rows=("dataset",), columns=("metric",), metrics=parts)
    (bbh, mmlu) = table["fields"]
    assert (bbh[0]["mean"], bbh[2]) == (pytest.approx(bbh[1]["mean"]), None)
    assert mmlu[0]["mean"] == pytest.approx((mmlu[1]["mean"] + mmlu[2]["mean"]) / 2)


def test_the_scores_on_a_group_of_questions_are_a_metric_of_their_own(study, kit):
    def grouped(d):
        group = "law.uk" if d.sample.id < "q00004" else "sum"
        return kit.replace(d, sample=kit.replace(d.sample, group=group), metrics={"qa.accuracy": float(group == "sum")})

    folder = study([kit.Drawn("a"), kit.Drawn("b")], samples=10, change=grouped)
    parts = ("qa.accuracy", "qa.accuracy.law.uk", "qa.accuracy.sum")
    _, table, _ = laid_out(folder, rows=("cell",), columns=("metric",), metrics=parts)
    assert [[field["mean"] for field in row] for row in table["fields"]] == [[0.6, 0, 1]] * 2
    with pytest.raises(UserError, match=r"--by: there is no factor 'group'; .* --metric qa\.accuracy\.GROUP"):
        build([folder], Wanted(by=("group",)))


def test_studies_of_one_file_with_two_models_are_a_factor_and_never_averaged(study, kit):
    folders = [study([kit.replace(cell, table={"models": {"small": {"use": "openai.chat", "model": f"org/{name}"}}})
                      for cell in kit.sweep(lambda _, skill=skill: skill, decision=("voting.simple", "judge.one"))],
                     samples=4, name="same/" + name) for name, skill in (("a", 0.9), ("b", 0.2))]
    report = build(folders, Wanted(rows=("decision",)))
    assert [f["levels"] for f in report["factors"] if f["name"] == "model"] == [["org/a", "org/b"]]
    assert [table["by"] for table in report["pivots"]] == [{"model": "org/a"}, {"model": "org/b"}]
    assert all(len(f["cells"]) == 1 for table in report["pivots"] for line in table["fields"] for f in line)
    assert len({c["label"] for c in report["cells"]}) == 4


def test_a_study_decided_again_is_compared_with_the_one_that_was_run_and_rows_name_their_study(study, kit):
    run = [kit.Drawn("a", rounds=1, settings={"debate.rounds": 1}), kit.Drawn("b", settings={"debate.agents": 3})]
    again = [kit.replace(cell, table={**cell.table, "dataset": None}) for cell in run]
    source = {"recorded_from": {"cells": {cell.name: cell.resolved() for cell in run}}}
    folders = study(run, samples=4, name="run"), study(again, samples=4, name="again", source=source)
    (folders[1] / "manifest.json").write_text('{"runs": [{"reuse": ["/elsewhere/run"]}, {}]}')
    with closing(open_recorder(folders[0])) as recorder:
        wait_for(recorder.keep_fact("edited", ["decision d: the code has changed"]))
    report = build(folders)
    assert "study 'run': decision d: the code has changed" in [note["text"] for note in report["notes"]]
    assert ["again" in note["text"] and "from run; cells have" in note["text"] for note in report["notes"]
            if note["about"] == "again"] == [True]
    assert "dataset" not in [f["name"] for f in report["factors"]]
    labels = [row["label"] for table in report["pivots"] for row in table["rows"]]
    assert labels == ["run/a", "run/b", "again/a", "again/b"]


def test_a_level_that_a_paradigm_brings_along_is_no_part_of_a_label(study, kit):
    rows = ({"debate.paradigm": "madc.cot"}, {"debate.paradigm": "madc.debate", "debate.visibility.strategy": "fixed"},
            {"debate.paradigm": "madc.debate", "debate.visibility.strategy": "most_last"})
    visibility = {"visibility": {"use": "madc.ordered", "strategy": "most_last"}}
    names = [",".join(f"{key.rpartition('.')[2]}={value}" for key, value in own.items()) for own in rows]
    folder = study([kit.Drawn(name, settings=own, table={"debate": visibility})
                    for name, own in zip(names, rows, strict=True)], samples=4)
    _, table, _ = laid_out(folder, rows=("paradigm", "strategy"))
    assert [row["label"] for row in table["rows"]] == ["cot", "debate, fixed", "debate, most_last"]


def test_a_table_that_is_asked_for_is_a_chart_with_its_numbers(crossed):
    report, table, _ = laid_out(crossed, rows=("decision",), columns=("dataset",))
    (chart,) = (c for c in charts(report) if c.name == "table")
    assert [(row["row"], row["column"], row["mean"]) for row in chart.rows] == [
        (row["label"], column["label"], field["mean"])
        for row, line in zip(table["rows"], table["fields"], strict=True)
        for column, field in zip(table["columns"], line, strict=True)]
    assert "std over repeats" in chart.caption
    assert not [c.name for c in charts(build([crossed])) if c.name == "table"]


def test_rounds_are_bars_with_the_mean(crossed):
    report = build([crossed])
    (chart,) = (c for c in charts(report) if c.name == "rounds")
    for cell in report["cells"]:
        own = [row for row in chart.rows if row["cell"] == cell["label"]]
        assert {row["rounds"]: row["debates"] for row in own} == cell["rounds"]
        assert own[0]["mean"] == pytest.approx(sum(row["rounds"] * row["debates"] for row in own) / cell["debates"])
    assert "mean" in chart.svg
    bars = re.search(r'<g id="rounds-PolyCollection[^>]*>(.*?)</g>\n   <', chart.svg, re.DOTALL)[1]
    assert bars.count("<path") == len(chart.rows)


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
    assert [[f["mean"] for f in line] for line in table["fields"][1:]] == [
        pytest.approx(line) for line in ([plain, critical], [0, critical - plain], [0, critical / plain - 1])]
    left = build([folder], Wanted(cells=("!critical*",)))
    assert [c["cell"] for c in left["cells"]] == ["plain, voting.simple", "plain, voting.ranked"]


def test_a_sum_is_of_the_debates_of_a_repeat(study, kit):
    folder = study([kit.Drawn("a"), kit.Drawn("b")], samples=7, repeats=2,
                   change=lambda d: kit.replace(d, metrics={**d.metrics, "x.log2": -1.5 if d.repeat else None}))
    _, table, _ = laid_out(folder, rows=("cell",), metrics=("x.log2.sum",))
    assert [[f["mean"] for f in line] for line in table["fields"]] == [[-5.25], [-5.25]]
    assert table["fields"][0][0]["per_repeat"] == [0.0, -10.5]


def test_a_table_is_in_the_order_of_the_paper_that_it_is_compared_with(crossed, tmp_path):
    path = tmp_path / "paper.csv"
    path.write_text("decision,value\nconsensus.majority,0.1\nvoting.ranked,0.2\n")
    _, table, _ = laid_out(crossed, rows=("decision",), published=path)
    assert [row["label"] for row in table["rows"]] == [
        "consensus.majority", "voting.ranked", "consensus.unanimity", "voting.simple"]
