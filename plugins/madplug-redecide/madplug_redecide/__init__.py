"""Recorded debates decided again by another rule, and scored again by further metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from madplug import Model, hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def madplug_register_models() -> list[type[Model]]:
    """Register what takes the place of a model that cannot be made."""
    from madplug_redecide.absent import Absent

    return [Absent]


@hookimpl
def madplug_register_commands(cli: click.Group) -> None:
    """Add `madplug decide` and `madplug rescore`."""
    from madplug_redecide.commands import decide, rescore

    cli.add_command(decide)
    cli.add_command(rescore)
