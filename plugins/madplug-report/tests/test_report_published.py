"""A paper's numbers beside ours."""

import csv

import pytest

from madplug_report.building import Wanted, build
from madplug_report.contents import published

FILE = """source,decision,agents,metric,value,std,unit,n,note
"A paper, table 1",majority,,,58.3,1.2,percent,,its text says 59
"A paper, table 1",voting.ranked,3,,62.8,,percent,200,
"A paper, table 1",,3,,0.5,,,,
"A paper, table 1",unanimity,,,50,,percent,,
"A paper, table 1",majority,3,rounds,1.5,,,,
"""


@pytest.fixture
def folder(study, kit):
    first, _, *others = kit.sweep(lambda levels: 0.6 if "majority" in levels["decision"] else 0.9,
                                  decision=("consensus.majority", "voting.ranked"), agents=(3, 5))
    return study([first, *others], repeats=2)


@pytest.fixture
def paper(tmp_path):
    def paper(text=FILE):
        (tmp_path / "paper.csv").write_text(text)
        return tmp_path / "paper.csv"
    return paper


def test_ours_stand_beside_theirs_with_the_difference_and_its_interval(folder, paper):
    assert published(build([folder])).rows == []
    report = build([folder], Wanted(published=paper()))
    majority, ranked, every, turns = report["published"]["rows"]
    own = next(c for c in report["cells"] if "majority" in c["cell"])["metrics"]["qa.accuracy"]
    assert [majority[name] for name in ("ours", "theirs", "difference")] == pytest.approx(
        [100 * own["mean"], 58.3, 100 * own["mean"] - 58.3])
    assert majority["ci95"] == pytest.approx([100 * end - 58.3 for end in own["ci95"]])
    assert (majority["ci_of"], ranked["ci_of"]) == ("ours alone", "both")
    wide, narrow = (row["ci95"][1] - row["ci95"][0] for row in (ranked, majority))
    assert wide > ranked["our_ci95"][1] - ranked["our_ci95"][0]
    assert narrow == pytest.approx(majority["our_ci95"][1] - majority["our_ci95"][0])
    assert len(every["cells"]) == 2
    assert every["ours"] == pytest.approx((majority["ours"] + ranked["ours"]) / 200)
    assert (turns["ours"], turns["metric"]) == (2.0, "rounds")
    assert report["published"]["missing"] == ["unanimity, qa.accuracy"]
    assert report["published"]["notes"] == ["majority, qa.accuracy: its text says 59"]


def test_the_comparison_is_printed_and_written(folder, paper, program, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    printed = program("report", folder, "--compare", paper(), "--output", tmp_path / "out", status=0).stdout
    for part in ("Beside A paper, table 1", "58.3 ± 1.2", "not in this study: unanimity",
                 "of 4 numbers are no farther from the paper's than chance allows"):
        assert part in printed
    rows = list(csv.DictReader((tmp_path / "out" / "published.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["name"] for row in rows] == ["majority, qa.accuracy", "voting.ranked, 3, qa.accuracy",
                                         "3, qa.accuracy", "majority, 3, rounds"]


@pytest.mark.parametrize(("text", "said"), [
    ("name\nx\n", "has no column 'value'"),
    ("\0", "has no column 'value'"),
    (FILE.replace("decision,", "decison,"), "column 'decison': there is no factor 'decison'; did you mean 'decision'?"),
    (FILE.replace("62.8", ""), "line 3: value: is missing"),
    (FILE.replace(",200,", ",99999999999,"), "line 3: n: '99999999999' is not a number that it can be"),
    *((FILE.replace("62.8", value), f"line 3: value: '{value}'") for value in ("nan", "inf", "-1e308", "many")),
    (FILE.replace(",1.2,", ",nan,"), "line 2: std: 'nan'")])
def test_a_file_that_cannot_be_used_says_where(folder, paper, refused, text, said):
    assert said in refused(folder, "--compare", paper(text))


@pytest.mark.parametrize(("levels", "text"), [
    ({"temperature": (0.5, 1.5, 5)}, "temperature,value\n5,0.5\n"),  # a number is no end of another
    ({"decision": ("voting.simple", "judge.simple")}, "decision,value\njudge.simple,1\n")])
def test_a_number_is_for_the_cells_of_its_levels_which_have_to_be_named_in_full_where_plugins_share_a_name(
        study, kit, paper, refused, levels, text):
    folder = study(kit.sweep(**levels), samples=4)
    report = build([folder], Wanted(published=paper(text)))
    name, last = next((name, values[-1]) for name, values in levels.items())
    assert report["published"]["rows"][0]["cells"] == [f"{name}={last}"]
    if name == "decision":
        assert "'simple' is voting.simple or judge.simple; name the level in full" in refused(
            folder, "--compare", paper("decision,value\nsimple,1\n"))


@pytest.mark.parametrize(("studied", "theirs"), [("org/a", [0.1]), ("org/c", [])])
def test_of_several_models_the_numbers_are_those_of_the_study_s_own(study, kit, paper, studied, theirs):
    models = {"small": {"use": "openai.chat", "model": studied}}
    folder = study([kit.Drawn("main", table={"models": models})], samples=4)
    report = build([folder], Wanted(published=paper("model,value\na,0.1\nb,0.2\n")))
    assert [row["theirs"] for row in report["published"]["rows"]] == theirs


def test_numbers_of_families_are_compared_with_the_average_over_their_levels(folder, paper):
    report = build([folder], Wanted(families=("consensus=consensus.majority", "voting=voting.ranked"),
                                    published=paper("decision.family,value\nvoting,0.1\n")))
    (row,) = report["published"]["rows"]
    assert len(row["cells"]) == 2
