"""`madplug import mallm CONFIG.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from madplug import Problem, UserError

if TYPE_CHECKING:
    from madplug_mallm.converted import Converted


def add_to(cli: click.Group) -> None:
    """Add the command to the group `import`, which other plugins may have made before."""
    group = cli.commands.get("import")
    if not isinstance(group, click.Group):
        group = click.Group("import", help="Write a run file from the configuration of another program.")
        cli.add_command(group)
    group.add_command(import_mallm)


@click.command("mallm")
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--output", metavar="FILE", type=click.Path(path_type=Path),
              help="The run file.  [default: CONFIG with the ending .toml]")
def import_mallm(config: Path, output: Path | None) -> None:
    """Write the run file of a MALLM configuration, and say what it does not carry over.

    CONFIG is a JSON object of MALLM's settings, or a batch file with `common` and `runs`.
    """
    from madplug_mallm.convert import convert

    target = config.with_suffix(".toml") if output is None else output
    if output is None and target.exists():
        raise UserError(f"{target}: already exists; choose another file with --output")
    done = convert(read(config), target.parent, name=config.stem)
    text = written(done, config.name)
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError([Problem(str(target), f"cannot be written: {error.strerror}")]) from None
    click.echo(f"wrote {target}")
    for note in done.notes:
        click.echo(f"  {note}")


def read(path: Path) -> dict[str, object]:
    """The configuration. Raises `UserError` when there is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UserError([Problem(str(path), f"cannot be read: {error.strerror}")]) from None
    except (ValueError, RecursionError) as error:
        raise UserError([Problem(str(path), f"not valid JSON: {error}")]) from None
    if not isinstance(value, dict):
        raise UserError([Problem(str(path), "not a configuration of MALLM: expected a JSON object")])
    return value


def written(done: Converted, source: str) -> str:
    """The run file as text, with a comment at the top that lists what is not carried over."""
    import tomli_w

    head = [f"# From MALLM's {source}."]
    if done.notes:
        head += ["# Not carried over, or different:", *(f"#   {' '.join(note.split())}" for note in done.notes)]
    return "\n".join([*head, "", tomli_w.dumps(done.table)]).encode(errors="replace").decode()
