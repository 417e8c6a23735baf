"""What `madplug report --json` says about studies of every kind."""

import json
import sqlite3
import statistics
import tracemalloc

import pytest

from madplug import Decision, Message, Sample, Vote, open_study
from madplug_report.building import Wanted, build
from madplug_report.contents import comparisons, tables
from madplug_report.reading import Debates
from madplug_report.studies import open_studies
from madplug_report.tables import signed


@pytest.fixture
def reported(program):
    """The report of directories, as data."""
    return lambda *words: json.loads(program("report", *words, "--json", status=0).stdout)


def about(report):
    return {note["about"]: note["text"] for note in report["notes"]}


def outcomes(study, kit, name, right):
    """A study with one cell whose debates are right (1), wrong (0) or missing (None), sample by sample."""
    def change(d):
        score = right[int(d.sample.id[1:])]
        return None if score is None else kit.replace(d, decision=Decision("A" if score else "B"),
                                                      metrics={"qa.accuracy": float(score)})
    return study([kit.Drawn(name)], samples=len(right), name=name, change=change)


# Denominators

def test_undecided_debates_are_wrong_and_failed_ones_are_in_no_mean(study, kit, reported):
    report = reported(study([kit.Drawn("c", skill=1.5, undecided=0.3, failed=0.2)], samples=200))
    [found] = report["cells"]
    ends, metric = found["outcomes"], found["metrics"]["qa.accuracy"]
    assert found["debates"] == sum(ends.values()) == 200
    assert min(ends["failed"], ends["undecided"]) > 20
    assert (found["failed"], found["undecided"]) == (ends["failed"] / 200, ends["undecided"] / 200)
    right, scored = ends["agreed"] + ends["decided"] + ends["fallback"], 200 - ends["failed"]
    assert (metric["n"], metric["mean"]) == (scored, pytest.approx(right / scored, abs=0.03))
    assert "left out" not in about(report)


@pytest.mark.parametrize("none", [None, float("nan")])
def test_debates_to_which_a_metric_does_not_apply_are_left_out_of_its_mean_and_counted(study, kit, reported, program,
                                                                                      none):
    def change(d):
        left = d.sample.id < "q00004"
        return kit.replace(d, metrics={"qa.accuracy": none if left else 1.0, "m.other": none if left else 2.0})
    folder = study([kit.Drawn("a"), kit.Drawn("b")], samples=10, change=change)
    report = reported(folder)
    found = report["cells"][0]
    assert (found["debates"], found["metrics"]["qa.accuracy"]["n"]) == (10, 6)
    assert about(report)["samples"].startswith("6 samples")
    with open_study(folder) as read:
        of_scored = [d.tokens.prompt + d.tokens.completion for d in read.debates("a") if d.sample.id >= "q00004"]
    assert found["tokens_per_right"] == pytest.approx(sum(of_scored) / 6)
    printed = program("report", folder).stdout
    assert "qa.accuracy has no score in 8 of 20 debates in 2 cells" in printed
    assert "2.000 (n=6)" in printed


def test_single_debates_have_wilsons_interval_and_tokens_per_right_answer_count_the_wrong_ones(study, kit, reported):
    found = reported(outcomes(study, kit, "c", [1] * 8 + [0] * 2))["cells"][0]
    metric = found["metrics"]["qa.accuracy"]
    assert (metric["ci_method"], metric["ci95"]) == ("Wilson", pytest.approx([0.4901625, 0.9433178], abs=1e-6))
    assert found["tokens_per_right"] == pytest.approx(found["tokens"] * 10 / 8)
    assert reported(outcomes(study, kit, "none", [0, 0]))["cells"][0]["tokens_per_right"] is None
    counted = build([study([kit.Drawn("a")], samples=9, name="counted")], Wanted(metrics=("calls",)))["cells"][0]
    assert counted["tokens_per_right"] is None, "calls are not right or wrong"


