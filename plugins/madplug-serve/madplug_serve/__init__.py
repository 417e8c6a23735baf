"""`madplug serve`: every cell of a run file as a model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from madplug import hookimpl

if TYPE_CHECKING:
    import click

    from madplug import Dataset


@hookimpl
def madplug_register_datasets() -> list[type[Dataset]]:
    """Register the data set of a served study."""
    from madplug_serve.dataset import Conversations

    return [Conversations]


@hookimpl
def madplug_register_commands(cli: click.Group) -> None:
    """Add `madplug serve`."""
    from madplug_serve.command import serve

    cli.add_command(serve)
