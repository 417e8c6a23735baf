"""One configuration, resolved: the components of a cell and the hooks between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pluggy

from madplug import runspecs
from madplug.checks import check_returned_all
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
from madplug.hookspecs import HookManager, hookimpl
from madplug.records import Agent, Message, Turn


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
    lines: Mapping[str, str] = field(default_factory=dict)
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
        manager = HookManager("madplug")
        manager.add_hookspecs(runspecs)
        manager.register(Host(), "host")
        for i, component in enumerate(self.components()):
            if manager.get_name(component) is None:
                manager.register(component, f"{i}.{component.kind}.{component.name}")
        return manager

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


async def _viewed(view: Any, visibility: Visibility) -> tuple[Message, ...]:
    return check_returned_all(await view, Message, visibility, "view")


class Host:
    """The innermost implementation of every around hook: delegates to the chosen component."""

    @hookimpl(trylast=True)
    def madplug_samples(self, setup: Any) -> Any:  # noqa: D102
        return setup.samples()

    @hookimpl(trylast=True)
    def madplug_opening(self, debate: Any) -> Any:  # noqa: D102
        return ()

    @hookimpl(trylast=True)
    def madplug_view(self, debate: Any, turn: Any) -> Any:  # noqa: D102
        visibility = debate.cell.visibility
        view = visibility.view(debate, turn)
        if hasattr(view, "__await__"):
            return _viewed(view, visibility)
        return check_returned_all(view, Message, visibility, "view")

    @hookimpl(trylast=True)
    def madplug_reply(self, debate: Any, turn: Any, view: Any) -> Any:  # noqa: D102
        return debate.respond(turn, view)

    @hookimpl(trylast=True)
    def madplug_request(self, debate: Any, request: Any) -> Any:  # noqa: D102
        return request

    @hookimpl(trylast=True)
    def madplug_complete(self, debate: Any, request: Any) -> Any:  # noqa: D102
        return debate.send(request)
