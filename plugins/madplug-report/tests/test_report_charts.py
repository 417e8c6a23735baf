"""The charts as pictures: nothing collides, colours can be told apart, and a chart warns of itself."""

import itertools
import re
from html import unescape

import numpy as np
import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

from madplug import Decision, Usage
from madplug_report.building import build
from madplug_report.charts import charts, write_figures
from madplug_report.charts.style import COLOURS, SERIES, css

EVERY = {"accuracy", "cost", "surface", "outcomes", "rounds", "flips", "dynamics", "seconds", "by-round", "lone"}
_TEXT = re.compile(r'<text style="font-size: ([\d.]+)px;[^"]*?(?:text-anchor: (\w+))?(?:; fill: [^"]*)?" '
                   r'(?:x="([-\d.]+)" y="([-\d.]+)" )?transform="([^"]*)">([^<]*)</text>')
_WIDTHS = {}


def wide(text, size):
    """How wide a text is in the widest of the fonts that the page names."""
    if (text, size) not in _WIDTHS:
        prop = FontProperties(family="DejaVu Sans", size=size)
        _WIDTHS[text, size] = TextToPath().get_text_width_height_descent(text, prop, ismath=False)[0]
    return _WIDTHS[text, size]


def boxes(svg):
    """The box of every text in a chart, as a browser places it."""
    assert len(re.findall("<text ", svg)) == len(_TEXT.findall(svg))
    for size, anchor, x, y, transform, text in _TEXT.findall(svg):
        size, moved = float(size), re.match(r"translate\(([-\d.]+) ([-\d.]+)\)", transform)
        at = moved.groups() if moved else (x, y)
        x, y = map(float, at)
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
    by_place = sorted(found, key=lambda item: item[1][1])
    pairs = []
    for i, (one, (a, b, c, d)) in enumerate(by_place):
        for other, (e, f, g, h) in itertools.islice(by_place, i + 1, None):
            if f > d:
                break
            if min(c, g) - max(a, e) > 0.5 and min(d, h) - max(b, f) > 0.5:
                pairs.append((one, other))
    return out + pairs


def three(kit):
    table = {"debate": {"turns": {"use": "baselines.samples"}, "decision": {"use": "baselines.most_common"}}}
    return [kit.Drawn("cot", agents=1, rounds=1), kit.Drawn("self-consistency", agents=9, rounds=1, table=table),
            kit.Drawn("debate", rounds=3, stop_when_agreed=True, undecided=0.05, failed=0.05)]


def swept(kit, decisions, agents, rounds):
    return [kit.Drawn(f"decision={d},agents={a},rounds={r}", skill=0.4 + 0.03 * a, agents=a, rounds=r,
                      settings={"debate.decision": d, "debate.agents": a, "debate.rounds": r})
            for d in decisions for a in agents for r in rounds]


NAMES = ("consensus.majority", "voting.simple", "voting.ranked", "freemad.score", "judge.synthesis", "eot.consistent")


@pytest.mark.parametrize("cells", [1, 3, 12, 144])
def test_labels_do_not_collide(study, kit, cells):
    drawn = {1: lambda: [kit.Drawn("only", rounds=3)], 3: lambda: three(kit),
             12: lambda: swept(kit, NAMES[:3], (2, 3), (1, 4)),
             144: lambda: swept(kit, NAMES, (2, 3, 4, 5, 7, 10), (1, 2, 3, 5))}[cells]()
    made = charts(build([study(drawn, samples=12, repeats=1 if cells > 12 else 2)]))
    swept_charts = {"surface", "over-agents", "over-rounds"}
    assert {c.name for c in made} == (EVERY - swept_charts if cells < 12 else EVERY | swept_charts)
    for chart in made:
        assert (chart.name, collisions(chart.svg)) == (chart.name, [])


def test_long_broad_and_foreign_names_have_room_and_stay_different(study, kit):
    names = ["W" * 90, "x" * 200, "x" * 99 + "y" + "x" * 100, "decision=" + "very.long.name" * 9, "m@%&" * 20, "q"]
    made = charts(build([study([kit.Drawn(n, oracle=True) for n in names], samples=5, planned=99)]))
    for chart in made:
        assert (chart.name, collisions(chart.svg)) == (chart.name, [])
    shown = [t for t, _ in boxes(made[0].svg) if t.startswith("x")]
    assert len(set(shown)) == 2
    assert all(t.endswith(("(oracle) #2", "(oracle) #3")) for t in shown)


