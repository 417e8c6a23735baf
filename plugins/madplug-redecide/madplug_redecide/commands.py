"""The commands `madplug decide` and `madplug rescore`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

_folder = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
_yes = click.option("--yes", is_flag=True, help="Do not ask whether a study that somebody else began is trusted.")
_quiet = click.option("--quiet", is_flag=True, help="Print nothing but errors.")


@click.command()
@_folder
@click.option("--decision", metavar="NAME", help="The decision protocol to decide with, a name or "
              "'{use = \"NAME\", ...}'; by default that of each cell.")
@click.option("--set", "settings", metavar="K=V", multiple=True,
              help="Change a value of every cell: --set debate.decision.tie=first.")
@click.option("--without-phases", is_flag=True, help="Leave out what followed the decision.")
@click.option("--cell", "patterns", default=("*",), metavar="PATTERN", multiple=True,
              help="Only the cells with such names, those that they are matched to, and those that --output has.")
@click.option("--pay", is_flag=True, help="Make calls that are not on record; without it, the first one ends the run.")
@click.option("--output", required=True, type=click.Path(path_type=Path), help="The new study's directory.")
@_yes
@_quiet
def decide(folder: Path, decision: str | None, settings: tuple[str, ...], without_phases: bool,
           patterns: tuple[str, ...], pay: bool, output: Path, yes: bool, quiet: bool) -> None:
    """Decide recorded debates again by another rule.

    No debate in DIR is run again and no call is made that is on record: what the new decision, the phases and the
    metrics ask for the first time is asked only with --pay. The new study is called like its directory.
    """
    from madplug import UserError, count, launch
    from madplug.study import decided_by
    from madplug_redecide.again import NotPaid, decided_again

    try:
        with decided_again(folder, output, changes_of(decision, settings), patterns, phases=not without_phases, pay=pay,
                           yes=yes) as again:
            _announce(again.most if pay and not quiet else 0)
            if again.left_out and not quiet:
                click.echo(f"{count(again.left_out, 'debate')} on record left out: of cells, repeats or samples that "
                           "the run file no longer has", err=True)
            status = launch(again.resolved, output, quiet=quiet, run=again.run)
        if not quiet:
            by = decided_by(again.resolved.identity)[-1]
            click.echo(f"decided by {by}; cells have the names that they were run with", err=True)
        sys.exit(status)
    except NotPaid as error:
        raise UserError(f"{error}. This makes them:\n{shlex.join(['madplug', *sys.argv[1:], '--pay'])}") from None


@click.command()
@_folder
@click.option("--metric", "metrics", metavar="NAME", multiple=True,
              help="Score by this metric only, a name or '{use = \"NAME\", ...}'; by default by all of the study's.")
@_yes
@_quiet
def rescore(folder: Path, metrics: tuple[str, ...], yes: bool, quiet: bool) -> None:
    """Score the recorded debates in DIR again, in place.

    By the metrics of the study, or by those named, which are added to it. No debate is run; a metric that asks a model
    pays only for calls that it has not made before.
    """
    from madplug import launch
    from madplug.study import as_toml
    from madplug_redecide.again import scored_again

    with scored_again(folder, [as_toml(text) for text in metrics], yes=yes) as again:
        _announce(0 if quiet else again.most)
        status = launch(again.resolved, folder, quiet=quiet, run=again.run)
    if metrics and not quiet:
        they = "it stands" if len(metrics) == 1 else "they stand"
        click.echo(f"`madplug run` keeps {', '.join(metrics)} only if {they} under `metrics` in the run file", err=True)
    sys.exit(status)


def changes_of(decision: Any, settings: Iterable[str] = ()) -> list[dict[str, Any]]:
    """The changes to each cell. decision: a name, a table, or either as it is written in a run file."""
    from madplug.study import as_toml, setting

    value = as_toml(decision) if isinstance(decision, str) else decision
    use = {"use": value} if isinstance(value, str) else value
    return [*([] if value is None else [{"debate": {"decision": use}}]), *map(setting, settings)]


def _announce(most: int) -> None:
    if most:
        click.echo(f"at most {most:,} model calls (excluding retries), whatever the run file's limits; those answered "
                   "before are not repeated",
                   err=True)
