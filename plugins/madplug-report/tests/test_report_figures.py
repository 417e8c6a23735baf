"""What `madplug report --json` says about studies of every kind."""

import asyncio
import json
import sqlite3
import tracemalloc

import pytest

from madplug import Decision, Message, Sample, Vote
from madplug.store import open_recorder
from madplug_report.building import Wanted, build
from madplug_report.contents import tables
from madplug_report.tables import signed


@pytest.fixture
def reported(madplug):
    """The report of directories, as data."""
    def reported(*words):
        done = madplug("report", *words, "--json")
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)
    return reported


def by_name(report):
    return {cell["cell"]: cell for cell in report["cells"]}


def about(report):
    return {note["about"]: note["text"] for note in report["notes"]}


def outcomes(study, kit, name, right):
    """A study with one cell whose debates are right (1), wrong (0) or missing (None), sample by sample."""
    scores = dict(enumerate(right))

    def change(d):
        score = scores[int(d.sample.id[1:])]
        key = "A" if score else "B"
        return None if score is None else kit.replace(d, decision=Decision(key), metrics={"qa.accuracy": float(score)})
    return study([kit.Drawn(name)], samples=len(right), name=name, change=change)


# Denominators

def test_undecided_debates_are_wrong_and_failed_ones_are_in_no_mean(study, kit, reported):
    cell = kit.Drawn("c", skill=1.5, undecided=0.3, failed=0.2)
    report = reported(study([cell], samples=200))
    [found] = report["cells"]
    assert found["debates"] == 200
    ends = found["outcomes"]
    assert sum(ends.values()) == 200
    assert ends["failed"] > 20
    assert ends["undecided"] > 20
    assert found["failed"] == ends["failed"] / 200
    assert found["undecided"] == ends["undecided"] / 200
    right = ends["agreed"] + ends["decided"] + ends["fallback"]
    assert found["metrics"]["qa.accuracy"]["n"] == 200 - ends["failed"]
    assert found["metrics"]["qa.accuracy"]["mean"] == pytest.approx(right / (200 - ends["failed"]), abs=0.03)
    assert "left out" not in [note["about"] for note in report["notes"]]


@pytest.mark.parametrize("value", [None, float("nan")])
def test_a_sample_to_which_the_metric_does_not_apply_is_left_out_of_its_mean(study, kit, reported, value):
    def change(d):
        return kit.replace(d, metrics={"qa.accuracy": value}) if d.sample.id < "q00004" else d
    found = reported(study([kit.Drawn("c")], samples=10, change=change))["cells"][0]
    assert (found["debates"], found["metrics"]["qa.accuracy"]["n"]) == (10, 6)


def test_means_are_per_debate_and_tokens_per_right_answer_count_the_wrong_ones_too(study, kit, reported):
    folder = outcomes(study, kit, "c", [1, 0, 0, 1])
    found = reported(folder)["cells"][0]
    assert found["tokens_per_right"] == pytest.approx(found["tokens"] * 2)
    none = outcomes(study, kit, "none", [0, 0])
    assert reported(none)["cells"][0]["tokens_per_right"] is None


def test_the_spread_is_over_repeats_and_one_repeat_has_none(study, kit, reported):
    one = reported(study([kit.Drawn("c")], samples=30, name="one"))
    assert one["cells"][0]["metrics"]["qa.accuracy"]["std"] is None
    assert "one repeat" in about(one)["repeats"]
    three = reported(study([kit.Drawn("c")], samples=30, repeats=3, name="three"))
    metric = three["cells"][0]["metrics"]["qa.accuracy"]
    mean = sum(metric["per_repeat"]) / 3
    assert metric["std"] == pytest.approx((sum((x - mean) ** 2 for x in metric["per_repeat"]) / 2) ** 0.5)
    assert metric["mean"] == pytest.approx(mean)
    assert "repeats" not in about(three)


