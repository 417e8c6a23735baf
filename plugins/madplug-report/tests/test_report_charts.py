"""The charts as pictures: nothing collides, colours can be told apart, and a chart warns of itself."""

import itertools
import re
from functools import cache
from html import unescape

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath
from scipy import stats

from madplug import Decision, Picture, Usage
from madplug.rows import plain
from madplug_report.building import Wanted, build
from madplug_report.charts import charts, lines
from madplug_report.charts.cost import against
from madplug_report.charts.curves import curves
from madplug_report.charts.heat import MIDDLE, SHADES, luminance, surface
from madplug_report.charts.style import COLOURS, SERIES, css, settings

EVERY = {"accuracy", "cost", "surface", "outcomes", "rounds", "flips", "dynamics", "seconds", "by-round", "lone"}
_TEXT = re.compile(r'<text style="font-size: ([\d.]+)px;[^"]*?(?:text-anchor: (\w+))?(?:; fill: [^"]*)?" '
                   r'(?:x="([-\d.]+)" y="([-\d.]+)" )?transform="([^"]*)">([^<]*)</text>')


@cache
def wide(text, size):
    """How wide a text is in the widest of the fonts that the page names."""
    prop = FontProperties(family="DejaVu Sans", size=size)
    return TextToPath().get_text_width_height_descent(text, prop, ismath=False)[0]


def boxes(svg):
    """The box of every text in a chart, as a browser places it."""
    assert len(re.findall("<text ", svg)) == len(_TEXT.findall(svg))
    for size, anchor, x, y, transform, text in _TEXT.findall(svg):
        size, moved = float(size), re.match(r"translate\(([-\d.]+) ([-\d.]+)\)", transform)
        x, y = map(float, moved.groups() if moved else (x, y))
        width = wide(unescape(text), size)
        left = x - {"middle": width / 2, "end": width}.get(anchor, 0)
        if "rotate(-90" in transform:
            yield text, (x - 0.75 * size, y - width / 2 if anchor == "middle" else y - width, x + 0.2 * size,
                         y + width / 2 if anchor == "middle" else y)
        else:
            yield text, (left, y - 0.75 * size, left + width, y + 0.2 * size)


def collisions(svg):
    """Pairs of texts that overlap, and texts that stick out."""
    width, height = map(float, re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups())
    found = list(boxes(svg))
    out = [t for t, (a, b, c, d) in found if a < -0.5 or b < -0.5 or c > width + 0.5 or d > height + 0.5]
    return out + [(one, other) for (one, (a, b, c, d)), (other, (e, f, g, h)) in itertools.combinations(found, 2)
                  if min(c, g) - max(a, e) > 0.5 and min(d, h) - max(b, f) > 0.5]


def made_of(report):
    return {c.name: c for c in charts(report)}


def three(kit):
    table = {"debate": {"turns": {"use": "baselines.samples"}, "decision": {"use": "baselines.most_common"}}}
    return [kit.Drawn("cot", agents=1, rounds=1), kit.Drawn("self-consistency", agents=9, rounds=1, table=table),
            kit.Drawn("debate", rounds=3, stop_when_agreed=True, undecided=0.05, failed=0.05)]


NAMES = ("consensus.majority", "voting.simple", "voting.ranked", "freemad.score", "judge.synthesis", "eot.consistent")


def swept(kit, decisions, agents, rounds):
    return kit.sweep(lambda levels: 0.4 + 0.03 * levels["agents"], decision=decisions, agents=agents, rounds=rounds)


