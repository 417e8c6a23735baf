"""Pictures that plugins bring as data: drawn in the report, and refused in words where they are not as described."""

import json

import pytest

from madplug import Picture
from madplug.rows import plain
from madplug_report.building import build
from madplug_report.charts import charts

LINE = Picture("Agents left", "line", ({"round": 1, "left": 5}, {"round": 2, "left": 3}), "round", "left")
BARS = Picture("Kinds", "bars", ({"kind": "a", "n": 2, "by": "x"}, {"kind": "b", "n": 1, "by": "y"}), "kind", "n", "by")
HEAT = Picture("Who hears whom", "heat", ({"from": "0", "to": "1", "n": 3}, {"from": "1", "to": "0", "n": 1}),
               "from", "to", "n")
TABLE = Picture("Words", "table", ({"word": "<b>so</b>", "n": 2}, {"word": "thus", "n": None}))


@pytest.fixture
def drawn(study, kit):
    """The report on a study of two cells whose metric has brought pictures."""
    def drawn(*pictures):
        folder = study([kit.Drawn("a"), kit.Drawn("b")], samples=4)
        path = folder / "summary.json"
        told = json.loads(path.read_text(encoding="utf-8"))
        for cell in told["cells"]:
            cell["figures"] = {"mine.drawn": {"pictures": plain(pictures)}}
        path.write_text(json.dumps(told), encoding="utf-8")
        return build([folder])
    return drawn


@pytest.mark.parametrize("picture", [LINE, BARS, HEAT, TABLE], ids=lambda p: p.kind)
def test_a_picture_is_drawn_with_its_numbers(drawn, picture):
    report = drawn(picture)
    found = [chart for chart in charts(report) if chart.title.startswith(picture.title)]
    shared = picture is LINE
    assert [len(chart.rows) for chart in found] == ([4] if shared else [2, 2])
    assert all("<svg" in chart.svg and "<b>so" not in chart.svg for chart in found)


@pytest.mark.parametrize(("rows", "wrong"), [
    (({"round": 1},), "expected rows with left, round"), (({"round": 1, "left": [1]},), "rows[0].left"),
    (({"round": 1, "left": 1},) * 2001, "rows: Tuple should have at most 2000 items")])
def test_a_picture_that_is_none_is_a_problem_and_no_chart(drawn, rows, wrong):
    report = drawn(Picture("Left", "line", rows, "round", "left"))
    assert wrong in " ".join(report["studies"][0]["problems"])
    assert all(not chart.name.startswith("picture") for chart in charts(report))
