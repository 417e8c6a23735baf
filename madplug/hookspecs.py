"""What a distribution can offer: one registration hook per kind of component.

A plugin is a module named by an entry point in the group `madplug`. It offers components by implementing
the hooks below with `@hookimpl`; each returns classes and is called once, when the plugin is first needed.
Registering a component does nothing by itself: only what a run file names takes part in a debate.

What happens *in* a run is in `runspecs.py`; the two files together are every hook there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from pathlib import Path

    import click

    from madplug.component import Component
    from madplug.components import Observer

hookspec = pluggy.HookspecMarker("madplug")
hookimpl = pluggy.HookimplMarker("madplug")


class HookManager(pluggy.PluginManager):
    """Considers only what is marked with `@hookimpl`; pluggy itself inspects every attribute, which is slow."""

    monitored = False
    """Whether every call of a hook is reported somewhere."""

    def add_hookcall_monitoring(self, before: Any, after: Any) -> Callable[[], None]:
        """Report every call of a hook, as in pluggy."""
        self.monitored = True
        return super().add_hookcall_monitoring(before, after)

    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        """The options a function or method is marked with as an implementation of a hook, or None."""
        found = getattr(plugin if isinstance(plugin, ModuleType) else type(plugin), name, None)
        return None if getattr(found, "madplug_impl", None) is None else super().parse_hookimpl_opts(plugin, name)


_KINDS = {
    "models": ("Model", "models: what answers a request", "[models.NAME]", "openai"),
    "services": ("Service", "services: retrievers, embedders, sandboxes", "[services.NAME]", "embeddings"),
    "datasets": ("Dataset", "data sets: where questions and references come from", "[dataset]", "files"),
    "answers": ("AnswerFormat", "answer formats: extraction, canonical form, equality", "[answers]", "answers"),
    "personas": ("PersonaGenerator", "persona generators", "[[debate.personas]]", "personas"),
    "castings": ("Casting", "castings: which model plays which persona", "[debate.casting]", "casting"),
    "styles": ("Style", "styles: how a turn is prompted and its reply read", "[[debate.styles]]", "styles"),
    "turn_orders": ("TurnOrder", "turn orders: which agent is asked for which move", "[debate.turns]", "turns"),
    "visibilities": ("Visibility", "visibilities: what an agent is shown", "[debate.visibility]", "visibility"),
    "decisions": ("DecisionProtocol", "decision protocols: how a debate is decided", "[debate.decision]", "consensus"),
    "phases": ("Phase", "phases: what follows the decision", "[[debate.phases]]", "challenge"),
    "metrics": ("Metric", "metrics: what is measured on a debate", "[[metrics]]", "qa"),
    "extensions": ("Extension", "extensions: what wraps the steps of a debate", "[[extensions]]", "visibility"),
    "observers": ("Observer", "observers: what receives the events of a run and changes nothing", "[[observers]]", ""),
    "paradigms": ("Paradigm", "paradigms: presets of a `[debate]` table", "debate.paradigm", "baselines"),
    "executors": ("Executor", "executors: where debates run", "[execution]", ""),
}
"""The host's kinds of component by the last part of the hook's name: base class, meaning, table, who ships one."""


def _register(plural: str, base: str, what: str, table: str, shipped: str) -> Any:
    def hook() -> Iterable[type[Component]]: ...  # type: ignore[empty-body]

    hook.__name__ = hook.__qualname__ = f"madplug_register_{plural}"
    hook.__annotations__["return"] = f"Iterable[type[{base}]]"
    more = f" Shipped: `madplug-{shipped}`." if shipped else ""
    hook.__doc__ = (f"Register {what}. In the run file: `{table}`.\n\n"
                    f"Return classes. Every implementation is called.{more}")
    return hookspec(hook)


globals().update({f"madplug_register_{plural}": _register(plural, *facts) for plural, facts in _KINDS.items()})


@hookspec
def madplug_register_components() -> Iterable[type[Component]]:  # type: ignore[empty-body]
    """Register components of the kinds that plugins define, and these kinds. In the run file: the `slot` of the kind.

    A kind is a subclass of `madplug.Component` with `kind`, `plural`, `label`, `slot` and `how_many`; it is known once
    it, or a component that inherits from it, is registered. Return classes. Every implementation is called.
    """


@hookspec
def madplug_register_commands(cli: click.Group) -> None:
    """Add commands to the `madplug` program, or options to its commands.

    cli: the click group to add them to; `cli.commands["run"]` is a command to add options to, such as a short form of
    `--observe NAME`, which appends to the parameter `observers`. Return nothing. Every implementation is called.
    Shipped: `madplug-report`, `madplug-shards`.
    """


@hookspec
def madplug_register_progress() -> Iterable[Observer]:  # type: ignore[empty-body]
    """Show the progress of a study that `madplug run` or `madplug.run` runs: on the terminal, or in a notebook.

    Return observers that fit where the program runs, or nothing. Every implementation is called, unless the run is
    quiet. Shipped: `madplug-read`.
    """


@hookspec
def madplug_register_hints(folder: Path) -> Iterable[str]:  # type: ignore[empty-body]
    """Tell what to look at in a study that has just been run: the last lines that `madplug run` and the like print.

    folder: the study's directory, as the user wrote it. Return short lines, such as a command that opens the study, or
    nothing. Every implementation is called. Shipped: `madplug-view`, `madplug-read`.
    """
