"""Factors, groups, tables by factors, marginal means: what belongs together is compared, and nothing else."""

import csv
import json
import statistics

import numpy as np
import pytest
from scipy import stats

from madplug import open_study
from madplug.study.summary import scores_by_cell
from madplug_report.analysis import Analysis
from madplug_report.building import Wanted, build
from madplug_report.combining import combine, contrast
from madplug_report.contents import pivot
from madplug_report.factors import find_factors, label_levels
from madplug_report.reading import Debates
from madplug_report.sizes import to_settle
from madplug_report.studies import open_studies
from madplug_report.tables import latex, markdown

DATA = {"bbh": {"use": "benchmarks.bbh", "path": "data/bbh_ordering.jsonl"},
        "mmlu": {"use": "benchmarks.mmlu", "path": "data/mmlu.jsonl"}}
DECISIONS = ("consensus.majority", "consensus.unanimity", "voting.simple", "voting.ranked")
EASY = {"consensus.majority": 0.5, "consensus.unanimity": 0.55, "voting.simple": 0.9, "voting.ranked": 0.95}


@pytest.fixture
def crossed(study, kit):
    """Four decisions on two data sets, three repeats; the two data sets have different questions."""
    def crossed(samples=30, repeats=3, **more):
        cells = [kit.Drawn(f"decision={d},dataset=benchmarks.{name}(path={data['path']})", skill=EASY[d],
                           settings={"debate.decision": d, "dataset": data}, table={"dataset": data}, **more)
                 for d in DECISIONS for name, data in DATA.items()]

        def change(d):
            name = "bbh" if "bbh" in d.cell else "mmlu"
            return kit.replace(d, sample=kit.replace(d.sample, id=f"{name}-{d.sample.id}", question=name + d.sample.id))
        return study(cells, samples=samples, repeats=repeats, change=change)
    return crossed


def test_each_data_set_is_a_group_with_its_own_baseline(crossed):
    report = build([crossed()])
    assert [(g["levels"], len(g["cells"])) for g in report["groups"]] == [
        ({"dataset": "bbh"}, 4), ({"dataset": "mmlu"}, 4)]
    assert len(report["comparisons"]) == 6
    assert report["not_compared"] == []
    for c in report["comparisons"]:
        assert ("bbh" in c["cell"]) == ("bbh" in c["baseline"])
        assert c["relative"] == pytest.approx(c["mean"] / c["baseline_mean"] - 1)


@pytest.mark.parametrize("text", ["voting.simple", "decision=voting.simple", "voting.simple, bbh"])
def test_the_baseline_of_every_group_can_be_a_level(crossed, text):
    report = build([crossed(samples=3, repeats=1)], Wanted(baseline=text))
    assert ["voting.simple" in g["baseline"] for g in report["groups"]] == [True, True]


def test_a_cell_with_models_of_its_own_is_compared_only_as_a_named_baseline_and_a_note_says_so(study, kit):
    cells = [kit.Drawn(name, settings={"debate.decision": name, "debate.models": models},
                       table={"debate": {"decision": name, "models": models}})
             for name, models in (("debate", ["m", "n"]), ("vote", ["n", "m"]), ("one", ["m"]))]
    folder = study(cells, samples=5)
    pairs = {}
    for baseline in (None, "one"):
        report = build([folder], Wanted(baseline=baseline))
        pairs[baseline] = [(c["cell"], c["baseline"]) for c in report["comparisons"]]
        assert [n["text"].split(";")[0].rpartition(": ")[2] for n in report["notes"] if n["about"] == "alone"] == \
            ([] if baseline else ["one"])
    assert pairs == {None: [("vote", "debate")], "one": [("debate", "one"), ("vote", "one")]}


def test_labels_are_only_what_differs(crossed):
    labels = [c["label"] for c in build([crossed()])["cells"]]
    assert labels[:2] == ["consensus.majority, bbh", "consensus.majority, mmlu"]