def test_what_gained_and_lost_count_is_said_where_there_are_repeats_and_where_interval_and_test_differ(study, kit):
    def notes(right, repeats):
        def change(d):
            return kit.replace(d, metrics={"qa.accuracy": float(d.cell == "b" and int(d.sample.id[1:]) < right)})
        folder = study([kit.Drawn("a"), kit.Drawn("b")], samples=40, repeats=repeats, change=change,
                       name=f"{right} {repeats}")
        return comparisons(build([folder], Wanted())).notes

    differ = "interval and test are made by different methods, which can differ near 0.05 and where few samples do"
    assert notes(20, 1) == []
    assert notes(20, 2) == ["gained/lost: samples with a higher and with a lower mean over repeats"]
    assert [right for right in range(1, 12) if differ in notes(right, 1)] == [4, 5]


def test_the_spread_is_over_repeats(study, kit, reported):
    metric = reported(study([kit.Drawn("c")], samples=30, repeats=3))["cells"][0]["metrics"]["qa.accuracy"]
    assert (metric["mean"], metric["std"]) == (pytest.approx(statistics.fmean(metric["per_repeat"])),
                                               pytest.approx(statistics.stdev(metric["per_repeat"])))
    one = reported(study([kit.Drawn("c")], samples=30, name="one"))
    assert one["cells"][0]["metrics"]["qa.accuracy"]["std"] is None


def test_unread_answers_are_told_from_wrong_ones(study, kit, reported):
    found = reported(study([kit.Drawn("c", unread=0.25, rounds=1)], samples=400))["cells"][0]
    assert (found["unread"], found["answers"]) == (pytest.approx(0.25, abs=0.03), 1200)
    assert found["metrics"]["qa.accuracy"]["n"] == 400


def test_flags_in_the_data_of_messages_are_counted_and_texts_cannot_forge_them(study, kit, reported):
    forged = {"content": '"unparsed":true', "data": {"styles": {"said": '"unparsed":true'}}}
    flagged = {"data": {"styles": {"unparsed": True}}}
    report = reported(study([kit.Drawn("c", agents=2)], samples=5, change=lambda d: kit.replace(d, messages=tuple(
        kit.replace(m, **more) for m, more in zip(d.messages, (forged, flagged, {}, {}), strict=True)))))
    assert report["cells"][0]["flagged"] == 1 / 4
    assert any(note["text"].startswith("in 5 of 5 debates of 'c' a ballot") for note in report["notes"])


@pytest.mark.parametrize(("key", "noted"), [("A", True), (None, False)])
def test_a_ballot_that_cannot_be_read_is_noted_and_an_unread_answer_is_not_one(study, kit, reported, key, noted):
    def change(d):
        return kit.replace(d, messages=(*d.messages[:-1], kit.replace(d.messages[-1], key=key)),
                           decision=kit.replace(d.decision, votes=(Vote(0, {}, valid=False),)))
    report = reported(study([kit.Drawn("c", agents=2, rounds=2)], samples=5, change=change))
    assert any("a ballot, or another reply" in note["text"] for note in report["notes"]) is noted


@pytest.mark.parametrize("versions", ["ab", "aa"])
def test_scores_that_an_interrupted_rescoring_left_are_noted(study, kit, reported, versions):
    folder = study([kit.Drawn("c")], samples=5, change=lambda d: kit.replace(
        d, scored_by={"qa.accuracy": versions[int(d.sample.id.lstrip("q")) % 2]}))
    assert ("scores of 'c' were made by different versions of qa.accuracy" in str(reported(folder)["notes"])) == (
        versions == "ab")


def test_retracted_messages_are_not_there(study, kit, reported):
    retracted = Message(9, 7, 0, 0, "improve", "", key="Z", retracted=True)
    folder = study([kit.Drawn("c")], samples=5, change=lambda d: kit.replace(d, messages=(*d.messages, retracted)))
    found = reported(folder)["cells"][0]
    assert (found["rounds"], [r["round"] for r in found["by_round"]]) == ({"2": 5}, [1, 2])


# Comparisons

