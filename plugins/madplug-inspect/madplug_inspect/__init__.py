"""Studies in inspect_ai, and its data sets in studies: `madplug inspect`, `inspect.logs` and `inspect.dataset`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from madplug import hookimpl

if TYPE_CHECKING:
    import click

    from madplug import Dataset, Observer


@hookimpl
def madplug_register_datasets() -> list[type[Dataset]]:
    """Register `inspect.dataset`."""
    from madplug_inspect.dataset import Imported

    return [Imported]


@hookimpl
def madplug_register_observers() -> list[type[Observer]]:
    """Register `inspect.logs`."""
    from madplug_inspect.observer import Logs

    return [Logs]


@hookimpl
def madplug_register_commands(cli: click.Group) -> None:
    """Add `madplug inspect`."""
    from madplug_inspect.command import inspect

    cli.add_command(inspect)
