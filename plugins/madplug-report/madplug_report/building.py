"""The report as plain data: what `--json` prints, and what tables and charts are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from madplug_report import intervals, sizes
from madplug_report.analysis import SEED, Analysis
from madplug_report.reading import Debates
from madplug_report.studies import Study, open_studies

FEW = 30
"""With fewer samples a chart says that they are few."""


def build(folders: Sequence[Path], baseline: str | None = None, metric: str | None = None) -> dict[str, Any]:
    """Read the studies in these directories, and report on them."""
    studies = open_studies(folders)
    analysis = Analysis(Debates(studies, metric), baseline)
    cells = analysis.cells
    counted = [0] * len(studies)
    for i, facts in enumerate(analysis.debates.cells):
        counted[facts.study] += cells[i]["debates"]
        match = analysis.matched(facts)
        cells[i] |= {"study": studies[facts.study].name, "slug": facts.slug,
                     "matched_to": None if match is None else cells[match]["cell"]}
    report: dict[str, Any] = {
        "studies": [_study(study, n) for study, n in zip(studies, counted, strict=True)],
        "metric": analysis.metric, "oracle": any(c["oracle"] for c in cells),
        "baseline": None if analysis.baseline is None else cells[analysis.baseline]["cell"],
        "level": intervals.LEVEL, "alpha": sizes.ALPHA, "power": sizes.POWER, "seed": SEED,
        "family": len(analysis.comparisons), "cells": cells, "comparisons": analysis.comparisons,
        "not_compared": analysis.not_compared,
        "pareto": {cost: pareto(cells, cost, analysis.metric) for cost in ("tokens", "calls")},
        "surfaces": surfaces(cells, analysis)}
    return {**report, "notes": [{"about": about, "text": text} for about, text in notes(report)]}


def _study(study: Study, debates: int) -> dict[str, Any]:
    left = None if study.planned is None else max(0, study.planned - debates)
    return {"name": study.name, "folder": str(study.folder), "status": study.status, "debates": debates, "left": left,
            "planned": study.planned, "oracle": study.oracle, "problems": list(study.problems),
            "madplug": study.manifest.get("madplug"), "data": study.manifest.get("data") or {}}


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


def surfaces(cells: Sequence[Mapping[str, Any]], analysis: Analysis) -> list[dict[str, Any]]:
    """Agents by rounds, for each set of cells that differ in nothing else."""
    groups: dict[tuple[str, ...], list[tuple[int, int, str]]] = {}
    for facts, cell in zip(analysis.debates.cells, cells, strict=True):
        agents, rounds = (_number(facts.debate.get(x, facts.settings.get(f"debate.{x}"))) for x in ("agents", "rounds"))
        if agents and rounds and analysis.metric in cell["metrics"]:
            groups.setdefault((cell["study"], _rest(facts)), []).append((agents, rounds, cell["cell"]))
    found = []
    for (study, rest), points in groups.items():
        if len({a for a, _, _ in points}) > 1 and len({r for _, r, _ in points}) > 1 and \
                len({(a, r) for a, r, _ in points}) == len(points):
            found.append({"study": study, "of": rest, "points": sorted(points)})
    return found


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _rest(facts: Any) -> str:
    """What else a cell sets."""
    if facts.settings:
        return ", ".join(f"{k.rpartition('.')[2]}={v.get('use', v) if isinstance(v, Mapping) else v}"
                         for k, v in facts.settings.items() if k not in ("debate.agents", "debate.rounds"))
    return ",".join(p for p in facts.slug.split(",") if p.partition("=")[0] not in ("agents", "rounds"))


def notes(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a reader has to know before believing a figure: what it is about, and the sentence."""
    cells = [c for c in report["cells"] if c["debates"]]
    if not cells:
        yield "unfinished", "no debate has ended yet"
        return
    yield from _of_studies(report)
    metric = report["metric"]
    measured = [c for c in cells if metric in c["metrics"]]
    if metric is None:
        yield "metric", "no metric is there to compare cells by"
    elif max((c["repeats"] for c in measured), default=0) == 1:
        yield "repeats", "one repeat: how much a repetition would differ is not known"
    least = min((c["samples"] for c in cells), default=0)
    if least < FEW:
        seen = [c["detectable"] for c in report["comparisons"] if c["detectable"] is not None]
        more = f"; a difference below {min(seen):.2f} would not show" if seen else ""
        where = " in the smallest cell" if len(cells) > 1 else ""
        yield "samples", f"{least} sample{'s' * (least != 1)}{where}: too few to tell much{more}"
    if len({c["samples"] for c in cells}) > 1 or len({c["debates"] for c in cells}) > 1:
        yield "uneven", "cells have unequally many debates; differences are on the samples that both have"
    failed = max(c["failed"] for c in cells)
    if failed:
        yield "failed", f"up to {100 * failed:.1f}% of a cell's debates failed; they count as wrong"
    yield from _excluded(report)


def _excluded(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    by_reason: dict[str, list[str]] = {}
    for left in report["not_compared"]:
        by_reason.setdefault(left["reason"], []).append(left["cell"])
    for reason, names in by_reason.items():
        some = ", ".join(f"'{n}'" for n in names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        yield "not compared", f"not compared with '{report['baseline']}': {some}: {reason}"


def _of_studies(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for study in report["studies"]:
        where = f"study '{study['name']}': " if len(report["studies"]) > 1 else ""
        if study["left"]:
            yield "unfinished", f"{where}unfinished: {study['debates']} of {study['planned']} debates are there"
        if study["oracle"]:
            yield "oracle", f"{where}oracle = true: components saw the references, so these are not results of a method"
