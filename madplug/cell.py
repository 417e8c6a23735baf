"""One configuration, resolved: the components of a cell and the hooks between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pluggy

from madplug.components import (
    AnswerFormat,
    Casting,
    Component,
    Dataset,
    DecisionProtocol,
    Extension,
    Metric,
    PersonaGenerator,
    Phase,
    Plan,
    Service,
    Style,
    TurnOrder,
    Visibility,
)
from madplug.hooks import make_manager
from madplug.records import Agent, Turn


@dataclass(frozen=True)
class BoundStyle:
    """A style of a cell, its full name, and the agents or roles it is bound to (`for`)."""

    style: Style
    name: str = ""
    only: tuple[str | int, ...] | None = None

    def takes(self, agent: Agent, turn: Turn) -> bool:
        """Whether this style answers the turn."""
        if agent.style is not None and agent.style != self.name:
            return False
        if self.only is not None and not {agent.id, agent.persona.role, agent.persona.name} & set(self.only):
            return False
        return turn.move in self.style.moves and self.style.accepts(agent, turn)


@dataclass
class Cell:
    """Everything a debate of one configuration is made of. Holds nothing of any debate."""

    slug: str
    answers: AnswerFormat
    turns: TurnOrder
    visibility: Visibility
    decision: DecisionProtocol
    styles: Sequence[BoundStyle]
    rounds: int
    agents: int | None = None
    personas: Sequence[PersonaGenerator] = ()
    casting: Casting | None = None
    phases: Sequence[Phase] = ()
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    extensions: Sequence[Extension] = ()
    models: tuple[str, ...] = ()
    services: Mapping[str, Service] = field(default_factory=dict)
    dataset: Dataset | None = None
    dataset_key: str = ""
    oracle: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    match: Mapping[str, str] | None = None
    traced: Callable[..., None] | None = None
    """Told of every event that is sent, where hook calls are traced."""
    channels: Mapping[str, str] = field(default_factory=dict)
    """The study's name for each model this cell may ask, where cells give one name different options."""

    def __post_init__(self) -> None:
        for label, metric in self.metrics.items():
            metric.label = label

    def components(self) -> list[Component]:
        """Every component of the cell, extensions in their order first."""
        one = [self.dataset, self.answers, self.casting, self.turns, self.visibility, self.decision]
        many = [*self.extensions, *self.personas, *(s.style for s in self.styles), *self.phases,
                *self.metrics.values(), *self.services.values()]
        return [*many, *(c for c in one if c is not None)]

    @cached_property
    def wanted(self) -> int:
        """How many personas a debate of this cell has."""
        if self.agents is not None:
            return self.agents
        fixed = [g.count for g in self.personas]
        return sum(n or 1 for n in fixed) if fixed else 1

    @cached_property
    def plan(self) -> Plan:
        """The size of this cell's debates."""
        plan = Plan(agents=self.wanted, rounds=self.rounds, turns=self.turns.turns(self.wanted),
                    models=len(set(self.models)))
        return replace(plan, per_turn=max((s.style.calls(plan) for s in self.styles), default=0))

    def worst_calls(self) -> int:
        """The most model calls one debate can make, retries apart."""
        plan = self.plan
        apart = {id(c) for c in (*self.personas, *(s.style for s in self.styles))}
        others = sum(c.calls(plan) for c in self.components() if id(c) not in apart)
        personas = [g.calls(plan) for g in self.personas]
        more = plan.agents - sum(g.count or 1 for g in self.personas)  # the last generator makes all the rest
        return plan.per_turn * plan.turns * plan.rounds + others + sum(personas) + max(0, more) * sum(personas[-1:])

    @cached_property
    def manager(self) -> pluggy.PluginManager:
        """The pluggy manager of this cell's run: the host's own implementations, and whoever was named."""
        return make_manager(self.components())

    @cached_property
    def hooks(self) -> Any:
        """The hook callers: `cell.hooks.madplug_view(debate=..., turn=...)`."""
        return self.manager.hook

    def tell(self, event: str, report: Callable[[str], None], **facts: Any) -> None:
        """Send an event. An observer's exception is reported and stops nobody."""
        implementations = getattr(self.hooks, event).get_hookimpls()
        if self.traced is not None and implementations:
            self.traced(event, implementations, facts, None)
        for implementation in reversed(implementations):
            try:
                implementation.function(*(facts[name] for name in implementation.argnames))
            except Exception as error:
                report(f"{implementation.plugin_name}: {event} raised {type(error).__name__}: {error}")
