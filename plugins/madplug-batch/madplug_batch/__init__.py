"""Batches: the requests of all open debates are sent together, answered within a day, and cost half."""

from __future__ import annotations

from typing import TYPE_CHECKING

from madplug import Executor, hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def madplug_register_executors() -> list[type[Executor]]:
    """Register the executor."""
    from madplug_batch.rounds import Rounds

    return [Rounds]


@hookimpl
def madplug_register_commands(cli: click.Group) -> None:
    """Add `madplug batch`, and the options of `madplug run` that send requests as batches."""
    from madplug_batch.command import add_options, batch

    cli.add_command(batch)
    add_options(cli.commands["run"])