@pytest.mark.parametrize(("other", "labels"), [
    ("v.simple", ["v.simple", "./mine.py:Longest last=true", "./mine.py:Longest last=false"]),
    ("./mine.py:Last", ["Last", "Longest last=true", "Longest last=false"]),
    ("./x/mine.py:Longest", ["./x/mine.py:Longest", "./mine.py:Longest last=true", "./mine.py:Longest last=false"])])
def test_a_class_in_a_file_is_labelled_by_its_name_and_the_options_in_which_cells_differ(study, kit, other, labels):
    given = [other, "./mine.py:Longest", {"use": "./mine.py:Longest", "last": False}]
    resolved = [{"use": other.rpartition("/")[2]}, *({"use": "mine.py:Longest", "last": n} for n in (True, False))]
    cells = [kit.Drawn(f"decision={n}", settings={"debate.decision": one}, table={"debate": {"decision": whole}})
             for n, (one, whole) in enumerate(zip(given, resolved, strict=True))]
    assert [cell["label"] for cell in build([study(cells, samples=2)])["cells"]] == labels


@pytest.mark.parametrize(("values", "labels"), [
    (["voting.simple", "voting.ranked"], ["simple", "ranked"]),
    (["voting.simple", {"use": "consensus.majority"}], ["voting.simple", "consensus.majority"]),
    ([{"use": "bbh", "path": f"x/bbh_{n}.jsonl"} for n in ("logic", "shapes")], ["logic", "shapes"]),
    ([{"use": "v.plurality", "tie": "random"}, {"use": "v.plurality", "tie": "first"}, "v.simple"],
     ["plurality tie=random", "plurality tie=first", "simple"]),
    ([{"use": "t", "path": "x/easy.jsonl", "columns": {}}, {"use": "t", "path": "x/q.csv", "columns": {"id": "ID"}}],
     ["easy", "q"]),
    (["a/dev/quiz.csv", "a/test/quiz.csv", "a/test/last.csv"], ["dev/quiz", "test/quiz", "last"]),
    ([[], [{"use": "attack.drop", "share": 0.25}], [{"use": "attack.drop", "share": 0.5}]],
     ["none", "share=0.25", "share=0.5"]),
    ([3, 5, 3], ["3", "5", "3"]),
    (["quiz.csv", "quiz2.csv"], ["quiz", "quiz2"]),
    ([True, False], ["true", "false"]),
    ([{"use": "m.chat", "model": "qwen", "temperature": 1.0}, {"use": "m.chat", "model": "llama", "temperature": 1.0}],
     ["qwen", "llama"]),
    (["x" * 40 + "a", "x" * 40 + "b"], ["x" * 31 + "… #1", "x" * 31 + "… #2"]),
])
def test_levels_are_called_after_what_sets_them_apart(values, labels):
    assert label_levels(values) == labels


def test_data_sets_stand_in_columns_with_their_macro_average(crossed):
    report = build([crossed()])
    (table,) = report["pivots"]
    assert [c["label"] for c in table["columns"]] == ["bbh", "mmlu"]
    assert [r["label"] for r in table["rows"]] == list(DECISIONS)
    for line, average in zip(table["fields"], table["averages"], strict=True):
        assert average["mean"] == pytest.approx(statistics.fmean(f["mean"] for f in line))
        repeats = [statistics.fmean(pair) for pair in zip(*(f["per_repeat"] for f in line), strict=True)]
        assert average["std"] == pytest.approx(statistics.stdev(repeats))


def test_rows_and_columns_can_be_chosen_and_the_rest_is_averaged(crossed):
    folder = crossed()
    (table,) = build([folder], Wanted(rows=("dataset",), columns=("decision",)))["pivots"]
    assert (len(table["rows"]), len(table["columns"])) == (2, 4)
    first, second = build([folder], Wanted(by=("dataset",)))["pivots"]
    assert (first["by"], second["by"]) == ({"dataset": "bbh"}, {"dataset": "mmlu"})
    averaged = build([folder], Wanted(rows=("decision",)))
    (table,) = averaged["pivots"]
    assert table["averaged"] == ["dataset"]
    assert "averaged over dataset" in pivot(averaged, table).notes[0]
    assert all(len(f["cells"]) == 2 for line in table["fields"] for f in line)


