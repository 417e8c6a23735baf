"""What a component does, in the terminal: `madplug show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from madplug import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def madplug_register_commands(cli: click.Group) -> None:
    """Add `madplug show`."""
    from madplug_show.command import show

    cli.add_command(show)
