"""What a council's reviews say about the reviewers, and whether the council was worth it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import mean
from typing import TYPE_CHECKING

from madplug import DebateResult, Metric
from madplug_council.ballots import agreement, mean_places
from madplug_council.stages import ballots, noted, reviews, seat

if TYPE_CHECKING:
    from madplug import Debate

Scores = dict[str, float | None]


class Ranks(Metric):
    """The mean place, from 1, that reviewers give the answers of each model: a table of leaders."""

    name = "ranks"

    def score(self, debate: Debate, references: Sequence[str]) -> Scores:
        """By model; the mean over its seats."""
        places: dict[str, list[float]] = defaultdict(list)
        for id, place in mean_places(ballots(debate)).items():
            places[seat(debate.agents[id])].append(place)
        return {name: mean(found) for name, found in places.items()}


class Reviewers(Metric):
    """How reviewers agree, and what pulls them: Kendall's W, self-preference, and the places of the letters.

    `agreement`: W over complete rankings, from 0 to 1. `self_preference`: the place a seat gives its own answer minus
    the mean place that the others give it, over seats; negative where seats favour themselves. `position`: the mean
    place of the answer that was shown first minus that of the one shown last; negative where the first is favoured.
    `unread`: the share of reviews without a ranking. Each is missing where nothing can be said.
    """

    name = "reviewers"

    def score(self, debate: Debate, references: Sequence[str]) -> Scores:
        """Four numbers."""
        found = [(m.agent, noted(m)["ranking"], noted(m)["labels"]) for m in reviews(debate) if noted(m).get("ranking")]
        favour, position = [], []
        for agent, ranking, labels in found:
            ids = list(labels.values())
            if ids[0] in ranking and ids[-1] in ranking:
                position.append(float(ranking.index(ids[0]) - ranking.index(ids[-1])))
            others = mean_places([other for who, other, _ in found if who != agent])
            if agent in ranking and agent in others:
                favour.append(ranking.index(agent) + 1 - others[agent])
        asked = [m for m in reviews(debate) if noted(m).get("ranking") or noted(m).get("odd")]
        return {"agreement": agreement([ranking for _, ranking, _ in found]),
                "self_preference": mean(favour) if favour else None, "position": mean(position) if position else None,
                "unread": mean(not noted(m).get("ranking") for m in asked) if asked else None}


class Missing(Metric):
    """How many seats failed and were left out or replaced."""

    name = "missing"

    def score(self, debate: Debate, references: Sequence[str]) -> float:
        """A count."""
        told = DebateResult(debate.cell.slug, debate.repeat, debate.sample, (), messages=debate.transcript.record)
        return float(len(told.failures))


class Uplift(Metric):
    """Whether the council is right, minus whether each model's own first opinion is: paired, by model.

    The least of these means is the gain over the best single seat, which is what a council has to show; it was asked
    n times as often. An opinion, of round 1, that is missing or cannot be read is wrong.
    """

    name = "uplift"

    def score(self, debate: Debate, references: Sequence[str]) -> Scores | None:
        """-1, 0 or 1 by model; the mean over its seats."""
        right = {debate.key(reference) for reference in references} - {None}
        if not right:
            return None
        assert debate.decision is not None
        first = {m.agent: m.key for m in reversed(debate.transcript.of_round(1)) if m.key is not None}
        gains: dict[str, list[float]] = defaultdict(list)
        for agent in debate.agents:
            if agent.persona.votes:
                gains[seat(agent)].append((debate.decision.key in right) - float(first.get(agent.id) in right))
        return {name: mean(found) for name, found in gains.items()}
