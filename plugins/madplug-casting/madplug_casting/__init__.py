"""Castings: which model plays which persona.

All take the models that a debate without a casting would have (`debate.models` in turn), so that a comparison is
about who plays which persona, or which call, and not about which models take part.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from madplug import Agent, Casting, ModelName, Options, Persona, Request, hookimpl

if TYPE_CHECKING:
    from madplug import Debate

__all__ = ["Central", "PerCall", "Random"]


class RandomOptions(Options):
    """Options of `casting.random`."""

    per: Literal["study", "repeat", "sample"] = Field(default="study", description="how long a cast stays together")
    draw: Literal["deal", "independent"] = Field(default="deal", description=(
        "deal: every model as often as in turn; independent: each persona draws from all models"))


class Random(Casting):
    """Assigns the models to the personas at random, once for the whole study or again for every repeat or sample.

    `draw = "deal"` shuffles the models that the agents would have in turn, so that each plays as often as
    it would; `"independent"` draws a model for every persona on its own, so that one may play them all. Per
    study, every sample and every repeat has the same cast; per repeat, every sample has, so that the spread over
    repeats is that over casts.
    """

    name = "random"
    source = "the random-assignment baseline of dynamic role assignment (Meta-Debate), section 4"
    Options = RandomOptions

    def prepare(self, setup: Any) -> None:
        """What the casts of a whole study are drawn from."""
        self._seed = setup.seed

    def cast(self, debate: Debate, personas: Sequence[Persona]) -> list[Agent]:
        """The personas in order, each with the model it drew."""
        rng = debate.rng("casting.random")
        if self.options.per != "sample":
            repeat = f"/{debate.repeat}" if self.options.per == "repeat" else ""
            rng = random.Random(f"casting.random/{getattr(self, '_seed', 0)}{repeat}")
        hand = in_turn(debate.models, len(personas))
        if self.options.draw == "deal":
            rng.shuffle(hand)
        else:
            hand = [rng.choice(sorted(set(debate.models)) or [None]) for _ in hand]
        return assign(personas, hand)


class CentralOptions(Options):
    """Options of `casting.central`."""

    order: tuple[ModelName, ...] = Field(default=(), description=(
        "the models from the strongest to the weakest; default: as in debate.models"))


class Central(Casting):
    """Gives the strongest models to the most connected agents.

    An agent's connections are the agents it may read and those that may read it, as the visibility says for
    the first round of exchange; equals are taken in order. The strongest model is the first of `order`, or
    of `debate.models`. Every model plays as often as it would in turn.
    """

    name = "central"
    source = "Li et al. 2024, Improving Multi-Agent Debate with Sparse Communication Topology, section 5"
    Options = CentralOptions

    def cast(self, debate: Debate, personas: Sequence[Persona]) -> list[Agent]:
        """The personas in order, each with its model."""
        strongest_first = [*self.options.order, *debate.models, None]
        hand = sorted(in_turn(debate.models, len(personas)), key=strongest_first.index)
        connected = degrees(debate)
        most_connected_first = sorted(range(len(personas)), key=lambda i: -connected[i])
        models = dict(zip(most_connected_first, hand, strict=True))
        return assign(personas, [models[i] for i in range(len(personas))])

    def check(self, cell: Any) -> Iterable[str]:
        """Only models that play can be ordered."""
        for name in self.options.order:
            if name not in cell.models:
                yield f"'order' names '{name}', which no agent uses; debate.models has {', '.join(cell.models)}"


class PerCall(Casting):
    """Has every call of an agent answered by a model drawn from all that take part, each as likely as the others.

    The draw depends on the study's seed, the question, the agent, the round and what is asked for, and on how much is
    on record: a turn of two steps may have two models. Which model answered is on record with each message. Calls that
    name a model of their own, such as a judge's, and calls of no agent keep theirs. The cast that is shown for an agent
    is that of a debate without a casting.
    """

    name = "per_call"
    source = "arXiv 2502.08788 (heterogeneous models in multi-agent debate)"

    def cast(self, debate: Debate, personas: Sequence[Persona]) -> list[Agent]:
        """The personas in order, with the models in turn."""
        return assign(personas, in_turn(debate.models, len(personas)))

    @hookimpl(wrapper=True)
    def madplug_request(self, debate: Debate, request: Request) -> Generator[None, Request, Request]:
        """Draw the model."""
        made = yield
        if made.agent is None or made.model != debate.agent(made.agent).model:
            return made
        rng = debate.rng(f"casting.per_call:{made.agent}:{debate.round}:{made.purpose}:{len(debate.transcript)}")
        return replace(made, model=rng.choice(sorted(set(debate.models))))


def degrees(debate: Debate, round: int = 2) -> list[int]:
    """By agent: the others that it reads, and the others that read it."""
    reads = [set(debate.neighbours(agent, round)) for agent in debate.agents]
    return [len(of) + sum(i in other for other in reads) for i, of in enumerate(reads)]


def in_turn(models: Sequence[str], n: int) -> list[str | None]:
    """The models of n agents that take them in turn; None for each where there are none."""
    return [models[i % len(models)] if models else None for i in range(n)]


def assign(personas: Sequence[Persona], models: Sequence[str | None]) -> list[Agent]:
    """Agents: the personas with their models."""
    return [Agent(i, persona, model) for i, (persona, model) in enumerate(zip(personas, models, strict=True))]


@hookimpl
def madplug_register_castings() -> list[type[Casting]]:
    """Register three castings."""
    return [Random, Central, PerCall]
