"""Mixture of agents (Wang et al. 2024): layers of proposers, and an aggregator that writes the answer."""

from __future__ import annotations

from typing import Any

from madplug import DecisionProtocol, Metric, Paradigm, Style, hookimpl
from madplug_moa.aggregate import Aggregate, AggregateSequence, Losses, Rank
from madplug_moa.propose import Propose

__all__ = ["Aggregate", "AggregateSequence", "Lite", "Losses", "Mixture", "Propose", "Rank", "Ranker", "SelfMixture",
           "SelfSequence"]

_MIXTURE: dict[str, Any] = {
    "agents": 6, "rounds": 2, "turns": "turns.simultaneous", "visibility": "visibility.previous_round",
    "styles": ["moa.propose"], "decision": "moa.aggregate"}


class Mixture(Paradigm):
    """Two layers of six proposers, the second shown the answers of the first, and an aggregator.

    `rounds` counts the layers of proposers, so a mixture of L layers has L - 1 rounds; the aggregator is the last
    layer. n proposers make n x rounds calls, and the aggregator one: 13.

    Differs from the paper: a conversation is one question here, so there is no history before the last turn. The
    temperature (0.7) and the length (2,048 tokens) are options of the models.
    """

    name = "mixture"
    source = "Wang et al. 2024 (MoA), section 2; the authors' code"
    debate = _MIXTURE


class Lite(Paradigm):
    """One layer of six proposers, and an aggregator: 7 calls.

    As `moa.mixture` otherwise.
    """

    name = "lite"
    source = "Wang et al. 2024 (MoA), section 3 (MoA-Lite); the authors' code"
    debate = {**_MIXTURE, "rounds": 1}


class Ranker(Paradigm):
    """The proposers of `moa.mixture`, one of whose answers is chosen and returned unchanged: the paper's baseline."""

    name = "ranker"
    source = "Wang et al. 2024 (MoA), section 3 (comparison with an LLM ranker)"
    debate = {**_MIXTURE, "decision": "moa.rank"}


class SelfMixture(Paradigm):
    """Six answers of one model, and an aggregation by the same model: 7 calls.

    Of several models in `debate.models` each answers in turn, which `madplug check` warns of: name one.

    Differs from the paper: the number of answers is from memory; `debate.turns.samples` sets it.
    """

    name = "self"
    source = "Li et al. 2025 (Self-MoA), section 3"
    debate = {**_MIXTURE, "agents": 1, "rounds": 1, "turns": {"use": "baselines.samples", "samples": 6}}


class SelfSequence(Paradigm):
    """Thirty answers of one model, aggregated in a sliding window that holds the best answer so far: 39 calls.

    Differs from the paper: the number of answers is that of another implementation; `debate.turns.samples` sets it.
    """

    name = "self_seq"
    source = "Li et al. 2025 (Self-MoA), section 5 (Self-MoA-Seq)"
    debate = {**SelfMixture.debate, "turns": {"use": "baselines.samples", "samples": 30},
              "decision": "moa.aggregate_sequence"}


@hookimpl
def madplug_register_styles() -> list[type[Style]]:
    """Register the style."""
    return [Propose]


@hookimpl
def madplug_register_decisions() -> list[type[DecisionProtocol]]:
    """Register three decisions."""
    return [Aggregate, AggregateSequence, Rank]


@hookimpl
def madplug_register_metrics() -> list[type[Metric]]:
    """Register the metric."""
    return [Losses]


@hookimpl
def madplug_register_paradigms() -> list[type[Paradigm]]:
    """Register five paradigms."""
    return [Mixture, Lite, Ranker, SelfMixture, SelfSequence]