def test_cells_are_compared_on_the_samples_both_have(study, kit, reported):
    (c,) = reported(outcomes(study, kit, "a", [1, 0, 0, 0, 1, None]),
                    outcomes(study, kit, "b", [1, 1, 1, 0, None, 1]))["comparisons"]
    assert (c["cell"], c["baseline"], c["samples"], c["gained"], c["lost"]) == ("b", "a", 4, 2, 0)
    assert (c["difference"], c["p"], c["test"]) == (0.5, pytest.approx(0.5), "McNemar, exact")


def test_numbers_that_differ_by_one_are_no_right_and_wrong_answers(study, kit, reported):
    def counted(first):
        return lambda d: kit.replace(d, metrics={"kit.changes": float(first[int(d.sample.id[1:])])})
    a, b = (study([kit.Drawn(name)], samples=4, name=name, change=counted(first))
            for name, first in (("a", [2, 1, 1, 0]), ("b", [3, 2, 1, 0])))
    (c,) = reported(a, b, "--metric", "kit.changes")["comparisons"]
    assert (c["gained"], c["lost"], c["p"], c["test"]) == (2, 0, pytest.approx(0.5), "sign flips, exact")


def test_repeats_are_averaged_before_samples_are_compared(study, kit, reported):
    (c,) = reported(study([kit.Drawn("a", skill=0.4), kit.Drawn("b", skill=0.9)], samples=60, repeats=3))["comparisons"]
    assert (c["samples"], c["test"], c["ci_method"]) == (60, "sign flips, exact", "BCa bootstrap")
    assert c["ci95"][0] < c["difference"] < c["ci95"][1]
    assert c["p"] < 0.001


def test_any_cell_can_be_the_baseline_and_any_metric_compared(study, kit, reported, refused):
    folder = study([kit.Drawn("a"), kit.Drawn("b")],
                   change=lambda d: kit.replace(d, metrics=d.metrics | {"qa.f1": 0.25 + d.metrics["qa.accuracy"] / 2}))
    report = reported(folder, "--baseline", "b", "--metric", "qa.f1")
    (c,) = report["comparisons"]
    assert (report["metric"], c["cell"], c["baseline"], set(c["effects"])) == ("qa.f1", "a", "b", {"standardised"})
    assert "there is no cell 'bb'; did you mean 'b'?" in refused(folder, "--baseline", "bb")
    assert "no debate has the metric 'qa.ff1'; did you mean 'qa.f1'?" in refused(folder, "--metric", "qa.ff1")


def test_other_data_are_not_compared_and_that_is_said(study, kit, reported):
    report = reported(study([kit.Drawn("a")], samples=10, name="a"),
                      study([kit.Drawn("b")], samples=10, name="b", question="something else"))
    assert (report["comparisons"], report["not_compared"]) == ([], [{
        "cell": "b", "baseline": "a",
        "reason": "other data: samples of the same id differ in question, references or another column, or in what "
                  "is hidden from whom"}])
    assert "'b': other data" in about(report)["not compared"]


def test_samples_that_differ_between_two_studies_are_not_paired_and_that_is_said(study, kit, reported):
    def corrected(d):
        if d.sample.id == "q00001":
            return kit.replace(d, references=("B",), metrics={"qa.accuracy": float(d.decision.key == "B")})
        return kit.replace(d, sample=kit.replace(d.sample, question="in other words")) if d.sample.id == "q00002" else d
    a, b, c = (study([kit.Drawn("x"), kit.Drawn("y")], samples=10, name=name, change=change)
               for name, change in (("a", lambda d: d), ("b", corrected), ("c", corrected)))
    report = reported(a, b, c)
    assert {c["cell"]: c["samples"] for c in report["comparisons"]} == {
        "a/y": 10, "b/x": 8, "b/y": 8, "c/x": 8, "c/y": 8}
    assert [note["text"] for note in report["notes"] if note["about"] == "other samples"] == [
        f"2 samples have another question, other references or other columns in '{name}' than in 'a' and are left out "
        "where cells of the two are compared; run, or decide, the older of the two again" for name in "bc"]
    later = reported(b, c)
    assert ({c["samples"] for c in later["comparisons"]}, "other samples" in about(later)) == ({10}, False)