@pytest.mark.parametrize("cells", [1, 3, 12, 72])
def test_labels_do_not_collide_and_no_colour_and_no_name_inside_a_picture_is_another_s(study, kit, cells):
    drawn = {1: lambda: [kit.Drawn("only", rounds=3)], 3: lambda: three(kit),
             12: lambda: swept(kit, NAMES[:3], (2, 3), (1, 4)),
             72: lambda: swept(kit, NAMES, (2, 4, 10), (1, 2, 3, 5))}[cells]()
    made = charts(build([study(drawn, samples=12, repeats=1 if cells > 12 else 2)]))
    swept_charts = {"surface", "over-agents", "over-rounds"}
    assert {c.name for c in made} == (EVERY - swept_charts if cells < 12 else EVERY | swept_charts)
    for chart in made:
        assert (chart.name, collisions(chart.svg)) == (chart.name, [])
        names = re.findall(r'\bid="([^"]*)"', chart.svg)
        assert names
        assert all(n.startswith(chart.name + "-") for n in names)
        used = re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', chart.svg)
        assert {a or b for a, b in used} <= set(names)
        fixed = set(re.findall(r"(?<!, )#[0-9a-f]{6}", chart.svg))
        shaded = cells > 3 or chart.name in ("surface", "flips", "dynamics")
        assert shaded or fixed <= {"#ffffff"}, (chart.name, fixed)


def test_a_cell_has_one_colour_in_all_charts(study, kit):
    made = made_of(build([study(three(kit), samples=12)]))
    assert [colour for colour in SERIES if f"--{colour}" in made["by-round"].svg] == ["blue", "orange", "green"]
    assert [colour for colour in SERIES if f"--{colour}" in made["flips"].svg] == ["green"], "only the debate is in it"


def test_long_broad_and_foreign_names_have_room_and_stay_different_and_oracle_is_on_every_chart(study, kit):
    names = ["W" * 90, "x" * 200, "x" * 99 + "y" + "x" * 100, "decision=" + "very.long.name" * 9, "m@%&" * 20,
             "$x^2$ and \\frac{"]  # mathematics is only text
    made = charts(build([study([kit.Drawn(n, oracle=True) for n in names], samples=5, planned=99)]))
    for chart in made:
        assert (chart.name, collisions(chart.svg)) == (chart.name, [])
        assert "(oracle)" in chart.svg
        assert "components saw the references" in chart.svg
    assert "$x^2$ and \\frac{ (oracle)" in made[0].svg
    shown = [t for t, _ in boxes(made[0].svg) if t.startswith("x")]
    assert len(set(shown)) == 2
    assert all(t.endswith(("(oracle) #2", "(oracle) #3")) for t in shown)


COSTS = {"chain of thought": (1, 95), "self-consistency": (6, 592), "vote": (6, 538), "society of minds": (6, 988),
         "ordered": (6, 988), "anti-conformity": (6, 1091), "memory": (6, 1153)}


@pytest.fixture
def cost(study, kit):
    """The chart of cells with these calls and tokens, and its texts."""
    def cost(costs, more=""):
        def change(d):
            calls, tokens = costs[d.cell.removesuffix(more)]
            return kit.replace(d, calls=calls, tokens=Usage(tokens, 0))
        report = build([study([kit.Drawn(n + more, skill=0.5) for n in costs], samples=30, change=change)])
        with settings():
            chart = against(report)
        assert collisions(chart.svg) == []
        return chart, [t for t, _ in boxes(chart.svg)]
    return cost


def test_points_have_names_where_there_is_room_for_all_and_equal_calls_are_said_and_not_drawn(cost):
    chart, texts = cost(COSTS)
    assert [texts.count(name) for name in COSTS] == [1] * 7
    assert not {"1", "7"} & set(texts)
    assert "calls per debate" not in chart.svg
    assert (chart.title, "Calls per debate: 1 or 6." in chart.caption) == ("Accuracy against tokens", True)
    assert {"0", "200", "400"} <= set(texts)


def test_costs_of_another_metric_are_called_by_its_name(study, kit):
    report = build([study([kit.Drawn("a")], samples=4, metrics={"m.f": 0.5})], Wanted(metrics=("m.f",)))
    assert made_of(report)["cost"].title == "m.f against tokens"


