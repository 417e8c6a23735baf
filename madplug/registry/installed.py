"""Installed plugins, found by their entry points, and the components they offer.

A plugin is loaded when a name asks for it: `consensus.majority` loads the plugin `consensus` and no other.
Only `madplug list`, a bare name and an unknown name load them all. A plugin that does not load, or offers something
invalid, becomes a problem with its distribution and version; the others are not affected.
"""

from __future__ import annotations

import gc
import inspect
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, partial
from importlib.util import find_spec
from operator import ge, gt, le, lt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import importlib_metadata

from madplug import hookspecs
from madplug._version import __version__
from madplug.errors import Problem, UserError, message_of, nearest
from madplug.text import a

if TYPE_CHECKING:  # a command of a plugin needs no component, and these are half of what `madplug --help` would cost
    from madplug.components import Component, Observer

_BROKEN = (Exception, SystemExit)
"""What importing a third-party module may raise without affecting the others."""
_ON_HOST = re.compile(r"\s*madplug(?![\w.-]*\w)", re.IGNORECASE)
"""A requirement of madplug, and not of one of its plugins."""
_BOUND = re.compile(r"\s*(>=|<=|>|<)\s*(\d+(?:\.\d+)*)\s*", re.ASCII)
_WITHIN: dict[str, Callable[[Any, Any], bool]] = {">=": ge, "<=": le, ">": gt, "<": lt}
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Offer:
    """A component that an installed distribution offers."""

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


@dataclass(frozen=True, slots=True)
class Source:
    """Where a plugin comes from."""

    plugin: str
    load: Any
    distribution: str
    version: str
    module: str = ""
    requires: Callable[[], Iterable[str] | None] = tuple
    """The declared requirements of the distribution; read when the plugin is loaded."""

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"

    @property
    def place(self) -> str:
        """The plugin as it is called in problems."""
        return f"{self}: plugin '{self.plugin}'"


