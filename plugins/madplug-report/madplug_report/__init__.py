"""`madplug report`: what a study found, with intervals, tests between its cells, and charts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from madplug import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def madplug_register_commands(cli: click.Group) -> None:
    """Adds `madplug report`."""
    from madplug_report.command import report

    cli.add_command(report)
