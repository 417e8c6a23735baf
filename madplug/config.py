"""From a run file to a study: presets, components and options, and every problem at once.

Nothing runs here and no model is asked. A component named in the file is looked up and made; a model or a data
set that is not named is not touched.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from madplug.cell import BoundStyle, Cell
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
    Names,
    Paradigm,
    PersonaGenerator,
    Phase,
    Service,
    Style,
    TurnOrder,
    Visibility,
)
from madplug.errors import Problem, UserError, nearest
from madplug.gateway import Limits, component_to_table
from madplug.registry import Offer, Registry
from madplug.rows import to_json
from madplug.runfile import (
    LISTS,
    SLOTS,
    CellTable,
    RunTable,
    Table,
    cells,
    overlay,
    problems_of,
    read,
    secrets,
)
from madplug.study import StudyPlan

S = TypeVar("S", bound=BaseModel)


@dataclass
class ResolvedStudy:
    """A run file, resolved: what to run, and what is kept about where it came from."""

    plan: StudyPlan
    table: Table
    """The run file after its layers were merged."""
    offers: dict[tuple[str, str], Offer] = field(default_factory=dict)
    datasets: dict[str, Dataset] = field(default_factory=dict)
    recorded_from: Any = None
    """The identity of the study whose debates are decided again."""

    @property
    def identity(self) -> dict[str, Any]:
        """What makes two runs the same study."""
        plan = self.plan
        return {"seed": plan.seed, "repeats": plan.repeats, "share_completions": plan.share_completions,
                "oracle": any(cell.oracle for cell in plan.cells), "recorded_from": self.recorded_from,
                "data": {key: d.fingerprint() for key, d in self.datasets.items()},
                "cells": {c.slug: resolved(c, plan.models, volatile=False) for c in plan.cells}}


def load(path: Path, settings: Sequence[str] = (), registry: Registry | None = None) -> ResolvedStudy:
    """The study that a run file describes. Raises `UserError` with every problem of every cell."""
    return Resolver(read(path, settings), path.parent, registry or Registry()).resolve()


class Resolver:
    """Resolves one run file; collects problems instead of stopping at the first."""

    def __init__(self, table: Table, folder: Path, registry: Registry, *, recorded: bool = False) -> None:
        self.recorded = recorded
        """The samples come from a record, so a data set need not be named."""
        self.table = table
        self.folder = folder
        self.registry = registry
        self.offers: dict[tuple[str, str], Offer] = {}
        self._shared: dict[str, Component] = {}
        self._lines: dict[str, Model] = {}
        self._datasets: dict[str, Dataset] = {}

    def resolve(self) -> ResolvedStudy:
        """Everything, or every problem."""
        problems = list(secrets(self.table))
        run, self.table = validate_lenient(RunTable, self.table, problems, "a run file")
        found: list[Cell] = []
        by_cell: dict[str, list[Problem]] = {}
        for slug, settings, table in cells(self.table):
            resolver = CellResolver(self, slug, settings, run.oracle)
            cell = resolver.cell(table)
            by_cell[slug] = resolver.problems
            if cell is not None:
                found.append(cell)
        problems += _merged(by_cell)
        problems += _matches(found)
        limits = Limits(**run.limits.model_dump())
        if limits.cost_usd is not None:
            problems += self._unpriced()
        executor = self._executor(run, problems)
        if problems:
            raise UserError(list(dict.fromkeys(problems)))
        plan = StudyPlan(run.name or "study", found, dict(self._lines), run.seed, run.repeats, run.share_completions,
                         limits, executor)
        return ResolvedStudy(plan, self.table, self.offers, self._datasets)


    def _unpriced(self) -> Iterator[Problem]:
        for name, model in self._lines.items():
            if model.price is None:
                yield Problem("limits.cost_usd", f"the price of model '{name}' is unknown, so its cost cannot be "
                              f"limited; give models.{name}.price = {{prompt = ..., completion = ...}} (USD per "
                              "million tokens), or limit calls or tokens instead")

    def _executor(self, run: RunTable, problems: list[Problem]) -> Executor | None:
        if run.execution is None:
            return None
        maker = CellResolver(self, "", {}, run.oracle)
        made: Executor | None = maker.make(Executor, run.execution, "execution")
        problems += maker.problems
        return made

    def line(self, name: str, slot: Table) -> str:
        """The study's name for a model: the run file's, unless cells give one name different options."""
        for key, model in self._lines.items():
            if key.partition("#")[0] == name and self._shared.get(f"model {to_json([name, slot])}") is model:
                return key
        same = sum(key.partition("#")[0] == name for key in self._lines)
        return name if not same else f"{name}#{same + 1}"


class CellResolver:
    """Resolves one cell."""

    def __init__(self, parent: Resolver, slug: str, settings: Mapping[str, Any], oracle: bool) -> None:
        self.parent = parent
        self.slug = slug
        self.settings = settings
        self.oracle = oracle
        self.problems: list[Problem] = []
        self._table = CellTable()
        self._named: set[str] = set()
        self._services: dict[str, Service] = {}
        self._places: dict[int, str] = {}
        self._preset_missing = False

    def problem(self, place: str, message: str) -> None:
        """Note a problem."""
        self.problems.append(Problem(place, message))

    def cell(self, table: Table) -> Cell | None:
        """The cell, or None when something is wrong with it."""
        debate = table.get("debate", {})
        debate = self._expand(debate) if isinstance(debate, Mapping) else debate
        self._table, _ = validate_lenient(CellTable, {**table, "debate": debate}, self.problems, "a cell")
        dataset = self._dataset()
        parts = self._debate_parts()
        parts["answers"] = self._answers(dataset)
        parts["extensions"] = self._list(Extension, self._table.extensions, "extensions")
        parts["metrics"] = self._metrics()
        models = self._agent_models()
        lines = {name: self._model(name) for name in sorted(self._named | set(models or self._table.models))}
        if self.problems:
            return None
        match = self._table.match.model_dump() if self._table.match else None
        cell = Cell(slug=self.slug, dataset=dataset, dataset_key=to_json(self._table.dataset or {}), models=models,
                    channels={k: v for k, v in lines.items() if v}, services=self._services, settings=self.settings,
                    oracle=self.oracle, match=match, **parts)
        for component in cell.components():
            self._check_hooks(component)
        self._check(cell)
        return None if self.problems else cell

    # Presets

    def _expand(self, debate: Mapping[str, Any]) -> Table:
        """`[debate]` with its paradigm's slots filled in; what the file says wins."""
        name = debate.get("paradigm")
        if not isinstance(name, str):
            return dict(debate)
        offer = self._find("paradigm", name, "debate.paradigm")
        self._preset_missing = offer is None
        own = {k: v for k, v in debate.items() if k != "paradigm"}
        if offer is None or not issubclass(offer.component, Paradigm):
            return own
        expanded: Table = overlay(dict(offer.component.debate), own)
        return expanded

    # Parts

    def _debate_parts(self) -> dict[str, Any]:
        debate = self._table.debate
        parts: dict[str, Any] = {"agents": debate.agents, "rounds": debate.rounds or 1}
        one: dict[str, type[Component]] = {"turns": TurnOrder, "visibility": Visibility,
                                           "decision": DecisionProtocol, "casting": Casting}
        for slot in SLOTS:
            value = getattr(debate, slot)
            if value is None and slot != "casting" and not self._preset_missing:
                self.problem(f"debate.{slot}", "is required: name a component, or a paradigm that fills it")
            parts[slot] = self.make(one[slot], value, f"debate.{slot}") if value is not None else None
        many: dict[str, type[Component]] = {"personas": PersonaGenerator, "phases": Phase}
        for slot in LISTS:
            values = getattr(debate, slot) or []
            parts[slot] = self._styles(values) if slot == "styles" else self._list(many[slot], values, f"debate.{slot}")
        if not debate.styles and not self._preset_missing:
            self.problem("debate.styles", "is required: name a style, or a paradigm that fills it")
        return parts

    def _styles(self, slots: Sequence[Table]) -> list[BoundStyle]:
        bound = []
        for i, slot in enumerate(slots):
            only = slot.get("for")
            style = self.make(Style, {k: v for k, v in slot.items() if k != "for"}, f"debate.styles[{i}]")
            if style is not None:
                only = None if only is None else tuple(only if isinstance(only, list) else [only])
                bound.append(BoundStyle(style, full_name(style), only))
        return bound

    def _list(self, base: type[Component], slots: Sequence[Table], place: str) -> list[Any]:
        made = [self.make(base, slot, f"{place}[{i}]") for i, slot in enumerate(slots)]
        return [m for m in made if m is not None]

    def _metrics(self) -> dict[str, Metric]:
        made: dict[str, Metric] = {}
        for metric in self._list(Metric, self._table.metrics, "metrics"):
            name = full_name(metric)
            twice = sum(key.partition("#")[0] == name for key in made)
            made[f"{name}#{twice + 1}" if twice else name] = metric
        return made

    def _dataset(self) -> Dataset | None:
        slot = self._table.dataset
        if slot is None and self.parent.recorded:
            return None
        if slot is None:
            self.problem("dataset", "is required: where the questions come from")
            return None
        dataset: Dataset | None = self._once(Dataset, slot, "dataset")
        if dataset is not None:
            self.parent._datasets[to_json(slot)] = dataset
        return dataset

    def _answers(self, dataset: Dataset | None) -> AnswerFormat | None:
        slot = self._table.answers
        if slot is None and dataset is not None:
            default = dataset.answers
            slot = {"use": default} if isinstance(default, str) else dict(default) if default else None
            if slot is None:
                self.problem("answers", f"is required: {full_name(dataset)} has no answer format of its own; "
                             "for instance answers = \"answers.choice\"")
        return self.make(AnswerFormat, slot, "answers") if slot else None

    def _agent_models(self) -> tuple[str, ...]:
        named, known = self._table.debate.models, list(self._table.models)
        if named is None:
            if len(known) > 1:
                others = [n for n in known if n not in self._named]
                if len(others) > 1:
                    self.problem("debate.models", f"name the models the agents use, of {', '.join(known)}")
                return tuple(others)
            return tuple(known)
        for i, name in enumerate(named):
            if name not in known:
                self.problem(f"debate.models[{i}]", f"there is no [models.{name}]{nearest(name, known)}")
        return tuple(n for n in named if n in known)

    def _model(self, name: str) -> str | None:
        slot = self._table.models.get(name)
        if slot is None:
            return None
        key = f"model {to_json([name, slot])}"
        if key not in self.parent._shared:
            line = self.parent.line(name, slot)
            model = self.make(Model, slot, f"models.{name}")
            if model is None:
                return None
            self.parent._shared[key] = self.parent._lines[line] = model
        return next(line for line, model in self.parent._lines.items() if model is self.parent._shared[key])

    # One component

    def make(self, base: type[Any], slot: Table, place: str) -> Any:
        """The component a slot describes, or None after noting what is wrong."""
        kind = base.kind
        name = slot.get("use")
        if not isinstance(name, str):
            self.problem(place, f"names no component; add use = \"...\" (madplug list {kind} shows what there is)")
            return None
        offer = self._find(kind, name, place)
        if offer is None:
            return None
        cls, values = offer.component, {k: v for k, v in slot.items() if k != "use"}
        try:
            options = cls.Options.model_validate(values, context={"folder": self.parent.folder})
        except ValidationError as error:
            self.problems += problems_of(error, place, cls.Options.model_fields, offer.name)
            return None
        self._resolve_names(options, place)
        try:
            made = cls(options)
        except Exception as error:
            self.problem(place, f"{offer.name} cannot be made: {error}")
            return None
        made.full_name = offer.name  # type: ignore[attr-defined]
        self._places[id(made)] = place
        return made

    def _once(self, base: type[Any], slot: Table, place: str) -> Any:
        """A component that all cells with the same slot share."""
        key = f"{base.kind} {to_json(slot)}"
        if key not in self.parent._shared:
            made = self.make(base, slot, place)
            if made is None:
                return None
            self.parent._shared[key] = made
        return self.parent._shared[key]

    def _find(self, kind: str, name: str, place: str) -> Offer | None:
        try:
            offer = self.parent.registry.find(kind, name)
        except UserError as error:
            self.problem(place, str(error))
            return None
        self.parent.offers[offer.kind, offer.name] = offer
        return offer

    def _resolve_names(self, options: Any, place: str) -> None:
        """Options that name a model or a service: the table must be there, and is then in use."""
        for option, kind in naming(type(options)):
            value = getattr(options, option)
            for name in [value] if isinstance(value, str) else list(value or ()):
                tables = self._table.models if kind == "model" else self._table.services
                if name not in tables:
                    self.problem(f"{place}.{option}", f"there is no [{kind}s.{name}]{nearest(name, tables)}")
                elif kind == "model":
                    self._named.add(name)
                elif name not in self._services:
                    service = self._once(Service, tables[name], f"services.{name}")
                    if service is not None:
                        self._services[name] = service

    # What fits together

    def _check(self, cell: Cell) -> None:
        if cell.agents is None and not any(g.count for g in cell.personas):
            self.problem("debate.agents", "is required: how many agents debate")
            return
        if len(cell.personas) > cell.wanted:
            self.problem("debate.personas", f"{len(cell.personas)} generators for {cell.wanted} agents; each makes one")
        missing = sorted(m for m in cell.turns.moves if not any(m in s.style.moves for s in cell.styles))
        for move in missing:
            written = sorted({m for s in cell.styles for m in s.style.moves})
            self.problem("debate.styles", f"no style writes the move '{move}' that {full_name(cell.turns)} asks for "
                         f"(they write {', '.join(written) or 'none'})")
        components = cell.components()
        given = frozenset().union(*(c.gives for c in components)) | ({"references"} if cell.oracle else set())
        models = [self.parent._lines[line] for line in cell.channels.values()]
        for component in (*components, *models):
            place = self._places.get(id(component), component.kind)
            for need in sorted(component.needs - given):
                hint = "say oracle = true at the top of the run file to allow it; every result is then marked" \
                    if need == "references" else "which no component of this cell gives"
                self.problem(place, f"{full_name(component)} needs '{need}', {hint}"
                             if need != "references" else f"{full_name(component)} reads the references; {hint}")
            for message in component.check(cell):
                self.problem(place, message)

    def _check_hooks(self, component: Component) -> None:
        from madplug import runspecs

        known = {name: spec for name, spec in vars(runspecs).items() if name.startswith("madplug_")}
        place, who = self._places.get(id(component), component.kind), full_name(component)
        for name in (n for n in dir(type(component)) if n.startswith("madplug_")):
            method = getattr(type(component), name)
            marked = getattr(method, "madplug_impl", None)
            name = marked["specname"] or name if marked else name
            if name not in known:
                self.problem(place, f"{who} implements the hook '{name}', which does not exist{nearest(name, known)}")
            elif marked is None:
                self.problem(place, f"{who}: '{name}' is not marked with @hookimpl, so it is never called")
            elif marked["wrapper"] and name in runspecs.EVENTS:
                self.problem(place, f"{who}: the hook '{name}' is an event, which nobody wraps; drop wrapper=True")
            else:
                given = list(inspect.signature(known[name]).parameters)
                for argument in _asked(component, method):
                    if argument not in given:
                        self.problem(place, f"{who}: the hook '{name}' has no argument '{argument}'; it has "
                                     f"{', '.join(given)}")


