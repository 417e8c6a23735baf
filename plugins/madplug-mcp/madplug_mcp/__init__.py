"""`madplug mcp`: a server of the Model Context Protocol, through which assistants ask councils of models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from madplug import hookimpl

if TYPE_CHECKING:
    import click

    from madplug import Model


@hookimpl
def madplug_register_models() -> list[type[Model]]:
    """Register the client's model."""
    from madplug_mcp.seat import Client

    return [Client]


@hookimpl
def madplug_register_commands(cli: click.Group) -> None:
    """Add `madplug mcp`."""
    from madplug_mcp.command import mcp

    cli.add_command(mcp)