def test_a_study_with_one_of_the_contexts_of_another_study_has_the_same_questions(study, kit, reported):
    def known(*cells):
        return lambda d: kit.replace(d, sample=kit.replace(d.sample, context=("known",))) if d.cell in cells else d
    a, b = (study([kit.Drawn("x"), kit.Drawn("y")], samples=5, name=name, change=known(*cells))
            for name, cells in (("a", "y"), ("b", "xy")))
    assert [c["samples"] for c in reported(a, b)["comparisons"]] == [5] * 3


def test_the_two_presentations_of_a_pair_are_one_question(study, kit, reported):
    def change(d):
        number = int(d.sample.id[1:])
        if number % 2 == 0:
            return d
        first = f"q{number - 1:05}"
        return kit.replace(d, sample=Sample(f"{first}~swapped", f"question {number - 1}?", d.sample.choices[::-1],
                                            metadata={"pair": first}))
    found = reported(study([kit.Drawn("c")], samples=20, change=change))["cells"][0]
    assert (found["debates"], found["samples"]) == (20, 10)


# Studies

def test_cells_of_several_studies_are_named_after_them_only_where_that_is_needed(study, kit, reported):
    a = study([kit.Drawn("debate"), kit.Drawn("cot")], name="a", samples=9)
    b = study([kit.Drawn("debate"), kit.Drawn("vote")], name="b", samples=9)
    assert [c["cell"] for c in reported(a, b)["cells"]] == ["a/debate", "cot", "b/debate", "vote"]


@pytest.mark.parametrize(("table", "labels", "factor"), [
    ({}, ["x/s/debate", "x/s/sc", "y/s/debate", "y/s/sc"], "study"),
    ({"metrics": [{"use": "qa.accuracy"}, {"use": "text.length"}]}, ["x/s/debate", "x/s/sc", "y/s/debate", "y/s/sc"],
     "study"),
    ({"debate": {"models": ["large"]}}, ["debate, small", "sc, small", "debate, large", "sc, large"], "models")],
    ids=["nothing", "metrics", "models"])
def test_studies_of_one_name_are_called_after_their_directories(study, kit, reported, program, table, labels, factor):
    small = {"debate": {"models": ["small"]}}
    folders = [study([kit.Drawn(slug, settings={"debate.decision": slug}, table=own) for slug in ("debate", "sc")],
                     samples=2, name=name, repeats=repeats)
               for name, repeats, own in (("x/s", 1, small), ("y/s", 2, small | table))]
    found = reported(*folders)
    assert [c["label"] for c in found["cells"]] == labels
    assert [c["cell"] for c in found["cells"]] == ["x/s/debate", "x/s/sc", "y/s/debate", "y/s/sc"]
    assert {f["name"] for f in found["factors"]} - {"decision"} == {factor}
    assert about(found)["directories"].endswith("after their directories: x/s (s, repeats=1), y/s (s, repeats=2)")
    assert program("report", *folders).stdout.startswith("x/s, y/s: 4 cells")


REASON = "decided after 40 questions: a - b in [+0.1, +0.3]"


@pytest.mark.parametrize(("cells", "how", "notes"), [
    ([{}, {}], {"repeats": 2}, {}),
    ([{}], {}, {"repeats": "one repeat"}),
    ([{}], {"samples": 0, "planned": 9}, {"unfinished": "no debate has ended yet"}),
    ([{}, {}], {"planned": 100, "repeats": 2, "summary": {"ending": "decided", "reason": REASON}},
     {"decided": f"ended early, {REASON}; the intervals"}),
    ([{"oracle": True}, {}], {"samples": 6, "repeats": 2, "summary": None},
     {"samples": "6 samples in the smallest cell: too few to tell much", "oracle": "components saw the references"}),
    ([{"skill": 0.2}, {}], {"samples": 6, "repeats": 2},
     {"samples": " would show less often than four times in five", "fallback": "decided by a fallback"}),
    ([{"skill": 0.3}, {"skill": 0.5}, {}], {"samples": 20, "repeats": 2},
     {"samples": ", depending on the cell, would show less often", "fallback": "decided by a fallback"}),
    ([{"skill": 0.2}, {}], {"repeats": 2},
     {"fallback": "decided by a fallback: 13 of 80 debates of 'a'; madplug read"}),
    ([{"skill": 0.2}] * 7, {"repeats": 2}, {"fallback": " and 1 more cell; madplug read"})],
    ids=["nothing", "one repeat", "nothing yet", "ended early", "few samples of an oracle study",
         "few samples that differ", "few samples that differ more or less", "a fallback",
         "more fallbacks than are told"])