COSTS = {"chain of thought": (1, 95), "self-consistency": (6, 592), "vote": (6, 538), "society of minds": (6, 988),
         "ordered": (6, 988), "anti-conformity": (6, 1091), "memory": (6, 1153)}


def equal_calls(study, kit, costs, more=""):
    """The chart of cells with these calls and tokens."""
    def change(d):
        calls, tokens = costs[d.cell.removesuffix(more)]
        return kit.replace(d, calls=calls, tokens=Usage(tokens, 0))
    report = build([study([kit.Drawn(n + more, skill=0.5) for n in costs], samples=30, change=change)])
    return next(c for c in charts(report) if c.name == "cost")


def test_points_have_names_where_there_is_room_for_all(study, kit):
    svg = equal_calls(study, kit, COSTS).svg
    assert collisions(svg) == []
    texts = [t for t, _ in boxes(svg)]
    assert [texts.count(name) for name in COSTS] == [1] * 7
    assert not {"1", "7"} & set(texts)


def test_points_have_numbers_where_names_would_cover_something(study, kit):
    svg = equal_calls(study, kit, COSTS, ", of which the settings are said, too").svg
    assert collisions(svg) == []
    assert {str(i) for i in range(1, 8)} <= {t for t, _ in boxes(svg)}


def test_equal_calls_are_said_and_not_drawn(study, kit):
    chart = equal_calls(study, kit, COSTS)
    assert "calls per debate" not in chart.svg
    assert (chart.title, "Calls per debate: 1 or 6." in chart.caption) == ("Accuracy against tokens", True)
    chart = equal_calls(study, kit, COSTS | {"memory": (12, 1153)})
    assert "calls per debate" in chart.svg


def test_costs_are_on_a_logarithm_only_if_it_spreads_them(study, kit):
    even = "0", "200", "400"
    assert set(even) <= {t for t, _ in boxes(equal_calls(study, kit, COSTS).svg)}
    doubled = equal_calls(study, kit, {f"c{i}": (6, 100 * 2**i) for i in range(5)}).svg
    assert {"100", "200", "500", "1,000"} <= {t for t, _ in boxes(doubled)}


def test_mathematics_in_a_name_is_only_text(study, kit):
    (chart, *_) = charts(build([study([kit.Drawn("$x^2$ and \\frac{")], samples=5)]))
    assert "$x^2$ and \\frac{" in chart.svg


def test_a_chart_that_would_mislead_says_so_on_itself(study, kit):
    made = {c.name: c.svg for c in charts(build([study(three(kit), samples=5, planned=100)]))}
    assert set(made) == EVERY - {"surface"}
    for svg in made.values():
        assert "read with care: 5 samples in the smallest cell" in svg
        assert "read with care: unfinished: 15 of 100 debates are there" in svg
    assert "read with care: one repeat" in made["accuracy"]
    assert "read with care: one repeat" in made["cost"]


def test_a_chart_of_a_study_with_nothing_to_warn_of_does_not(study, kit):
    for chart in charts(build([study([kit.Drawn("a"), kit.Drawn("b")], samples=40, repeats=2)])):
        assert "read with care" not in chart.svg


def test_oracle_is_on_every_chart(study, kit):
    for chart in charts(build([study([kit.Drawn("a", oracle=True)], samples=40, repeats=2)])):
        assert "a (oracle)" in chart.svg
        assert "components saw the references" in chart.svg


def test_what_is_right_is_not_shown_where_it_cannot_be_judged(study, kit):
    def change(d):
        return kit.replace(d, references=("the letter A",))
    made = {c.name: c for c in charts(build([study([kit.Drawn("a")], samples=40, change=change)]))}
    assert "wrong to right" not in made["flips"].svg
    assert "not spelled as answers are" in made["flips"].caption
    made = {c.name: c for c in charts(build([study([kit.Drawn("a")], samples=40, name="judged")]))}
    assert "wrong to right" in made["flips"].svg


def test_debates_of_one_round_have_no_flips_and_single_agents_no_agreement(study, kit):
    made = {c.name for c in charts(build([study([kit.Drawn("a", agents=1, rounds=1)], samples=9)]))}
    assert not made & {"flips", "dynamics", "surface"}


def test_every_name_inside_a_picture_is_its_own(study, kit):
    made = charts(build([study(three(kit), samples=9)]))
    for chart in made:
        names = re.findall(r'\bid="([^"]*)"', chart.svg)
        assert names
        assert all(n.startswith(chart.name + "-") for n in names)
        used = re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', chart.svg)
        assert {a or b for a, b in used} <= set(names)


