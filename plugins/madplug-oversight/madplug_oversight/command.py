"""`madplug gap`: the judge's accuracy between a naive judge and an expert; `madplug ratings`: who debates best."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import click

from madplug import Reader, UserError, columns, listed, nearest_or_all, open_study

if TYPE_CHECKING:
    from madplug_oversight.ratings import Game

METRIC = "oversight.judged"


@click.command("gap")
@click.argument("study", type=click.Path(path_type=Path))
@click.option("--naive", default="naive", show_default=True, help="the cell of the judge that gets the question alone")
@click.option("--expert", default="expert", show_default=True, help="the cell of the judge that reads the passage")
@click.option("--metric", default=METRIC, show_default=True, help="the metric of the judgements")
@click.option("--compare", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE",
              help="published accuracies to print beside: a CSV file as of madplug report, with the column cell")
def gap(study: Path, naive: str, expert: str, metric: str, compare: Path | None) -> None:
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
        judges = {cell: _judge(reader, cell) for cell in cells}
        both = {cell: _by_sample(reader, cell, f"{metric}.both_right") for cell in cells}
    published = _published(compare, f"{metric}.accuracy") if compare else {}
    if not any(scores.values()):
        raise UserError(f"{study}: no debate has the score '{metric}.accuracy'; score it with madplug rescore")
    rows, dropped = [], 0
    for cell in sorted(cells, key=lambda name: fmean(scores[name].values()) if scores[name] else 0.0):
        value, interval, undefined = gap_recovered(scores[cell], scores[naive], scores[expert])
        dropped = max(dropped, undefined)
        rows.append([cell, str(len(scores[cell])), _mean(scores[cell]), _mean(both[cell]),
                     "" if value is None else f"{value:.2f}",
                     "" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}",
                     *(values.get(cell, "") for values in published.values())])
    click.echo(columns(rows, ["cell", "samples", "accuracy", "both right", "gap recovered", "95 % interval",
                              *published]))
    if len(set(judges.values())) > 1:
        click.echo("the judges have different models, so that cells differ in more than the debate: "
                   + "; ".join(f"{model} in {listed(cell for cell in judges if judges[cell] == model)}"
                               for model in dict.fromkeys(judges.values())))
    if dropped:
        click.echo(f"left out: {dropped:,} of {DRAWS:,} draws, in which the expert was no better than the naive judge")


def _judge(reader: Reader, cell: str) -> str:
    """The model of the judge, who alone has a vote, in the cell's first debate."""
    return next((agent.model for result in reader.results(cell) for agent in result.agents
                 if agent.persona.votes and agent.model), "")


def _by_sample(reader: Reader, cell: str, name: str) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for row in reader.figures(cell):
        if row["metrics"].get(name) is not None:
            found[row["sample"]].append(row["metrics"][name])
    return {sample: fmean(values) for sample, values in found.items()}


def _published(path: Path, metric: str) -> dict[str, dict[str, str]]:
    """The numbers of a file for a metric, by source and cell."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), 2):
            try:
                share = float(row["value"]) * (0.01 if row.get("unit") == "percent" else 1)
                if row["metric"] == metric:
                    found[row["source"]][row["cell"]] = f"{share:.3f}"
            except (KeyError, TypeError, ValueError):
                raise UserError(f"{path}: line {number}: expected the columns source, cell, metric and value, a "
                                "number") from None
    return found


def _mean(scores: dict[str, float]) -> str:
    return f"{fmean(scores.values()):.3f}" if scores else ""


@click.command("ratings")
@click.argument("study", type=click.Path(path_type=Path))
@click.option("--method", type=click.Choice(["bradley-terry", "least-squares"]), default="bradley-terry",
              show_default=True, help="by maximum likelihood, or from win rates as in the code of Khan et al.")
def ratings(study: Path, method: str) -> None:
    """Print how strong the debaters of STUDY are, from all debates of two different models, and how right the judge is.

    A judgement for a debater's answer is a win; one debate is one game, in whatever orders it was judged. The mean
    rating is 1500, and 400 more win ten times as often as they lose. Intervals are a bootstrap over samples.
    """
    from madplug_oversight.ratings import DRAWS, bradley_terry, games, intervals, least_squares, wins

    with open_study(study) as reader:
        played = list(games(reader.results()))
    names = sorted({name for game in played for name in game.debaters if len(set(game.debaters)) > 1})
    if not names:
        raise UserError(f"{study}: no debate has two debaters of different models and a judgement; give them models of "
                        "their own: debate.models = [\"one\", \"two\", \"judge\"]")
    fit = bradley_terry if method == "bradley-terry" else least_squares
    rated = fit(wins(played, names))
    if rated is None:
        raise UserError(f"{study}: there are no ratings: a debater or a group of them has won always, or never, or has "
                        "not met the others")
    ranges, undefined = intervals(played, names, fit)
    rows = [[names[i], f"{rated[i]:.1f}", f"{ranges[i][0]:.0f} to {ranges[i][1]:.0f}" if ranges else "",
             *_win_rates(played, names[i])] for i in sorted(range(len(names)), key=lambda i: -rated[i])]
    click.echo(columns(rows, ["debater", "rating", "95 % interval", "games", "won", "if right", "if wrong"]))
    if undefined:
        click.echo(f"left out: {undefined:,} of {DRAWS:,} draws, in which a debater won always or never")
    click.echo()
    click.echo(columns(list(_pairs(played, dict(zip(names, rated, strict=True)))),
                       ["debaters", "mean rating", "debates", "accuracy"]))


def _win_rates(played: list[Game], name: str) -> list[str]:
    """Of a debater: its games against others, and the share it won of all, and when it was right and wrong."""
    won: dict[bool | None, list[float]] = defaultdict(list)
    for game in played:
        if name in game.debaters and len(set(game.debaters)) > 1:
            is_a = game.debaters[0] == name
            won[None if game.right is None else bool(game.right) == is_a].append(game.won if is_a else 1 - game.won)
    every = [value for values in won.values() for value in values]
    return [str(len(every)), *(f"{fmean(v):.3f}" if v else "" for v in (every, won[True], won[False]))]


def _pairs(played: list[Game], rated: dict[str, float]) -> Iterator[list[str]]:
    """The accuracy of the judge by the debaters' mean rating, self-play included."""
    found: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for game in played:
        if game.accuracy is not None and set(game.debaters) <= rated.keys():
            found[tuple(sorted(game.debaters))].append(game.accuracy)
    for pair in sorted(found, key=lambda pair: fmean(rated[name] for name in pair)):
        yield [", ".join(pair), f"{fmean(rated[name] for name in pair):.1f}", str(len(found[pair])),
               f"{fmean(found[pair]):.3f}"]
