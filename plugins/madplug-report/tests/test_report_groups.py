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
from madplug_report.page import page
from madplug_report.reading import Debates
from madplug_report.sizes import to_settle
from madplug_report.studies import open_studies
from madplug_report.tables import latex, markdown
from madplug_report.texts import latex_file, markdown_file, method, terminal

DATA = {"bbh": {"use": "benchmarks.bbh", "path": "data/bbh_ordering.jsonl"},
        "mmlu": {"use": "benchmarks.mmlu", "path": "data/mmlu.jsonl"}}


@pytest.fixture(scope="module")
def report(crossed):
    return build([crossed])


def test_each_data_set_is_a_group_with_its_own_baseline_and_labels_are_only_what_differs(report):
    assert [(g["levels"], len(g["cells"])) for g in report["groups"]] == [
        ({"dataset": "bbh"}, 4), ({"dataset": "mmlu"}, 4)]
    assert (len(report["comparisons"]), report["not_compared"]) == (6, [])
    for c in report["comparisons"]:
        assert ("bbh" in c["cell"]) == ("bbh" in c["baseline"])
        assert c["relative"] == pytest.approx(c["mean"] / c["baseline_mean"] - 1)
    assert [c["label"] for c in report["cells"]][:2] == ["consensus.majority, bbh", "consensus.majority, mmlu"]


@pytest.mark.parametrize("text", ["voting.simple", "decision=voting.simple", "voting.simple, bbh"])
def test_the_baseline_of_every_group_can_be_a_level(crossed, text):
    assert ["voting.simple" in g["baseline"] for g in build([crossed], Wanted(baseline=text))["groups"]] == [True, True]


def test_a_cell_with_models_of_its_own_is_compared_only_as_a_named_baseline_and_a_note_says_so(study, kit):
    cells = [kit.Drawn(name, settings={"debate.decision": name, "debate.models": models},
                       table={"debate": {"decision": name, "models": models}})
             for name, models in (("debate", ["m", "n"]), ("vote", ["n", "m"]), ("one", ["m"]))]
    cells.append(kit.Drawn("other", settings={"debate.decision": "other", "debate.models": ["n"]}, table={
        "debate": {"decision": "other", "models": ["n"]}, "match": {"cell": "debate", "by": "calls"}}))
    folder = study(cells, samples=5)
    pairs = {}
    for baseline in (None, "one"):
        report = build([folder], Wanted(baseline=baseline))
        pairs[baseline] = [(c["cell"], c["baseline"]) for c in report["comparisons"] if c["why"] == "baseline"]
        assert [n["text"].split(";")[0].rpartition(": ")[2] for n in report["notes"] if n["about"] == "alone"] == \
            ([] if baseline else ["one, other"])
    assert pairs == {None: [("vote", "debate")], "one": [("debate", "one"), ("vote", "one"), ("other", "one")]}


def test_a_name_that_the_run_file_gives_is_kept_though_it_looks_like_one_of_a_sweep(study, kit):
    own = ("n=3", {}), ("n=5, long", {"debate.paradigm": "mad.som", "debate.agents": 5}), ("agents=7", {
        "debate.paradigm": "mad.som", "debate.agents": 7}), ("agents=9", {"debate.agents": 9}), (
        "agents=9,rounds=3", {"debate.agents": 9, "debate.rounds": 3, "debate.decision": "x.new"})
    folder = study([kit.Drawn(name, agents=settings.get("debate.agents", 3), settings=settings)
                    for name, settings in own])
    report = build([folder])
    assert [c["named"] for c in report["cells"]] == [True, True, True, False, False]
    assert [c["label"] for c in report["cells"]][:3] == ["n=3", "n=5, long", "agents=7"]
    printed = report["cells"][-1]["label"]
    assert printed != "agents=9,rounds=3"
    assert [c["slug"] for c in build([folder], Wanted(cells=(printed,)))["cells"]] == ["agents=9,rounds=3"]
    assert [c["slug"] for c in build([folder], Wanted(cells=("!n=3", f"!{printed}")))["cells"]] == [
        "n=5, long", "agents=7", "agents=9"]


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


