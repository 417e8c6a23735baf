"""The report as plain data: what `--json` prints, and what tables and charts are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from madplug import UserError, count, nearest_or_all
from madplug_report import sizes
from madplug_report.analysis import Analysis
from madplug_report.combining import SPREADS, marginals
from madplug_report.comparing import SEED, Comparisons, matched
from madplug_report.factors import Factors, find_factors, number
from madplug_report.intervals import LEVEL
from madplug_report.pivots import CELL, METRIC, choose, pivots, with_cells
from madplug_report.published import compare, order, read_paper
from madplug_report.reading import Debates
from madplug_report.spending import Tokenizer, paid, read_price, spend
from madplug_report.studies import Study, open_studies

SIZES = ("agents", "rounds")
FEW = 30
"""With fewer samples a chart says that they are few."""


@dataclass(frozen=True)
class Wanted:
    """What a report is asked for; see `madplug report --help`."""

    baseline: str | None = None
    metrics: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    spread: str = "repeats"
    worst: bool = False
    cells: tuple[str, ...] = ()
    prices: tuple[str, ...] = ()
    tokenizer: str | None = None
    prefixes: bool = False
    published: Path | None = None


def build(folders: Sequence[Path], wanted: Wanted | None = None) -> dict[str, Any]:
    """Read the studies in these directories, and report on them."""
    wanted = wanted or Wanted()
    studies = _selected(open_studies(folders), wanted.cells) if wanted.cells else open_studies(folders)
    facts = [cell for study in studies for cell in study.cells]
    factors = find_factors(facts, studies)
    layout = choose(factors, wanted.rows, wanted.columns, wanted.by, wanted.families,
                    wanted.over)
    if METRIC in layout.names and not wanted.metrics:
        raise UserError(f"--rows, --columns: {METRIC} needs the metrics that stand there: --metric NAME --metric NAME")
    paper = None if wanted.published is None else read_paper(wanted.published)
    prices = [read_price(text) for text in wanted.prices]
    tokenizer = None if wanted.tokenizer is None else Tokenizer(wanted.tokenizer)
    debates = Debates(studies, tokenizer, prices, prefixes=wanted.prefixes)
    analysis = Analysis(debates, factors, wanted.metrics, wanted.baseline, wanted.by, wanted.spread)
    layout = with_cells(analysis, layout) if CELL in layout.names or paper else layout
    layout = replace(layout, order=order(paper)) if paper else layout
    compared = Comparisons(analysis)
    cells = analysis.cells
    for i, cell in enumerate(cells):
        match = matched(analysis, facts[i])
        cell |= {"study": studies[facts[i].study].title, "slug": facts[i].slug,
                 "matched_to": None if match is None else cells[match]["cell"]}
    spend(analysis)
    published = compare(analysis, layout, paper, wanted.published) if paper and wanted.published else None
    groups = [_group(analysis, group) for group in analysis.groups]
    metrics = list(dict.fromkeys(g["metric"] for g in groups if g["metric"]))
    report: dict[str, Any] = {
        "studies": [_study(study, sum(c["debates"] for c, f in zip(cells, facts, strict=True) if f.study == i),
                           complete=not wanted.cells) for i, study in enumerate(studies)],
        "metric": ", ".join(metrics) or None, "metrics": metrics, "oracle": any(c["oracle"] for c in cells),
        "baseline": groups[0]["baseline"] if len(groups) == 1 else None, "groups": groups,
        "pareto": _fronts(analysis),
        "factors": [{"name": f.name, "key": f.key, "levels": list(f.levels)} for f in factors.factors],
        "level": LEVEL, "alpha": sizes.ALPHA, "power": sizes.POWER, "seed": SEED,
        "family": len(compared.found), "cells": cells, "comparisons": compared.found, "not_compared": compared.left,
        "other_samples": compared.others([study.title for study in studies]),
        "spread": wanted.spread, "spread_of": SPREADS[wanted.spread], "worst": wanted.worst,
        "pivots": pivots(analysis, layout, compared.found), "marginals": marginals(analysis, layout.families),
        "paid": paid(analysis, every=not wanted.cells), "prices": [asdict(price) for price in prices],
        "tokenizer": tokenizer and tokenizer.name, "published": published, "surfaces": surfaces(cells, factors)}
    return {**report, "notes": [{"about": about, "text": text} for about, text in notes(report)]}


def _selected(studies: Sequence[Study], patterns: Sequence[str]) -> list[Study]:
    """The studies with those cells whose names, in the run file or in a report of all cells, are like one of the
    patterns, and like none behind a `!`. Raises `UserError` where no cell is left."""
    wanted, left = [p for p in patterns if p[0:1] != "!"] or ["*"], [p[1:] for p in patterns if p[0:1] == "!"]
    every = [cell for study in studies for cell in study.cells]
    names = list(zip((cell.slug for cell in every), find_factors(every, studies).labels, strict=True))
    chosen = {(cell.study, cell.slug) for cell, own in zip(every, names, strict=True)
              if any(fnmatchcase(name, p) for name in own for p in wanted)
              and not any(fnmatchcase(name, p) for name in own for p in left)}
    if not chosen:
        known = dict.fromkeys(name for own in names for name in own)
        raise UserError(f"--cell {patterns[0]}: no cell has such a name{nearest_or_all(patterns[0], known)}")
    return [replace(study, cells=[c for c in study.cells if (c.study, c.slug) in chosen]) for study in studies]


def _group(analysis: Analysis, group: Any) -> dict[str, Any]:
    own = [analysis.cells[i] for i in group.cells]
    return {"levels": dict(group.levels), "metric": group.metric, "cells": [c["cell"] for c in own],
            "baseline": None if group.baseline is None else analysis.cells[group.baseline]["cell"]}


def _fronts(analysis: Analysis) -> list[dict[str, list[str]]]:
    """The Pareto fronts by cost, of the cells on each set of questions, whatever their models."""
    data = [f.name for f in analysis.factors.factors if f.is_data]
    sets: dict[tuple[str | None, ...], list[Mapping[str, Any]]] = {}
    for group in analysis.groups:
        key = (group.metric, *(group.levels.get(name) for name in data))
        sets.setdefault(key, []).extend(analysis.cells[i] for i in group.cells)
    return [{cost: pareto(cells, cost, metric) for cost in ("tokens", "calls")}
            for (metric, *_), cells in sets.items() if len(cells) > 1 or len(sets) == 1]


def _study(study: Study, debates: int, *, complete: bool) -> dict[str, Any]:
    """What is said of a study; how much of it is left only if all of its cells are in the report."""
    left = None if study.planned is None or not complete else max(0, study.planned - debates)
    return {"name": study.name, "title": study.title, "settings": study.settings, "folder": str(study.folder),
            "status": study.status, "debates": debates, "left": left, "planned": study.planned,
            "oracle": study.oracle, "decided": study.decided, "partial": study.partial, "estimated": [*study.estimated],
            "edited": [*study.edited],
            "unfinished": study.unfinished, "decisions": [*study.decisions], "source": study.source,
            "problems": list(study.problems), "madplug": study.manifest.get("madplug"),
            "data": study.manifest.get("data") or {}}


def pareto(cells: Sequence[Mapping[str, Any]], cost: str, metric: str | None) -> list[str]:
    """The cells that no other beats in both: as good for less, or better for as much. Cheapest first."""
    points = sorted((c[cost], -c["metrics"][metric]["mean"], c["cell"]) for c in cells if metric in c["metrics"])
    front: list[str] = []
    best = 1.0
    for _, minus, name in points:
        if not front or minus < best:
            front.append(name)
            best = minus
    return front


def surfaces(cells: Sequence[Mapping[str, Any]], factors: Factors) -> list[dict[str, Any]]:
    """Agents by rounds, for each set of cells that differ in nothing else."""
    if not {"agents", "rounds"} <= set(factors.names()):
        return []
    sets: dict[tuple[str, str], list[tuple[int, int, str]]] = {}
    for cell in cells:
        levels = cell["factors"]
        agents, rounds = number(levels["agents"]), number(levels["rounds"])
        rest = ", ".join(level for name, level in levels.items() if name not in ("agents", "rounds"))
        if agents is not None and rounds is not None and not cell["named"] and cell["metric"] in cell["metrics"]:
            sets.setdefault((cell["study"], rest), []).append((int(agents), int(rounds), cell["cell"]))
    return [{"study": study, "of": rest, "points": sorted(points)} for (study, rest), points in sets.items()
            if len({a for a, _, _ in points}) > 1 and len({r for _, r, _ in points}) > 1
            and len({(a, r) for a, r, _ in points}) == len(points)]


def notes(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a reader has to know before believing a figure: what it is about, and the sentence."""
    cells = [c for c in report["cells"] if c["debates"]]
    if not cells:
        yield "unfinished", "no debate has ended yet"
        return
    yield from _of_studies(report)
    measured = [c for c in cells if c["metric"] in c["metrics"]]
    if not measured:
        yield "metric", "no metric is there to compare cells by"
    elif max((c["repeats"] for c in measured), default=0) == 1:
        yield "repeats", "one repeat: how much a repetition would differ is not known"
    least = min((c["metrics"][c["metric"]]["n"] for c in measured), default=0)
    if measured and least < FEW:
        seen = sorted(f"{c['detectable']:.2f}" for c in report["comparisons"] if c["detectable"] is not None)
        below = " to ".join(dict.fromkeys([*seen[:1], *seen[-1:]])) + ", depending on the cell," * (len({*seen}) > 1)
        more = f"; differences below {below} would show less often than four times in five" if seen else ""
        where = " in the smallest cell" if len(cells) > 1 else ""
        yield "samples", f"{least} sample{'s' * (least != 1)}{where}: too few to tell much{more}"
    if len({c["samples"] for c in cells}) > 1 or len({c["debates"] for c in cells}) > 1:
        yield "uneven", ("cells have unequally many debates; differences of two cells are on the samples that both "
                         "have, marginal means on all")
    failed = max(c["failed"] for c in cells)
    if failed:
        yield "failed", f"up to {100 * failed:.1f}% of a cell's debates failed; they have no score"
    for cell in cells:
        if cell["mixed"]:
            yield "mixed", (f"scores of '{cell['label']}' were made by different versions of "
                            f"{', '.join(cell['mixed'])}; madplug rescore DIR makes all of them again")
    if unread := _debates([(cell["malformed"], cell) for cell in cells]):
        yield "malformed", (f"in {unread} a ballot, or another reply that the method reads, could not be read; madplug "
                            "read DIR --unread lists them, and those with an unread final answer")
    if fallen := _debates([(cell["outcomes"]["fallback"], cell) for cell in cells]):
        yield "fallback", f"decided by a fallback: {fallen}; madplug read DIR --fallback lists them"
    yield from _left_out(cells)
    yield from _unequal(report)
    yield from _excluded(report)
    yield from _other_samples(report["other_samples"])
    entries = [*(entry for entry in report["comparisons"] if entry["why"] == "baseline"), *report["not_compared"]]
    compared = {entry[of] for entry in entries for of in ("cell", "baseline")}
    alone = [c["cell"] for c in measured if compared and c["cell"] not in compared]
    if alone:
        yield "alone", ("compared with no baseline, since no cell has the same models and questions: "
                        f"{', '.join(alone)}; --baseline CELL, or FACTOR=LEVEL, compares across models")