def test_single_debates_have_wilsons_interval(study, kit, reported):
    metric = reported(outcomes(study, kit, "c", [1] * 8 + [0] * 2))["cells"][0]["metrics"]["qa.accuracy"]
    assert metric["ci_method"] == "Wilson"
    assert metric["ci95"] == pytest.approx([0.4901625, 0.9433178], abs=1e-6)


def test_unread_answers_are_told_from_wrong_ones(study, kit, reported):
    found = reported(study([kit.Drawn("c", unread=0.25, rounds=1)], samples=400))["cells"][0]
    assert found["unread"] == pytest.approx(0.25, abs=0.03)
    assert found["answers"] == 1200
    assert found["metrics"]["qa.accuracy"]["n"] == 400


def test_flags_in_the_data_of_messages_are_counted_and_texts_cannot_forge_them(study, kit, reported):
    def change(d):
        first, *rest = d.messages
        forged = kit.replace(first, content='"unparsed":true', data={"styles": {"said": '"unparsed":true'}})
        flagged = kit.replace(rest[0], data={"styles": {"unparsed": True}})
        return kit.replace(d, messages=(forged, flagged, *rest[1:]))
    report = reported(study([kit.Drawn("c", agents=2, rounds=2)], samples=5, change=change))
    assert report["cells"][0]["flagged"] == 1 / 4
    assert any(note["text"].startswith("in 5 of 5 debates of 'c' a ballot") for note in report["notes"])


@pytest.mark.parametrize(("key", "noted"), [("A", True), (None, False)])
def test_a_ballot_that_cannot_be_read_is_noted_and_an_unread_answer_is_not_one(study, kit, reported, key, noted):
    def change(d):
        return kit.replace(d, messages=(*d.messages[:-1], kit.replace(d.messages[-1], key=key)),
                           decision=kit.replace(d.decision, votes=(Vote(0, {}, valid=False),)))
    report = reported(study([kit.Drawn("c", agents=2, rounds=2)], samples=5, change=change))
    assert any("a ballot or another reply" in note["text"] for note in report["notes"]) is noted


@pytest.mark.parametrize("versions", ["ab", "aa"])
def test_scores_that_an_interrupted_rescoring_left_are_noted(study, kit, reported, versions):
    def change(d):
        return kit.replace(d, scored_by={"qa.accuracy": versions[int(d.sample.id.lstrip("q")) % 2]})
    noted = str(reported(study([kit.Drawn("c")], samples=5, change=change))["notes"])
    assert ("scores of 'c' were made by different versions of qa.accuracy" in noted) == (versions == "ab")


def test_retracted_messages_are_not_there(study, kit, reported):
    def change(d):
        return kit.replace(d, messages=(*d.messages, Message(9, 7, 0, 0, "improve", "", key="Z", retracted=True)))
    found = reported(study([kit.Drawn("c")], samples=5, change=change))["cells"][0]
    assert found["rounds"] == {"2": 5}
    assert [r["round"] for r in found["by_round"]] == [1, 2]


# Comparisons

def test_cells_are_compared_on_the_samples_both_have(study, kit, reported):
    a = outcomes(study, kit, "a", [1, 0, 0, 0, 1, None])
    b = outcomes(study, kit, "b", [1, 1, 1, 0, None, 1])
    report = reported(a, b)
    (c,) = report["comparisons"]
    assert (c["cell"], c["baseline"], c["samples"]) == ("b", "a", 4)
    assert (c["gained"], c["lost"]) == (2, 0)
    assert c["difference"] == 0.5
    assert c["p"] == pytest.approx(0.5)
    assert c["test"] == "McNemar, exact"


def test_numbers_that_differ_by_one_are_no_right_and_wrong_answers(study, kit, reported):
    def counted(first):
        return lambda d: kit.replace(d, metrics={"kit.changes": float(first[int(d.sample.id[1:])])})
    a, b = (study([kit.Drawn(name)], samples=4, name=name, change=counted(first))
            for name, first in (("a", [2, 1, 1, 0]), ("b", [3, 2, 1, 0])))
    (c,) = reported(a, b, "--metric", "kit.changes")["comparisons"]
    assert (c["gained"], c["lost"], c["p"]) == (2, 0, pytest.approx(0.5))
    assert c["test"] == "sign flips, exact"


