"""One configuration, resolved: the components of a cell and the hooks between them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

from typing_extensions import override

from madplug.component import Component, field_of, nested_in
from madplug.context import CellFacts
from madplug.debate.hooks import make_manager
from madplug.errors import ComponentError, nearest_or_all
from madplug.hookspecs import HookManager
from madplug.kinds import (
    AnswerFormat,
    Casting,
    Dataset,
    DecisionProtocol,
    Extension,
    Metric,
    PersonaGenerator,
    Phase,
    Service,
    Style,
    TurnOrder,
    Visibility,
)
from madplug.records import Agent, Plan, Turn

C = TypeVar("C")
Count = Callable[[Component], int]


@dataclass(frozen=True)
class BoundStyle:
    """A style of a cell, its full name, and the agents or roles it is bound to (`for` in the run file)."""

    style: Style
    name: str = ""
    only: tuple[str | int, ...] | None = None
    """Agents' ids, roles or personas' names; None: every agent."""

    def takes(self, agent: Agent, turn: Turn) -> bool:
        """Whether this style answers the turn."""
        if agent.style is not None and agent.style != self.name:
            return False
        if self.only is not None and not {agent.id, agent.persona.role, agent.persona.name} & set(self.only):
            return False
        return any(turn.move in moves for moves in self.moves) and self.style.accepts(agent, turn)

    @cached_property
    def moves(self) -> Sequence[frozenset[str]]:
        """The moves that the style can write, and those of each style in its options."""
        return moves_of(self.style)


@dataclass
class Cell(CellFacts):
    """Everything the debates of one configuration are made of. Holds no state of any debate."""

    slug: str
    answers: AnswerFormat
    turns: TurnOrder
    visibility: Visibility
    decision: DecisionProtocol
    styles: Sequence[BoundStyle]
    rounds: int
    agents: int | None = None
    on_failed_agent: str = "fail"
    quorum: int = 1
    personas: Sequence[PersonaGenerator] = ()
    casting: Casting | None = None
    phases: Sequence[Phase] = ()
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    """By the name of their scores: the full name, with `#2` for the second of the same."""
    extensions: Sequence[Extension] = ()
    models: tuple[str, ...] = ()
    services: Mapping[str, Service] = field(default_factory=dict)
    dataset: Dataset | None = None
    dataset_key: str = ""
    study_cells: Collection[str] = ()
    oracle: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What the sweep or the listed cell changes in the run file, by dotted key."""
    match: Mapping[str, str] | None = None
    channels: Mapping[str, str] = field(default_factory=dict)
    """The study's name for each model this cell may ask; it differs from the cell's own where cells give one name
    different options."""
    more: Mapping[str, Sequence[Component] | Mapping[str, Component]] = field(default_factory=dict)
    """Components of the kinds of plugins, by the last word of their slot; those of a kind with named tables by name."""

    def __post_init__(self) -> None:
        for name, metric in self.metrics.items():
            metric.score_name = name

    def of_kind(self, base: type[Component]) -> list[Component]:
        """The cell's own components of a kind, in order, without those nested in the options of others."""
        field_name = field_of(base)
        found = getattr(self, field_name) if hasattr(self, field_name) else self.more.get(field_name, ())
        values = found.values() if isinstance(found, Mapping) else found if isinstance(found, Sequence) else [found]
        return [v.style if isinstance(v, BoundStyle) else v for v in values if v is not None]

    def components(self, without: tuple[type[Component], ...] = ()) -> list[Component]:
        """Every component of the cell, extensions first and in their order, each followed by those in its options.

        without: leaves out those of these kinds, and what is in their options.
        """
        many: tuple[type[Component], ...] = (Extension, Service, PersonaGenerator, Style, Phase, Metric)
        more = (own.values() if isinstance(own, Mapping) else own for own in self.more.values())
        one = (self.dataset, self.answers, self.casting, self.turns, self.visibility, self.decision)
        found = (*chain.from_iterable(map(self.of_kind, many)), *chain.from_iterable(more), *filter(None, one))
        wanted = (own for own in found if not isinstance(own, without))
        return list({id(c): c for own in wanted for c in (own, *nested_in(own))}.values())

    @override
    def component(self, base: type[C], name: str) -> C:
        kind: Any = base
        named: Any = self.more.get(field_of(kind), {})
        if name not in named:
            raise ComponentError(f"a component asked for the {kind.label} '{name}', which this cell does not use"
                                 f"{nearest_or_all(name, named)}")
        return named[name]  # type: ignore[no-any-return]

    @cached_property
    @override
    def wanted(self) -> int:
        if self.agents is not None:
            return self.agents
        fixed = [g.count for g in self.personas]
        return sum(n or 1 for n in fixed) if fixed else 1

    @cached_property
    @override
    def roles(self) -> frozenset[str]:
        made = [g.roles for own in self.personas for g in (own, *nested_in(own)) if isinstance(g, PersonaGenerator)]
        return frozenset().union(*made or [PersonaGenerator.roles]) if all(made) else frozenset()

    @cached_property
    @override
    def plan(self) -> Plan:
        turns = [self.turns.turns(self.wanted, n) for n in range(1, self.rounds + 1)]
        plan = Plan(agents=max(turns) if self.turns.seats else self.wanted, rounds=self.rounds, turns=max(turns),
                    models=len(set(self.models)), all_turns=sum(turns))
        return replace(plan, per_turn=self._per_turn("", lambda one: one.calls(plan)))

    def _per_turn(self, move: str, of: Count, agent: int | None = None) -> int:
        """The most in a turn with this move; "": with any. agent: whose styles are named by ids, if they are."""
        able = (s.style for s in self.styles if (not move or any(move in moves for moves in moves_of(s.style)))
                and (agent is None or s.only is None or agent in s.only))
        return max((_each(style, of) for style in able), default=0)

    def _in_turns(self, n: int, move: str, of: Count) -> int:
        """The most in n turns with this move; of as many turns as there are agents, each has one."""
        if n % self.wanted or any(not isinstance(one, int) for s in self.styles for one in s.only or ()):
            return n * self._per_turn(move, of)
        return n // self.wanted * sum(self._per_turn(move, of, id) for id in range(self.wanted))

    @property
    def chooses_samples(self) -> bool:
        """Whether an extension may change which samples the cell has."""
        return any(hasattr(extension, "madplug_samples") for extension in self.extensions)

    @property
    def agents_ask(self) -> bool:
        """Whether agents or their personas ask a model. What a decision may ask, it may also do without one."""
        return self.plan.per_turn > 0 or any(_each(own, lambda one: one.calls(self.plan)) for own in self.personas)

    def worst_calls(self, *, scored: bool = True) -> int:
        """The most model calls one debate can make, excluding retries. scored: with those of its metrics."""
        return self._worst(lambda one: one.calls(self.plan)) if scored else replace(self, metrics={}).worst_calls()

    def worst_counts(self) -> dict[str, int]:
        """The most of what components count in one debate, by name."""
        names = {name for component in self.components() for name in component.counts(self.plan)}
        return {name: self._worst(_counts(self.plan, name)) for name in sorted(names)}

    def _worst(self, of: Count) -> int:
        plan = self.plan
        further = sum(phase.further_rounds(plan) for phase in self.phases)
        turns = (self.turns.by_move(self.wanted, n) for n in range(1, plan.rounds + further + 1))
        styles = sum(self._in_turns(n, move, of) for moves in turns for move, n in moves.items())
        personas = [_each(g, of) for g in self.personas]
        more = self.wanted - sum(g.count or 1 for g in self.personas)  # the last generator makes all the rest
        counted = [c for own in (*self.personas, *(s.style for s in self.styles)) for c in (own, *nested_in(own))]
        apart = {id(c) for c in counted}
        # A style in another component's options may write every turn.
        times = {"style": plan.all_turns, "personas": plan.agents}
        others = sum(of(c) * times.get(c.kind, 1) for c in self.components() if id(c) not in apart)
        return styles + others + sum(personas) + max(0, more) * sum(personas[-1:])

    @cached_property
    def manager(self) -> HookManager:
        """The pluggy manager of this cell's run: the host's own implementations and the named components'."""
        return make_manager(self.components())

    @cached_property
    def hooks(self) -> Any:
        """The hook callers: `cell.hooks.madplug_view(debate=..., turn=...)`.

        Where no component has a hook, they are the host's own implementations, to which pluggy would take seven calls.
        """
        plugins = self.manager.get_plugins()
        return self.manager.hook if len(plugins) > 1 else next(iter(plugins))


def moves_of(component: TurnOrder | Style) -> list[frozenset[str]]:
    """The moves of a turn order or a style, and of each of the same kind in its options."""
    inner = [c for c in nested_in(component) if c.kind == component.kind]
    return [c.moves for c in (component, *inner) if isinstance(c, TurnOrder | Style)]


def _counts(plan: Plan, name: str) -> Count:
    return lambda component: component.counts(plan).get(name, 0)


def _each(component: Component, of: Count) -> int:
    """The count of a style or a generator each time it is asked, including the components in its options."""
    return sum(map(of, (component, *nested_in(component))))
