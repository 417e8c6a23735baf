"""A council of models: independent opinions, reviews under letters, rankings, and a chair, a vote or a jury."""

from __future__ import annotations

from typing import Any

from madplug import DecisionProtocol, Metric, Paradigm, Style, TurnOrder, hookimpl
from madplug_council.chair import Best, Chair, Select
from madplug_council.jury import Ballot, Jury
from madplug_council.metrics import Missing, Ranks, Reviewers, Uplift
from madplug_council.stages import Opinion, Review, Stages

__all__ = ["Ballot", "Best", "Chair", "Jury", "Missing", "Opinion", "Ranks", "Review", "Reviewers", "Select", "Stages",
           "Uplift"]

_COUNCIL: dict[str, Any] = {
    "agents": 3, "rounds": 2, "personas": ["personas.none"], "turns": "council.stages",
    "visibility": "visibility.everything",
    "styles": ["council.opinion", "council.review"], "decision": "council.chair"}
_PLAIN = "Answer {label}:\n{content}"
_ALONE: dict[str, Any] = {
    **_COUNCIL, "rounds": 1, "styles": ["council.opinion"], "turns": {"use": "council.stages", "moves": ["draft"]}}


class ThreeStages(Paradigm):
    """Opinions, reviews under letters, and a chair that sees both and the ranking: 1 + 2n calls.

    Two answers are reviewed and not ranked: all that such a ranking shows is who prefers the own one.

    Differs from the original: see `council.review` and `council.chair`; `council.original` is closer to it.
    """

    name = "three_stages"
    source = "karpathy/llm-council, 2025 (after a fork's code)"
    debate = {**_COUNCIL, "styles": ["council.opinion", {"use": "council.review", "rank_from": 3}]}


class Original(Paradigm):
    """The three stages as they were published: letters by seat, and a chair that sees names and no ranking.

    Differs from the original: a seat without an answer fails the debate, or with `on_failed_agent = "drop"` does not
    review; there is no call for a title. Which heading counts, and repeats: see `council.review`.
    """

    name = "original"
    source = ThreeStages.source
    debate = {**_COUNCIL,
              "styles": ["council.opinion",
                         {"use": "council.review", "labels": "fixed", "attempts": 1, "item": _PLAIN}],
              "decision": {"use": "council.chair", "names": True, "sees": ["critiques"], "item": _PLAIN}}


class Ranked(Paradigm):
    """Opinions and reviews; the best-ranked answer stands as it is: 2n calls."""

    name = "ranked"
    debate = {**_COUNCIL, "decision": "council.best"}


class Selected(Paradigm):
    """Opinions, one of which a selector picks: 1 + n calls."""

    name = "selected"
    source = Select.source
    debate = {**_ALONE, "decision": "council.select"}


class Fusion(Paradigm):
    """A panel, an analysis of its answers, and an answer that draws on both: n + 2 calls."""

    name = "fusion"
    source = "OpenRouter Fusion, 2026 (after its description)"
    debate = {**_ALONE, "decision": {"use": "council.chair", "analysis": True}}


class Delphi(Paradigm):
    """Opinions are pooled without names or counts and revised twice; a chair sums up: 1 + 3n calls.

    Differs from the Delphi method: the number of rounds is fixed, and no statistics are fed back.
    """

    name = "delphi"
    source = "Dalkey and Helmer 1963"
    debate = {**_ALONE, "rounds": 3, "turns": {"use": "council.stages", "moves": ["draft", "improve"]}}


class Dialectic(Paradigm):
    """Opinions are reviewed, revised in their defence, and reviewed again; the best-ranked one stands: 4n calls."""

    name = "dialectic"
    debate = {**_COUNCIL, "rounds": 4, "decision": "council.best",
              "turns": {"use": "council.stages", "moves": ["draft", "review", "improve", "review"]}}


class JuryTrial(Paradigm):
    """Every seat votes on a claim, with a confidence and a reason: n calls. It needs `answers.yesno`."""

    name = "jury"
    debate = {**_ALONE, "styles": ["council.ballot"], "decision": "council.jury"}


@hookimpl
def madplug_register_styles() -> list[type[Style]]:
    """Register three styles."""
    return [Opinion, Review, Ballot]


@hookimpl
def madplug_register_turn_orders() -> list[type[TurnOrder]]:
    """Register the turn order."""
    return [Stages]


@hookimpl
def madplug_register_decisions() -> list[type[DecisionProtocol]]:
    """Register four decisions."""
    return [Best, Chair, Select, Jury]


@hookimpl
def madplug_register_metrics() -> list[type[Metric]]:
    """Register four metrics."""
    return [Ranks, Reviewers, Missing, Uplift]


@hookimpl
def madplug_register_paradigms() -> list[type[Paradigm]]:
    """Register eight paradigms."""
    return [ThreeStages, Original, Ranked, Selected, Fusion, Delphi, Dialectic, JuryTrial]
