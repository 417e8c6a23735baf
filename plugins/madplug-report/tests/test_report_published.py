"""A paper's numbers beside ours."""

import csv

import pytest

from madplug import UserError
from madplug_report.building import Wanted, build
from madplug_report.contents import published

FILE = """
source = "A paper, table 1"
scale = 100

[[values]]
name = "Majority"
mean = 58.3
std = 1.2
levels = {decision = "majority"}

[[values]]
name = "Ranked"
mean = 62.8
samples = 200
levels = {decision = "voting.ranked", agents = "3"}

[[values]]
name = "all"
mean = 0.5
scale = 1
levels = {agents = "3"}

[[values]]
name = "Unanimity"
mean = 50
levels = {decision = "unanimity"}
"""


@pytest.fixture
def folder(study, kit):
    settings = [("consensus.majority", 3), ("voting.ranked", 3), ("voting.ranked", 5)]
    return study([kit.Drawn(f"decision={d},agents={a}", agents=a, skill=0.6 if "majority" in d else 0.9,
                            settings={"debate.decision": d, "debate.agents": a}) for d, a in settings],
                 samples=40, repeats=2)


@pytest.fixture
def paper(tmp_path):
    def paper(text=FILE):
        path = tmp_path / "paper.toml"
        path.write_text(text)
        return path
    return paper


def test_ours_stand_beside_theirs_with_the_difference_and_its_interval(folder, paper):
    report = build([folder], Wanted(published=paper()))
    majority, ranked, every = report["published"]["rows"]
    own = next(c for c in report["cells"] if "majority" in c["cell"])["metrics"]["qa.accuracy"]
    assert (majority["ours"], majority["theirs"]) == (pytest.approx(100 * own["mean"]), 58.3)
    assert majority["difference"] == pytest.approx(100 * own["mean"] - 58.3)
    assert majority["ci95"] == pytest.approx([100 * end - 58.3 for end in own["ci95"]])
    assert (majority["ci_of"], ranked["ci_of"]) == ("ours alone", "both")
    wide, narrow = (row["ci95"][1] - row["ci95"][0] for row in (ranked, majority))
    assert wide > ranked["our_ci95"][1] - ranked["our_ci95"][0]
    assert narrow == pytest.approx(majority["our_ci95"][1] - majority["our_ci95"][0])
    assert len(every["cells"]) == 2
    assert every["ours"] == pytest.approx((majority["ours"] + ranked["ours"]) / 200)
    assert report["published"]["missing"] == ["Unanimity"]


def test_the_comparison_is_printed_and_written(folder, paper, madplug, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    done = madplug("report", folder, "--compare", paper(), "--output", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "Beside A paper, table 1" in done.stdout
    assert "58.3 ± 1.2" in done.stdout
    assert "not in this study: Unanimity" in done.stdout
    rows = list(csv.DictReader((tmp_path / "out" / "published.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["name"] for row in rows] == ["Majority", "Ranked", "all"]


@pytest.mark.parametrize(("text", "said"), [
    ("source = 3", "source"),
    ("x = ", "is not TOML"),
    (FILE + '[[values]]\nname = "n"\nmean = 1\n', "values.4 (n): needs `cell` or `levels`"),
    (FILE.replace("decision = \"majority\"", "decison = \"majority\""),
     "there is no factor 'decison'; did you mean 'decision'?"),
    (FILE.replace("mean = 62.8", "meen = 62.8"), "values.1.mean: Field required"),
    (FILE.replace("samples = ", "samples = 99999999999"), "samples: Input should be"),
    *((FILE.replace("mean = 62.8", f"mean = {value}"), "values.1.mean: Input should be")
      for value in ("nan", "inf", "-1e308", "1e308")),
    *((FILE.replace("mean = 62.8", f"mean = 62.8\n{more}"), f"values.1.{more.partition(' ')[0]}: Input should be")
      for more in ("std = nan", "scale = 1e308", "scale = inf", "scale = 1e-320")),
])
def test_a_file_that_cannot_be_used_says_where(folder, paper, refused, text, said):
    assert said in refused(folder, "--compare", paper(text))


def test_without_a_paper_there_is_no_such_table(folder):
    assert published(build([folder])).rows == []


def test_a_number_is_no_end_of_another(study, kit, paper):
    cells = [kit.Drawn(f"temperature={t}", settings={"temperature": t}) for t in (0.5, 1.5, 5)]
    text = 'source = "x"\n[[values]]\nname = "five"\nmean = 0.5\nlevels = {temperature = "5"}\n'
    report = build([study(cells, samples=4)], Wanted(published=paper(text)))
    assert report["published"]["rows"][0]["cells"] == ["temperature=5"]


def test_a_component_of_two_plugins_has_to_be_named_in_full(study, kit, paper):
    cells = [kit.Drawn(f"decision={d}", settings={"debate.decision": d}) for d in ("voting.simple", "judge.simple")]
    folder = study(cells, samples=4)
    text = 'source = "x"\n[[values]]\nname = "n"\nmean = 1\nlevels = {decision = "NAME"}\n'
    with pytest.raises(UserError, match=r"'simple' is voting\.simple or judge\.simple; name the level in full"):
        build([folder], Wanted(published=paper(text.replace("NAME", "simple"))))
    report = build([folder], Wanted(published=paper(text.replace("NAME", "judge.simple"))))
    assert report["published"]["rows"][0]["cells"] == ["decision=judge.simple"]
