"""From a run file to a study: all cells, or all problems of all cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from madplug.component import Component, field_of, kind_of
from madplug.config.build import Builder, Made
from madplug.config.check import check_cell, check_matches, check_own, merge
from madplug.config.plan import StudyPlan
from madplug.config.problems import secrets
from madplug.config.read import Settings, cells, overlay, read, unreached, validate_lenient
from madplug.config.shape import CellSettings, Limits, Match, Table, slots, tables
from madplug.debate.cell import BoundStyle, Cell
from madplug.errors import Problem, UserError, listed, nearest_or_all
from madplug.kinds import HOST_KINDS, AnswerFormat, Dataset, Executor, Metric, Observer, Paradigm, Style
from madplug.registry.installed import Registry
from madplug.registry.offers import Offer
from madplug.rows import plain, to_json
from madplug.store import has_study
from madplug.text import a


@dataclass
class ResolvedStudy:
    """A resolved run file: what to run, and what is recorded about its origin."""

    plan: StudyPlan
    table: Table
    """The run file after merging its layers."""
    offers: dict[tuple[str, str], Offer] = field(default_factory=dict)
    """The components that the file names, by kind and full name, with distribution and version."""
    recorded_from: Any = None
    """The identity of the study whose debates are decided again, or None."""
    reuse: tuple[Path, ...] = ()
    """The directories of other studies whose answered calls are used."""
    output: Path | None = None
    """The directory that the user names for it."""

    @property
    def part(self) -> str:
        """The name of the part of the study that its executor runs, or "" for all of it."""
        return self.plan.executor.part if self.plan.executor is not None else ""

    @property
    def folder(self) -> Path:
        """The study's directory."""
        return self.output or Path("runs") / (f"{self.plan.name}.{self.part}" if self.part else self.plan.name)

    @property
    def identity(self) -> dict[str, Any]:
        """What makes two runs the same study: what is debated and how.

        Not part of it: the name, observers, execution, limits, volatile options, and the location of files. The
        content of a data set is recorded sample by sample, so that a study can be resumed after a sample is corrected.
        """
        plan = self.plan
        return {"seed": plan.seed, "repeats": plan.repeats, "share_completions": plan.share_completions,
                "oracle": any(cell.oracle for cell in plan.cells), "recorded_from": self.recorded_from,
                "cells": {c.slug: cell_to_table(c, plan, volatile=False) for c in plan.cells}}

    def expanded(self) -> Table:
        """The run file with every full name and every option, as stored in `study.toml`.

        Resolving it again gives an equal study. Observers, execution and limits belong to a run and are left out.
        """
        plan = self.plan
        table: Table = _without_none(plain({
            "name": plan.name, "seed": plan.seed, "repeats": plan.repeats, "share_completions": plan.share_completions,
            "oracle": any(cell.oracle for cell in plan.cells),
            "cells": [{"name": c.slug, **cell_to_table(c, plan)} for c in plan.cells]}))
        return table


def _without_none(value: Any) -> Any:
    """A value as TOML has it, where an option that is None is left out."""
    if isinstance(value, dict):
        return {k: _without_none(v) for k, v in value.items() if v is not None}
    return [_without_none(v) for v in value if v is not None] if isinstance(value, list) else value


def load(source: str | Path | Mapping[str, Any], settings: Settings = (), registry: Registry | None = None,
         environ: Mapping[str, str] | None = None, observers: Sequence[Any] = ()) -> ResolvedStudy:
    """The study that a run file describes. Raises `UserError` with every problem of every cell.

    source: the file, or its content as nested mappings, whose paths are relative to the current directory. settings:
    `a.b=value` each, or values by dotted key. environ: where `MADPLUG_A__B` is looked up; by default the process's
    environment. observers: slots of observers, beside those of the file.
    """
    given = source if isinstance(source, Mapping) else Path(source)
    table = read(given, settings, environ)
    folder = given.parent if isinstance(given, Path) else Path()
    own = table.get("observers", [])
    if observers and isinstance(own, list):  # what else it may be is reported with every other mistake
        table["observers"] = [*own, *observers]
    resolved = Resolver(table, folder, registry or Registry()).resolve()
    keys = settings if isinstance(settings, Mapping) else (text.partition("=")[0] for text in settings)
    if problems := [*unreached(resolved.table, keys)]:
        raise UserError(problems)
    return resolved


