"""Agents that repeat recorded answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field
from typing_extensions import override

from madplug import Message, Options, Persona, PersonaGenerator, Reply, Sample, Style, Turn, TurnOrder
from madplug_replay.trajectories import recorded

if TYPE_CHECKING:
    from madplug import Debate


class Personas(PersonaGenerator):
    """One agent per recorded agent of the sample.

    They are called `Agent 1`, `Agent 2`, ..., or by the names in the row's `agents`. The number may differ
    between the samples of a study; leave `debate.agents` out. If it asks for more agents than were recorded,
    the additional ones have no vote.
    """

    name = "personas"
    count = 0  # the row has the number

    def generate(self, debate: Debate, roster: Sequence[Persona]) -> Persona | Sequence[Persona]:
        """All of them at once."""
        names = debate.sample.metadata.get("agents")
        width = max(map(len, recorded(debate.sample)))
        names = names if isinstance(names, list) else []
        made = [Persona(str(names[i]) if i < len(names) else f"Agent {i + 1}") for i in range(width)]
        return made[len(roster):] or Persona(f"Agent {len(roster) + 1}", "not recorded", votes=False)


class RecordOptions(Options):
    """How a record is read."""

    empty: str = Field(default="unknown", description=(
        "what an agent says whose recorded answer is an empty string, which means that there is no answer"))
    scale: Literal["auto", "identity", "logistic"] = Field(default="auto", description=(
        "how a recorded `score` becomes a confidence between 0 and 1; logistic: 1 / (1 + exp(-score)), for rewards of "
        "any size; auto: logistic if the row has a score outside 0 to 1, else identity"))


class Recorded(Style):
    """Repeats what the agent answered in this round of the record. No model is called.

    A turn without a recorded answer becomes a message without an answer. The confidence comes from the row's
    `confidence` or `score`. Everything else about a debate is as if the answers had just been given, so
    any decision, metric, extension or phase that calls no model runs on recorded debates.
    """

    name = "recorded"
    moves = frozenset({"draft", "improve"})
    gives = frozenset({"confidence"})
    Options = RecordOptions

    def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """Look up the answer."""
        k, agent = debate.round - 1, turn.agent.id
        answer = at(recorded(debate.sample), k, agent)
        if answer is None:
            return Reply("", answer="")
        said = answer if answer.strip() else self.options.empty
        return Reply(said, answer=said, confidence=confidence(debate.sample, k, agent, self.options.scale))

    @override
    def calls(self, plan: Any) -> int:
        return 0


class Rounds(TurnOrder):
    """All recorded agents at the same time, for as many rounds as were recorded.

    The debate ends where the record of its sample ends, or at `debate.rounds`, whichever comes first.
    """

    name = "rounds"
    moves = frozenset({"draft", "improve"})

    def waves(self, debate: Debate) -> Iterator[Sequence[Turn]]:
        """One wave per recorded round."""
        answers = recorded(debate.sample)
        if debate.round <= len(answers):
            width = len(answers[debate.round - 1])
            yield [Turn(a, "draft" if debate.round == 1 else "improve") for a in debate.agents if a.id < width]


def at(table: Any, k: int, agent: int) -> Any:
    """The entry of a round and an agent, or None."""
    row = table[k] if isinstance(table, list) and k < len(table) else None
    return row[agent] if isinstance(row, list) and agent < len(row) else None


def confidence(sample: Sample, k: int, agent: int, scale: str) -> float | None:
    """The recorded confidence of an agent in a round, between 0 and 1."""
    for column in ("confidence", "score"):
        table = sample.metadata.get(column)
        if isinstance(table, list) and table and not isinstance(table[0], list):
            table = [table]  # one round, written without the list around it
        value = at(table, k, agent)
        if not isinstance(value, int | float):
            continue
        values = [v for row in table or () for v in row if isinstance(v, int | float)]
        within = all(0 <= v <= 1 for v in values)
        if column == "score" and (scale == "logistic" or (scale == "auto" and not within)):
            return logistic(value)
        return min(1.0, max(0.0, float(value)))
    return None


def logistic(score: float) -> float:
    """The logistic function, which does not overflow for any score."""
    return 1 / (1 + exp(-score)) if score >= 0 else exp(score) / (1 + exp(score))
