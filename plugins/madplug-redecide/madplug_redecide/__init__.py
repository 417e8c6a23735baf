"""Recorded debates decided again by another rule, and scored again by further metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from madplug import Model, hookimpl

if TYPE_CHECKING:
    import click

    from madplug import Component, StudyResult

__all__ = ["decide", "rescore"]


def decide(folder: str | Path, output: str | Path, decision: str | Mapping[str, Any] | None = None, *,
           settings: Iterable[str] = (), cell: str | Sequence[str] = "*", phases: bool = True, pay: bool = False,
           components: Sequence[type[Component]] = (), yes: bool = False) -> StudyResult:
    """Decide the recorded debates in a directory by another rule, as a new study, like `madplug decide`.

    output: the new study's directory. decision: a name, or a table with `use`. settings: `KEY=VALUE` for
    every cell. cell: a pattern of names, or several. phases: keep what followed the decision. pay: make calls that are
    not on record; without it, the first one is a `UserError`, and nothing is left in `output`. components: classes that
    the study or `decision` names by their class names, as for `madplug.run`. Raises `UserError`.
    """
    from madplug_redecide.again import decided_again, result_of
    from madplug_redecide.commands import changes_of

    patterns = [cell] if isinstance(cell, str) else list(cell)
    ready = decided_again(Path(folder), Path(output), changes_of(decision, settings), patterns, phases=phases, pay=pay,
                          components=components, yes=yes)
    return result_of(ready, Path(output))


def rescore(folder: str | Path, metrics: str | Sequence[str | Mapping[str, Any]] = (), *,
            components: Sequence[type[Component]] = (), yes: bool = False) -> StudyResult:
    """Score the recorded debates in a directory again, in place, like `madplug rescore`.

    metrics: names, or tables with `use`, or one name; without any, all of the study's. components: classes that the
    study or `metrics` name by their class names, as for `madplug.run`. Raises `UserError`.
    """
    from madplug_redecide.again import result_of, scored_again

    names = [metrics] if isinstance(metrics, str) else list(metrics)
    return result_of(scored_again(Path(folder), names, components=components, yes=yes), Path(folder))


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