def test_cells_with_names_of_their_own_are_rows(study, kit):
    """Two that differ in a single setting do not share a row."""
    cells = [kit.Drawn("plain", settings={"debate.rounds": 2, "debate.style": "x"}),
             kit.Drawn("longer", rounds=4, settings={"debate.rounds": 4, "debate.style": "x"}),
             kit.Drawn("critical", settings={"debate.rounds": 2, "debate.style": "y"})]
    (table,) = build([study(cells, samples=3)])["pivots"]
    assert [row["label"] for row in table["rows"]] == ["plain", "longer", "critical"]
    assert len(table["columns"]) == 1


def test_a_factor_that_does_not_exist_is_an_error_with_the_nearest_name(crossed, refused):
    said = refused(crossed(2, 1), "--rows", "decison", "--by", "dataset", "--family", "v=voting.simpel")
    assert "--rows: there is no factor 'decison'; did you mean 'decision'?" in said


def test_marginal_means_of_a_family_are_those_of_its_levels(crossed):
    report = build([crossed()])
    rows = {(row["group"].get("dataset"), row["level"]): row for row in report["marginals"]}
    by_cell = {c["cell"]: c["metrics"]["qa.accuracy"]["mean"] for c in report["cells"]}
    everywhere = rows[None, "voting"]
    own = [mean for name, mean in by_cell.items() if "voting." in name]
    assert len(own) == 4
    assert everywhere["mean"] == pytest.approx(statistics.fmean(own))
    assert everywhere["difference"] == pytest.approx(everywhere["mean"] - rows[None, "consensus"]["mean"])
    assert everywhere["std"] is not None
    assert rows["bbh", "voting"]["settings"] == 1


def test_families_can_be_named(crossed):
    report = build([crossed()], Wanted(families=("mixed=consensus.majority,voting.simple", "rest=voting.ranked")))
    assert {"mixed", "rest"} <= {row["level"] for row in report["marginals"]}


def test_the_difference_of_two_levels_is_the_paired_t_test_of_their_samples(study, kit):
    """Where all cells have the same samples, clustering by sample is pairing."""
    studies = open_studies([study([kit.Drawn("a", skill=0.5), kit.Drawn("b", skill=0.9)], samples=40, repeats=2)])
    analysis = Analysis(Debates(studies), find_factors(studies[0].cells))
    found = contrast(analysis, [1], [0])
    a, b = (analysis.scores("qa.accuracy", i).values for i in (0, 1))
    theirs = stats.ttest_rel(b, a)
    assert found["p"] == pytest.approx(theirs.pvalue)
    assert found["ci95"] == pytest.approx([*theirs.confidence_interval()])


def test_averages_over_different_questions_add_their_variances(crossed):
    report = build([crossed()])
    (table,) = report["pivots"]
    line, average = table["fields"][2], table["averages"][2]
    halves = []
    for field in line:
        cell = next(c for c in report["cells"] if c["cell"] == field["cells"][0])
        halves.append(cell["metrics"]["qa.accuracy"])
    assert average["n"] == sum(h["n"] for h in halves)
    assert average["ci95"][0] < average["mean"] < average["ci95"][1]


