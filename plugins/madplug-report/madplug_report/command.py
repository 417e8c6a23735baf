"""The command `madplug report`."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

import click

from madplug import UserError


@click.command()
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--output", metavar="DIR", type=click.Path(path_type=Path),
              help="Also write report.md, report.tex, report.json, report.html and the tables as CSV there.")
@click.option("--baseline", metavar="CELL",
              help="What the others of a group are compared with: a cell, a level, or FACTOR=LEVEL.  [default: the "
                   "first cell of each group]")
@click.option("--metric", "metrics", metavar="NAME", multiple=True,
              help="What is compared; repeated: the first that a group has. LEVEL=NAME is for one data set.  [default: "
                   "qa.accuracy, or the first share]")
@click.option("--rows", metavar="FACTORS", default="",
              help="Factors in the rows of the table: decision,agents; also metric, cell, decision.family.")
@click.option("--columns", metavar="FACTORS", default="", help="Factors in its columns.  [default: the data set]")
@click.option("--by", metavar="FACTORS", default="", help="Factors with a table for each level.")
@click.option("--over", metavar="FACTORS", default="", help="Factors that are averaged over.")
@click.option("--family", "families", metavar="NAME=LEVELS", multiple=True,
              help="Levels to average over: votes=simple,approval.  [default: the levels of each plugin]")
@click.option("--spread", type=click.Choice(("repeats", "mean", "cells")), default="repeats",
              help="What the std of an average over cells is of: repeats, the cells, or the mean of their own stds.")
@click.option("--worst", is_flag=True, help="Mark the worst of each column, or row, too.")
@click.option("--cell", "cells", metavar="PATTERN", multiple=True,
              help="Only cells with such names: '*majority*'; '!PATTERN': without those.")
@click.option("--price", "prices", metavar="NAME=READ/WRITTEN", multiple=True,
              help="What the tokens of the model [models.NAME] cost at these US dollars per million; a third number "
                   "is for cached ones. Repeated: of several models; the others as they were paid.")
@click.option("--tokenizer", metavar="FILE",
              help="Count what was written with this tokenizer.json or tiktoken encoding.")
@click.option("--prefixes", is_flag=True,
              help="Count which part of the prompts a prefix cache could have served; reads every request.")
@click.option("--compare", "published", metavar="FILE", type=click.Path(path_type=Path),
              help="A CSV file with a paper's numbers: prints ours, theirs and the difference.")
@click.option("--figures", is_flag=True, help="Write the charts to DIR/figures, too: as SVG, PDF, PNG and CSV.")
@click.option("--fit", type=click.Choice(("linear", "log")), help="A regression in the charts over a number.")
def report(folders: tuple[Path, ...], as_json: bool, output: Path | None, baseline: str | None, rows: str,
           columns: str, by: str, over: str, tokenizer: str | None, prefixes: bool, published: Path | None,
           figures: bool, fit: str | None, spread: str, worst: bool, **more: tuple[str, ...]) -> None:
    """Report on the studies in DIR...: figures with intervals, tests between cells, charts. Works while they run.

    A DIR may also be a folder of studies.
    """
    from madplug.store import find_studies
    from madplug_report.building import Wanted, build

    for option, given in (("--figures", figures), ("--fit", fit)):
        if given and not output:
            raise UserError(f"{option}: needs --output DIR")
    found = build(find_studies(folders), Wanted(
        baseline, rows=_names(rows), columns=_names(columns), by=_names(by), over=_names(over), tokenizer=tokenizer,
        prefixes=prefixes, published=published, spread=spread, worst=worst, **more))
    written = _write(found, output, fit, figures=figures) if output else []
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False))
        return
    from madplug_report.texts import terminal

    click.echo(terminal(found, get_terminal_size((0, 0)).columns))
    for path in written:
        click.echo(f"written: {path}")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _write(found: dict[str, Any], folder: Path, fit: str | None, *, figures: bool) -> list[Path]:
    from madplug.study import write_whole
    from madplug_report.charts import charts, write_figures
    from madplug_report.csvs import csv_files
    from madplug_report.page import page
    from madplug_report.texts import latex_file, markdown_file

    made = charts(found, fit)
    texts = {"report.md": markdown_file(found), "report.tex": latex_file(found),
             "report.json": json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False) + "\n",
             "report.html": page(found, made), **csv_files(found)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_whole(folder / name, text.encode(errors="replace").decode())  # a directory's name may be any bytes
        if figures:
            write_figures(made, folder / "figures")
    except OSError as error:
        raise UserError(f"--output {folder}: cannot be written: {error.strerror}") from None
    return [*(folder / name for name in texts), *([folder / "figures"] if figures else [])]