def test_repeats_are_averaged_before_samples_are_compared(study, kit, reported):
    cells = [kit.Drawn("a", skill=0.4), kit.Drawn("b", skill=0.9)]
    (c,) = reported(study(cells, samples=60, repeats=3))["comparisons"]
    assert c["samples"] == 60
    assert c["test"] == "sign flips, exact"
    assert c["ci_method"] == "BCa bootstrap"
    assert c["ci95"][0] < c["difference"] < c["ci95"][1]
    assert c["p"] < 0.001


def test_p_values_are_corrected_for_the_whole_family(study, kit, reported):
    report = reported(study([kit.Drawn(n) for n in "abcd"], samples=50))
    ps = [c["p"] for c in report["comparisons"]]
    assert report["family"] == len(ps) == 3
    assert min(c["p_holm"] for c in report["comparisons"]) == pytest.approx(min(1.0, 3 * min(ps)))


def test_any_cell_can_be_the_baseline(study, kit, reported, refused):
    folder = study([kit.Drawn("a"), kit.Drawn("b")])
    (c,) = reported(folder, "--baseline", "b")["comparisons"]
    assert (c["cell"], c["baseline"]) == ("a", "b")
    assert "there is no cell 'bb'; did you mean 'b'?" in refused(folder, "--baseline", "bb")


def test_any_metric_can_be_compared(study, kit, reported, refused):
    def change(d):
        return kit.replace(d, metrics={**d.metrics, "qa.f1": 0.25 + d.metrics["qa.accuracy"] / 2})
    folder = study([kit.Drawn("a"), kit.Drawn("b")], change=change)
    report = reported(folder, "--metric", "qa.f1")
    assert report["metric"] == "qa.f1"
    assert set(report["comparisons"][0]["effects"]) == {"standardised"}
    assert "no debate has the metric 'qa.ff1'; did you mean 'qa.f1'?" in refused(folder, "--metric", "qa.ff1")


def test_other_data_are_not_compared_and_that_is_said(study, kit, reported):
    a = study([kit.Drawn("a")], samples=10, name="a")
    b = study([kit.Drawn("b")], samples=10, name="b", question="something else")
    report = reported(a, b)
    assert report["comparisons"] == []
    assert report["not_compared"] == [
        {"cell": "b", "baseline": "a", "reason": "other data: the ids are the same, the questions are not"}]
    assert "'b': other data" in about(report)["not compared"]


def test_the_two_presentations_of_a_pair_are_one_question(study, kit, reported):
    def change(d):
        if int(d.sample.id[1:]) % 2 == 0:
            return d
        first = f"q{int(d.sample.id[1:]) - 1:05}"
        swapped = Sample(f"{first}~swapped", f"question {int(first[1:])}?", d.sample.choices[::-1],
                         metadata={"pair": first})
        return kit.replace(d, sample=swapped)
    found = reported(study([kit.Drawn("c")], samples=20, change=change))["cells"][0]
    assert (found["debates"], found["samples"]) == (20, 10)


# Studies

def test_cells_of_several_studies_are_named_after_them_only_where_that_is_needed(study, kit, reported):
    a = study([kit.Drawn("debate"), kit.Drawn("cot")], name="a")
    b = study([kit.Drawn("debate"), kit.Drawn("vote")], name="b")
    assert [c["cell"] for c in reported(a, b)["cells"]] == ["a/debate", "cot", "b/debate", "vote"]


@pytest.mark.parametrize(("table", "labels", "factor"), [
    ({}, ["x/s/debate", "x/s/sc", "y/s/debate", "y/s/sc"], "study"),
    ({"metrics": [{"use": "qa.accuracy"}, {"use": "text.length"}]}, ["x/s/debate", "x/s/sc", "y/s/debate", "y/s/sc"],
     "study"),
    ({"debate": {"models": ["large"]}}, ["debate, small", "sc, small", "debate, large", "sc, large"], "models")],
    ids=["nothing", "metrics", "models"])
