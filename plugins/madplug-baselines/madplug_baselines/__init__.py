"""What a debate is compared with: one agent that answers once, many times, or improves its own answer."""

from __future__ import annotations

from madplug import DecisionProtocol, Paradigm, Style, TurnOrder, hookimpl
from madplug_baselines.samples import Last, MostCommon, Samples, Steps
from madplug_baselines.styles import Cot, Io


class SingleIo(Paradigm):
    """One agent answers once, without a prompt to think step by step."""

    name = "io"
    source = "Becker et al. 2025 (MALLM), appendix H"
    debate = {
        "agents": 1, "rounds": 1, "personas": ["personas.none"], "styles": ["baselines.io"],
        "turns": "turns.simultaneous", "visibility": "visibility.own", "decision": "baselines.most_common",
    }


class SingleCot(Paradigm):
    """One agent thinks step by step and answers once."""

    name = "cot"
    source = "Becker et al. 2025 (MALLM), appendix G.4"
    debate = {**SingleIo.debate, "styles": ["baselines.cot"]}


class SelfConsistency(Paradigm):
    """Several independent step-by-step answers, and the most common one; `agents` is how many.

    Sample them at a temperature above 0. With `match = {cell = "...", by = "calls"}` there are as many samples as
    that cell's debate of the same question made calls; `debate.turns.samples` sets another number.
    """

    name = "self_consistency"
    source = "Wang et al. 2023"
    debate = {**SingleCot.debate, "agents": 5, "turns": "baselines.samples"}


class SelfImprovement(Paradigm):
    """One agent improves its own answer, and the last one counts; `rounds` is how many messages.

    With `match = {cell = "...", by = "calls"}` there are as many messages as that cell's debate of the same
    question made calls.

    Differs from the paper: there each message is followed by a call that extracts the answer.
    """

    name = "self_improvement"
    source = "Becker et al. 2025 (MALLM), the ablation baseline of its code"
    debate = {**SingleCot.debate, "turns": "baselines.steps", "decision": "baselines.last"}


@hookimpl
def madplug_register_styles() -> list[type[Style]]:
    """Register two styles."""
    return [Io, Cot]


@hookimpl
def madplug_register_turn_orders() -> list[type[TurnOrder]]:
    """Register two turn orders."""
    return [Samples, Steps]


@hookimpl
def madplug_register_decisions() -> list[type[DecisionProtocol]]:
    """Register two decisions."""
    return [MostCommon, Last]


@hookimpl
def madplug_register_paradigms() -> list[type[Paradigm]]:
    """Register four paradigms."""
    return [SingleIo, SingleCot, SelfConsistency, SelfImprovement]
