"""The five paradigms of MALLM (Becker et al. 2025), and the way from its configurations to run files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from madplug import hookimpl

if TYPE_CHECKING:
    import click

    from madplug import Paradigm, Style


@hookimpl
def madplug_register_paradigms() -> Iterable[type[Paradigm]]:
    """The paradigms."""
    from madplug_mallm.paradigms import CollectiveRefinement, MallmDebate, Memory, Relay, Report

    return [Memory, Relay, Report, MallmDebate, CollectiveRefinement]


@hookimpl
def madplug_register_styles() -> Iterable[type[Style]]:
    """The style of collective refinement."""
    from madplug_mallm.collective import Collective

    return [Collective]


@hookimpl
def madplug_register_commands(cli: click.Group) -> None:
    """`madplug import mallm`."""
    from madplug_mallm.command import add_to

    add_to(cli)
