"""What each agent contributed to the decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from madplug import Message, Metric

if TYPE_CHECKING:
    from madplug import Debate


def importances(messages: Sequence[Message], key: str | None) -> list[dict[int, float]]:
    """The importance of each agent that acted, by round.

    messages: of agents, with their ratings (`dylan.rating`). key: the decision. In the last round those who answer as
    decided share 1; before, an agent gets of each one that rated it the weight it was given times that one's
    importance.
    """
    rounds: list[dict[int, Message]] = []
    for number in sorted({m.round for m in messages if m.round > 0 and m.agent is not None}):
        rounds.append({m.agent: m for m in messages if m.round == number and m.agent is not None})
    if not rounds:
        return []
    right = [agent for agent, m in rounds[-1].items() if key is not None and m.key == key]
    found = [{agent: 1 / len(right) if agent in right else 0.0 for agent in rounds[-1]}]
    for before, after in zip(rounds[-2::-1], rounds[:0:-1], strict=True):
        shares = {j: _weights(m) for j, m in after.items()}
        found.append({i: sum(shares[j].get(str(i), 0.0) * found[-1][j] for j in after) for i in before})
    return found[::-1]


def _weights(message: Message) -> Mapping[str, float]:
    weights: Mapping[str, float] = message.data.get("dylan", {}).get("weights", {})
    return weights


def has_ratings(messages: Sequence[Message]) -> bool:
    """Whether any author rated others."""
    return any(map(_weights, messages))


def scores(messages: Sequence[Message], key: str | None) -> dict[int, float]:
    """The importance of each agent, summed over the rounds."""
    rounds = importances(messages, key)
    return {agent: sum(of.get(agent, 0.0) for of in rounds) for agent in sorted({a for of in rounds for a in of})}


class Importance(Metric):
    """What each agent contributed to the decision, by the ratings of its peers; by the name of its persona.

    The sum over the rounds, as `madplug_dylan.importances` explains; 0 for an agent that did not act. `dylan.team`
    chooses a team by its mean over a study's debates.
    """

    name = "importance"
    source = "Liu et al. 2023 (DyLAN), section 3.3 (agent importance score)"

    def score(self, debate: Debate, references: Sequence[str]) -> dict[str, float | None]:
        """A number for each agent."""
        found = scores(debate.transcript.messages, debate.decision.key if debate.decision else None)
        return {agent.persona.name: found.get(agent.id, 0.0) for agent in debate.agents}


class Unread(Metric):
    """Lists of ratings, and choices of the ranker, that could not be read."""

    name = "unread"

    def score(self, debate: Debate, references: Sequence[str]) -> dict[str, float | None]:
        """Two counts."""
        noted = [(m.round, m.data.get("dylan", {})) for m in debate.transcript.messages]
        ranked = {round for round, facts in noted if facts.get("ranker_unread")}
        return {"ratings": float(sum(facts.get("unread", False) for _, facts in noted)), "rankings": float(len(ranked))}
