"""Shards: disjoint parts of a study, run separately and merged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from madplug import Executor, hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def madplug_register_executors() -> list[type[Executor]]:
    """Register the executors."""
    from madplug_shards.executors import Part, Preparation

    return [Part, Preparation]


@hookimpl
def madplug_register_commands(cli: click.Group) -> None:
    """Add `madplug merge`, and the options of `madplug run` that choose a part of the study."""
    from madplug_shards.command import add_options, merge

    cli.add_command(merge)
    add_options(cli.commands["run"])