def test_numbers_are_those_of_the_summary(study, kit, tmp_path):
    """Random studies with undecided, failed, unscored and missing debates and scores that do not always apply."""
    def change(d):
        dice = np.random.default_rng(abs(hash((d.cell, d.sample.id, d.repeat))) % 2**32)
        if d.repeat == 1 and dice.random() < 0.2:
            return None
        if dice.random() < 0.1:
            return kit.replace(d, error="boom", decision=None, metrics={})
        rate = None if dice.random() < 0.3 else float(dice.random())
        return kit.replace(d, metrics={**d.metrics, "m.rate": rate, "m.count": float(dice.integers(0, 5))})
    folder = study([kit.Drawn("a", failed=0.1, undecided=0.2), kit.Drawn("b", skill=1.5)], samples=25, repeats=3,
                   change=change)
    with open_study(folder) as reader:
        sums, scores = reader.overview(), scores_by_cell(reader.figures())
    cells = [{"cell": cell.cell, **scores[cell.cell].report(cell, ["qa.accuracy"])} for cell in sums]
    (folder / "summary.json").write_text(json.dumps({"study": "s", "status": "finished", "cells": cells}))
    report = build([folder])
    for cell in cells:
        (own,) = (c for c in report["cells"] if c["cell"] == cell["cell"])
        for name, metric in cell["metrics"].items():
            for part in ("mean", "std", "ci95", "per_repeat", "n"):
                assert own["metrics"][name][part] == pytest.approx(metric[part], abs=1e-12), (name, part)


def test_a_row_counts_the_failures_of_a_cell_without_a_score(study, kit):
    cells = [kit.Drawn(f"rounds={n}", settings={"debate.rounds": n}, failed=n - 1.0) for n in (1, 2)]
    rows = build([study(cells, samples=5)])["pivots"][0]["rows"]
    assert [(row["failed"], row["debates"]) for row in rows] == [(0, 5), (5, 5)]


def test_a_metric_can_be_for_a_level_with_an_equals_sign(study, kit):
    data = [{"use": "puzzles.ordering", "seed": s} for s in (0, 1)]
    cells = [kit.Drawn(f"c{d['seed']}", settings={"dataset": d}, table={"dataset": d}) for d in data]
    folder = study(cells, samples=3, change=lambda d: kit.replace(d, metrics={**d.metrics, "qa.f1": 0.25}))
    report = build([folder], Wanted(metrics=("qa.accuracy", "seed=1=qa.f1")))
    assert [c["metric"] for c in report["cells"]] == ["qa.accuracy", "qa.f1"]


@pytest.mark.parametrize("own", [
    {"dataset.path": "late.csv"}, {"dataset": {"use": "files.table", "path": "late.csv"}}])
@pytest.mark.parametrize("columns", [{}, {"id": "ID"}])
def test_cells_without_a_data_set_of_their_own_are_shown_with_that_of_the_study(study, kit, own, columns):
    folder = study([kit.Drawn("a", table={"dataset": {"use": "files.table", "columns": {}}}), kit.Drawn(
        "b", settings=own, table={"dataset": {"use": "files.table", "columns": columns}})], samples=3)
    (folder / "study.toml").write_text("".join(
        f'[[cells]]\nname = "{cell}"\ndataset = {{use = "files.table", path = "/x/{name}.csv"}}\n'
        for cell, name in {"a": "early", "b": "late"}.items()))
    assert [cell["factors"] for cell in build([folder])["cells"]] == [{"dataset": "early"}, {"dataset": "late"}]


