"""The command `madplug export`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from madplug import count


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--output", required=True, metavar="FILE",
              help="A name ending in .jsonl, .csv or .parquet, or - for standard output.")
@click.option("--calls", "what", flag_value="calls", help="Write the model calls instead: requests and replies.")
@click.option("--messages", "what", flag_value="messages", help="Write the messages instead, one row each.")
@click.option("--format", "form", type=click.Choice(("jsonl", "csv", "parquet")), help="Unless the name tells.")
def export(folder: Path, output: str, what: Literal["calls", "messages"] | None, form: str | None) -> None:
    """Write the debates in DIR to a file, one row each."""
    from madplug_export.files import export_to

    number = export_to(folder, output, what or "debates", form)
    noun = {"calls": "call", "messages": "message"}.get(what or "", "debate")
    click.echo(f"{count(number, noun)} in {output}", err=output == "-")
