"""`madplug gap`: the judge's accuracy between a naive judge and an expert."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import fmean

import click

from madplug import Reader, UserError, columns, nearest_or_all, open_study

METRIC = "oversight.judged"


@click.command("gap")
@click.argument("study", type=click.Path(path_type=Path))
@click.option("--naive", default="naive", show_default=True, help="the cell of the judge that gets the question alone")
@click.option("--expert", default="expert", show_default=True, help="the cell of the judge that reads the passage")
@click.option("--metric", default=METRIC, show_default=True, help="the metric of the judgements")
def gap(study: Path, naive: str, expert: str, metric: str) -> None:
    """Print how much of the gap between a naive judge and an expert each cell of STUDY recovers.

    Accuracy is over both orders; repeats of a sample are averaged. The interval is a bootstrap over samples.
    """
    from madplug_oversight.measures import DRAWS, gap_recovered

    with open_study(study) as reader:
        cells = reader.cells()
        for name in (naive, expert):
            if name not in cells:
                raise UserError(f"{study}: there is no cell '{name}'{nearest_or_all(name, cells)}")
        scores = {cell: _by_sample(reader, cell, f"{metric}.accuracy") for cell in cells}
        both = {cell: _by_sample(reader, cell, f"{metric}.both_right") for cell in cells}
    if not any(scores.values()):
        raise UserError(f"{study}: no debate has the score '{metric}.accuracy'; score it with madplug rescore")
    rows, dropped = [], 0
    for cell in sorted(cells, key=lambda name: fmean(scores[name].values()) if scores[name] else 0.0):
        value, interval, undefined = gap_recovered(scores[cell], scores[naive], scores[expert])
        dropped = max(dropped, undefined)
        rows.append([cell, str(len(scores[cell])), _mean(scores[cell]), _mean(both[cell]),
                     "" if value is None else f"{value:.2f}",
                     "" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}"])
    click.echo(columns(rows, ["cell", "samples", "accuracy", "both right", "gap recovered", "95 % interval"]))
    if dropped:
        click.echo(f"left out: {dropped:,} of {DRAWS:,} draws, in which the expert was no better than the naive judge")


def _by_sample(reader: Reader, cell: str, name: str) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for row in reader.figures(cell):
        if row["metrics"].get(name) is not None:
            found[row["sample"]].append(row["metrics"][name])
    return {sample: fmean(values) for sample, values in found.items()}


def _mean(scores: dict[str, float]) -> str:
    return f"{fmean(scores.values()):.3f}" if scores else ""