def test_studies_of_one_name_are_called_after_their_directories(study, kit, reported, madplug, table, labels, factor):
    def drawn(name, repeats, table):
        cells = [kit.Drawn(slug, settings={"debate.decision": slug}, table=table) for slug in ("debate", "sc")]
        folder = study(cells, samples=2, name=name, repeats=repeats)
        summary = json.loads((folder / "summary.json").read_text())
        (folder / "summary.json").write_text(json.dumps({**summary, "study": "s"}))
        return folder
    folders = [drawn("x/s", 1, {"debate": {"models": ["small"]}}),
               drawn("y/s", 2, {"debate": {"models": ["small"]}} | table)]
    found = reported(*folders)
    assert [c["label"] for c in found["cells"]] == labels
    assert [c["cell"] for c in found["cells"]] == ["x/s/debate", "x/s/sc", "y/s/debate", "y/s/sc"]
    assert {f["name"] for f in found["factors"]} - {"decision"} == {factor}
    assert about(found)["directories"].endswith("after their directories: x/s (s, repeats=1), y/s (s, repeats=2)")
    assert madplug("report", *folders).stdout.startswith("x/s, y/s: 4 cells")


def test_a_study_that_is_still_running_shows_what_is_there(kit, reported, tmp_path):
    cells = [kit.Drawn("a"), kit.Drawn("b")]

    async def running():
        store = open_recorder(tmp_path / "s")
        await store.keep_fact("identity", {"repeats": 1, "cells": {c.name: c.resolved() for c in cells}})
        await store.keep_fact("planned", 40)
        for sample in range(7):
            await store.finish_debate(kit.debate(cells[0], sample))
        return store

    store = asyncio.run(running())
    try:
        report = reported(tmp_path / "s")
    finally:
        store.close()
    assert about(report)["unfinished"] == "unfinished: 7 of 40 debates are there"
    assert [(c["cell"], c["debates"]) for c in report["cells"]] == [("a", 7), ("b", 0)]
    assert report["not_compared"][0]["reason"] == "no debate has ended"


def test_what_a_fallback_decided_is_told_with_its_cells(study, kit, reported):
    report = reported(study([kit.Drawn("a", skill=0.2), kit.Drawn("b", skill=50)], samples=40))
    fallen = report["cells"][0]["outcomes"]["fallback"]
    assert fallen > 0
    assert about(report)["fallback"].startswith(f"decided by a fallback: {fallen} of 40 debates of 'a'; madplug read")


def test_a_study_without_a_debate_is_no_error(kit, reported, madplug, study, tmp_path):
    folder = study([kit.Drawn("a")], samples=0, planned=9)
    assert about(reported(folder)) == {"unfinished": "no debate has ended yet"}
    assert madplug("report", folder, "--output", tmp_path / "out").exit_code == 0


def test_a_study_that_ended_as_soon_as_it_was_decided_says_so(study, kit, reported):
    folder = study([kit.Drawn("a"), kit.Drawn("b")], planned=100)
    told = json.loads((folder / "summary.json").read_text())
    told |= {"ending": "decided", "reason": "decided after 40 questions: a - b in [+0.1, +0.3]"}
    (folder / "summary.json").write_text(json.dumps(told))
    said = about(reported(folder))
    assert "unfinished" not in said
    assert said["decided"].startswith("ended early, decided after 40 questions: a - b in [+0.1, +0.3]; the intervals")


def test_a_study_without_a_metric_still_reports_the_rest(study, kit, reported):
    cells = [kit.Drawn("a"), kit.Drawn("b", table={"match": {"cell": "a", "by": "calls"}})]
    report = reported(study(cells, change=lambda d: kit.replace(d, metrics={})))
    assert (report["metric"], report["not_compared"][0]["reason"]) == (None, "no debate has a score")
    assert report["cells"][0]["calls"] == 6
    assert "no metric" in about(report)["metric"]


