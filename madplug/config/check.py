"""Checks that components fit together: their moves, needs and hooks, and the cells that are matched."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from pluggy import HookImpl

from madplug.component import Component
from madplug.config.read import start_alone, unreached
from madplug.debate.cell import BoundStyle, Cell, moves_of
from madplug.errors import Problem, listed, message_of, nearest_or_all
from madplug.hookspecs import RUN_HOOKS, hooks_of
from madplug.kinds import Model, TurnOrder
from madplug.options import naming, unions
from madplug.registry.offers import misspelt
from madplug.rows import to_json
from madplug.text import count

if TYPE_CHECKING:
    from madplug.config.plan import StudyPlan
    from madplug.config.shape import Table
    from madplug.registry.installed import Registry

BUDGET = "budget"
"""What a component gives that makes as many calls, or uses as many tokens, as the debate it is matched to."""


def check_cell(cell: Cell, models: Mapping[str, Model], places: Mapping[int, str],
               registry: Registry) -> Iterator[Problem]:
    """What is wrong with the combination of components in a cell. places: where each is in the run file, by its id."""
    for component in cell.components():
        yield from check_hooks(component, places.get(id(component), component.kind))
    if cell.agents is None and all(g.count is None for g in cell.personas):
        yield Problem("debate.agents", "is required: how many agents debate")
        return
    made = sum(g.count or 1 for g in cell.personas)
    if made > cell.wanted or (cell.personas and cell.personas[-1].count and made != cell.wanted):
        yield Problem("debate.agents", f"is {cell.wanted}, but debate.personas makes {count(made, 'persona')}; make it "
                      f"{made}, or change debate.personas")
    if cell.quorum > (cell.wanted if cell.on_failed_agent != "fail" else 1):
        yield Problem("debate.quorum", f"{cell.quorum} of {count(cell.wanted, 'agent')} can never be left" if
                      cell.on_failed_agent != "fail" else "changes nothing unless on_failed_agent is drop or replace")
    yield from _moves(cell)
    if not cell.channels and cell.agents_ask and (calls := cell.worst_calls()):
        yield Problem("models", f"a debate may make {count(calls, 'call')}, but there is no model; add [models.NAME]")
    components = cell.components()
    given = frozenset().union(*(c.gives for c in components)) | ({"references"} if cell.oracle else set())
    for component in (*components, *(models[line] for line in cell.channels.values())):
        place = places.get(id(component), component.kind)
        yield from _needs(component, given, place, registry)
        yield from check_own(component, cell, place)


def _moves(cell: Cell) -> Iterator[Problem]:
    written = [moves for style in cell.styles for moves in style.moves]
    asked = frozenset().union(*moves_of(cell.turns))
    for move in sorted(move for move in asked if not any(move in moves for moves in written)):
        yield Problem("debate.styles", f"no style writes the move '{move}' that {cell.turns.full_name} asks for "
                      f"(they write {', '.join(sorted(frozenset().union(*written))) or 'none'})")


def _needs(component: Component, given: Iterable[str], place: str, registry: Registry) -> Iterator[Problem]:
    for need in sorted(component.needs - set(given)):
        if need == "references":
            yield Problem(place, f"{component.full_name} reads the references; say oracle = true at the top of the run "
                          "file to allow it; every result is then marked")
        else:
            yield Problem(place, f"{component.full_name} needs '{need}', which no component of this cell gives"
                          f"{_givers(need, registry)}")


def _givers(need: str, registry: Registry) -> str:
    """Which installed components give something, by where they stand in a run file, as the end of a message."""
    by_slot: dict[str, list[str]] = {}
    for offer in registry.offers():
        if need in offer.component.gives:
            by_slot.setdefault(offer.component.slot, []).append(f"{offer.name}{_option_for(need, offer.component)}")
    told = "; ".join(f"in {slot} {listed(names)}" for slot, names in by_slot.items())
    return f"; of those installed, these do: {told}" if told else ", nor does any that is installed"


def _option_for(need: str, component: type[Component]) -> str:
    """` (OPTION = VALUE)` if a component gives something with an option only."""
    fields = component.Options.model_fields
    with suppress(Exception):  # it cannot be made from one option; `madplug show` has them
        for values in ({}, *({name: value} for name in fields for value in _values(fields[name].annotation))):
            if need in component(**values).gives:
                return "".join(f" ({name} = {to_json(value)})" for name, value in values.items())
    return ""


def _values(annotation: Any) -> Iterator[Any]:
    """The values of an option that has few."""
    for one in unions(annotation):
        yield from (True, False) if one is bool else get_args(one) if get_origin(one) is Literal else ()


def check_own(component: Component, cell: Cell, place: str) -> Iterator[Problem]:
    """What the component's own check finds; a check that raises is itself a problem."""
    try:
        yield from (Problem(place, message) for message in component.check(cell))
    except Exception as error:
        yield Problem(place, f"{component.full_name}: its check failed: {message_of(error)}")