def test_what_is_to_be_known_about_a_study_is_noted(study, kit, reported, cells, how, notes):
    drawn = [kit.Drawn(name, **{"skill": 50, **cell}) for name, cell in zip("abcdefg", cells, strict=False)]
    report = reported(study(drawn, **how))
    said = about(report)
    assert said.keys() - {"not compared"} == notes.keys()
    assert all(text in said[name] for name, text in notes.items())
    assert report["oracle"] == report["studies"][0]["oracle"] == ("oracle" in notes)


def test_a_study_that_is_still_running_shows_what_is_there(study, kit, reported):
    report = reported(study([kit.Drawn("a"), kit.Drawn("b")], samples=7, planned=40, summary=None,
                            change=lambda d: d if d.cell == "a" else None))
    assert about(report)["unfinished"] == "unfinished: 7 of 40 debates are there"
    assert [(c["cell"], c["debates"]) for c in report["cells"]] == [("a", 7), ("b", 0)]
    assert report["not_compared"][0]["reason"] == "no debate has ended"


def test_a_study_without_a_metric_still_reports_the_rest(study, kit, reported):
    cells = [kit.Drawn("a"), kit.Drawn("b", table={"match": {"cell": "a", "by": "calls"}})]
    report = reported(study(cells, change=lambda d: kit.replace(d, metrics={})))
    assert (report["metric"], report["not_compared"][0]["reason"]) == (None, "no debate has a score")
    assert report["cells"][0]["calls"] == 6
    assert "no metric" in about(report)["metric"]


def test_no_study_a_file_that_is_none_and_a_directory_named_twice_are_errors(study, kit, refused, tmp_path):
    assert "no study here" in refused(tmp_path)
    folder = study([kit.Drawn("c")], samples=1)
    assert "named twice" in refused(folder, folder)
    (tmp_path / "study.db").write_bytes(b"not a database at all, but long enough to be looked at" * 30)
    assert "study.db" in refused(tmp_path)


@pytest.mark.parametrize(("change", "status"), [
    *((change, 2) for change in (
        "UPDATE debates SET record = 'x'", "UPDATE messages SET record = '7'", "UPDATE debates SET opening = x'ff'",
        "UPDATE debates SET metrics = '{\"qa.accuracy\":\"all\"}'", "DROP TABLE messages",
        "UPDATE debates SET metrics = '{\"a\":" + "[" * 100_000 + "]" * 100_000 + "}'",
        "UPDATE messages SET record = replace(record, '\"round\":1', '\"round\":99999999999')")),
    ("UPDATE facts SET value = '[7]'", 0),
    *((f"UPDATE facts SET value = json_set(value, '$.cells.a.debate.{part}', json('{value}'))", 0) for part, value in (
        ("styles", "-1"), ("decision", "7"), ("models", "true")))])
def test_a_hostile_study_is_a_message_or_reported_without_what_is_wrong(program, study, kit, change, status):
    folder = study([kit.Drawn("a"), kit.Drawn("b")], samples=3)
    db = sqlite3.connect(folder / "study.db", isolation_level=None)
    db.execute(change)
    db.close()
    done = program("report", folder, "--output", folder / "report", status=status)
    assert status == 0 or "study.db" in done.stderr