@pytest.mark.parametrize(("costs", "more", "shown"), [
    (COSTS, ", of which the settings are said, too", {str(i) for i in range(1, 8)}),
    (COSTS | {"memory": (12, 1153)}, "", {"calls per debate"}),
    ({f"c{i}": (6, 100 * 2**i) for i in range(5)}, "", {"100", "200", "500", "1,000"}),
    ({f"c{i}": (3**i, 222 * 4**i) for i in range(5)}, "", {"300", "1,000", "3,000", "10,000", "30,000"})],
    ids=["numbers where names would cover something", "calls that differ", "a logarithm if it spreads the costs",
         "fewer numbers over a wide range"])
def test_costs_are_drawn_so_that_they_can_be_told_apart(cost, costs, more, shown):
    chart, texts = cost(costs, more)
    assert shown <= {*texts, *(["calls per debate"] if "calls per debate" in chart.svg else [])}


def test_a_chart_that_would_mislead_says_so_on_itself_and_no_other_does(study, kit):
    for chart in charts(build([study(three(kit), samples=5, planned=100)])):
        for text in ("5 samples in the smallest cell", "unfinished: 15 of 100 debates are there",
                     *(["one repeat"] if chart.name in ("accuracy", "cost") else [])):
            assert f"read with care: {text}" in chart.svg
    for chart in charts(build([study([kit.Drawn("a"), kit.Drawn("b")], samples=40, repeats=2, name="good")])):
        assert "read with care" not in chart.svg


@pytest.mark.parametrize("judged", [False, True])
def test_what_is_right_is_not_shown_where_it_cannot_be_judged(study, kit, judged):
    references = ("A",) if judged else ("the letter A",)
    report = build([study([kit.Drawn("a")], change=lambda d: kit.replace(d, references=references))])
    with settings():
        flips = lines.changes(report)
    assert ("wrong to right" in flips.svg, "not spelled as answers are" in flips.caption) == (judged, not judged)


def test_debates_that_only_reviewed_in_a_round_are_not_counted_in_it_and_charts_say_so(study, kit):
    def reviewed(d):
        return d if d.cell == "a" else kit.replace(d, messages=tuple(
            kit.replace(m, move="review", answer="", key=None) if m.round == 2 else m for m in d.messages))
    report = build([study([kit.Drawn(name, rounds=3) for name in "ab"], samples=9, change=reviewed)])
    with settings():
        made = [lines.changes(report), lines.lone(report)]
    assert [re.findall(r">n=(\d+)<", chart.svg)[-2:] for chart in made] == [["9", "18"], ["9", "18"]]
    assert [f">round; n: debates with {what} in it<" in chart.svg for chart, what in zip(
        made, ("answers", "several voters"), strict=True)] == [True, True]
    assert all("ended earlier or only reviewed" in chart.caption for chart in made)


def test_debates_of_one_voter_are_not_counted_where_a_figure_is_of_several(study, kit):
    def alone(d):
        return d if int(d.sample.id[1:]) % 3 else kit.replace(d, messages=tuple(m for m in d.messages if m.agent == 0))
    report = build([study([kit.Drawn("a")], samples=9, change=alone)])
    with settings():
        made = [lines.by_round(report), lines.dynamics(report), lines.lone(report)]
    assert [re.findall(r">n=(\d+)<", chart.svg)[:1] for chart in made] == [["9"], ["6"], ["6"]]


def test_debates_of_which_it_is_not_known_which_answers_are_right_count_for_n_and_entropy_and_not_for_accuracy(
        study, kit):
    chart = made_of(build([study([kit.Drawn("a", rounds=1)], samples=9, change=lambda d: d if int(d.sample.id[1:]) % 3
                                 else kit.replace(d, references=(), metrics={}))]))["by-round"]
    assert (chart.rows[0]["debates"], ">n=9<" in chart.svg) == (9, True)
    assert "entropy of all in which an answer could be read; n counts all that were to give answers" in chart.caption


@pytest.mark.parametrize(("of", "said"), [("decision", True), ("plurality", False), ("agents", False)])
def test_undecided_debates_are_spoken_of_only_where_the_decision_is_scored(study, kit, of, said):
    table = {"metrics": [{"use": "qa.accuracy", "of": of}]}
    chart = made_of(build([study([kit.Drawn("a", table=table)], samples=9)]))["accuracy"]
    assert ("undecided debates count as wrong" in chart.svg) == said