# Hooks

def check_hooks(component: Component, place: str) -> Iterator[Problem]:
    """Hooks of a component that do not exist, are not marked, or are not written as pluggy requires."""
    cls, who = type(component), component.full_name
    yield from (Problem(place, f"{who}: {text}") for text in misspelt(cls, RUN_HOOKS))
    for method in (getattr(component, name) for name in hooks_of(cls)):
        marked = method.madplug_impl
        hook = marked["specname"] or method.__name__
        if wrong := _wrong_kind(method, wraps=marked["wrapper"] or marked["hookwrapper"]):
            yield Problem(place, f"{who}: the hook '{hook}' {wrong}")
        elif hook in RUN_HOOKS:
            given = inspect.signature(RUN_HOOKS[hook]).parameters
            asked = HookImpl(component, "", method, marked).argnames
            yield from (Problem(place, f"{who}: the hook '{hook}' has no argument '{odd}'; it has {', '.join(given)}")
                        for odd in asked if odd not in given)


def _wrong_kind(method: Any, *, wraps: bool) -> str | None:
    """Why a method cannot implement a hook, or None: a wrapper is a plain generator, and nothing else is."""
    if wraps and (inspect.isasyncgenfunction(method) or inspect.iscoroutinefunction(method)):
        return ("is wrapped by an `async def`; a wrapper is a plain generator. Write `def`, then `result = yield`, and "
                "return an awaitable if something has to be awaited: `async def later(): return change(await result)`, "
                "then `return later()`")
    if wraps and not inspect.isgeneratorfunction(method):
        return "is marked wrapper=True but never yields; write `result = yield` and return the result to use"
    return "yields; mark it @hookimpl(wrapper=True)" if not wraps and inspect.isgeneratorfunction(method) else None


# Cells

def merge(by_cell: Mapping[str, Sequence[Problem]]) -> Iterator[Problem]:
    """Problems, once each, with the cells they belong to unless these are all."""
    cells: dict[Problem, dict[str, None]] = {}
    for slug, problems in by_cell.items():
        for problem in problems:
            cells.setdefault(problem, {})[slug] = None
    for problem, slugs in cells.items():
        names = "', '".join(slugs)
        yield problem if len(slugs) == len(by_cell) else Problem(
            f"{'cells' if len(slugs) > 1 else 'cell'} '{names}': {problem.place}", problem.message)


def check_matches(found: Sequence[Cell]) -> Iterator[Problem]:
    """Cells that are matched to one that does not exist or has other samples, or whose calls do not follow it."""
    by_slug = {cell.slug: cell for cell in found}
    for cell in found:
        if cell.match is None:
            continue
        name, place = cell.match["cell"], f"cell '{cell.slug}': match.cell"
        other = by_slug.get(name)
        if name not in cell.study_cells:
            yield Problem(place, f"there is no cell '{name}'{nearest_or_all(name, cell.study_cells)}")
        elif other is None:
            continue
        elif other.dataset_key != cell.dataset_key:
            yield Problem(place, f"'{name}' has another data set, so there are no common samples to match")
        elif other.match is not None:
            yield Problem(place, f"'{name}' is itself matched to another cell")
        elif not any(BUDGET in component.gives for component in cell.components()):
            order = cell.turns.full_name
            way = ("remove match, and choose a size of about as many calls" if type(cell.turns).within is
                   TurnOrder.within else f"`madplug show {order}` has a setting with which it can")
            yield Problem(place, f"cannot hold: {order} makes as many calls as its own settings say, whatever '{name}' "
                          f"uses; {way}")


# What users should know before the run

def sizes(plan: StudyPlan) -> list[dict[str, Any]]:
    """Of each cell its agents, rounds and samples, and the most calls of a debate and in all; None: not known."""
    by_slug = {cell.slug: cell for cell in plan.cells}
    found: list[dict[str, Any]] = []
    for cell in plan.cells:
        agents: int | None = cell.plan.agents
        worst = cell.worst_calls()
        calls: int | None = worst
        if cell.match is not None:
            by_calls = cell.match["by"] == "calls"
            budget = by_slug[cell.match["cell"]].worst_calls(scored=False) if by_calls else None
            if cell.turns.seats and budget:
                agents = cell.turns.within(cell, budget)  # at least one, which may take more with its decision
                budget = max(budget, replace(cell, agents=agents).worst_calls(scored=False))
            elif cell.turns.seats:
                agents = None
            calls = None if budget is None else budget + worst - cell.worst_calls(scored=False)
        samples = cell.dataset.size() if cell.dataset else None
        total = None if samples is None or calls is None else calls * samples * plan.repeats
        found.append({"cell": cell.slug, "agents": agents, "rounds": cell.rounds, "samples": samples,
                      "calls/debate": calls, "calls": total})
    return found