def test_scores_that_are_no_shares_though_the_summary_says_so_are_reported(program, study, kit):
    told = [{"cell": cell, "metrics": {"qa.accuracy": {"proportion": True}}} for cell in "ab"]
    folder = study([kit.Drawn("a"), kit.Drawn("b")], samples=3, summary={"cells": told}, change=lambda d: kit.replace(
        d, metrics={"qa.accuracy": 1e100 if d.cell == "b" else 1.0}))
    program("report", folder, "--output", folder / "report", status=0)


# Costs

def test_a_cell_without_debates_has_no_row_beside_the_one_it_is_matched_to(study, kit, program):
    cells = [kit.Drawn("debate"), kit.Drawn("sc", table={"match": {"cell": "debate", "by": "calls"}})]
    for there in ("debate", "sc"):
        folder = study(cells, name=there, change=lambda d, there=there: d if d.cell == there else None)
        assert "Matched budgets" not in program("report", folder, status=0).stdout


def test_matched_cells_are_compared_with_what_they_are_matched_to_in_one_family(study, kit, reported):
    cells = [kit.Drawn("cot", agents=1, rounds=1), kit.Drawn("debate"),
             kit.Drawn("sc", agents=6, rounds=1, table={"match": {"cell": "debate", "by": "calls"}})]
    report = reported(study(cells, samples=50))
    assert [c["matched_to"] for c in report["cells"] if c["cell"] == "sc"] == ["debate"]
    assert [(c["cell"], c["baseline"], c["why"]) for c in report["comparisons"] if c["why"] != "baseline"] == [
        ("sc", "debate", "matched by calls")]
    ps = [c["p"] for c in report["comparisons"]]
    assert report["family"] == len(ps) == 3
    assert min(c["p_holm"] for c in report["comparisons"]) == pytest.approx(min(1.0, 3 * min(ps)))


def test_a_note_says_which_cells_made_more_or_fewer_calls_than_the_baseline_where_nobody_chose_that(study, kit):
    def noted(*cells, name):
        report = build([study(cells, samples=5, name=name)])
        return [note["text"] for note in report["notes"] if note["about"] == "calls"]
    base, matched = kit.Drawn("base", agents=4, rounds=3), {"match": {"cell": "base", "by": "tokens"}}
    assert noted(base, kit.Drawn("more", agents=4, rounds=4), kit.Drawn("near", agents=5, rounds=3),
                 kit.Drawn("fewer", agents=3, rounds=3), kit.Drawn("single", agents=1, rounds=1),
                 kit.Drawn("matched", agents=25, rounds=1, table=matched), name="methods") == [
        "calls per debate differ by a factor of more than 1.25: 'more' 16.0, 'fewer' 9.0; baseline 'base' 12.0"]
    assert noted(*kit.sweep(rounds=(2, 4)), name="sweep") == []


def test_a_baseline_that_is_matched_to_another_cell_is_compared_with_it_once(study, kit):
    cells = [kit.Drawn("debate", skill=0.9), kit.Drawn("sc", agents=6, rounds=1, table={
        "match": {"cell": "debate", "by": "calls"}})]
    report = build([study(cells, samples=50)], Wanted(baseline="sc"))
    assert report["family"] == 1
    (row,) = next(table for table in tables(report) if table.title == "Matched budgets").rows
    assert row[7] == signed(-report["comparisons"][0]["difference"])


@pytest.mark.parametrize(("by", "agents", "note"), [
    ("calls", 6, ""), ("calls", 8, "more calls than the budget"), ("tokens", 5, ""),
    ("tokens", 8, "more tokens than the budget: the last answer")])
def test_more_than_the_budget_is_explained(study, kit, by, agents, note):
    control = {"match": {"cell": "debate", "by": by}}
    cells = [kit.Drawn("debate"), kit.Drawn("sc", agents=agents, rounds=1, table=control)]
    found = next(table for table in tables(build([study(cells, samples=5)])) if table.title == "Matched budgets")
    assert [text[:len(note)] for text in found.notes] == [note] * bool(note)