def test_marginal_means_have_the_cluster_robust_errors_of_statsmodels(study, kit):
    """A regression on the cells, clustered by sample, without its correction for the number of coefficients."""
    api = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed")
    dice = np.random.default_rng(3)
    for case in range(6):
        cells = [kit.Drawn(f"decision={d},agents={a}", agents=1, rounds=1, skill=0.3 + 0.05 * case,
                           settings={"debate.decision": d, "debate.agents": a}) for d in "xyz" for a in (1, 2)]
        gone = {(c.name, f"q{s:05}") for c in cells for s in range(30) if dice.random() < 0.15 * (case % 3)}
        folder = study(cells, samples=30, repeats=1, name=f"case{case}",
                       change=lambda d, gone=gone: None if (d.cell, d.sample.id) in gone else d)
        debates = Debates(open_studies([folder]))
        analysis = Analysis(debates, find_factors(debates.cells))
        weights = dict(enumerate(dice.normal(size=len(cells))))
        rows = [(i, sample, value) for i in weights for sample, value in zip(
            analysis.scores("qa.accuracy", i).ids, analysis.scores("qa.accuracy", i).values, strict=True)]
        design = np.eye(len(cells))[[i for i, _, _ in rows]]
        fitted = api.OLS([v for _, _, v in rows], design).fit(
            cov_type="cluster", cov_kwds={"groups": [s for _, s, _ in rows]})
        theirs = fitted.t_test(np.array(list(weights.values())))
        ours = combine(analysis, weights, share=False)
        correction = (len(rows) - 1) / (len(rows) - len(cells))
        assert ours["mean"] == pytest.approx(float(theirs.effect[0]))
        assert ours["error"] == pytest.approx(float(theirs.sd[0, 0]) / correction**0.5)


def test_data_sets_can_have_metrics_of_their_own(crossed, kit, study, madplug, tmp_path):
    def change(d):
        return kit.replace(d, metrics={**d.metrics, "qa.f1": 0.25, "qa.exact_match": 0.0}, sample=kit.replace(
            d.sample, question=d.cell))
    cells = [kit.Drawn(f"{m}-{name}", settings={"debate.paradigm": f"x.{m}", "dataset": data},
                       table={"dataset": data})
             for m in ("cot", "debate") for name, data in DATA.items()]
    folder = study(cells, samples=5, change=change, name="own")
    report = build([folder], Wanted(metrics=("qa.accuracy", "mmlu=qa.f1")))
    assert [g["metric"] for g in report["groups"]] == ["qa.accuracy", "qa.f1"]
    (table,) = report["pivots"]
    assert [c["metrics"] for c in table["columns"]] == [["qa.accuracy"], ["qa.f1"]]
    assert [f[1]["mean"] for f in table["fields"]] == [0.25, 0.25]
    assert "mmlu, qa.f1: mean" in " ".join(pivot(report, table).head)


def test_what_a_metric_leaves_out_is_beside_the_number(study, kit, madplug):
    def change(d):
        left = d.sample.id < "q00004"
        return kit.replace(d, metrics={"qa.accuracy": None if left else 1.0, "m.other": None if left else 2.0})
    done = madplug("report", study([kit.Drawn("a"), kit.Drawn("b")], samples=10, change=change))
    assert "qa.accuracy has no score in 8 of 20 debates in 2 cells" in done.stdout
    assert "2.000 (n=6)" in done.stdout


def test_the_best_is_bold_and_what_differs_is_starred(crossed):
    report = build([crossed(samples=60)])
    table = pivot(report, report["pivots"][0])
    best = max(f[0]["mean"] for f in report["pivots"][0]["fields"])
    assert f"**{best:.3f}" in markdown(table)
    text = latex(table)
    assert rf"\textbf{{{best:.3f} $\pm$" in text
    assert r"\multicolumn{2}{c}{bbh}" in text
    assert r"\cmidrule(lr){2-3}" in text
    starred = [f for line in report["pivots"][0]["fields"] for f in line if (f["p_holm"] or 1) < 0.05]
    assert starred
    assert sum("*" in t for row in table.rows for t in row) == len(starred)


