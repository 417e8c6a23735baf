"""The command `madplug merge`, and the options of `madplug run` that choose a part of a study."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from madplug import UserError, listed


def add_options(run: click.Command) -> None:
    """Add `--shard`, `--prepare` and `--prepared` to `madplug run`, which set `[execution]`."""
    folder = click.Path(path_type=Path)
    run.params += [
        click.Option(["--shard"], metavar="I/N", help="Run shard I of N; madplug merge makes one study of all shards."),
        click.Option(["--prepare"], is_flag=True, help="Prepare the components and run no debate, for --prepared."),
        click.Option(["--prepared"], metavar="DIR", type=folder,
                     help="With --shard: use what the components prepared in DIR.")]
    original = run.callback
    assert original is not None

    def run_part(shard: str | None, prepare: bool, prepared: Path | None, **given: Any) -> Any:
        if shard is not None or prepare or prepared:
            execution = execution_of(shard, prepare, prepared, given["file"], given["settings"])
            given["settings"] = (*given["settings"], f"execution={execution}")
        return original(**given)

    run.callback = run_part


def execution_of(shard: str | None, prepare: bool, prepared: Path | None, file: Path,
                 settings: tuple[str, ...]) -> str:
    """The value of `[execution]` for these options, as TOML. file, settings: say where the shard's debates run."""
    from madplug.study import read

    if prepare and (shard is not None or prepared):
        raise UserError("--prepare: runs no debate, so it cannot be combined with --shard or --prepared")
    if prepare:
        return '"shards.preparation"'
    if shard is None:
        raise UserError("--prepared: requires --shard I/N")
    found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", shard)
    number, of = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= of:
        raise UserError(f"--shard {shard}: expected I/N with I from 1 to N, such as 3/16")
    table: dict[str, Any] = {"use": "shards.part", "part": number, "of": of}
    if prepared is not None:
        table["prepared"] = str(prepared.absolute())
    if inner := read(file, settings).get("execution"):
        table["execution"] = inner
    return inline(table)


def inline(value: Any) -> str:
    """A value as TOML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{inline(str(key))} = {inline(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(inline, value))}]"
    return json.dumps(value, ensure_ascii=False)


@click.command()
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--output", required=True, type=click.Path(path_type=Path), help="The whole study's directory.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def merge(folders: tuple[Path, ...], output: Path, quiet: bool) -> None:
    """Make one study of all its shards, which were run with --shard. Nothing in them is executed."""
    from madplug_read import print_status
    from madplug_shards.merging import merge as merge_shards

    merged = merge_shards(folders, output)
    if not quiet:
        print_status([output])
        click.echo(f"results saved in {output}{os.sep}")
        if merged.missing and not merged.left:
            click.echo(f"run the same run file with --output {output} to compute the figures of whole cells of "
                       f"{listed(merged.missing)}; no model is asked again")
    for text in merged.remarks:
        click.echo(text, err=True)