def test_the_pareto_front_has_what_nothing_beats_in_both_whatever_its_models(study, kit, reported):
    cells = [kit.Drawn(name, skill, agents, rounds, settings={"debate.decision": name, "debate.models": [model]})
             for name, skill, agents, rounds, model in (
                 ("cheap", 0.3, 1, 1, "m"), ("good", 1.5, 2, 1, "m"), ("dear", 0.9, 3, 3, "n"))]
    report = reported(study(cells, samples=80))
    assert len(report["groups"]) == 2
    assert report["pareto"] == [{"tokens": ["cheap", "good"], "calls": ["cheap", "good"]}]


@pytest.mark.parametrize(("change", "drawn"), [
    ({}, True), ({"turns": {"use": "baselines.samples"}, "decision": {"use": "baselines.most_common"}}, True),
    ({"rounds": 2}, False), ({"phases": [{"use": "challenge.final"}]}, False),
    ({"models": ["small", "large"]}, False), ({"decision": {"use": "freemad.score"}}, False)])
def test_votes_of_agents_who_answer_once_are_a_curve_of_self_consistency(study, kit, reported, change, drawn):
    debate = {"turns": {"use": "turns.simultaneous"}, "decision": {"use": "voting.plurality"}, "models": ["m"]}
    cell = kit.Drawn("vote", skill=0.55, agents=9, rounds=1, table={"debate": debate | change})
    found = reported(study([cell], samples=200))["cells"][0]
    curve = found["vote_of_first"]
    assert (curve is not None) is drawn
    if drawn:
        assert [n for n, _ in curve] == [*range(1, 10)]
        assert curve[0][1] == pytest.approx(0.55, abs=0.08)
        assert curve[0][1] < curve[-1][1] == pytest.approx(found["metrics"]["qa.accuracy"]["mean"])


@pytest.mark.parametrize("summary", [(), None])  # a study that still runs has no summary
def test_agents_by_rounds_is_a_surface_for_each_set_of_other_settings_and_agents_alone_are_none(study, kit, reported,
                                                                                                summary):
    cells = kit.sweep(decision="xy", agents=(2, 3), rounds=(1, 2))
    surfaces = reported(study(cells, samples=3, summary=summary))["surfaces"]
    assert [s["of"] for s in surfaces] == ["x", "y"]
    assert [p[:2] for p in surfaces[0]["points"]] == [[2, 1], [2, 2], [3, 1], [3, 2]]
    assert reported(study(kit.sweep(agents=(2, 3, 4)), samples=3, name="agents", summary=summary))["surfaces"] == []


# Size

def test_texts_of_debates_are_not_kept_while_they_are_read(study, kit):
    def peak(samples):
        opened = open_studies([study([kit.Drawn("c")], samples=samples, size=20_000, name=str(samples))])
        tracemalloc.start()
        Debates(opened)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most
    peak(20)
    few, many = peak(100), peak(400)  # 48 MB of text
    assert many - few < 300 * 2_000


BEGINNINGS = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG", "csv": b""}


def test_every_chart_is_a_file_of_each_kind_with_its_numbers_and_the_same_to_the_byte_for_the_same_studies(
        study, kit, program, tmp_path):
    folder = study(kit.sweep(decision=("a", "b"), agents=(2, 3), rounds=(1, 2)), samples=6, repeats=3)
    for name in ("one", "two"):
        program("report", folder, "--output", tmp_path / name, "--figures", status=0)
    one, two = ({path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.*")}
                for name in ("one", "two"))
    assert one == two
    figures = {path: written for path, written in one.items() if path.parent.name == "figures"}
    assert {path.stem for path in figures} >= {"accuracy", "cost", "surface", "over-agents", "over-rounds", "repeats"}
    for path, written in figures.items():
        assert {path.with_suffix(f".{kind}") for kind in BEGINNINGS} <= figures.keys()
        assert written.startswith(BEGINNINGS[path.suffix[1:]])
        assert path.suffix != ".csv" or written.count(b"\n") > 1, path