def test_data_sets_stand_in_columns_with_their_macro_average_whose_variances_add_up(report):
    (table,) = report["pivots"]
    assert [c["label"] for c in table["columns"]] == ["bbh", "mmlu"]
    assert [r["label"] for r in table["rows"]] == [
        "consensus.majority", "consensus.unanimity", "voting.simple", "voting.ranked"]
    for line, average in zip(table["fields"], table["averages"], strict=True):
        assert average["mean"] == pytest.approx(statistics.fmean(f["mean"] for f in line))
        repeats = [statistics.fmean(pair) for pair in zip(*(f["per_repeat"] for f in line), strict=True)]
        assert average["std"] == pytest.approx(statistics.stdev(repeats))
        assert average["n"] == 2 * 30
        assert average["ci95"][0] < average["mean"] < average["ci95"][1]


def test_rows_and_columns_can_be_chosen_and_the_rest_is_averaged(crossed):
    (table,) = build([crossed], Wanted(rows=("dataset",), columns=("decision",)))["pivots"]
    assert (len(table["rows"]), len(table["columns"])) == (2, 4)
    first, second = build([crossed], Wanted(by=("dataset",)))["pivots"]
    assert (first["by"], second["by"]) == ({"dataset": "bbh"}, {"dataset": "mmlu"})
    averaged = build([crossed], Wanted(rows=("decision",)))
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


def test_names_that_a_study_does_not_have_are_errors_with_the_nearest_one(crossed, refused):
    said = refused(crossed, "--rows", "decison", "--by", "dataset", "--family", "v=voting.simpel")
    assert "--rows: there is no factor 'decison'; did you mean 'decision'?\n" in said
    assert "--by: there is no factor 'zzz'; choose from " in refused(crossed, "--by", "zzz")
    assert "metric needs the metrics that stand there: --metric NAME" in refused(crossed, "--columns", "metric")
    assert "--cell *unanimty*: no cell has such a name; choose from " in refused(crossed, "--cell", "*unanimty*")
    assert len(build([crossed], Wanted(cells=("*unanimity*", "*ranked*")))["cells"]) == 4


def test_marginal_means_that_are_those_of_one_group_stand_once(study, kit):
    def of(cell, *models):
        return kit.replace(cell, settings={**cell.settings, "debate.models": [*models]},
                           table={"debate": {"models": [*models]}})

    cells = [of(cell, "m", "n") for cell in kit.sweep(agents=(2, 3), rounds=(1, 2))]
    alone = of(kit.Drawn("alone"), "m")
    without, beside = (build([study(drawn, samples=20, name=f"study{len(drawn)}")])["marginals"]
                       for drawn in (cells, [*cells, alone]))
    told = [[(row["factor"], row["level"], row["difference"], row["p_holm"]) for row in rows]
            for rows in (without, beside)]
    assert len(told[0]) == 4
    assert told[0] == told[1]


def test_marginal_means_of_a_family_are_those_of_its_levels(crossed, report):
    assert "(those of marginal means, Student's t, clustered by sample, over their own" in " ".join(method(report))
    rows = {(row["group"].get("dataset"), row["level"]): row for row in report["marginals"]}
    by_cell = {c["cell"]: c["metrics"]["qa.accuracy"]["mean"] for c in report["cells"]}
    everywhere = rows[None, "voting"]
    own = [mean for name, mean in by_cell.items() if "voting." in name]
    assert (len(own), everywhere["mean"]) == (4, pytest.approx(statistics.fmean(own)))
    assert everywhere["difference"] == pytest.approx(everywhere["mean"] - rows[None, "consensus"]["mean"])
    assert everywhere["std"] is not None
    assert rows["bbh", "voting"]["settings"] == 1
    named = build([crossed], Wanted(families=("mixed=consensus.majority,voting.simple", "rest=voting.ranked")))
    assert {"mixed", "rest"} <= {row["level"] for row in named["marginals"]}


