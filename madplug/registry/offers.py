"""Components on offer, and the checks of the classes that plugins, files and Python sessions bring."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from madplug.component import Component, code_of, field_of
from madplug.errors import nearest
from madplug.events import METHODS
from madplug.kinds import Observer
from madplug.options import Options
from madplug.text import a

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
RESERVED = frozenset({
    "agents", "cells", "channels", "dataset_key", "debate", "limits", "match", "models", "more", "name",
    "on_failed_agent", "oracle", "paradigm", "quorum", "repeats", "reuse",
    "rounds", "seed", "settings", "share_completions", "slug", "study_cells", "sweep"})
"""Keys of a run file and fields of a cell: no slot of a plugin's kind can have their names."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A component that can be named in a run file."""

    kind: str
    name: str
    """In full: `plugin.component`."""
    component: type[Component]
    distribution: str
    version: str
    written_as: str = ""
    """How a run file names it, if not by its full name: the path of a local file, and the class in it."""

    @property
    def summary(self) -> str:
        """The first sentence of the component's docstring."""
        text = " ".join(inspect.cleandoc(self.component.__doc__ or "").split("\n\n")[0].split())
        return re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0]


def versions(offers: Iterable[Offer]) -> Mapping[str, dict[str, str]]:
    """Distribution, version and a hash of the code by full component name, for the manifest.

    For a local file, its name and a hash.
    """
    return {f"{o.kind} {o.name}": {"distribution": o.distribution, "version": o.version,
                                   **({} if ":" in o.name else {"code": code_of(o.component.__module__)})}
            for o in offers}


def component_problem(cls: type[Component]) -> str | None:
    """Why a class that a plugin offers cannot be a component of its kind, or None."""
    name = getattr(cls, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return f"{cls.__qualname__} has the name {name!r}; expected lower_snake_case"
    if wrong := class_problem(cls):
        return wrong
    return None if cls.__doc__ or sys.flags.optimize > 1 else \
        f"{cls.__qualname__} has no docstring; its first sentence is what `madplug list` shows"


def kind_problem(cls: Any, base: type[Component]) -> str | None:
    """Why something is not a component of this kind, or of any if it is `Component`, or None."""
    if inspect.isclass(cls) and issubclass(cls, base):
        return None
    what, module = getattr(cls, "__qualname__", f"{cls!r:.80}"), base.__module__.partition(".")[0]
    label = "component" if base is Component else base.label
    return f"offers {what} as {a(label)}; expected a subclass of {module}.{base.__name__}"


def class_problem(cls: Any) -> str | None:
    """Why a class cannot be a component of its kind, whatever it is called, or None."""
    if missing := sorted(cls.__abstractmethods__):
        return f"{cls.__qualname__} does not implement {', '.join(missing)}"
    for words in ("needs", "gives", "moves"):
        value: Any = getattr(cls, words, frozenset())
        if isinstance(value, str) or not isinstance(value, Set) or not all(isinstance(word, str) for word in value):
            return f"{cls.__qualname__}.{words} is {value!r:.80}; expected a set of strings, such as {{'agreement'}}"
    if not (inspect.isclass(cls.Options) and issubclass(cls.Options, Options)):
        return f"{cls.__qualname__}.Options is {cls.Options!r:.80}; expected a subclass of madplug.Options"
    return _method_problem(cls) if issubclass(cls, Observer) else None


def _method_problem(cls: type[Component]) -> str | None:
    """A method of an observer whose name resembles that of an event handler."""
    for name in (n for n in dir(cls) if not n.startswith("_") and not hasattr(Observer, n)):
        if found := get_close_matches(name, METHODS.values(), n=1, cutoff=0.8):
            return f"{cls.__qualname__}.{name} is called by no event; did you mean '{found[0]}'?"
    return None


def misspelt(owner: object, known: Collection[str]) -> Iterator[str]:
    """Hooks of a plugin's module or of a class that do not exist or are not marked. known: names of hooks there."""
    for name in (n for n in dir(owner) if n.startswith("madplug_")):
        value = getattr(owner, name)
        marked = getattr(value, "madplug_impl", None)
        hook = marked["specname"] or name if marked else name
        if hook not in known and (marked or inspect.isroutine(value)):
            yield f"implements the hook '{hook}', which does not exist{nearest(hook, known)}"
        elif hook in known and not marked:
            yield f"'{hook}' is not marked with @hookimpl, so it is never called"


def new_kind_problem(base: type[Component], known: Iterable[type[Component]]) -> str | None:
    """Why a plugin's class cannot be a kind of component beside the known ones, or None."""
    who = base.__qualname__
    words = {name: getattr(base, name, None) for name in ("kind", "plural", "label", "slot")}
    if odd := [name for name, word in words.items() if not isinstance(word, str) or not word]:
        return f"{who} is a kind of component without {' and '.join(odd)}"
    if base.how_many not in ("one", "list", "named"):
        return f"{who}.how_many is {base.how_many!r}; expected 'one', 'list' or 'named'"
    shape = r"{}\.NAME" if base.how_many == "named" else r"(debate\.)?{}"
    if not re.fullmatch(shape.format(_NAME.pattern), base.slot) or field_of(base) in RESERVED:
        return f"{who}.slot is '{base.slot}', which cannot be a table of the run file for this kind; expected, for " \
               f"instance, '{base.plural}{'.NAME' if base.how_many == 'named' else ''}'"
    if base.of_study:
        return f"{who}.of_study is true; a plugin's kind belongs to the cells of a study"
    for other in known:
        if base.kind == other.kind or base.plural == other.plural or field_of(base) == field_of(other):
            return (f"{who} is a kind '{base.kind}' with the table [{base.slot}], which cannot be told from "
                    f"{other.__module__}.{other.__qualname__}")
    return None