def test_few_samples_are_told_with_what_they_cannot_show_and_oracle_studies_are_marked(study, kit, reported):
    report = reported(study([kit.Drawn("a", oracle=True), kit.Drawn("b")], samples=6, summary=False))
    assert about(report)["samples"].startswith("6 samples in the smallest cell: too few to tell much")
    assert "samples" not in about(reported(study([kit.Drawn("a")], samples=40, name="more")))
    assert report["oracle"]
    assert report["studies"][0]["oracle"]
    assert "saw the references" in about(report)["oracle"]


def test_no_study_a_file_that_is_none_and_a_directory_named_twice_are_errors(study, kit, refused, tmp_path):
    assert "no study here" in refused(tmp_path)
    folder = study([kit.Drawn("c")])
    assert "named twice" in refused(folder, folder)
    (tmp_path / "study.db").write_bytes(b"not a database at all, but long enough to be looked at" * 30)
    assert "study.db" in refused(tmp_path)


@pytest.mark.parametrize("change", [
    "UPDATE debates SET record = 'x'", "UPDATE messages SET record = '7'", "UPDATE debates SET opening = x'ff'",
    "UPDATE debates SET metrics = '{\"qa.accuracy\":\"all\"}'", "UPDATE facts SET value = '[7]'",
    "UPDATE debates SET metrics = '{\"a\":" + "[" * 100_000 + "]" * 100_000 + "}'", "DROP TABLE messages",
    "UPDATE messages SET record = replace(record, '\"round\":1', '\"round\":99999999999')"])
def test_a_hostile_study_is_a_message(madplug, study, kit, change):
    folder = study([kit.Drawn("a")], samples=3)
    db = sqlite3.connect(folder / "study.db", isolation_level=None)
    db.execute(change)
    db.close()
    done = madplug("report", folder, "--output", folder / "report")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == (0 if "facts" in change else 2)
    assert done.exit_code == 0 or "study.db" in done.stderr


@pytest.mark.parametrize(("part", "value"), [("styles", "-1"), ("decision", "7"), ("models", "true")])
def test_a_cell_of_another_shape_is_reported_without_what_it_is(madplug, study, kit, part, value):
    folder = study([kit.Drawn("a"), kit.Drawn("b")], samples=3)
    db = sqlite3.connect(folder / "study.db", isolation_level=None)
    db.execute(f"UPDATE facts SET value = json_set(value, '$.cells.a.debate.{part}', json('{value}'))")
    db.close()
    assert madplug("report", folder).exit_code == 0


def test_scores_that_are_no_shares_though_the_summary_says_so_are_reported(madplug, study, kit):
    def change(d):
        return kit.replace(d, metrics={"qa.accuracy": 1e100 if d.cell == "b" else 1.0})

    folder = study([kit.Drawn("a"), kit.Drawn("b")], samples=3, change=change)
    told = [{"cell": cell, "metrics": {"qa.accuracy": {"proportion": True}}} for cell in "ab"]
    (folder / "summary.json").write_text(json.dumps({"study": "s", "status": "finished", "cells": told}))
    assert madplug("report", folder, "--output", folder / "report").exit_code == 0


# Costs

def test_matched_cells_are_compared_with_what_they_are_matched_to(study, kit, reported):
    cells = [kit.Drawn("cot", agents=1, rounds=1), kit.Drawn("debate"),
             kit.Drawn("sc", agents=6, rounds=1, table={"match": {"cell": "debate", "by": "calls"}})]
    report = reported(study(cells, samples=50))
    assert by_name(report)["sc"]["matched_to"] == "debate"
    (c,) = [c for c in report["comparisons"] if c["why"] != "baseline"]
    assert (c["cell"], c["baseline"], c["why"]) == ("sc", "debate", "matched by calls")
    assert report["family"] == 3


