"""Every hook there is: what a distribution can offer, and what an extension can wrap in a run.

**Registration.** A plugin is a module named by an entry point in the group `madplug`. It offers components by
implementing the hook of their kind with `@hookimpl`, which returns classes and is called once, when the plugin is first
needed. Registering a component does nothing by itself: only what a run file names takes part in a debate.

**In a run.** The extensions named in the run file take part, in its order, and so does every other component of the run
file that has methods marked `@hookimpl`. Each of these hooks asks for one result. The host's own implementation is the
innermost one and delegates to the component chosen in the run file; an extension is a wrapper around it
(`@hookimpl(wrapper=True)`: `result = yield`, then return the result to use). The first extension of the run file is the
innermost wrapper, so its change is applied first and the last one sees, and may change, what all the others have made
of it.

A result may be an awaitable; the host awaits it. A wrapper around an awaitable returns an awaitable of its own, since
a wrapper is a plain generator and cannot await: `return changed(result)`, with `async def changed(result)` that
awaits it (`await maybe_await(result)` where it may be a plain value). An exception fails the debate.

To be notified without changing anything, write an `Observer` instead: its events are in `events.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pluggy

from madplug.component import Component
from madplug.kinds import HOST_KINDS

if TYPE_CHECKING:
    from pathlib import Path

    import click

    from madplug.context import Debate, Sampled, Setup
    from madplug.kinds import Observer
    from madplug.records import Completion, Message, Reply, Request, Review, Turn

hookspec = pluggy.HookspecMarker("madplug")
hookimpl = pluggy.HookimplMarker("madplug")


class HookManager(pluggy.PluginManager):
    """Considers only what is marked with `@hookimpl`; pluggy itself inspects every attribute, which is slow."""

    def __init__(self) -> None:
        super().__init__("madplug")
        self.add_hookspecs(sys.modules[__name__])

    def parse_hookspec_opts(self, module_or_class: Any, name: str) -> pluggy.HookspecOpts | None:
        """The options a function of this module is marked with as a hook, or None."""
        opts: pluggy.HookspecOpts | None = getattr(getattr(module_or_class, name), "madplug_spec", None)
        return opts

    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        """The options a function or method is marked with as an implementation of a hook, or None."""
        found = getattr(plugin if isinstance(plugin, ModuleType) else type(plugin), name, None)
        return None if getattr(found, "madplug_impl", None) is None else super().parse_hookimpl_opts(plugin, name)


@lru_cache(maxsize=1000)
def hooks_of(cls: type[Any]) -> tuple[str, ...]:
    """The names of a class's methods that are marked with `@hookimpl`; most components have none."""
    return tuple(name for name in dir(cls) if hasattr(getattr(cls, name, None), "madplug_impl"))


# Registration

def _registers(base: type[Component]) -> Any:
    def hook() -> Iterable[type[Component]]: ...  # type: ignore[empty-body]

    table = {"named": f"[{base.slot}]", "one": f"[{base.slot}]", "list": f"[[{base.slot}]]", "none": base.slot}
    hook.__name__ = hook.__qualname__ = f"madplug_register_{base.plural}"
    hook.__annotations__["return"] = f"Iterable[type[{base.__name__}]]"
    hook.__doc__ = f"Return subclasses of `{base.__name__}`. In the run file: `{table[base.how_many]}`."
    return hookspec(hook)


globals().update({f"madplug_register_{base.plural}": _registers(base) for base in HOST_KINDS})