def test_tables_are_csv_with_full_numbers(crossed, madplug, tmp_path):
    folder = crossed()
    assert madplug("report", folder, "--output", tmp_path / "out").exit_code == 0
    rows = list(csv.DictReader((tmp_path / "out" / "table.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 8 + 4
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    field = report["pivots"][0]["fields"][0][0]
    assert (float(rows[0]["mean"]), float(rows[0]["ci95_low"])) == (field["mean"], field["ci95"][0])
    cells = list(csv.DictReader((tmp_path / "out" / "cells.csv").read_text(encoding="utf-8").splitlines()))
    assert cells[0]["factor.decision"] == "consensus.majority"


def test_cells_can_be_selected_by_pattern(crossed, refused):
    folder = crossed(2, 1)
    assert len(build([folder], Wanted(cells=("*unanimity*", "*ranked*")))["cells"]) == 4
    assert "--cell *unanimty*: no cell has such a name" in refused(folder, "--cell", "*unanimty*")


def test_four_hundred_cells_are_readable_in_a_terminal(study, kit, madplug, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    cells = [kit.Drawn(f"agents={a},rounds={r}", agents=1, rounds=1, settings={"debate.agents": a, "debate.rounds": r})
             for a in range(1, 21) for r in range(1, 21)]
    done = madplug("report", study(cells, samples=1))
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 160  # notes are sentences
    assert len(lines) < 300
    assert "... 360 more rows" in done.stdout


def test_a_difference_of_a_rounding_error_is_none():
    assert to_settle(1e-17, 0.2) is None
    assert to_settle(0.1, 0.2) is not None


@pytest.mark.parametrize("scores", [(0.0, 1.0), (0.1, 0.9, 0.33), (1 / 3, 2 / 3)])
def test_levels_with_the_same_scores_do_not_differ(study, kit, scores):
    cells = [kit.Drawn(f"decision={d},rounds={n}", settings={"debate.decision": d, "debate.rounds": n})
             for d in ("voting.simple", "voting.ranked") for n in range(3)]
    folder = study(cells, samples=20, change=lambda d: kit.replace(
        d, metrics={"qa.f1": scores[int(d.sample.id[1:]) % len(scores)]}))
    changes = [row for row in build([folder])["marginals"] if row["difference"] is not None]
    assert len(changes) == 3
    for row in changes:
        assert (row["difference"], row["p"]) == (0, None)


def test_a_difference_too_clear_for_a_number_has_its_star(study, kit):
    folder = study([kit.Drawn("a", agents=1, settings={"x": "a"}), kit.Drawn("b", agents=1, settings={"x": "b"})],
                   samples=1200, change=lambda d: kit.replace(d, metrics={"qa.accuracy": float(d.cell == "b")}))
    report = build([folder])
    assert report["comparisons"][0]["p_holm"] == 0
    assert "1.000*" in [row[1] for row in pivot(report, report["pivots"][0]).rows]


@pytest.mark.parametrize("n", [19, 20])
def test_pairs_that_all_differ_alike_have_an_interval(study, kit, n):
    folder = study([kit.Drawn("a", settings={"x": "a"}), kit.Drawn("b", settings={"x": "b"})], samples=n,
                   change=lambda d: kit.replace(d, metrics={"qa.accuracy": float(d.cell == "b")}))
    found = build([folder])["comparisons"][0]
    assert found["ci_method"] == "score (Tango)"
    assert 0.6 < found["ci95"][0] < found["ci95"][1] <= 1


def test_a_level_is_left_out_of_a_name_only_as_a_whole_part_of_it(study, kit):
    settings = {"debate-12": (1, 2), "debate2": (1, 3), "vote-3-deep": (3, 4), "vote-1-deep": (1, 4)}
    cells = [kit.Drawn(name, settings={"debate.agents": a, "debate.rounds": r, "seed": r})
             for name, (a, r) in settings.items()]
    report = build([study(cells, samples=3)], Wanted(columns=("agents",)))
    assert [row["label"] for row in report["pivots"][0]["rows"]] == ["debate-12", "debate2", "vote-deep"]


def test_the_budget_that_a_cell_is_matched_to_is_no_factor(study, kit):
    cells = [kit.Drawn(name, settings={"debate.paradigm": name, "match.cell": name, "match.by": "calls"})
             for name in ("a", "b")]
    report = build([study(cells, samples=3)], Wanted(rows=("cell",)))
    assert [factor["name"] for factor in report["factors"]] == ["paradigm"]
    assert [row["label"] for row in report["pivots"][0]["rows"]] == ["a", "b"]