@pytest.mark.parametrize(("cell", "repeats", "names", "there"), [
    ({"agents": 1, "rounds": 1}, 1, {"flips", "dynamics", "surface"}, False),  # nothing changes, and nobody agrees
    ({}, 2, {"repeats"}, False), ({}, 4, {"repeats"}, True),  # boxes need three
    ({}, 1, {"alterations"}, False)])  # notes of another shape
def test_a_chart_is_drawn_only_where_there_is_something_to_show(study, kit, cell, repeats, names, there):
    made = made_of(build([study([kit.Drawn("a", **cell)], samples=9, repeats=repeats, change=lambda d: kit.replace(
        d, notes={"voting": {"alterations": 3}}))]))
    assert names & made.keys() == (names if there else set())
    assert all(collisions(chart.svg) == [] for chart in made.values())


# Colours

def linear(value):
    c = np.array([int(value[i:i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def contrast(a, b):
    light, dark = sorted((float(linear(x) @ (0.2126, 0.7152, 0.0722)) for x in (a, b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize(("names", "least"), [(("text", "quiet", "warn"), 4.5), ((*SERIES, "grey"), 3.0)])
def test_colours_stand_out_from_the_page_in_both_themes(theme, names, least):
    assert "prefers-color-scheme:dark" in css()
    for name in names:
        assert contrast(COLOURS[name][theme], COLOURS["page"][theme]) >= least, name


BLIND = {  # Machado, Oliveira and Fernandes 2009, severity 1
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]}


def lab(light):
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ light
    f = np.cbrt(np.clip(xyz / (0.9505, 1.0, 1.089), 1e-6, None))
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("kind", [None, *BLIND])
def test_the_first_colours_of_lines_are_told_apart_by_everybody(theme, kind):
    """Lines differ in markers and dashes too; the colours alone have to do for the first four."""
    seen = [lab(np.clip((np.array(BLIND[kind]) if kind else np.eye(3)) @ linear(COLOURS[n][theme]), 0, 1))
            for n in SERIES[:4]]
    for a, b in itertools.combinations(seen, 2):
        assert np.linalg.norm(a - b) > 15


# Figures of papers

@pytest.mark.parametrize("kind", [None, "linear", "log"])
def test_accuracy_over_a_number_is_a_line_for_each_set_of_cells_with_the_regression_of_scipy(study, kit, kind):
    report = build([study(swept(kit, NAMES[:2], (2, 3, 5, 9), (1,)), samples=12, repeats=2)])
    with settings():
        made = {chart.name: chart for chart in curves(report, kind)}
    rows = made["over-agents"].rows
    by_name = {(c["factors"]["decision"], float(c["factors"]["agents"])): c["metrics"]["qa.accuracy"]
               for c in report["cells"]}
    points = [row for row in rows if row.get("agents")]
    assert [(row["line"], row["agents"], row["mean"], row["std"]) for row in points] == [
        (*place, own["mean"], own["std"]) for place, own in by_name.items()]
    assert "std over repeats." in made["over-agents"].caption
    assert "over-rounds" not in made
    fits = [row for row in rows if row not in points]
    assert len(fits) == (2 if kind else 0)
    for fit, name in zip(fits, NAMES, strict=False):
        x, y = zip(*((row["agents"], row["mean"]) for row in points if row["line"] == name), strict=True)
        theirs = stats.linregress(np.log(x) if kind == "log" else x, y)
        assert [fit[part] for part in ("slope", "intercept", "r2")] == pytest.approx(
            [theirs.slope, theirs.intercept, theirs.rvalue**2])


def test_bars_that_are_intervals_beside_stds_are_said_to_be(study, kit):
    folder = study(swept(kit, NAMES[:1], (2, 3), (1,)), samples=9, repeats=2,
                   change=lambda d: None if len(d.agents) == 2 and d.repeat else d)
    made = made_of(build([folder], Wanted(rows=("agents",))))
    assert all("std over repeats, or where there is none the 95% interval over samples." in made[name].caption
               for name in ("over-agents", "table"))


@pytest.mark.parametrize("cells", [2, 9])
def test_the_power_of_a_place_is_drawn_for_few_and_for_many_cells(study, kit, cells):
    def seen(d):
        """Every message has seen those of the round before, in the order of the agents."""
        return kit.replace(d, messages=tuple(kit.replace(m, seen=tuple(
            other.id for other in d.messages if other.round == m.round - 1)) for m in d.messages))
    drawn = [kit.Drawn(f"c{i}", agents=4, conform=0.8) for i in range(cells)]
    chart = made_of(build([study(drawn, samples=30, change=seen)]))["places"]
    assert collisions(chart.svg) == []
    assert {(row["place"], row["of"]) for row in chart.rows} == {(1, 3), (2, 3), (3, 3)}


@pytest.mark.parametrize("names", [("a",), ("consensus.with_a_long_name_indeed_" + "m" * 30, "another" + "m" * 60)])
def test_challenges_are_bars_of_their_outcomes_with_room_for_a_legend_of_long_names(study, kit, names):
    kinds = ((1.0, 1.0, 0.0, 0.0), (0.25, 0.0, 0.0, 1.0), (0.0, None, None, None))

    def challenged(d):
        """Of three debates, all challenge the first, some the second, and nobody the third."""
        return kit.replace(d, metrics={f"challenge.outcome.{setting}.{part}": share for setting in ("wrong", "history")
                                       for part, share in zip(("rate", "higher", "same", "lower"),
                                                              kinds[int(d.sample.id[1:]) % 3], strict=True)})
    chart = made_of(build([study([*map(kit.Drawn, names)], samples=12, change=challenged)]))["challenges"]
    assert [row["setting"] for row in chart.rows] == ["history", "wrong"] * len(names)
    for row in chart.rows:
        found = [row[part] for part in ("rate", "higher", "same", "lower")]
        assert found == pytest.approx([1.25 / 3, 1 / 3, 0, 0.25 / 3])
    assert collisions(chart.svg) == []


def test_a_field_of_zero_has_its_number_and_numbers_stand_out_from_every_shade(study, kit):
    report = build([study(swept(kit, NAMES[:1], (2, 3), (1, 2)), samples=4)])
    cell = report["cells"][0]
    cell["metrics"]["qa.accuracy"] = {**cell["metrics"]["qa.accuracy"], "mean": 0.0}
    with settings():
        assert ">0.00<" in surface(report).svg
    for i in range(256):
        light = luminance(colormaps[SHADES](i))
        assert ((light + 0.05) / 0.05 if light > MIDDLE else 1.05 / (light + 0.05)) >= 4.5


@pytest.mark.parametrize(("numbers", "scores", "leading", "others", "rates"), [
    # persons' names would have decided a vote the other way, and a history would have left it undecided
    ((1, 2), (2.0, 1.0), 1, {"public": ([1.0, 2.0], [2]), "history": ([1.0, 1.0], [1, 2])},
     {"anonymous": (0.0, 1.0), "public": (0.0, 0.0), "history": (1.0, 0.0)}),
    # where ranks are summed the lowest sum leads
    ((0, 1), (0.0, 3.0), 0, {"public": ([3.0, 1.0], [1])}, {"anonymous": (0.0, 1.0), "public": (0.0, 0.0)})])
def test_votes_are_counted_with_every_presentation(study, kit, numbers, scores, leading, others, rates):
    note = {"presentation": "anonymous", "scores": scores, "leading": [leading],
            "solutions": [{"number": n, "key": key} for n, key in zip(numbers, "AB", strict=True)],
            "alterations": {name: {"scores": s, "leading": found} for name, (s, found) in others.items()}}
    report = build([study([kit.Drawn("a")], samples=4, change=lambda d: kit.replace(
        d, decision=Decision("A", "A"), notes={"voting": [note]}, metrics={"qa.accuracy": 1.0}))])
    assert {row["presentation"]: (row["votes"], row["undecided"], row["right"])
            for row in report["cells"][0]["alterations"]} == {name: (4, *found) for name, found in rates.items()}
    assert {row["presentation"]: (row["undecided"], row["right"])
            for row in made_of(report)["alterations"].rows} == rates
    spelled = build([study([kit.Drawn("a")], name="spelled", samples=4, change=lambda d: kit.replace(
        d, references=("the letter A",), decision=Decision("A", "A"), notes={"voting": [note]}))])
    chart = made_of(spelled)["alterations"]
    assert ({row["right"] for row in chart.rows}, ">right<" in chart.svg) == ({None}, False)


# Pictures that plugins bring as data

LINE = Picture("Agents left", "line", ({"round": 1, "left": 5}, {"round": 2, "left": 3}), "round", "left")
BARS = Picture("Kinds", "bars", ({"kind": "a", "n": 2, "by": "x"}, {"kind": "b", "n": 1, "by": "y"}), "kind", "n", "by")
HEAT = Picture("Who hears whom", "heat", ({"from": "0", "to": "1", "n": 3}, {"from": "1", "to": "0", "n": 1}),
               "from", "to", "n")
TABLE = Picture("Words", "table", ({"word": "<b>so</b>", "n": 2}, {"word": "thus", "n": None}))


@pytest.fixture
def drawn(study, kit):
    """The report on a study of two cells whose metric has brought a picture."""
    def drawn(picture):
        figures = {"mine.drawn": {"pictures": plain([picture])}}
        return build([study([kit.Drawn("a"), kit.Drawn("b")], samples=4, summary={
            "cells": [{"cell": cell, "figures": figures} for cell in "ab"]})])
    return drawn


@pytest.mark.parametrize("picture", [LINE, BARS, HEAT, TABLE], ids=lambda p: p.kind)
def test_a_picture_is_drawn_with_its_numbers(drawn, picture):
    found = [chart for chart in charts(drawn(picture)) if chart.title.startswith(picture.title)]
    assert [len(chart.rows) for chart in found] == ([4] if picture is LINE else [2, 2])
    assert all("<svg" in chart.svg and "<b>so" not in chart.svg for chart in found)


@pytest.mark.parametrize(("rows", "wrong"), [
    (({"round": 1},), "expected rows with left, round"), (({"round": 1, "left": [1]},), "rows[0].left"),
    (({"round": 1, "left": 1},) * 2001, "rows: Tuple should have at most 2000 items")])
def test_a_picture_that_is_none_is_a_problem_and_no_chart(drawn, rows, wrong):
    report = drawn(Picture("Left", "line", rows, "round", "left"))
    assert wrong in " ".join(report["studies"][0]["problems"])
    assert all(not chart.name.startswith("picture") for chart in charts(report))


def test_each_curve_of_independent_samples_has_a_colour_of_its_own_and_the_name_of_its_cell(study, kit):
    sampled = three(kit)[1].table
    drawn = [kit.Drawn(name, agents=agents, rounds=1, table=sampled)
             for name, agents in (("small", 5), ("large", 9), ("thinking", 7), ("W" * 60, 3))]
    with settings():
        chart = against(build([study(drawn)]))
    assert collisions(chart.svg) == []
    axes = chart.figure.axes[0]
    curves = [line for line in axes.get_lines() if str(line.get_label()).endswith(", 1 to all samples")]
    assert [str(line.get_label()).removesuffix(", 1 to all samples")[:8] for line in curves] == [
        "small", "large", "thinking", "W" * 8]
    rows = [(row["tokens"], row["mean"]) for row in chart.rows if row["cell"] == "large, 1 to all samples"]
    assert rows == [pytest.approx(point) for point in zip(*curves[1].get_data(), strict=True)]
    looks = [(line.get_color(), line.get_linestyle()) for line in curves]
    assert len(set(looks)) == len({line.get_color() for line in curves}) + 1 == 4
    assert COLOURS["blue"][0] not in {shade for shade, _ in looks}, "which is of cells"