@hookspec
def madplug_register_components() -> Iterable[type[Component]]:  # type: ignore[empty-body]
    """Return components of any kind, and kinds that the plugin defines. In the run file: the `slot` of the kind.

    A kind is a subclass of `madplug.Component` with `kind`, `plural`, `label`, `slot` and `how_many`; it is known once
    it, or a component that inherits from it, is registered.
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
def madplug_register_results(summary: Mapping[str, Any]) -> Iterable[str]:  # type: ignore[empty-body]
    """Show the results of a study that has been run: what `madplug run` and the like print below its status, and
    `print` of a `StudyResult`.

    summary: as in `summary.json`. Return paragraphs, as wide as the terminal, or nothing. Every implementation is
    called. Shipped: `madplug-read`.
    """


@hookspec
def madplug_register_hints(folder: Path) -> Iterable[str]:  # type: ignore[empty-body]
    """Tell what to look at in a study that has just been run: the last lines that `madplug run` and the like print.

    folder: the study's directory, as the user wrote it. Return short lines, such as a command that opens the study, or
    nothing. Every implementation is called. Shipped: `madplug-view`, `madplug-read`.
    """


# In a run

@hookspec(firstresult=True)
def madplug_samples(setup: Setup) -> Iterable[Sampled] | Awaitable[Iterable[Sampled]]:  # type: ignore[empty-body]
    """The cell's samples, before the first debate: drop some, reorder them, present one twice.

    setup: what `prepare` gets too. Around: the host's own result is an iterator of (sample, references), as the
    data set streams them; wrap it in a generator rather than a list. A sample presented twice needs a second
    id, and `metadata["pair"]` naming the first: for example, a pair of replies judged in both orders.
    """


@hookspec(firstresult=True)
def madplug_opening(debate: Debate) -> Sequence[Message] | Awaitable[Sequence[Message]]:  # type: ignore[empty-body]
    """What is on record before round 1.

    debate: its agents are known, its transcript is empty. Around: return the messages to record, in order;
    the host gives ids and round 0. Wrapped by `madplug-replay`.
    """


@hookspec(firstresult=True)
def madplug_view(debate: Debate, turn: Turn) -> Sequence[Message]:  # type: ignore[empty-body]
    """The messages an agent is shown for a turn, in order.

    debate: its transcript is the same for every turn of a wave. turn: the turn the view is for. Around: the innermost
    result is the visibility's. Plain: nothing is awaited, and no model is called, here. Wrapped by
    `madplug-visibility`, `madplug-attack`.
    """


@hookspec(firstresult=True)
def madplug_reply(debate: Debate, turn: Turn, view: Sequence[Message]) -> Awaitable[Reply]:  # type: ignore[empty-body]
    """One turn, from the view to what goes on record.

    debate, turn: as for `madplug_view`. view: what the agent is shown. Around: the innermost result awaits
    the style. Wrapped by `madplug-attack`.
    """


@hookspec(firstresult=True)
def madplug_request(debate: Debate, request: Request) -> Request:  # type: ignore[empty-body]
    """A request about to be sent: add a sentence, change a parameter.

    debate: the debate that makes it. request: as the component made it. Around: return the request to send, which is
    also what is stored and looked up in the record. Wrapped by `madplug-som`.
    """


@hookspec(firstresult=True)
def madplug_complete(debate: Debate, request: Request) -> Awaitable[Completion]:  # type: ignore[empty-body]
    """One model call: the last step before the gateway, and the first after it.

    debate: the debate that makes it. request: exactly as it is sent, with every change of `madplug_request`. Around:
    the innermost result takes the completion from the record or awaits the model. A guard checks here, before its
    `yield`, and is the last extension of the run file. Wrapped by `madplug-dynamics`.
    """


@hookspec(firstresult=True)
def madplug_round_ended(debate: Debate) -> Review | Awaitable[Review | None] | None:
    """What happens after a round that the decision protocol has left undecided.

    debate: `debate.round` has ended. Around: the innermost result is None, which leaves the round as it is; return
    a `Review` to retract it, to end the debate, or to put a message on record. The result of an inner extension
    may be None, a `Review`, or an awaitable of either (`await maybe_await(review)`). Wrapped by
    `madplug-som`, `madplug-judge`.
    """


REGISTRATION_HOOKS: Mapping[str, Callable[..., Any]] = {
    name: hook for name, hook in globals().items() if name.startswith("madplug_register_")}
RUN_HOOKS: Mapping[str, Callable[..., Any]] = {
    name: hook for name, hook in globals().items() if name.startswith("madplug_") and name not in REGISTRATION_HOOKS}
"""The hooks of a run by name; those above offer components."""
