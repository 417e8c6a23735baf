"""Makes components from the tables of a run file: looks up names, validates options, makes nested components first.

Nothing is run and no model is asked; a model or a data set that is not named is not made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from madplug.component import Component, NestedField, field_of, nested_fields
from madplug.config.problems import problems_of, unfilled
from madplug.config.shape import Table
from madplug.errors import ComponentError, Problem, UserError, message_of, nearest_or_all
from madplug.kinds import Model, Service
from madplug.options import Naming, naming
from madplug.registry.installed import Registry
from madplug.registry.local import is_file_reference, load_from_file
from madplug.registry.offers import Offer
from madplug.rows import to_json
from madplug.services import lacks
from madplug.text import a


@dataclass
class Made:
    """What all cells of a study have in common: the registry, and the components that they share."""

    registry: Registry
    folder: Path | None
    """The folder of the run file; without one, for tables that others may have written, no local file is executed."""
    offers: dict[tuple[str, str], Offer] = field(default_factory=dict)
    """Everything that was looked up, by kind and full name."""
    models: dict[str, Model] = field(default_factory=dict)
    """By their names in the study: those of the run file; where cells give one name different options, with these."""
    shared: dict[str, Component] = field(default_factory=dict)
    """Components that several cells have in common, by kind and slot."""
    first_slots: dict[str, Table] = field(default_factory=dict)
    """The first options that a name of the run file stands for."""
    model_names: dict[tuple[str, str], str] = field(default_factory=dict)
    """Those names, by the name in the run file and the table as JSON."""


class Builder:
    """Makes the components of one cell, or those of the study; collects problems instead of raising the first."""

    def __init__(self, made: Made, tables: Mapping[str, Mapping[str, Table]]) -> None:
        self.made = made
        self.tables = tables
        """The cell's tables of every kind that has tables by name, such as `models`."""
        self.problems: list[Problem] = []
        self.named: dict[str, dict[str, Any]] = {}
        """The components that options name, other than models: by the key of their kind, then by name."""
        self.named_models: set[str] = set()
        """The models that options name."""
        self.places: dict[int, str] = {}
        """Where each component is in the run file, by its id."""

    def problem(self, place: str, message: str) -> None:
        """Add a problem."""
        self.problems.append(Problem(place, message))

    def make(self, base: type[Any], slot: Any, place: str) -> Any:
        """The component that a slot describes, or None after adding a problem."""
        slot = {"use": slot} if isinstance(slot, str) else slot
        name = slot.get("use") if isinstance(slot, Mapping) else None
        if not isinstance(name, str):
            self.problem(place, f"does not name {a(base.label)}; add use = \"...\" (madplug list {base.kind} shows "
                         "what is installed)")
            return None
        offer = self.find(base, name, place)
        if offer is None:
            return None
        options = self._options(offer, {k: v for k, v in slot.items() if k != "use"}, place)
        if options is None:
            return None
        try:
            made = offer.component.from_slot(options, full_name=offer.name)
            if ":" in offer.name:
                made.written_as, made.content = offer.written_as or offer.name, offer.version
        except (Exception, SystemExit) as error:
            self.problem(place, f"{offer.name} cannot be made: {message_of(error)}")
            return None
        self.places[id(made)] = place
        return made

    def make_list(self, base: type[Component], slots: Sequence[Table], place: str) -> list[Any]:
        """The components of a list of slots."""
        made = [self.make(base, slot, f"{place}[{i}]") for i, slot in enumerate(slots)]
        return [m for m in made if m is not None]

    def make_once(self, base: type[Any], slot: Table, place: str) -> Any:
        """A component that all cells with the same slot share."""
        key = f"{base.kind} {to_json(slot)}"
        if key not in self.made.shared and (made := self.make(base, slot, place)) is not None:
            self.made.shared[key] = made
        found = self.made.shared.get(key)
        self.places.setdefault(id(found), place)
        return found

    def make_model(self, name: str, slot: Table) -> str | None:
        """Make a model unless another cell has made it; return its name in the study."""
        names, key = self.made.model_names, (name, to_json(slot))
        if key not in names and (model := self.make(Model, slot, f"models.{name}")) is not None:
            first = self.made.first_slots.setdefault(name, slot)
            apart = [f"{k}={to_json(v)}" for k, v in slot.items() if k not in first or to_json(first[k]) != to_json(v)]
            apart += [f"no {k}" for k in first if k not in slot]
            names[key] = f"{name} ({', '.join(apart)})" if apart else name
            self.made.models[names[key]] = model
        return names.get(key)

    def find(self, base: type[Component], name: str, place: str) -> Offer | None:
        """The offer behind a name, or None after adding a problem."""
        try:
            if not is_file_reference(name):
                offer = self.made.registry.find(base.kind, name)
            elif self.made.folder is None:
                raise UserError(f"'{name}' is in a local file, and files are not executed to read a study")
            else:
                offer = load_from_file(name, self.made.folder, base)
        except UserError as error:
            self.problem(place, str(error))
            return None
        self.made.offers[offer.kind, offer.name] = offer
        return offer

    # Options

    def _options(self, offer: Offer, values: Table, place: str) -> Any:
        kind = offer.component.Options
        ready, broken = dict(values), False
        try:
            nested = nested_fields(kind)
        except ComponentError as error:
            self.problem(place, str(error))
            return None
        for one in nested:
            given = values.get(one.option, kind.model_fields[one.option].get_default(call_default_factory=True))
            if (one.many and isinstance(given, list | tuple)) or isinstance(given, str | Mapping):
                ready[one.option] = self._nested(one, given, f"{place}.{one.option}")
                broken = broken or ready[one.option] is None
        try:
            options = kind.model_validate(ready, context={"folder": self.made.folder})
        except ValidationError as error:
            unmade = {f"{place}.{name}" for name, value in ready.items() if value is None and name in values}
            self.problems += (p for p in problems_of(error, place, kind, offer.name) if p.place not in unmade)
            return None
        except (Exception, SystemExit) as error:  # of a validator, which may only raise ValueError and AssertionError
            self.problem(place, f"{offer.name}: checking its options failed: {message_of(error)}")
            return None
        self.problems += unfilled(options, place)
        self._resolve_names(options, place)
        return None if broken else options

    def _nested(self, one: NestedField, given: Any, place: str) -> Any:
        """The component, or the list of components, of an option; None if one cannot be made."""
        if one.base in (Model, Service) or one.base.how_many == "none":  # of the study, not of this option
            self.problem(place, f"{a(one.base.label)} cannot be nested in an option; name one instead")
            return None
        if not one.many:
            return given if isinstance(given, Component) else self.make(one.base, given, place)
        made = [self.make(one.base, slot, f"{place}[{i}]") for i, slot in enumerate(given)]
        return None if None in made else made

    def _resolve_names(self, options: Any, place: str) -> None:
        """Look up the models, services and other named tables that options name, which are then in use."""
        for one in naming(type(options)):
            for name in one.names(options):
                where = f"{place}.{one.option}"
                base = self.made.registry.kinds.get(one.kind)
                if base is None or base.how_many != "named":
                    self.problem(where, f"names a table of the kind '{one.kind}', which no installed plugin has")
                elif name not in (tables := self.tables.get(field_of(base), {})):
                    self.problem(where, f"there is no [{field_of(base)}.{name}]{nearest_or_all(name, tables)}")
                elif base is Model:
                    self.named_models.add(name)
                else:
                    self._make_named(base, name, tables[name])
                    self._check_protocol(base, one, name, where)

    def _make_named(self, base: type[Component], name: str, slot: Table) -> None:
        """Make the component of a table that an option names; all cells share a service, and so what it loads."""
        found = self.named.setdefault(field_of(base), {})
        if name not in found:
            make = self.make_once if base is Service else self.make
            found[name] = make(base, slot, f"{field_of(base)}.{name}")

    def _check_protocol(self, base: type[Component], one: Naming, name: str, place: str) -> None:
        found = self.named[field_of(base)][name]
        if found is not None and one.protocol is not None and (missing := lacks(type(found), one.protocol)):
            what = one.protocol.__name__
            methods = " and ".join(f"'{method}'" for method in missing)
            others = [o.name for o in self.made.registry.offers(base.kind) if not lacks(o.component, one.protocol)]
            self.problem(place, f"[{field_of(base)}.{name}] uses '{found.full_name}', which is not {a(what)}: it has "
                         f"no async method {methods}; {base.label}s that are: "
                         f"{', '.join(others) or 'none is installed'}")