def _asked(component: Component, method: Any) -> list[str]:
    """The arguments a hook of a component must be given: those without a default, but for `self`."""
    static = isinstance(inspect.getattr_static(component, method.__name__), staticmethod)
    parameters = list(inspect.signature(method).parameters.values())[0 if static else 1:]
    return [p.name for p in parameters if p.default is p.empty]


def naming(options: type[Any]) -> Iterator[tuple[str, str]]:
    """(option, kind) of the options whose values name tables of the run file."""
    for name, info in options.model_fields.items():
        marks = [m for m in (*info.metadata, *_marks(info.annotation)) if isinstance(m, Names)]
        if marks:
            yield name, marks[0].kind


def _marks(annotation: Any) -> Iterator[Any]:
    for part in get_args(annotation):
        yield part
        yield from _marks(part)


def full_name(component: Component) -> str:
    """The name a run file gives a component."""
    name: str = getattr(component, "full_name", component.name)
    return name


def resolved(cell: Cell, models: Mapping[str, Model], *, volatile: bool = True) -> Table:
    """The cell as a run file could spell it, with every name in full and every option.

    Without `volatile`, only what makes two runs the same study.
    """
    def spell(component: Component) -> Table:
        return component_to_table(component, volatile=volatile)

    debate: Table = {slot: spell(getattr(cell, slot)) for slot in SLOTS if getattr(cell, slot) is not None}
    debate["styles"] = [{**spell(s.style), **({"for": list(s.only)} if s.only is not None else {})}
                        for s in cell.styles]
    debate |= {slot: [spell(c) for c in getattr(cell, slot)] for slot in ("personas", "phases")}
    debate |= {"agents": cell.wanted, "rounds": cell.rounds, "models": list(cell.models)}
    table: Table = {
        "debate": debate, "dataset": spell(cell.dataset) if cell.dataset else None,
        "answers": spell(cell.answers), "extensions": [spell(e) for e in cell.extensions],
        "metrics": [spell(m) for m in cell.metrics.values()],
        "models": {name: spell(models[line]) for name, line in cell.channels.items()},
        "services": {name: spell(s) for name, s in cell.services.items()}}
    return {**table, "match": dict(cell.match)} if cell.match else table