def notes(plan: StudyPlan, table: Table) -> Iterator[str]:
    """What `madplug check` prints about a study without problems. table: the run file."""
    if plan.share_completions and len(plan.cells) > 1:
        yield ("share_completions = true: identical requests of different cells are sent once and share the "
               "completion; false makes the cells independent")
    elif len(plan.cells) > 1:
        yield "share_completions = false: each cell gets its own completions, even for requests that another cell made"
    if any(cell.oracle for cell in plan.cells):
        yield "oracle = true: components see the references, and every result is marked"
    for kind, slots in table.items():
        if kind != "debate" and isinstance(slots, dict) and all(
                isinstance(slot, dict) and "use" in slot for slot in slots.values()):
            used = {name for cell in plan.cells for name in cell.more.get(
                kind, {"models": cell.channels, "services": cell.services}.get(kind, ()))}
            if spare := [name for name in slots if name not in used]:
                yield f"{kind}: no cell uses {listed(spare)}"
    alone = [cell.slug for cell in plan.cells if "debate.paradigm" in cell.settings]
    keys = [f"debate.{key}" for key in table.get("debate", {}) if key not in ("models", "paradigm")]
    if alone and keys and not start_alone(table):
        yield f"cells that start from their own paradigms ({listed(alone)}) do not take {listed(keys)} of the file"
    if plan.observers:
        yield f"observers: {', '.join(observer.full_name for observer in plan.observers)}"
    if plan.executor is not None:
        yield from plan.executor.notes(plan.cells, plan.models)
    for cell in plan.cells:
        yield from (f"cell '{cell.slug}': at most {most:,} {name.replace('_', ' ')} in a debate"
                    for name, most in cell.worst_counts().items())
    for text in warnings(plan, table):
        yield f"warning: {text}"


def warnings(plan: StudyPlan, table: Table) -> Iterator[str]:
    """What may spoil results without being an error."""
    if start_alone(table):
        yield from map(str, unreached(table, (f"debate.{key}" for key in table.get("debate", {}))))
    yield from (f"models.{name}: {text}" for name, model in plan.models.items() if (text := model.missing()))
    same: dict[str, str] = {}
    for cell in plan.cells:
        first = same.setdefault(to_json([cell.settings, cell.match]), cell.slug)
        if first != cell.slug:
            yield f"cell '{cell.slug}' changes nothing that '{first}' does not change: it is the same debate again"
        if cell.dataset is not None and cell.dataset.has_images and not any(
                s.style.shows_images for s in cell.styles):
            styles = ", ".join(s.name for s in cell.styles)
            yield (f"cell '{cell.slug}': the questions of {cell.dataset.full_name} can have images, but no style of "
                   f"the cell shows images ({styles}); agents would answer without seeing them")
        last = next((n for n in range(cell.rounds, 0, -1) if cell.turns.turns(cell.wanted, n)), cell.rounds)
        if last < cell.rounds:
            yield (f"cell '{cell.slug}': debate.rounds: {cell.turns.full_name} has no turn after round {last}, so "
                   f"{cell.rounds} rounds are the same debate")
        yield from (f"cell '{cell.slug}': {component.full_name}: {text}"
                    for component in cell.components() for text in component.warn(cell))
        if cell.on_failed_agent == "replace" and len(cell.models) == 1:
            yield (f"cell '{cell.slug}': debate.on_failed_agent = \"replace\" has no other model in debate.models to "
                   "take a failed one's place, so the agent leaves")
        if spare := _spare_models(cell):
            yield (f"cell '{cell.slug}': debate.models: {count(cell.wanted, 'agent')} cannot take so many models in "
                   f"turn; nobody asks {listed(spare)}")
        for style in cell.styles:
            if not _may_take_turns(style, cell.wanted):
                whom = listed(map(repr, style.only or ())) or "none"
                yield (f"cell '{cell.slug}': the style {style.name} is for {whom}, and so for no agent; ids are whole "
                       f"numbers from 0 to {cell.wanted - 1}")


def _spare_models(cell: Cell) -> list[str]:
    """Models of `debate.models` that are beyond the last agent, and that no component names."""
    if cell.casting is not None or cell.turns.seats or cell.on_failed_agent == "replace":
        return []
    named = {name for component in cell.components() for one in naming(type(component.options))
             if one.kind == Model.kind for name in one.names(component.options)}
    return [name for name in dict.fromkeys(cell.models[cell.wanted:])
            if name not in cell.models[:cell.wanted] and name not in named]


def _may_take_turns(style: BoundStyle, agents: int) -> bool:
    """Whether a style may be for an agent: which roles and names there are is known once there are personas."""
    return style.only is None or any(
        0 <= one < agents if isinstance(one, int) else not one.strip().lstrip("+-").isdecimal() for one in style.only)
