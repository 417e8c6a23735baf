"""The commands `madplug read` and `madplug status`, and the option `--watch` of `madplug run`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from madplug import UserError


def _refused(name: str, instead: str, **more: Any) -> click.Option:
    """An option that `run` does not have: whoever gives it is told what to use instead."""
    def refuse(ctx: click.Context, option: click.Parameter, given: object) -> None:
        if given:
            raise UserError(f"run: no option '{name}'; use {instead}")

    return click.Option([name], hidden=True, expose_value=False, callback=refuse, **more)


refused = [_refused("--dry-run", "madplug check FILE", is_flag=True), _refused(
    "--limit", "--set dataset.limit=3, or dataset.size=3 where questions are generated")]
watch = click.Option(["--watch", "observers"], flag_value="read.watch", multiple=True,
                     help="Show every message as it is recorded: --observe read.watch.")


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("sample", required=False)
@click.option("--cell", metavar="CELL", help="Only this cell.")
@click.option("--repeat", type=click.IntRange(0), metavar="R", help="Only this repeat, from 0.")
@click.option("--prompts", is_flag=True, help="Show what was sent to the models, and their replies, in full.")
@click.option("--data", is_flag=True, help="Show in full what plugins recorded: sources, scores, tool calls, notes.")
@click.option("--failed", "traits", flag_value="failed", multiple=True, help="Only debates that failed.")
@click.option("--partial", "traits", flag_value="partial", multiple=True,
              help="Only decided debates in which an agent failed.")
@click.option("--changed", "traits", flag_value="changed", multiple=True,
              help="Only debates in which an agent changed its mind.")
@click.option("--undecided", "traits", flag_value="undecided", multiple=True, help="Only debates without a decision.")
@click.option("--fallback", "traits", flag_value="fallback", multiple=True,
              help="Only debates that a fallback decided.")
@click.option("--tie", "traits", flag_value="tie", multiple=True,
              help="Only debates in whose decision several answers were equally far ahead.")
@click.option("--unread", "traits", flag_value="ballot_unread", multiple=True,
              help="Only debates in which a final answer, a ballot, a ranking or the like could not be read.")
@click.option("--wrong", "traits", flag_value="wrong", multiple=True, help="Only debates with a wrong decision.")
@click.option("--all", "every", is_flag=True, help="List every debate, not only the first 50.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object per line, for every debate.")
def read(folder: Path, sample: str | None, cell: str | None, repeat: int | None, prompts: bool, data: bool,
         traits: tuple[str, ...], every: bool, as_json: bool) -> None:
    """Read the debates on a SAMPLE of the study in DIR, or list its debates; an only one is shown in full.

    Shows the question, the agents, what each of them said and had been shown, changes of mind, votes, the decision and
    the cost; also while the study runs.
    """
    from rich.console import Console

    from madplug_read.listing import Wanted, read_study

    console = Console()
    if not console.width:  # as some terminals say that do not know it
        console.width = 80
    read_study(folder, Wanted(sample, cell, repeat, traits, prompts, data, as_json, every), console)


@click.command()
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--sort", type=click.Choice(("study", "date", "score", "cost", "state")), default="date",
              help="What several studies are sorted by; by date, the newest is the first.  [default: date]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(folders: tuple[Path, ...], sort: str, as_json: bool) -> None:
    """Show the progress of a study, also while it runs; of several, or a folder of studies, a line for each."""
    from madplug_read.status import print_status

    print_status(folders, sort, as_json=as_json)