def _merged(by_cell: Mapping[str, Sequence[Problem]]) -> Iterator[Problem]:
    """Problems that all cells share once, the others with the cell they belong to."""
    common = set.intersection(*(set(p) for p in by_cell.values())) if by_cell else set()
    seen: set[Problem] = set()
    for slug, problems in by_cell.items():
        for problem in problems:
            if problem not in common:
                yield Problem(f"cell '{slug}': {problem.place}", problem.message)
            elif problem not in seen:
                seen.add(problem)
                yield problem


def _matches(found: Sequence[Cell]) -> Iterator[Problem]:
    by_slug = {cell.slug: cell for cell in found}
    for cell in found:
        if cell.match is None:
            continue
        other = by_slug.get(cell.match["cell"])
        if other is None:
            yield Problem(f"cell '{cell.slug}': match.cell",
                          f"there is no cell '{cell.match['cell']}'{nearest(cell.match['cell'], by_slug)}")
        elif other.dataset_key != cell.dataset_key:
            yield Problem(f"cell '{cell.slug}': match.cell",
                          f"'{other.slug}' has another data set, so there are no equal samples to match")
        elif other.match is not None:
            yield Problem(f"cell '{cell.slug}': match.cell", f"'{other.slug}' is itself matched to another cell")


def validate_lenient(kind: type[S], table: Table, problems: list[Problem], what: str) -> tuple[S, Table]:
    """The table in its shape, and the table without what did not fit: one mistake must not hide the others."""
    try:
        return kind.model_validate(table), table
    except ValidationError as error:
        problems += problems_of(error, "", _known(error, list(kind.model_fields)), what)
        for found in error.errors(include_input=False):
            table = _without(table, found["loc"][:-1] if found["type"] == "missing" else found["loc"])
        return validate_lenient(kind, table, problems, what)


def _without(table: Any, place: Sequence[str | int]) -> Any:
    """A copy of a nested table without one value."""
    first, *rest = place or ("",)
    if isinstance(table, Mapping):
        return {k: _without(v, rest) if k == first else v for k, v in table.items() if k != first or rest}
    if isinstance(table, list):
        return [_without(v, rest) if i == first else v for i, v in enumerate(table) if i != first or rest]
    return None


def _known(error: ValidationError, top: Sequence[str]) -> list[str]:
    """Names that could have been meant: the top level's and those of the tables below."""
    from madplug.runfile import DebateTable, LimitsTable, Match

    tables: dict[str, type[BaseModel]] = {"debate": DebateTable, "limits": LimitsTable, "match": Match}
    first = {str(e["loc"][0]) for e in error.errors() if len(e["loc"]) > 1}
    return [*top, *(f for name in first if name in tables for f in tables[name].model_fields)]


__all__ = ["ResolvedStudy", "Resolver", "full_name", "load", "naming", "resolved"]
