"""The command `madplug export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from madplug import count, safe

if TYPE_CHECKING:
    from madplug_export.files import What


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--output", required=True, metavar="FILE",
              help="A name ending in .jsonl, .csv or .parquet, or - for standard output.")
@click.option("--calls", is_flag=True, help="Write the model calls instead: requests and replies.")
@click.option("--messages", is_flag=True, help="Write the messages instead, one row each.")
@click.option("--format", "form", type=click.Choice(("jsonl", "csv", "parquet")), help="Unless the name tells.")
def export(folder: Path, output: str, *, calls: bool, messages: bool, form: str | None) -> None:
    """Write the debates in DIR to a file, one row each."""
    from madplug_export.files import elsewhere, export_to

    if calls and messages:
        raise click.UsageError("--calls and --messages go to a file each; run the command twice")
    what: What = "calls" if calls else "messages" if messages else "debates"
    number = export_to(folder, output, what, form)
    place = "standard output" if output == "-" else output
    click.echo(f"{count(number, what[:-1])} in {place}{safe(elsewhere(folder, what))}", err=output == "-")