# Colours

def rgb(value):
    return np.array([int(value[i:i + 2], 16) for i in (1, 3, 5)]) / 255


def linear(value):
    c = rgb(value)
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def contrast(a, b):
    light, dark = sorted((float(linear(x) @ (0.2126, 0.7152, 0.0722)) for x in (a, b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize(("names", "least"), [(("text", "quiet", "warn"), 4.5), ((*SERIES, "grey"), 3.0)])
def test_colours_stand_out_from_the_page(theme, names, least):
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


def test_the_page_has_both_themes_and_no_colour_of_a_chart_is_fixed(study, kit):
    assert "prefers-color-scheme:dark" in css()
    for chart in charts(build([study(three(kit), samples=9)])):
        fixed = set(re.findall(r"(?<!, )#[0-9a-f]{6}", chart.svg))
        shades = chart.name in ("surface", "flips", "dynamics")
        assert shades or fixed <= {"#ffffff"}, (chart.name, fixed)


# Figures of papers

def seen(kit):
    """Every message has seen those of the round before, in the order of the agents."""
    def change(d):
        last = {}
        for m in d.messages:
            last.setdefault(m.round, []).append(m.id)
        return kit.replace(d, messages=tuple(kit.replace(m, seen=tuple(last.get(m.round - 1, ()))) for m in d.messages))
    return change


def challenged(kit):
    """Two settings of a challenge, one of which is never right."""
    def change(d):
        found = {f"challenge.outcome.{setting}.{part}": share for setting, shares in {
            "wrong": (0.5, 0.25, 0.75, 0.0), "history": (0.25, 0.0, 1.0, 0.0)}.items()
            for part, share in zip(("rate", "higher", "same", "lower"), shares, strict=True)}
        return kit.replace(d, metrics={**d.metrics, **found})
    return change


def voted(kit):
    """A vote that persons' names would have decided the other way, and a history would have left undecided."""
    note = {"presentation": "anonymous", "solutions": [{"number": 1, "key": "A"}, {"number": 2, "key": "B"}],
            "scores": [2.0, 1.0], "leading": [1],
            "alterations": {"public": {"scores": [1.0, 2.0], "leading": [2]},
                            "history": {"scores": [1.0, 1.0], "leading": [1, 2]}}}

    def change(d):
        score = 1.0 if d.decision and d.decision.key == "A" else 0.0
        return kit.replace(d, notes={"voting": [note]}, metrics={"qa.accuracy": score})
    return change


def made_of(report, fit=None):
    return {c.name: c for c in charts(report, fit)}


def test_accuracy_over_a_number_is_a_line_for_each_set_of_cells(study, kit):
    report = build([study(swept(kit, NAMES[:2], (2, 3, 5), (1,)), samples=12, repeats=2)])
    chart = made_of(report)["over-agents"]
    assert [(row["agents"], row["line"]) for row in chart.rows] == [
        (a, n) for n in NAMES[:2] for a in (2.0, 3.0, 5.0)]
    assert "std over repeats" in chart.caption
    by_name = {(c["factors"]["agents"], c["factors"]["decision"]): c["metrics"]["qa.accuracy"] for c in report["cells"]}
    for row in chart.rows:
        own = by_name[f"{row['agents']:g}", row["line"]]
        assert (row["mean"], row["std"]) == (own["mean"], own["std"])
    assert "over-rounds" not in made_of(report)


@pytest.mark.parametrize("kind", ["linear", "log"])
def test_a_regression_is_that_of_scipy(study, kit, kind):
    from scipy import stats

    report = build([study(swept(kit, NAMES[:1], (2, 3, 5, 9), (1,)), samples=10)])
    *points, fit = made_of(report, kind)["over-agents"].rows
    x = np.array([row["agents"] for row in points])
    theirs = stats.linregress(np.log(x) if kind == "log" else x, [row["mean"] for row in points])
    assert (fit["slope"], fit["intercept"]) == (pytest.approx(theirs.slope), pytest.approx(theirs.intercept))
    assert fit["r2"] == pytest.approx(theirs.rvalue**2)


def test_boxes_need_three_repeats(study, kit):
    cells = [kit.Drawn("a"), kit.Drawn("b")]
    assert "repeats" not in made_of(build([study(cells, samples=5, repeats=2, name="two")]))
    chart = made_of(build([study(cells, samples=5, repeats=4, name="four")]))["repeats"]
    assert len(chart.rows) == 8
    assert collisions(chart.svg) == []


@pytest.mark.parametrize("cells", [2, 9])
def test_the_power_of_a_place_is_drawn_for_few_and_for_many_cells(study, kit, cells):
    drawn = [kit.Drawn(f"c{i}", agents=4, conform=0.8) for i in range(cells)]
    report = build([study(drawn, samples=30, change=seen(kit))])
    chart = made_of(report)["places"]
    assert collisions(chart.svg) == []
    assert {row["place"] for row in chart.rows} == {1, 2, 3}
    assert all(row["of"] == 3 for row in chart.rows)


@pytest.mark.parametrize("names", [("a",), ("consensus.with_a_long_name_indeed_" + "m" * 30, "another" + "m" * 60)])
def test_challenges_are_bars_of_their_outcomes_with_room_for_a_legend_of_long_names(study, kit, names):
    chart = made_of(build([study([*map(kit.Drawn, names)], samples=10, change=challenged(kit))]))["challenges"]
    assert {row["setting"]: row["rate"] for row in chart.rows} == {"wrong": 0.5, "history": 0.25}
    assert collisions(chart.svg) == []


def test_a_field_of_zero_has_its_number(study, kit):
    report = build([study(swept(kit, NAMES[:1], (2, 3), (1, 2)), samples=4)])
    cell = report["cells"][0]
    cell["metrics"]["qa.accuracy"] = {**cell["metrics"]["qa.accuracy"], "mean": 0.0}
    assert ">0.00<" in made_of(report)["surface"].svg


def test_numbers_stand_out_from_every_shade():
    from matplotlib import colormaps

    from madplug_report.charts.heat import MIDDLE, SHADES, luminance

    for i in range(256):
        light = luminance(colormaps[SHADES](i))
        assert ((light + 0.05) / 0.05 if light > MIDDLE else 1.05 / (light + 0.05)) >= 4.5


def test_votes_are_counted_with_every_presentation(study, kit):
    report = build([study([kit.Drawn("a", skill=1.5)], samples=10, change=voted(kit))])
    rows = {row["presentation"]: row for row in made_of(report)["alterations"].rows}
    assert rows["anonymous"]["right"] == 1.0
    assert rows["public"]["right"] <= 0.5
    assert (rows["history"]["right"], rows["history"]["undecided"]) == (0.0, 1.0)


def test_where_ranks_are_summed_the_lowest_sum_leads(study, kit):
    note = {"presentation": "anonymous", "solutions": [{"number": 0, "key": "A"}, {"number": 1, "key": "B"}],
            "scores": [0.0, 3.0], "leading": [0], "alterations": {"public": {"scores": [3.0, 1.0], "leading": [1]}}}
    report = build([study([kit.Drawn("a")], samples=4, change=lambda d: kit.replace(
        d, decision=Decision("A", "A"), notes={"voting": [note]}, metrics={"qa.accuracy": 1.0}))])
    assert report["cells"][0]["alterations"] == [
        {"presentation": "anonymous", "votes": 4, "undecided": 0.0, "right": 1.0},
        {"presentation": "public", "votes": 4, "undecided": 0.0, "right": 0.0}]


def test_notes_of_another_shape_are_left_alone(study, kit):
    def change(d):
        return kit.replace(d, notes={"voting": {"alterations": 3}})
    assert "alterations" not in made_of(build([study([kit.Drawn("a")], samples=3, change=change)]))


def test_every_chart_is_a_file_of_each_kind_with_its_numbers(study, kit, tmp_path):
    made = charts(build([study(swept(kit, NAMES[:2], (2, 3), (1, 2)), samples=6, repeats=3)]))
    written = {path.name for path in write_figures(made, tmp_path / "figures")}
    for chart in made:
        assert {f"{chart.name}.{kind}" for kind in ("svg", "pdf", "png", "csv")} <= written
        assert (tmp_path / "figures" / f"{chart.name}.pdf").read_bytes().startswith(b"%PDF")
        assert (tmp_path / "figures" / f"{chart.name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (tmp_path / "figures" / f"{chart.name}.svg").read_text(encoding="utf-8")
        head, *rows = (tmp_path / "figures" / f"{chart.name}.csv").read_text(encoding="utf-8").splitlines()
        assert rows, head
