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

    from madplug.components import (
        AnswerFormat,
        Casting,
        Component,
        Dataset,
        DecisionProtocol,
        Executor,
        Extension,
        Metric,
        Model,
        Observer,
        Paradigm,
        PersonaGenerator,
        Phase,
        Service,
        Style,
        TurnOrder,
        Visibility,
    )

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


@hookspec
def madplug_register_models() -> Iterable[type[Model]]:  # type: ignore[empty-body]
    """Register models: what answers a request. In the run file: `[models.NAME]`.

    Return classes. Every implementation is called. Shipped: `madplug-openai`.
    """


@hookspec
def madplug_register_services() -> Iterable[type[Service]]:  # type: ignore[empty-body]
    """Register services: retrievers, embedders, sandboxes. In the run file: `[services.NAME]`.

    Return classes. Every implementation is called. Shipped: `madplug-embeddings`.
    """


@hookspec
def madplug_register_datasets() -> Iterable[type[Dataset]]:  # type: ignore[empty-body]
    """Register data sets: where questions and references come from. In the run file: `[dataset]`.

    Return classes. Every implementation is called. Shipped: `madplug-files`.
    """


@hookspec
def madplug_register_answers() -> Iterable[type[AnswerFormat]]:  # type: ignore[empty-body]
    """Register answer formats: extraction, canonical form, equality. In the run file: `[answers]`.

    Return classes. Every implementation is called. Shipped: `madplug-answers`.
    """


@hookspec
def madplug_register_personas() -> Iterable[type[PersonaGenerator]]:  # type: ignore[empty-body]
    """Register persona generators. In the run file: `[[debate.personas]]`.

    Return classes. Every implementation is called. Shipped: `madplug-personas`.
    """


@hookspec
def madplug_register_castings() -> Iterable[type[Casting]]:  # type: ignore[empty-body]
    """Register castings: which model plays which persona. In the run file: `[debate.casting]`.

    Return classes. Every implementation is called. Shipped: `madplug-casting`.
    """


@hookspec
def madplug_register_styles() -> Iterable[type[Style]]:  # type: ignore[empty-body]
    """Register styles: how a turn is prompted and its reply read. In the run file: `[[debate.styles]]`.

    Return classes. Every implementation is called. Shipped: `madplug-styles`.
    """


@hookspec
def madplug_register_turn_orders() -> Iterable[type[TurnOrder]]:  # type: ignore[empty-body]
    """Register turn orders: which agent is asked for which move, and when. In the run file: `[debate.turns]`.

    Return classes. Every implementation is called. Shipped: `madplug-turns`.
    """


@hookspec
def madplug_register_visibilities() -> Iterable[type[Visibility]]:  # type: ignore[empty-body]
    """Register visibilities: which messages an agent is shown, in which order. In the run file: `[debate.visibility]`.

    Return classes. Every implementation is called. Shipped: `madplug-visibility`.
    """


@hookspec
def madplug_register_decisions() -> Iterable[type[DecisionProtocol]]:  # type: ignore[empty-body]
    """Register decision protocols: how a debate is decided. In the run file: `[debate.decision]`.

    Return classes. Every implementation is called. Shipped: `madplug-consensus`.
    """


@hookspec
def madplug_register_phases() -> Iterable[type[Phase]]:  # type: ignore[empty-body]
    """Register phases: what follows the decision. In the run file: `[[debate.phases]]`.

    Return classes. Every implementation is called. Shipped: `madplug-challenge`.
    """


@hookspec
def madplug_register_metrics() -> Iterable[type[Metric]]:  # type: ignore[empty-body]
    """Register metrics: what is measured on a debate. In the run file: `[[metrics]]`.

    Return classes. Every implementation is called. Shipped: `madplug-qa`.
    """


@hookspec
def madplug_register_extensions() -> Iterable[type[Extension]]:  # type: ignore[empty-body]
    """Register extensions: what wraps the steps of a debate. In the run file: `[[extensions]]`.

    Return classes. Every implementation is called. Shipped: `madplug-visibility`.
    """


@hookspec
def madplug_register_observers() -> Iterable[type[Observer]]:  # type: ignore[empty-body]
    """Register observers: what receives the events of a run and changes nothing. In the run file: `[[observers]]`.

    Return classes. Every implementation is called.
    """


@hookspec
def madplug_register_paradigms() -> Iterable[type[Paradigm]]:  # type: ignore[empty-body]
    """Register paradigms: presets of a `[debate]` table. In the run file: `debate.paradigm`.

    Return classes. Every implementation is called. Shipped: `madplug-baselines`.
    """


@hookspec
def madplug_register_executors() -> Iterable[type[Executor]]:  # type: ignore[empty-body]
    """Register executors: where debates run. In the run file: `[execution]`.

    Return classes. Every implementation is called.
    """


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
    """Show the progress of a study that `madplug.run` runs, where there is no terminal: in a notebook, say.

    Return observers that fit where the program runs, or nothing. Every implementation is called, unless the run is
    quiet. Shipped: `madplug-read`.
    """


@hookspec
def madplug_register_hints(folder: Path) -> Iterable[str]:  # type: ignore[empty-body]
    """Suggest what to do with a study that has just been run: the last lines that `madplug run` prints.

    folder: the study's directory, as the user wrote it. Return short lines, such as a command that opens the study, or
    nothing. Every implementation is called. Shipped: `madplug-view`.
    """