class Registry:
    """The plugins of this environment, loaded as they are needed.

    classes: components of a Python session, which can be named by their class names.
    """

    def __init__(self, sources: Iterable[Source] | None = None, classes: Sequence[type[Component]] = ()) -> None:
        self._session = self._from_session(classes) if classes else []
        self.problems: list[Problem] = []
        self._sources: dict[str, Source] = {}
        self._modules: dict[str, Any] = {}
        self._taken: set[str] = set()
        self._offers: dict[tuple[str, str], Offer] = {}
        self._manager = hookspecs.HookManager("madplug")
        self._manager.add_hookspecs(hookspecs)
        by_name: dict[str, list[Source]] = defaultdict(list)
        for source in installed() if sources is None else sources:
            by_name[source.plugin].append(source)
        self.disabled = frozenset(filter(None, os.environ.get("MADPLUG_DISABLE", "").replace(",", " ").split()))
        for plugin, claims in sorted(by_name.items()):
            if len(claims) > 1:
                both = " and ".join(sorted(map(str, claims)))
                self.problems.append(Problem(plugin, f"claimed by {both}; neither is loaded: uninstall one of them"))
            elif plugin not in self.disabled:
                self._sources[plugin] = claims[0]

    def find(self, kind: str, name: str) -> Offer:
        """The component of this kind and name, full or bare. Raises `UserError` with the nearest name."""
        own = [o for o in self._session if o.kind == kind and name in (o.name, o.component.__name__)]
        if own:
            return own[-1]
        plugin, dot, _ = name.partition(".")
        if dot:
            self._load(plugin)
            if offer := self._offers.get((kind, name)):
                return offer
        candidates = [o for o in self.offers(kind) if not dot and o.name.rpartition(".")[2] == name]
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            raise UserError(f"'{name}' is offered by several plugins: {', '.join(o.name for o in candidates)}; "
                            "write one of these")
        raise UserError(self._unknown(kind, name, plugin if dot else ""))

    def offers(self, kind: str | None = None) -> list[Offer]:
        """Every component installed, by kind in the order of the hooks and then by name."""
        from madplug.components import KINDS

        self.load_all()
        order = {base.kind: i for i, base in enumerate(KINDS.values())}
        found = (o for o in self._offers.values() if kind in (None, o.kind))
        return sorted(found, key=lambda o: (order[o.kind], o.name))

    def named(self, name: str) -> list[Offer]:
        """Every component of this name, of any kind; otherwise all of the plugin or the distribution of this name."""
        self._load(name.partition(".")[0])
        found = [o for (_, full), o in self._offers.items() if full == name]
        found = found or [o for o in self.offers() if name in (o.name, o.name.rpartition(".")[2])]
        return found or self.of_plugin(name)

    def of_plugin(self, name: str) -> list[Offer]:
        """Every component of a plugin, or of a distribution."""
        plain = name.lower().replace("_", "-")
        return [o for o in self.offers() if name == o.name.partition(".")[0] or plain == o.distribution.lower()]

    @property
    def plugin_names(self) -> list[str]:
        """The installed plugins, including those that do not load."""
        return list(self._sources)

    def load_all(self) -> None:
        """Load every plugin, without garbage collection in between, since what is imported stays."""
        collecting = gc.isenabled()
        gc.disable()
        try:
            for plugin in self._sources:
                self._load(plugin)
        finally:
            if collecting:
                gc.enable()

    def add_commands(self, cli: Any) -> None:
        """Let every plugin that has commands add them to the program; the others are not loaded."""
        self._call_each("madplug_register_commands", "cannot add its commands", lambda function: function(cli))

    def hints(self, folder: Path) -> list[str]:
        """What plugins suggest to do with a study that has been run; those that suggest nothing are not loaded."""
        found: list[str] = []
        self._call_each("madplug_register_hints", "cannot suggest what to do next",
                        lambda function: found.extend(map(str, function(folder) or ())))
        return found

    def progress(self) -> list[Observer]:
        """What plugins show the progress of a study on that this process runs."""
        found: list[Observer] = []
        self._call_each("madplug_register_progress", "cannot show the progress",
                        lambda function: found.extend(function() or ()))
        return found

    def _call_each(self, hook: str, failure: str, call: Callable[[Callable[..., Any]], object]) -> None:
        """Load the plugins that implement a hook, and call each; one that fails is a problem."""
        for plugin, source in self._sources.items():
            if _mentions(source.module, hook):
                self._module(plugin)
        for implementation in getattr(self._manager.hook, hook).get_hookimpls():
            try:
                call(implementation.function)
            except _BROKEN as error:
                place = self._sources[implementation.plugin_name].place
                self.problems.append(Problem(place, f"{failure}: {message_of(error)}"))

    def source(self, plugin: str) -> Source | None:
        """The distribution behind a plugin."""
        return self._sources.get(plugin)

    @staticmethod
    def _from_session(classes: Sequence[type[Component]]) -> list[Offer]:
        from madplug.registry.local import from_session

        return from_session(classes)

    @property
    def plugins(self) -> tuple[Any, ...]:
        """The plugins loaded so far."""
        return tuple(p for _, p in self._manager.list_name_plugin())

    def _unknown(self, kind: str, name: str, plugin: str) -> str:
        known = [*(o.component.__name__ for o in self._session if o.kind == kind), *(o.name for o in self.offers(kind))]
        label = a(label_of(kind))
        if name.startswith("python:"):
            return (f"'{name}' was defined in a Python session; run the study there, with "
                    f"madplug.run(..., components=[{name.partition(':')[2]}])")
        if other := next((o for o in self._session if name in (o.name, o.component.__name__)), None):
            return f"'{name}' is {a(label_of(other.kind))}, not {label}"
        elsewhere = [a(label_of(o.kind)) for o in self.offers() if o.name == name]
        if elsewhere:
            return f"'{name}' is {' and '.join(elsewhere)}, not {label}{nearest(name, known)}"
        if plugin in self.disabled:
            return f"the plugin '{plugin}' is disabled by MADPLUG_DISABLE"
        broken = [p for p in self.problems if p.place.endswith(f"'{plugin}'") or p.place == plugin]
        if broken:
            return f"'{name}' cannot be used: {broken[0]}"
        missing = "" if plugin in self._sources or not plugin else \
            f"; if it is an installable plugin: pip install madplug-{plugin}"
        return f"no installed plugin offers {label} '{name}'{nearest(name, known) or missing}"

    def _module(self, plugin: str) -> Any:
        """The plugin, imported and registered, or None if it cannot be loaded."""
        source = self._sources.get(plugin)
        if source is None or plugin in self._modules:
            return self._modules.get(plugin)
        self._modules[plugin] = None
        try:
            if other := _for_another(source):
                self.problems.append(Problem(source.place, other))
                return None
            module = source.load()
            self._manager.register(module, plugin)
        except _BROKEN as error:
            self.problems.append(Problem(source.place, f"does not load: {message_of(error)}"))
            return None
        self.problems += [Problem(source.place, text) for text in _misspelt(module)]
        self._modules[plugin] = module
        return module

    def _load(self, plugin: str) -> None:
        """Take what a plugin offers."""
        from madplug.components import KINDS

        if plugin in self._taken:
            return
        self._taken.add(plugin)
        module = self._module(plugin)
        bases = {f"madplug_register_{plural}": base for plural, base in KINDS.items()}
        for caller in (self._manager.get_hookcallers(module) or ()) if module else ():
            base = bases.get(caller.name)
            for implementation in caller.get_hookimpls() if base else ():
                if implementation.plugin is module and base:
                    self._take(base, implementation.function, self._sources[plugin])

    def _take(self, base: type[Component], offered: Any, source: Source) -> None:
        try:
            given = offered()
            if inspect.isclass(given) or not isinstance(given, Iterable):
                what = f"the class {given.__qualname__}" if inspect.isclass(given) else repr(given)[:80]
                raise TypeError(f"returned {what}; expected a list of classes")
            classes = list(given)
        except _BROKEN as error:
            self.problems.append(Problem(source.place, f"{offered.__name__} raised {message_of(error)}"))
            return
        for cls in classes:
            wrong = _unfit(cls, base)
            name = f"{source.plugin}.{getattr(cls, 'name', '?')}"
            if not wrong and (base.kind, name) in self._offers:
                wrong = f"offers two {base.label}s named '{name}'"
            if wrong:
                self.problems.append(Problem(source.place, wrong))
                continue
            self._offers[base.kind, name] = Offer(base.kind, name, cls, source.distribution, source.version)