def test_a_baseline_that_is_matched_to_another_cell_is_compared_with_it_once(study, kit):
    cells = [kit.Drawn("debate", skill=0.9), kit.Drawn("sc", agents=6, rounds=1, table={
        "match": {"cell": "debate", "by": "calls"}})]
    report = build([study(cells, samples=50)], Wanted(baseline="sc"))
    assert report["family"] == 1
    (row,) = next(table for table in tables(report) if table.title == "Matched budgets").rows
    assert row[7] == signed(-report["comparisons"][0]["difference"])


def test_the_pareto_front_has_what_nothing_beats_in_both_whatever_its_models(study, kit, reported):
    cells = [kit.Drawn(name, skill, agents, rounds, settings={"debate.decision": name, "debate.models": [model]})
             for name, skill, agents, rounds, model in (
                 ("cheap", 0.3, 1, 1, "m"), ("good", 1.5, 2, 1, "m"), ("dear", 0.9, 3, 3, "n"))]
    report = reported(study(cells, samples=80))
    (front,) = report["pareto"]
    assert len(report["groups"]) == 2
    assert front == {"tokens": ["cheap", "good"], "calls": ["cheap", "good"]}


def test_self_consistency_is_a_curve_drawn_from_one_pool(study, kit, reported):
    table = {"debate": {"turns": {"use": "baselines.samples"}, "decision": {"use": "baselines.most_common"}}}
    cell = kit.Drawn("sc", skill=0.55, agents=9, rounds=1, table=table)
    found = reported(study([cell, kit.Drawn("x")], samples=200))["cells"]
    curve = found[0]["vote_of_first"]
    assert len(curve) == 9
    assert curve[0] == [1, pytest.approx(0.55, abs=0.08)]
    assert curve[-1] == [9, pytest.approx(found[0]["metrics"]["qa.accuracy"]["mean"])]
    assert curve[-1] > curve[0]
    assert found[1]["vote_of_first"] is None


@pytest.mark.parametrize(("change", "drawn"), [
    ({}, True), ({"rounds": 2}, False), ({"phases": [{"use": "challenge.final"}]}, False),
    ({"models": ["small", "large"]}, False), ({"decision": {"use": "freemad.score"}}, False)])
def test_a_vote_of_agents_who_answer_once_is_self_consistency_too(study, kit, reported, change, drawn):
    debate = {"turns": {"use": "turns.simultaneous"}, "decision": {"use": "voting.plurality"}, "models": ["m"]}
    cell = kit.Drawn("vote", agents=6, rounds=1, table={"debate": debate | change})
    assert bool(reported(study([cell], samples=20))["cells"][0]["vote_of_first"]) is drawn


def test_agents_by_rounds_is_a_surface_for_each_set_of_other_settings(study, kit, reported):
    cells = [kit.Drawn(f"decision={d},agents={a},rounds={r}", agents=a, rounds=r,
                       settings={"debate.decision": d, "debate.agents": a, "debate.rounds": r})
             for d in ("x", "y") for a in (2, 3) for r in (1, 2)]
    for summary in (True, False):  # a study that still runs has no summary
        report = reported(study(cells, samples=3, name=str(summary), summary=summary))
        assert [s["of"] for s in report["surfaces"]] == ["x", "y"]
        assert [p[:2] for p in report["surfaces"][0]["points"]] == [[2, 1], [2, 2], [3, 1], [3, 2]]


def test_a_sweep_of_agents_alone_is_no_surface(study, kit, reported):
    cells = [kit.Drawn(f"agents={a}", agents=a) for a in (2, 3, 4)]
    assert reported(study(cells, samples=3))["surfaces"] == []


# Size

def test_texts_of_debates_are_not_kept_while_they_are_read(study, kit):
    from madplug_report.reading import Debates
    from madplug_report.studies import open_studies

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


def test_the_same_studies_give_the_same_report_and_figures_to_the_byte(study, kit, madplug, tmp_path):
    folder = study([kit.Drawn("a"), kit.Drawn("b")], samples=20, repeats=2)
    for name in ("one", "two"):
        assert madplug("report", folder, "--output", tmp_path / name, "--figures").exit_code == 0
    one, two = ({path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.*")}
                for name in ("one", "two"))
    assert len(one) > 20
    assert one == two
