"""Installed plugins, found by their entry points, and the components they offer.

A plugin is loaded when a name asks for it: `consensus.majority` loads the plugin `consensus` and no other.
Only `madplug list`, a bare name and an unknown name load them all. A plugin that does not load, or offers something
invalid, becomes a problem with its distribution and version; the others are not affected.
"""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import importlib_metadata as metadata

from madplug import hookspecs
from madplug._version import __version__
from madplug.component import Component, kind_of
from madplug.errors import Problem, UserError, listed, message_of, nearest
from madplug.kinds import HOST_KINDS, Observer
from madplug.registry.local import from_session
from madplug.registry.offers import Offer, component_problem, kind_problem, misspelt, new_kind_problem
from madplug.text import a, safe

_BROKEN = (Exception, SystemExit)
"""What importing a third-party module may raise without affecting the others."""
_OF_HOST = re.compile(r"madplug(?![\w.-])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a plugin comes from."""

    plugin: str
    load: Any
    distribution: str
    version: str
    requires: Sequence[str] = ()
    """The declared requirements of the distribution."""

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
        self.kinds: dict[str, type[Component]] = {base.kind: base for base in HOST_KINDS}
        """The kinds of component by name: the host's own, and then those of the plugins loaded so far."""
        self.problems: list[Problem] = []
        self._sources: dict[str, Source] = {}
        self._loaded: set[str] = set()
        self._added: set[str] = set()
        """The plugins that have added their commands."""
        self._offers: dict[tuple[str, str], Offer] = {}
        self._manager = hookspecs.HookManager()
        for offer in from_session(classes):
            self.kinds.setdefault(offer.kind, kind_of(offer.component))
            self._offers |= {(offer.kind, name): offer for name in (offer.name, offer.component.__name__)}
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

    # What is on offer

    def find(self, kind: str, name: str) -> Offer:
        """The component of this kind and name, full or bare. Raises `UserError` with the nearest name."""
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
        raise UserError(self._unknown(kind, name))

    def offers(self, kind: str | None = None) -> list[Offer]:
        """Every component installed, by kind and then by name."""
        self.load_all()
        found = {o for o in self._offers.values() if kind in (None, o.kind)}
        return sorted(found, key=lambda o: ([*self.kinds].index(o.kind), o.name))

    def named(self, name: str) -> list[Offer]:
        """Every component of this name, of any kind; otherwise all of the plugin or the distribution of this name."""
        self._load(name.partition(".")[0])  # alone, if it has the name in full
        found = [o for (_, full), o in self._offers.items() if full == name]
        found = found or [o for o in self.offers() if name in (o.name, o.name.rpartition(".")[2])]
        return found or self.of_plugin(name)

    def of_plugin(self, name: str) -> list[Offer]:
        """Every component of a plugin, or of a distribution."""
        plain = name.lower().replace("_", "-")
        return [o for o in self.offers() if name == o.name.partition(".")[0] or plain == o.distribution.lower()]

    def listing(self, of: str | None = None) -> dict[str, Any]:
        """Components and problems of a kind or plugin (else `UserError`), or all, as `madplug list --json` prints them.

        of: a kind, as `decision` or `decisions`, or the name of a plugin or a distribution.
        """
        self.load_all()
        known = {spelling: base.kind for base in self.kinds.values()
                 for spelling in (base.kind, base.plural, base.label, f"{base.label}s")}
        found = self.of_plugin(of) if of and of not in known else self.offers(known.get(of or ""))
        if of and not found and of not in (every := [*known, *self.plugin_names]):
            raise UserError(f"there is no kind or plugin '{of}'{nearest(of, every)}; "
                            f"kinds are {', '.join(dict.fromkeys(known.values()))}")
        return {"components": [{"kind": o.kind, "name": o.name, "distribution": o.distribution, "version": o.version,
                                "summary": o.summary} for o in found],
                "problems": [str(p) for p in self.problems]}

    @property
    def plugin_names(self) -> list[str]:
        """The installed plugins, including those that do not load."""
        return list(self._sources)

    def _unknown(self, kind: str, name: str) -> str:
        plugin = name.partition(".")[0]
        known = [full for of, full in self._offers if of == kind]
        label = a(self.kinds[kind].label)
        if name.startswith("python:"):
            return (f"'{name}' was defined in a Python session; run the study there, with "
                    f"madplug.run(..., components=[{name.partition(':')[2]}])")
        if labels := " and ".join(a(self.kinds[of].label) for of, full in self._offers if full == name):
            return f"'{name}' is {labels}, not {label}{nearest(name, known)}"
        if why := self.unusable(name):
            return why
        own = [full for full in known if full.startswith(f"{plugin}.")]  # rather than another plugin's nearer name
        plugins = (full.partition(".")[0] for full in known)
        near = "" if name == plugin and len(own) > 1 else nearest(name, own or [*known, *plugins])
        near = near or (f"; '{plugin}' offers {listed(own)}" if own else "")
        return f"no installed plugin offers {label} '{name}'{self.installable(name)}{near}"

    def unusable(self, name: str) -> str:
        """Why an installed plugin, or `plugin.name`, cannot be used; empty if it can be, or is not installed."""
        plugin = name.partition(".")[0]
        if plugin in self.disabled:
            return f"the plugin '{plugin}' is disabled by MADPLUG_DISABLE"
        broken = [p for p in self.problems if p.place.endswith(f"'{plugin}'") or p.place == plugin]
        return f"'{name}' cannot be used: {broken[0]}" if broken else ""

    def installable(self, name: str) -> str:
        """How the plugin of `plugin.name` may be installed, as the end of a message; empty if it is installed."""
        plugin = name.rpartition(".")[0]
        missing = plugin.isidentifier() and plugin not in self._sources
        return f"; if it is an installable plugin: pip install madplug-{plugin}" if missing else ""

    # What plugins add to the program

    def add_commands(self, cli: Any, plugin: str | None = None) -> None:
        """Let a plugin, or every one, that has commands add them to the program, once."""
        for name in self._sources if plugin is None else [plugin]:
            if name not in self._added:
                self._added.add(name)
                self._call_each("madplug_register_commands", "cannot add its commands", cli, plugins=[name])

    def results(self, summary: Mapping[str, Any]) -> str:
        """The status of a study that has been run, and what plugins show of its results."""
        shown = self._call_each("madplug_register_results", "cannot show the results", summary)
        return safe("\n\n".join([f"{summary['study']}: {summary['status']}", *map(str, shown)]))

    def hints(self, folder: Path) -> list[str]:
        """What plugins suggest to do with a study that has been run."""
        return list(map(str, self._call_each("madplug_register_hints", "cannot suggest what to do next", folder)))

    def progress(self) -> list[Observer]:
        """What plugins show the progress of a study on, where this process runs."""
        return self._call_each("madplug_register_progress", "cannot show the progress")

    def _call_each(self, hook: str, failure: str, *arguments: Any, plugins: Collection[str] | None = None) -> list[Any]:
        """What every plugin that implements a hook gives, or those of these; one that fails is a problem."""
        found: list[Any] = []
        plugins = self._sources if plugins is None else plugins
        for plugin in plugins:
            self._load(plugin)
        for implementation in getattr(self._manager.hook, hook).get_hookimpls():
            try:
                if implementation.plugin_name in plugins:
                    found += implementation.function(*arguments) or ()
            except _BROKEN as error:
                place = self._sources[implementation.plugin_name].place
                self.problems.append(Problem(place, f"{failure}: {message_of(error)}"))
        return found

    # Loading

    def load_all(self) -> None:
        """Load every plugin."""
        for plugin in self._sources:
            self._load(plugin)

    def _load(self, plugin: str) -> None:
        """Import and register a plugin, and take what it offers; one that cannot be loaded is a problem."""
        source = self._sources.get(plugin)
        if source is None or plugin in self._loaded:
            return
        self._loaded.add(plugin)
        try:
            if other := _for_another(source):
                self.problems.append(Problem(source.place, other))
                return
            module = source.load()
            self._manager.register(module, plugin)
        except _BROKEN as error:
            self.problems.append(Problem(source.place, f"does not load: {message_of(error)}"))
            return
        self.problems += [Problem(source.place, text) for text in misspelt(module, hookspecs.REGISTRATION_HOOKS)]
        bases = {f"madplug_register_{base.plural}": base for base in HOST_KINDS}
        bases["madplug_register_components"] = Component
        for caller in self._manager.get_hookcallers(module) or ():
            for implementation in caller.get_hookimpls() if caller.name in bases else ():
                if implementation.plugin is module:
                    self._take(bases[caller.name], implementation.function, source)

    def _take(self, base: type[Component], offered: Any, source: Source) -> None:
        """Take the classes that a registration hook returns; those of a plugin's own kind bring their kind along."""
        try:
            classes = list(offered())
        except _BROKEN as error:
            self.problems.append(Problem(source.place, f"{offered.__name__} raised {message_of(error)}"))
            return
        for cls in classes:
            if wrong := kind_problem(cls, base) or self._add(cls, kind_of(cls), source):
                self.problems.append(Problem(source.place, wrong))

    def _add(self, cls: type[Component], base: type[Component], source: Source) -> str | None:
        """Take a kind or a component, or say why it cannot be taken."""
        if base is Component:
            return f"{cls.__qualname__} has no kind; inherit from a class that has one"
        if self.kinds.get(base.kind) is not base:
            if wrong := new_kind_problem(base, self.kinds.values()):
                return wrong
            self.kinds[base.kind] = base
        if cls is base:
            return None
        name = f"{source.plugin}.{getattr(cls, 'name', '?')}"
        wrong = component_problem(cls)
        if not wrong and (base.kind, name) in self._offers:
            wrong = f"offers two {base.label}s named '{name}'"
        if not wrong:
            self._offers[base.kind, name] = Offer(base.kind, name, cls, source.distribution, source.version)
        return wrong


# Distributions

def installed() -> Sequence[Source]:
    """The plugins that installed distributions declare."""
    return _installed(tuple((place := entry or os.getcwd(), _changed(place)) for entry in sys.path))


def _changed(place: str) -> int:
    """When something was installed there or removed; 0 where nothing is."""
    try:
        return os.stat(place).st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=4)
def _installed(places: tuple[tuple[str, int], ...]) -> Sequence[Source]:
    """Looked for once: a program makes several registries, and a hundred files are read for each."""
    found = []
    for point in metadata.entry_points(group="madplug"):
        facts: Any = point.dist.metadata  # each of the distribution's own properties would parse it again
        found.append(Source(point.name, point.load, facts["Name"], facts["Version"],
                            facts.get_all("Requires-Dist") or ()))
    return found


def _for_another(source: Source) -> str | None:
    """Why a plugin is not loaded: its distribution requires another version of madplug."""
    from packaging.requirements import Requirement

    for need in map(Requirement, filter(_OF_HOST.match, source.requires)):
        if not need.marker and not need.specifier.contains(__version__, prereleases=True):
            return (f"is built for madplug {need.specifier}, and this is {__version__}; "
                    f"pip install --upgrade madplug {source.distribution}")
    return None