def label_of(kind: str) -> str:
    """A kind as it is called in a sentence."""
    from madplug.components import KINDS

    return next(base.label for base in KINDS.values() if base.kind == kind)


def installed() -> Iterator[Source]:
    """The plugins that installed distributions declare."""
    try:
        return iter([_source(point) for point in importlib_metadata.entry_points(group="madplug")])
    except Exception:  # those of one distribution, which need not be a plugin, cannot be read
        return _one_by_one()


def _source(point: importlib_metadata.EntryPoint) -> Source:
    if (found := point.dist) is None:
        return Source(point.name, point.load, "?", "?", point.module)
    name, version, requires = _facts(found)
    # An object of a module may have been imported there: its source says nothing.
    return Source(point.name, point.load, name, version, "" if point.attr else point.module, requires)


def _one_by_one() -> Iterator[Source]:
    """The plugins of each distribution; one that declares plugins which cannot be read is a plugin that fails to load.

    Takes longer, since the name of every distribution is read from its metadata.
    """
    seen: set[str] = set()
    for found in importlib_metadata.distributions():
        name, version, _ = _facts(found)
        if name in seen - {"?"}:
            continue  # the first one on the path is the one that is imported
        seen.add(name)
        try:
            yield from map(_source, found.entry_points.select(group="madplug"))
        except Exception as error:
            if _declares_plugins(found):
                yield Source(name, partial(_fail, error), name, version)


def _declares_plugins(found: importlib_metadata.Distribution) -> bool:
    try:
        return "[madplug]" in (found.read_text("entry_points.txt") or "")
    except (OSError, ValueError):
        return False


def _fail(error: Exception) -> None:
    raise error


def _facts(found: importlib_metadata.Distribution) -> tuple[str, str, Callable[[], Iterable[str] | None]]:
    """Name, version and requirements of a distribution, from the headers of its metadata.

    Reading all of it as a mail message, as importlib_metadata does for each of the three, takes longer than importing
    a plugin.
    """
    headers: dict[str, list[str]] = defaultdict(list)
    try:
        for line in (found.read_text("METADATA") or "").split("\n\n", 1)[0].splitlines():
            field, _, value = line.partition(": ")
            headers[field].append(value)
        if headers["Name"] and headers["Version"]:
            return headers["Name"][0], headers["Version"][0], lambda: headers["Requires-Dist"]
        return found.name, found.version, lambda: found.requires
    except Exception:  # its metadata is gone, as after an uninstall that was interrupted
        return "?", "?", lambda: found.requires


def _for_another(source: Source) -> str | None:
    """Why a plugin is not loaded: its distribution requires another version of madplug."""
    for text in source.requires() or ():
        if _ON_HOST.match(text) and (unmet := _unmet(text)):
            specifier, newer = unmet
            return (f"is built for madplug {specifier}, and this is {__version__}; "
                    f"pip install --upgrade {'madplug' if newer else source.distribution}")
    return None


@cache
def _unmet(text: str) -> tuple[str, bool] | None:
    """The versions of madplug that are required, and whether they are newer; None if this one is among them."""
    if _plainly_met(text):
        return None
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.version import Version

    try:
        need = Requirement(text)
    except InvalidRequirement:
        return None
    if need.marker or need.specifier.contains(__version__, prereleases=True):
        return None
    lowest = [Version(s.version) for s in need.specifier if s.operator in (">=", ">", "~=")]
    return str(need.specifier), any(version > Version(__version__) for version in lowest)