def cell_to_table(cell: Cell, plan: StudyPlan, *, volatile: bool = True) -> Table:
    """A cell as it could be written in a run file, with every full name and every option.

    Without `volatile`, only what makes two runs the same study.
    """
    debate: Table = {}
    table: Table = {"debate": debate}
    more = [c for own in cell.more.values() for c in (own.values() if isinstance(own, Mapping) else own)]
    for base in dict.fromkeys((*HOST_KINDS, *(kind_of(type(component)) for component in more))):
        if base.of_study or base.how_many == "none":
            continue
        key, spelled = field_of(base), [component.to_table(volatile=volatile) for component in cell.of_kind(base)]
        names = getattr(cell, key) if hasattr(cell, key) else cell.more[key]
        place = debate if base.slot.startswith("debate.") else table
        place[key] = spelled if base.how_many == "list" else \
            dict(zip(names, spelled, strict=True)) if base.how_many == "named" else next(iter(spelled), None)
    for slot, style in zip(debate["styles"], cell.styles, strict=True):
        slot |= {"for": list(style.only)} if style.only is not None else {}
    if cell.on_failed_agent != "fail":  # so that studies from before this setting stay the same studies
        debate |= {"on_failed_agent": cell.on_failed_agent, "quorum": cell.quorum}
    debate |= {"agents": cell.wanted, "rounds": cell.rounds, "models": list(cell.models)}
    table["models"] = {name: plan.models[line].to_table(volatile=volatile) for name, line in cell.channels.items()}
    return {**table, "match": dict(cell.match)} if cell.match else table


class Resolver:
    """Resolves one run file; collects problems instead of raising the first."""

    def __init__(self, table: Table, folder: Path, registry: Registry, *, recorded: bool = False) -> None:
        self.recorded = recorded
        """Whether the samples come from a record, so that no data set has to be named."""
        self.given = self.table = table
        self.folder = folder
        self.made = Made(registry, folder)
        self.kinds = tuple(registry.kinds.values())
        self.tables = tables(self.kinds)

    def resolve(self) -> ResolvedStudy:
        """The whole study. Raises `UserError` with every problem.

        What is a problem may only be the table of a kind whose plugin nothing has named yet: then all are loaded.
        """
        registry = self.made.registry
        try:
            return self._resolve()
        except UserError:
            registry.load_all()
            if len(registry.kinds) == len(self.kinds):
                raise
        return Resolver(self.given, self.folder, registry, recorded=self.recorded).resolve()

    def _resolve(self) -> ResolvedStudy:
        problems = list(secrets(self.table))
        run: Any  # the fields of the slots are made from the kinds
        run, self.table = validate_lenient(self.tables.run, self.table, problems, "a run file", self.tables.keys)
        names = [cell.get("name") for cell in run.cells]
        problems += (Problem(f"cells[{i}].name", f"'{name}' is the name of another cell")
                     for i, name in enumerate(names) if name is not None and name in names[:i])
        found, by_cell = self._cells(run.oracle)
        problems += [*merge(by_cell), *check_matches(found)]
        limits: Limits = run.limits
        if limits.cost_usd is not None:
            problems += self._unpriced()
        builder = Builder(self.made, self.named_tables(run))
        observers = builder.make_list(Observer, run.observers or (), "observers")
        executor = builder.make(Executor, run.execution, "execution") if run.execution is not None else None
        reuse = [self._reused(text, f"reuse[{i}]", builder) for i, text in enumerate(run.reuse)]
        problems += builder.problems
        for component, place in ((executor, "execution"), *((observer, "observers") for observer in observers)):
            problems += [p for cell in found if component is not None for p in check_own(component, cell, place)]
        if limits.counts:
            counted = {name for cell in found for name in cell.worst_counts()}
            problems += _uncounted(limits.counts, counted, all_known=not problems)
        if problems:
            raise UserError(list(dict.fromkeys(problems)))
        plan = StudyPlan(run.name or "study", found, dict(self.made.models), run.seed, run.repeats,
                         run.share_completions, limits, executor, observers)
        return ResolvedStudy(plan, self.table, self.made.offers,
                             reuse=tuple(path for path in reuse if path is not None))

    def named_tables(self, table: Any) -> dict[str, Any]:
        """The tables by name of every kind that has such, in a cell or the whole file."""
        return {field_of(base): getattr(table, field_of(base)) for base in slots(self.kinds)
                if base.how_many == "named"}

    def _reused(self, text: str, place: str, builder: Builder) -> Path | None:
        """The directory of another study: relative to the run file, or to the current directory."""
        candidates = list(dict.fromkeys(((self.folder / text).absolute(), Path(text).absolute())))
        try:
            found = next((path for path in candidates if has_study(path)), None)
        except OSError as error:
            builder.problem(place, f"{text:.80} cannot be read: {error.strerror}")
            return None
        if found is None:
            builder.problem(place, f"there is no study in {' or '.join(map(str, candidates))}")
        return found

    def _cells(self, oracle: bool) -> tuple[list[Cell], dict[str, list[Problem]]]:
        found: list[Cell] = []
        by_cell: dict[str, list[Problem]] = {}
        for slug, settings, table in cells(self.table, self.tables.cell.model_fields):
            resolver = CellResolver(self, slug, settings, oracle)
            cell = resolver.cell(table)
            by_cell[slug] = resolver.problems
            if cell is not None:
                found.append(cell)
        for cell in found:
            cell.study_cells = tuple(by_cell)
        return found, by_cell

    def _unpriced(self) -> list[Problem]:
        return [Problem("limits.cost_usd", f"the price of model '{name}' is unknown, so its cost cannot be limited; "
                        f"give models.{name}.price = {{prompt = ..., completion = ...}} (USD per million tokens), or "
                        "limit calls or tokens instead")
                for name in dict.fromkeys(line.partition(" (")[0] for line, model in self.made.models.items()
                                          if model.price is None)]


