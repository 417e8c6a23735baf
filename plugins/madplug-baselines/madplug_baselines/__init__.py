"""What a debate is compared with: one agent that answers once, many times, or improves its own answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from madplug import DecisionProtocol, Paradigm, Style, TurnOrder, hookimpl
from madplug_baselines.best import BestOfN
from madplug_baselines.samples import Last, MostCommon, Refinement, Samples, Steps
from madplug_baselines.styles import Cot, Io, Refine, Shuffled

SOLO = """Solve the task below as a small group would. First name the participants whose knowledge the task calls for, \
an "AI assistant" who leads among them. Then let them speak in turn: the assistant proposes a solution, the others \
check it and say what is wrong or missing, and the assistant revises, until nobody objects. Then the assistant states \
the result.

An example.
Task: A shop sells pens at 3 for 2 euros. What do 12 pens cost?
Participants: AI assistant (you); shop clerk; mathematics teacher.
AI assistant: 12 pens at 2 euros are 24 euros. Please check this.
Shop clerk: No, 2 euros is the price of three pens, not of one.
Mathematics teacher: So count the groups of three: 12 / 3 = 4 groups, at 2 euros each.
AI assistant: Revised: 4 x 2 = 8 euros. Any objection?
Shop clerk: None.
Mathematics teacher: None.
Result: 8 euros.

Now the task.

{question}"""
"""The frame of `baselines.solo_performance`."""

if TYPE_CHECKING:
    import click


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
    that cell's debate of the same question made calls; `debate.turns.samples` sets another number. Several models take
    turns, sample by sample; name one with `debate.models` for the self-consistency of a single one.
    """

    name = "self_consistency"
    source = "Wang et al. 2023"
    debate = {**SingleCot.debate, "agents": 5, "turns": "baselines.samples"}


class BestOfSamples(Paradigm):
    """Several independent step-by-step answers, and the one that a grader scores highest; `agents` is how many.

    `debate.decision.by = "logprobs"` takes the one whose tokens were the most probable, without a further call.
    """

    name = "best_of_n"
    source = BestOfN.source
    debate = {**SelfConsistency.debate, "decision": "baselines.best_of_n"}


class EnsembleRefinement(Paradigm):
    """Sampled answers, and then one that is written in view of all of them.

    samples + refinements calls: 3 + 1; Med-PaLM 2 used 11 + 33. The most common of the refinements counts, or of the
    samples where `debate.turns.refinements = 0`.
    """

    name = "ensemble_refinement"
    source = Refine.source
    debate = {**SingleCot.debate, "turns": "baselines.refinement", "styles": ["baselines.refine"],
              "visibility": "visibility.everything",
              "decision": {"use": "baselines.most_common", "moves": ["improve"]}}


class Medprompt(Paradigm):
    """Several step-by-step answers, each to the choices in another order, and the most common; `agents` is how many.

    As in DebateLLM no solved questions are looked up; the paper's are `neighbours = 5` of the style, with an `embedder`
    and a data set that has a training split.
    """

    name = "medprompt"
    source = Shuffled.source
    debate = {**SelfConsistency.debate, "styles": ["baselines.shuffled"]}


class SoloPerformance(Paradigm):
    """One call in which the model names several participants, lets them talk, and ends with one answer.

    Differs from the paper: one example instead of its two, in our own words.
    """

    name = "solo_performance"
    source = "arXiv 2307.05300 (Solo Performance Prompting); Smit et al. 2024, DebateLLM"
    debate = {**SingleIo.debate, "styles": [{"use": "baselines.io", "frame": SOLO}]}


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
    """Register four styles."""
    return [Io, Cot, Shuffled, Refine]


@hookimpl
def madplug_register_turn_orders() -> list[type[TurnOrder]]:
    """Register three turn orders."""
    return [Samples, Steps, Refinement]


@hookimpl
def madplug_register_decisions() -> list[type[DecisionProtocol]]:
    """Register three decisions."""
    return [MostCommon, Last, BestOfN]


@hookimpl
def madplug_register_paradigms() -> list[type[Paradigm]]:
    """Register eight paradigms."""
    return [SingleIo, SingleCot, SelfConsistency, SelfImprovement, BestOfSamples, EnsembleRefinement, Medprompt,
            SoloPerformance]


@hookimpl
def madplug_register_commands(cli: click.Group) -> None:
    """Add `--calls` to `madplug check`."""
    from madplug_baselines.budget import add_calls

    add_calls(cli)