def _plainly_met(text: str) -> bool:
    """Whether this version is within bounds that are plain numbers, as in `madplug>=0.1,<0.2`.

    Everything else is left to `packaging`, whose import costs as much as that of ten plugins.
    """
    bounds = [_BOUND.fullmatch(part) for part in _ON_HOST.sub("", text, count=1).split(",")]
    own = _BOUND.fullmatch(f">={__version__}")
    return own is not None and all(b and _WITHIN[b[1]](_release(own[2]), _release(b[2])) for b in bounds)


def _release(number: str) -> tuple[int, ...]:
    """A release's numbers, to be compared; 0.1 and 0.1.0 are the same release."""
    numbers = [int(part) for part in number.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def _mentions(module: str, word: str) -> bool:
    """Whether a module's source contains a word; a hook that is not named in it is not implemented in it."""
    try:
        spec = find_spec(module)
        text = Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else word
        return word in text or "import *" in text
    except _BROKEN:  # not to be read as text: loading it will tell
        return True


def _misspelt(module: Any) -> Iterator[str]:
    """Hooks that do not exist, and hook functions that are not marked."""
    known = [name for name in vars(hookspecs) if name.startswith("madplug_register_")]
    for name in dir(module):
        if not name.startswith("madplug_"):
            continue
        marked = getattr(getattr(module, name), "madplug_impl", None) is not None
        if name not in known and (marked or callable(getattr(module, name))) and "." not in name \
                and not inspect.ismodule(getattr(module, name)):
            yield f"implements the hook '{name}', which does not exist{nearest(name, known)}"
        elif name in known and not marked:
            yield f"'{name}' is not marked with @hookimpl, so it is never called"


def _unfit(cls: Any, base: type[Component]) -> str | None:
    """Why what a plugin offers cannot be a component of this kind."""
    if wrong := kind_problem(cls, base):
        return wrong
    name = getattr(cls, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return f"{cls.__qualname__} has the name {name!r}; expected lower_snake_case"
    if wrong := class_problem(cls):
        return wrong
    return None if cls.__doc__ or sys.flags.optimize > 1 else \
        f"{cls.__qualname__} has no docstring; its first sentence is what `madplug list` shows"


def kind_problem(cls: Any, base: type[Component]) -> str | None:
    """Why something is not a component of this kind, or None."""
    if inspect.isclass(cls) and issubclass(cls, base):
        return None
    what = cls.__qualname__ if inspect.isclass(cls) else _brief(cls)
    return f"offers {what} as {a(base.label)}; expected a subclass of madplug.{base.__name__}"


def _brief(value: Any) -> str:
    """A value in a few words; an object whose own code cannot say what it is by its type."""
    try:
        return repr(value)[:80]
    except Exception:
        return f"an object of type {type(value).__qualname__}"


def class_problem(cls: Any) -> str | None:
    """Why a class cannot be a component of its kind, whatever it is called, or None."""
    if missing := sorted(cls.__abstractmethods__):
        return f"{cls.__qualname__} does not implement {', '.join(missing)}"
    for words in ("needs", "gives", "moves"):
        value: Any = getattr(cls, words, frozenset())
        if isinstance(value, str) or not isinstance(value, Set) or not all(isinstance(word, str) for word in value):
            return f"{cls.__qualname__}.{words} is {value!r:.80}; expected a set of strings, such as {{'agreement'}}"
    return _unfit_options(cls) or _unfit_events(cls)


def _unfit_options(cls: type[Component]) -> str | None:
    from madplug.options import Options

    if not (inspect.isclass(cls.Options) and issubclass(cls.Options, Options)):
        return f"{cls.__qualname__}.Options is {cls.Options!r:.80}; expected a subclass of madplug.Options"
    return None


def _unfit_events(cls: type[Component]) -> str | None:
    """A method that looks like one that an observer is told an event by, but is not."""
    from madplug.components import Observer
    from madplug.events import METHODS

    if not issubclass(cls, Observer):
        return None
    for name in (n for n in dir(cls) if not n.startswith("_") and not hasattr(Observer, n)):
        if found := get_close_matches(name, METHODS.values(), n=1, cutoff=0.8):
            return f"{cls.__qualname__}.{name} is called by no event; did you mean '{found[0]}'?"
    return None


def versions(offers: Iterable[Offer]) -> Mapping[str, dict[str, str]]:
    """Distribution and version by full component name, for the manifest; for a local file, its name and a hash."""
    return {f"{o.kind} {o.name}": {"distribution": o.distribution, "version": o.version} for o in offers}
