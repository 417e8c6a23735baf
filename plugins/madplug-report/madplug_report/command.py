"""The command `madplug report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from madplug.errors import UserError


@click.command()
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--output", metavar="DIR", type=click.Path(path_type=Path),
              help="Also write report.md, report.tex, report.json and report.html there.")
@click.option("--baseline", metavar="CELL", help="What the others are compared with.  [default: the first cell]")
@click.option("--metric", metavar="NAME", help="What is compared.  [default: qa.accuracy, or the first share]")
def report(folders: tuple[Path, ...], as_json: bool, output: Path | None, baseline: str | None,
           metric: str | None) -> None:
    """Report on the studies in DIR...: figures with intervals, tests between cells, charts. Works while they run."""
    from madplug_report.building import build

    found = build(folders, baseline, metric)
    written = _write(found, output) if output else []
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False))
        return
    from madplug_report.texts import terminal

    click.echo(terminal(found))
    for path in written:
        click.echo(f"written: {path}")


def _write(found: dict[str, Any], folder: Path) -> list[Path]:
    from madplug_report.page import page
    from madplug_report.texts import latex_file, markdown_file

    texts = {"report.md": markdown_file(found), "report.tex": latex_file(found),
             "report.json": json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False) + "\n",
             "report.html": page(found)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"--output {folder}: cannot be written: {error.strerror}") from None
    return [folder / name for name in texts]