def test_the_difference_of_two_levels_is_the_paired_t_test_of_their_samples(study, kit):
    """Where all cells have the same samples, clustering by sample is pairing."""
    studies = open_studies([study([kit.Drawn("a", skill=0.5), kit.Drawn("b", skill=0.9)], samples=40, repeats=2)])
    analysis = Analysis(Debates(studies), find_factors(studies[0].cells))
    found = contrast(analysis, [1], [0])
    a, b = (analysis.scores("qa.accuracy", i).values for i in (0, 1))
    theirs = stats.ttest_rel(b, a)
    assert found["p"] == pytest.approx(theirs.pvalue)
    assert found["ci95"] == pytest.approx([*theirs.confidence_interval()])


def test_numbers_are_those_of_the_summary(study, kit):
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
    cells = [kit.replace(cell, failed=n) for n, cell in enumerate(kit.sweep(rounds=(1, 2)))]
    rows = build([study(cells, samples=5)])["pivots"][0]["rows"]
    assert [(row["failed"], row["debates"]) for row in rows] == [(0, 5), (5, 5)]


def test_a_metric_can_be_for_a_level_with_an_equals_sign(study, kit):
    data = [{"use": "puzzles.ordering", "seed": s} for s in (0, 1)]
    cells = [kit.Drawn(f"c{d['seed']}", settings={"dataset": d}, table={"dataset": d}) for d in data]
    report = build([study(cells, samples=3, metrics={"qa.f1": 0.25})],
                   Wanted(metrics=("qa.accuracy", "seed=1=qa.f1")))
    assert [c["metric"] for c in report["cells"]] == ["qa.accuracy", "qa.f1"]


@pytest.mark.parametrize(("own", "columns"), [
    ({"dataset.path": "late.csv"}, {}), ({"dataset": {"use": "files.table", "path": "late.csv"}}, {"id": "ID"})])
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
        cells = list(kit.sweep(lambda _, case=case: 0.3 + 0.05 * case, decision="xyz", agents=(1, 2), rounds=(1,)))
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
        assert (ours["mean"], ours["error"]) == pytest.approx(
            (float(theirs.effect[0]), float(theirs.sd[0, 0]) / correction**0.5))


@pytest.mark.parametrize("right", [20, 19, 12])
def test_an_average_of_proportions_has_wilsons_interval(study, kit, right):
    """Of cells that vary alike that of each, of others a narrower one; a difference without differences has none."""
    def change(d):
        sample = int(d.sample.id[1:])
        return kit.replace(d, metrics={"qa.accuracy": float((sample if d.cell != "c" else 19 - sample) < right)})
    folder = study([kit.Drawn(name, settings={"debate.decision": name}) for name in "abc"], samples=20, repeats=1,
                   change=change)
    debates = Debates(open_studies([folder]))
    analysis = Analysis(debates, find_factors(debates.cells))
    alike, other = (combine(analysis, {0: 0.5, i: 0.5}) for i in (1, 2))
    each = analysis.cells[0]["metrics"]["qa.accuracy"]["ci95"]
    assert alike["ci95"] == pytest.approx(each)
    assert alike["ci_method"] == "Wilson, clustered by sample"
    assert other["ci95"][1] - other["ci95"][0] <= each[1] - each[0]
    assert (other["ci95"] == pytest.approx(each)) == (right == 20)
    assert combine(analysis, {0: 1, 1: -1}, share=False)["ci95"] is None