def _uncounted(limits: Mapping[str, float], counted: Iterable[str], *, all_known: bool) -> list[Problem]:
    """all_known: what cells count; if not, only what is nearly a limit that every study has is a mistake."""
    known = [*Limits.model_fields, *sorted(counted)]
    odd = [Problem(f"limits.{name}", f"nothing in this study counts that{nearest_or_all(name, known)}")
           for name in limits if name not in known
           and (all_known or get_close_matches(name, Limits.model_fields, cutoff=0.8))]
    return odd or [Problem(f"limits.{name}", "expected a whole number") for name, most in limits.items() if most % 1]


class CellResolver(Builder):
    """Resolves one cell."""

    def __init__(self, parent: Resolver, slug: str, settings: Mapping[str, Any], oracle: bool) -> None:
        super().__init__(parent.made, {})
        self.parent = parent
        self.slug = slug
        self.settings = settings
        self.oracle = oracle
        self._table: Any = CellSettings()
        self._preset_missing = False

    def cell(self, table: Table) -> Cell | None:
        """The cell, or None if there are problems."""
        debate = table.get("debate", {})
        debate = self._expand(debate) if isinstance(debate, Mapping) else debate
        known = self.parent.tables
        self._table, _ = validate_lenient(known.cell, {**table, "debate": debate}, self.problems, "a cell",
                                          known.keys)
        self.tables = self.parent.named_tables(self._table)
        parts = self._parts()
        models = self._agent_models()
        wanted = self.named_models | set(models or self._table.models)
        lines = {name: self.make_model(name, self._table.models[name])
                 for name in sorted(wanted) if name in self._table.models}
        self._check_unused()
        if self.problems:
            return None
        parts["more"] |= {key: made for key, made in self.named.items() if key != "services"}
        match: Match | None = self._table.match
        cell = Cell(slug=self.slug, dataset_key=to_json(self._table.dataset or {}), models=models,
                    channels={k: v for k, v in lines.items() if v}, services=self.named.get("services", {}),
                    settings=self.settings, oracle=self.oracle, match=match.model_dump() if match else None,
                    agents=self._table.debate.agents, rounds=self._table.debate.rounds or 1,
                    on_failed_agent=self._table.debate.on_failed_agent, quorum=self._table.debate.quorum, **parts)
        self.problems += check_cell(cell, self.made.models, self.places, self.made.registry)
        return None if self.problems else cell

    def _check_unused(self) -> None:
        """Report tables that are not a component: options that are meant for another one would change nothing."""
        for base in slots(self.parent.kinds):
            named = self.tables.get(field_of(base), {})
            known = [name for name, slot in named.items() if "use" in slot]
            for name, slot in named.items():
                place = f"{field_of(base)}.{name}"
                if "use" not in slot and not any(problem.place == place for problem in self.problems):
                    self.problem(place, f"does not name {a(base.label)}, so that it changes nothing"
                                 f"{nearest_or_all(name, known)}")

    # Presets

    def _expand(self, debate: Mapping[str, Any]) -> Table:
        """`[debate]` with its paradigm's slots filled in; keys of the file take precedence."""
        name = debate.get("paradigm")
        if not isinstance(name, str):
            return dict(debate)
        offer = self.find(Paradigm, name, "debate.paradigm")
        self._preset_missing = offer is None
        cls = offer.component if offer else None
        preset = dict(cls.debate) if cls is not None and issubclass(cls, Paradigm) else {}
        expanded: Table = overlay(preset, {k: v for k, v in debate.items() if k != "paradigm"})
        return expanded

    # Parts

    def _parts(self) -> dict[str, Any]:
        """The components of every slot, by the field of the cell."""
        parts: dict[str, Any] = {}
        for prefix, table in (("debate.", self._table.debate), ("", self._table)):
            for base in slots(self.parent.kinds, prefix, of_study=False):
                name = field_of(base)
                if base.how_many != "named":  # a service is made where an option names it
                    parts[name] = self._part(base, getattr(table, name), f"{prefix}{name}", parts)
        known = Cell.__dataclass_fields__
        more = {name: made if isinstance(made, list) else [made] for name, made in parts.items()
                if name not in known and made}
        return {**{name: made for name, made in parts.items() if name in known}, "more": more}

    def _part(self, base: type[Component], slot: Any, place: str, parts: Mapping[str, Any]) -> Any:
        special: Any = {Style: self._styles, Metric: self._metrics}.get(base)
        if base is AnswerFormat:
            return self._answers(slot, parts.get("dataset"))
        if not slot and base.required and not (base is Dataset and self.parent.recorded):
            if base is Dataset:
                self.problem(place, "is required: where the questions come from")
            elif not self._preset_missing:
                self.problem(place, f"is required: name {a(base.label)}, or a paradigm that fills it")
        if special is not None:
            return special(slot, place)
        if base.how_many == "list":
            return self.make_list(base, slot or (), place)
        make = self.make_once if base is Dataset else self.make
        return make(base, slot, place) if slot is not None else None

    def _styles(self, tables: Sequence[Table] | None, place: str) -> list[BoundStyle]:
        bound = []
        for i, slot in enumerate(tables or ()):
            only = self._only(slot.get("for"), f"{place}[{i}].for")
            style = self.make(Style, {k: v for k, v in slot.items() if k != "for"}, f"{place}[{i}]")
            if style is not None:
                bound.append(BoundStyle(style, style.full_name, only))
        return bound

    def _only(self, value: Any, place: str) -> tuple[int | str, ...] | None:
        """Whom a style is for: agents by id, name or role; None for all."""
        if value is None:
            return None
        only = value if isinstance(value, list) else [value]
        for odd in [one for one in only if isinstance(one, bool) or not isinstance(one, int | str)]:
            self.problem(place, f"{odd!r:.40} is not an agent; name agents by id (a whole number from 0), name or role")
        return tuple(only)

    def _metrics(self, tables: Sequence[Table] | None, place: str) -> dict[str, Metric]:
        made: dict[str, Metric] = {}
        for metric in self.make_list(Metric, tables or (), place):
            twice = sum(key.partition("#")[0] == metric.full_name for key in made)
            made[f"{metric.full_name}#{twice + 1}" if twice else metric.full_name] = metric
        return made

    def _answers(self, slot: Table | None, dataset: Dataset | None) -> AnswerFormat | None:
        if slot is None and dataset is not None:
            default = dataset.answers
            slot = {"use": default} if isinstance(default, str) else dict(default) if default else None
            if slot is None:
                self.problem("answers", f"is required, because {dataset.full_name} does not choose one; for instance "
                             "answers = \"answers.choice\"")
        made: AnswerFormat | None = self.make(AnswerFormat, slot, "answers") if slot else None
        return made

    def _agent_models(self) -> tuple[str, ...]:
        named, known = self._table.debate.models, list(self._table.models)
        if not named:
            others = [n for n in known if n not in self.named_models] if len(known) > 1 else known
            if len(others) > 1 and not any(p.place == "debate.models" for p in self.problems):
                self.problem("debate.models", f"name the models the agents use, of {listed(known)}")
            return tuple(others)
        for i, name in enumerate(named):
            if name not in known:
                self.problem(f"debate.models[{i}]", f"there is no [models.{name}]{nearest_or_all(name, known)}")
        return tuple(n for n in named if n in known)
