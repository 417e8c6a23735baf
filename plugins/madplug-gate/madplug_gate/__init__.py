"""Debates that are held only where one answer is not enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

from madplug import DecisionProtocol, Metric, Paradigm, Style, TurnOrder, Visibility, hookimpl
from madplug_gate.behind import Behind, First
from madplug_gate.curve import Curve
from madplug_gate.pair import CRITIQUE, Escalation, Majority, Panel
from madplug_gate.rated import Rated

if TYPE_CHECKING:
    import click

__all__ = ["Behind", "Curve", "Escalation", "First", "GateDebate", "GatePair", "Majority", "Panel", "Rated"]


class GateDebate(Paradigm):
    """One agent answers and says how sure it is; the others are asked, and a debate is held, only if it is not.

    1 call, or agents x rounds: the first answer is part of the debate. `debate.decision.by` names the gate: a stated
    confidence, the mean probability of the reply's tokens, the agreement of several first answers
    (`debate.turns.answers`), or a classifier that `madplug gate train` makes. In the debate everybody reads the others'
    replies with their confidences.

    Differs from the paper, of which an abstract and a review were at hand: the threshold and the prompts are ours.
    """

    name = "debate"
    source = "DOWN (arXiv 2504.05047); iMAD (arXiv 2511.11306), the classifier"
    debate = {
        "agents": 3, "rounds": 3, "turns": {"use": "gate.first", "inner": "turns.simultaneous"},
        "visibility": "visibility.everything", "styles": ["gate.rated"],
        "decision": {"use": "gate.behind", "inner": {"use": "voting.plurality", "tie": "first"}}}


class GatePair(Paradigm):
    """Two models answer; if they differ they debate; if that leads nowhere, a panel joins them and a majority decides.

    2 calls, 2 + 2d after d rounds of debate, or 2 + 2d + m with a panel of m: at most 9 with five agents and two
    rounds. Give the pair two different models: `models = ["one", "other", ...]`. Half of the panel reads the question
    only, the rest the debate too. Everything happens in one round, in stages.

    Differs from the paper, of which an abstract and notes were at hand: what a deadlock is, the size of the panel and
    equal weights are ours.
    """

    name = "pair"
    source = "HCP-MAD (arXiv 2604.09679)"
    debate = {
        "agents": 5, "rounds": 1, "turns": "gate.escalation", "visibility": "gate.panel",
        "styles": [{"use": "som.exchange", "exchange": CRITIQUE}], "decision": "gate.majority"}


@hookimpl
def madplug_register_paradigms() -> list[type[Paradigm]]:
    """Register two paradigms."""
    return [GateDebate, GatePair]


@hookimpl
def madplug_register_turn_orders() -> list[type[TurnOrder]]:
    """Register two turn orders."""
    return [First, Escalation]


@hookimpl
def madplug_register_decisions() -> list[type[DecisionProtocol]]:
    """Register two decisions."""
    return [Behind, Majority]


@hookimpl
def madplug_register_visibilities() -> list[type[Visibility]]:
    """Register the visibility."""
    return [Panel]


@hookimpl
def madplug_register_styles() -> list[type[Style]]:
    """Register the style."""
    return [Rated]


@hookimpl
def madplug_register_metrics() -> list[type[Metric]]:
    """Register the metric."""
    return [Curve]


@hookimpl
def madplug_register_commands(cli: click.Group) -> None:
    """Add `madplug gate train`."""
    from madplug_gate.command import gate

    cli.add_command(gate)