def test_data_sets_can_have_metrics_of_their_own(kit, study):
    cells = [kit.Drawn(f"{m}-{name}", settings={"debate.paradigm": f"x.{m}", "dataset": data},
                       table={"dataset": data}) for m in ("cot", "debate") for name, data in DATA.items()]
    folder = study(cells, samples=5, metrics={"qa.f1": 0.25, "qa.exact_match": 0.0}, change=lambda d: kit.replace(
        d, sample=kit.replace(d.sample, question=d.cell)))
    report = build([folder], Wanted(metrics=("qa.accuracy", "mmlu=qa.f1")))
    assert [g["metric"] for g in report["groups"]] == ["qa.accuracy", "qa.f1"]
    (table,) = report["pivots"]
    assert [c["metrics"] for c in table["columns"]] == [["qa.accuracy"], ["qa.f1"]]
    assert [f[1]["mean"] for f in table["fields"]] == [0.25, 0.25]
    assert "mmlu, qa.f1: mean" in " ".join(pivot(report, table).head)


def test_the_best_is_bold_and_what_differs_is_starred(report):
    table = pivot(report, report["pivots"][0])
    fields = report["pivots"][0]["fields"]
    best, text = max(line[0]["mean"] for line in fields), latex(table)
    assert f"**{best:.3f}" in markdown(table)
    for part in (rf"\textbf{{{best:.3f} $\pm$", r"\multicolumn{2}{c}{bbh}", r"\cmidrule(lr){2-3}"):
        assert part in text
    starred = [f for line in fields for f in line if (f["p_holm"] or 1) < 0.05]
    assert sum("*" in t for row in table.rows for t in row) == len(starred) > 0


