"""`madplug view`: studies, cells and debates as pages in the browser, or exported as files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from madplug import hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import click


@hookimpl
def madplug_register_commands(cli: click.Group) -> None:
    """Adds `madplug view`."""
    from madplug_view.command import view

    cli.add_command(view)


@hookimpl
def madplug_register_hints(folder: Path) -> Iterable[str]:
    """The command that opens the study."""
    import shlex

    return [f"look at the debates: madplug view {shlex.quote(str(folder))}"]
