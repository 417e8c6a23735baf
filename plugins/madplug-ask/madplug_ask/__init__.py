"""`madplug ask`: one debate on a question, now, without a run file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from madplug import hookimpl

if TYPE_CHECKING:
    import click

    from madplug import Dataset


@hookimpl
def madplug_register_datasets() -> list[type[Dataset]]:
    """Register the data set of one question."""
    from madplug_ask.question import Question

    return [Question]


@hookimpl
def madplug_register_commands(cli: click.Group) -> None:
    """Add `madplug ask`."""
    from madplug_ask.command import ask

    cli.add_command(ask)