def test_tables_are_csv_with_full_numbers(crossed, program, tmp_path):
    program("report", crossed, "--output", tmp_path / "out", status=0)
    rows = list(csv.DictReader((tmp_path / "out" / "table.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 8 + 4
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    field = report["pivots"][0]["fields"][0][0]
    assert (float(rows[0]["mean"]), float(rows[0]["ci95_low"])) == (field["mean"], field["ci95"][0])
    cells = list(csv.DictReader((tmp_path / "out" / "cells.csv").read_text(encoding="utf-8").splitlines()))
    assert cells[0]["factor.decision"] == "consensus.majority"


def test_four_hundred_cells_are_readable_in_a_terminal(study, kit, program, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    cells = [kit.replace(cell, agents=1, rounds=1) for cell in kit.sweep(agents=range(1, 21), rounds=range(1, 21))]
    lines = program("report", study(cells, samples=1)).stdout.splitlines()
    assert max(map(len, lines)) <= 160  # notes are sentences
    assert len(lines) < 300
    assert any("... 360 more rows" in line for line in lines)


@pytest.mark.parametrize("scores", [(0.0, 1.0), (0.1, 0.9, 0.33), (1 / 3, 2 / 3)])
def test_levels_with_the_same_scores_do_not_differ(study, kit, scores):
    cells = kit.sweep(decision=("voting.simple", "voting.ranked"), rounds=range(3))
    folder = study(cells, samples=20, change=lambda d: kit.replace(
        d, metrics={"qa.f1": scores[int(d.sample.id[1:]) % len(scores)]}))
    changes = [row for row in build([folder])["marginals"] if row["difference"] is not None]
    assert [(row["difference"], row["p"]) for row in changes] == [(0, None)] * 3
    assert (to_settle(1e-17, 0.2), to_settle(0.1, 0.2) is None) == (None, False)  # a rounding error is no difference


@pytest.mark.parametrize("n", [19, 20, 1200])
def test_pairs_that_all_differ_alike_have_an_interval_and_a_star_however_many_they_are(study, kit, n):
    folder = study([kit.Drawn("a", agents=1, settings={"x": "a"}), kit.Drawn("b", agents=1, settings={"x": "b"})],
                   samples=n, change=lambda d: kit.replace(d, metrics={"qa.accuracy": float(d.cell == "b")}))
    report = build([folder])
    (found,) = report["comparisons"]
    assert (found["ci_method"], found["p_holm"] == 0) == ("score (Tango)", n == 1200)
    assert 0.6 < found["ci95"][0] < found["ci95"][1] <= 1
    assert "1.000*" in [row[1] for row in pivot(report, report["pivots"][0]).rows]


def test_a_level_is_left_out_of_a_name_only_as_a_whole_part_of_it(study, kit):
    settings = {"debate-12": (1, 2), "debate2": (1, 3), "vote-3-deep": (3, 4), "vote-1-deep": (1, 4)}
    cells = [kit.Drawn(name, settings={"debate.agents": a, "debate.rounds": r, "seed": r})
             for name, (a, r) in settings.items()]
    report = build([study(cells, samples=3)], Wanted(columns=("agents",)))
    assert [row["label"] for row in report["pivots"][0]["rows"]] == ["debate-12", "debate2", "vote-deep"]


def test_a_matched_cell_has_no_number_of_agents_of_its_own(study, kit):
    cells = [kit.Drawn("a", agents=3, settings={"debate.agents": 3}),
             kit.Drawn("b", agents=4, settings={"debate.agents": 4}),
             kit.Drawn("sc", agents=5, table={"match": {"cell": "a", "by": "calls"}})]
    report = build([study(cells, samples=3)], Wanted(rows=("cell",)))
    assert [cell["factors"]["agents"] for cell in report["cells"]] == ["3", "4", "matched"]


def matched(kit, paradigm, decision, cell=""):
    return kit.Drawn(f"{paradigm} {decision} {cell}".strip(), agents=5, settings={
        "debate.paradigm": paradigm, "debate.decision": decision},
        table={"match": {"cell": cell, "by": "calls"}} if cell else {})


def test_the_budget_that_a_cell_is_matched_to_is_a_factor_only_where_nothing_else_sets_cells_apart(study, kit):
    cells = [kit.Drawn(name, settings={"debate.paradigm": name, "match.cell": name, "match.by": "calls"},
                       table={"match": {"cell": name, "by": "calls"}}) for name in ("a", "b")]
    report = build([study(cells, samples=3)], Wanted(rows=("cell",)))
    assert [factor["name"] for factor in report["factors"]] == ["paradigm"]
    assert [row["label"] for row in report["pivots"][0]["rows"]] == ["a", "b"]
    cells = [matched(kit, "m.debate", "v.a"), *(matched(kit, "m.sc", "v.a", cell) for cell in ("a", "b"))]
    two = study(cells, samples=3, name="two")
    (table,) = build([two], Wanted(rows=("paradigm", "match")))["pivots"]
    assert [f["cells"] for line in table["fields"] for f in line] == [["m.debate v.a"], ["m.sc v.a a"], ["m.sc v.a b"]]
    assert all(len(f["cells"]) == 1 for line in build([two])["pivots"][0]["fields"] for f in line if f)


def test_a_row_that_is_a_mean_of_cells_says_over_what(study, kit):
    cells = [matched(kit, "m.one", "v.a"), matched(kit, "m.debate", "v.a"), matched(kit, "m.debate", "v.b"),
             *(matched(kit, "m.sc", "v.a", cell) for cell in ("a", "b"))]
    folder = study(cells, samples=3)
    report = build([folder], Wanted(rows=("paradigm",)))
    said = "averaged over decision (debate), match (sc)"
    for text in (terminal(report), markdown_file(report), latex_file(report), page(report, [])):
        assert said in text.replace("\\", "")
    again = study([*cells[:2], kit.replace(cells[1], name="again")], samples=3, name="again")
    report = build([again], Wanted(rows=("paradigm",)))
    assert "averaged over cells that are set alike (debate)" in terminal(report)


def test_cells_that_are_set_alike_have_rows_of_their_own(study, kit):
    cells = [matched(kit, "m.one", "v.a"), kit.replace(matched(kit, "m.debate", "v.a"), name="first")]
    folder = study([*cells, kit.replace(cells[1], name="second")], samples=3)
    report = build([folder])
    assert [row["label"] for row in report["pivots"][0]["rows"]] == ["m.one v.a", "first", "second"]
    assert "averaged over" not in terminal(report)
