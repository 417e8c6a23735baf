"""The command `madplug inspect`."""

from __future__ import annotations

from pathlib import Path

import click

from madplug import UserError, count
from madplug_inspect.needed import NEEDED, is_installed


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), help="Where to write the logs.  [default: DIR/inspect]")
def inspect(folder: Path, output: Path | None) -> None:
    """Write the study in DIR as logs of inspect_ai, for `inspect view`.

    There is one .eval file for each cell in which a debate has ended.
    """
    if not is_installed():
        raise UserError(f"inspect {NEEDED}")
    from madplug_inspect.logs import write_logs

    target = output or folder / "inspect"
    written = write_logs(folder, target)
    if not written:
        raise UserError(f"{folder}: no debate has ended yet, so there is nothing to log")
    click.echo(f"{count(len(written), 'log')} in {target}; open with: inspect view --log-dir {target}")