def _debates(found: Sequence[tuple[int, Mapping[str, Any]]]) -> str:
    """How many debates of each cell, in words; nothing if there are none."""
    some = [f"{n} of {cell['debates']} debates of '{cell['label']}'" for n, cell in found if n]
    return ", ".join(some[:6]) + (f" and {count(len(some) - 6, 'more cell')}" if len(some) > 6 else "")


def _left_out(cells: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Which metrics in question gave some debates no score, and how many."""
    missing: dict[str, list[tuple[int, int]]] = {}
    for cell in cells:
        found = cell["metrics"].get(cell["metric"])
        ended = cell["debates"] - cell["outcomes"]["failed"]
        if found and found["debates"] < ended:
            missing.setdefault(cell["metric"], []).append((ended - found["debates"], ended))
    for metric, counts in missing.items():
        left, of = sum(n for n, _ in counts), sum(n for _, n in counts)
        yield "left out", (f"{metric} has no score in {left:,} of {of:,} debates in {len(counts)} "
                           f"cell{'s' * (len(counts) != 1)}; its means leave them out")


def _unequal(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Which cells made clearly more or fewer calls than the baseline, unless one of the two is a single call, or the
    cell is matched to the baseline, or a sweep of agents or rounds makes them differ.
    """
    by_name = {c["cell"]: c for c in report["cells"]}
    found: dict[str, list[str]] = {}
    for entry in report["comparisons"]:
        cell, base = by_name[entry["cell"]], by_name[entry["baseline"]]
        swept = not cell["named"] and any(cell["factors"].get(name) != base["factors"].get(name) for name in SIZES)
        alone = min(cell["calls"], base["calls"]) <= 1
        if entry["why"] == "baseline" and not (swept or alone or cell["matched_to"] == base["cell"]) and (
                not 0.8 <= cell["calls"] / base["calls"] <= 1.25):
            found.setdefault(base["cell"], []).append(f"'{cell['label']}' {cell['calls']:.1f}")
    for name, cells in found.items():
        more = f" and {count(len(cells) - 6, 'more cell')}" if len(cells) > 6 else ""
        base = by_name[name]
        yield "calls", (f"calls per debate differ by a factor of more than 1.25: {', '.join(cells[:6])}{more}; "
                        f"baseline '{base['label']}' {base['calls']:.1f}")


def _excluded(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    by_reason: dict[tuple[str, str], list[str]] = {}
    labels = {c["cell"]: c["label"] for c in report["cells"]}
    for left in report["not_compared"]:
        by_reason.setdefault((left["baseline"], left["reason"]), []).append(labels[left["cell"]])
    for (base, reason), names in by_reason.items():
        some = ", ".join(f"'{n}'" for n in names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        yield "not compared", f"not compared with '{labels[base]}': {some}: {reason}"


def _other_samples(found: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """How many samples of one id were left out of comparisons of two studies."""
    for left in found:
        have, are = ("samples have", "are") if left["samples"] > 1 else ("sample has", "is")
        yield "other samples", (f"{left['samples']:,} {have} another question, other references or other columns in "
                                f"'{left['study']}' than in '{left['baseline']}' and {are} left out where cells of the "
                                "two are compared; run, or decide, the older of the two again")


def _of_studies(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if any(study["title"] != study["name"] for study in report["studies"]):
        yield "directories", ("studies that have the same name are called after their directories: "
                              f"{', '.join(_called(study, report['studies']) for study in report['studies'])}")
    for study in report["studies"]:
        where = f"study '{study['title']}': " if len(report["studies"]) > 1 else ""
        if study["decided"]:
            yield "decided", (f"{where}ended early, {study['decided']}; the intervals and tests of this report take it "
                              "that its size was fixed before")
        elif study["left"]:
            yield "unfinished", f"{where}unfinished: {study['debates']} of {study['planned']} debates are there"
        elif study["unfinished"]:
            yield "unfinished", f"{where}decided again from an unfinished study: {study['unfinished']}"
        if study["decisions"]:
            source = f" from {study['source']}" if study["source"] else ""
            yield "again", (f"{where}recorded debates, decided again by {', then by '.join(study['decisions'])}"
                            f"{source}; cells have the names that they were run with")
        if study["oracle"]:
            yield "oracle", f"{where}oracle = true: components saw the references, so these are not results of a method"
        yield from (("edited", f"{where}{text}") for text in study["edited"])
        if study["estimated"]:
            yield "estimated", (f"{where}the tokens of {', '.join(study['estimated'])}, and what they cost, are "
                                "estimated from the texts: the endpoint reports none")


def _called(study: Mapping[str, Any], studies: Sequence[Mapping[str, Any]]) -> str:
    """A study's title, its name, and the settings in which it differs from another of these."""
    differ = [f"{key}={value}" for key, value in study["settings"].items()
              if any(other["settings"].get(key) != value for other in studies)]
    return f"{study['title']} ({', '.join([study['name'], *differ])})"
