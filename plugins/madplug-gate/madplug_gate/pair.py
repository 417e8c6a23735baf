"""Two models that differ debate, and call a panel where that leads nowhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from madplug import Agent, Decision, DecisionProtocol, Message, Options, Turn, TurnOrder, Visibility, Vote
from madplug_prompting.ties import leaders

if TYPE_CHECKING:
    from madplug import Debate

Pair = tuple[str | None, str | None]
CRITIQUE = """Others worked on the same question and do not agree:

{answers}

Examine their reasoning step by step: say which steps hold and which do not, and why. Then give the answer that you \
believe to be right after this. {format}"""


def answers_of_pair(debate: Debate) -> list[Pair]:
    """The answers of the first two agents: alone, then after each round of their debate."""
    said = [[m.key for m in debate.transcript.by(agent) if m.round > 0] for agent in debate.agents[:2]]
    return list(zip(*said, strict=False)) if len(said) == 2 else []


def is_over(answers: Sequence[Pair], deadlock: int) -> bool:
    """Whether a debate has stopped being useful.

    Exchange: each has taken over what the other had said before. Deadlock: both have kept their answers for this many
    rounds in a row.
    """
    if len(answers) < 2:
        return False
    now, before = answers[-1], answers[-2]
    return now == before[::-1] != before or (len(answers) > deadlock and len(set(answers[-deadlock - 1:])) == 1)


class EscalationOptions(Options):
    """How long the two debate."""

    debate: int = Field(default=2, ge=0, le=100, description="rounds of debate between the two, at most")
    deadlock: int = Field(default=2, ge=1, le=100, description=(
        "rounds in a row in which both keep their answers, after which the debate leads nowhere"))


class Escalation(TurnOrder):
    """The first two agents answer, then debate while they differ and it is of use, and then all others answer.

    Everything happens in one round, as stages: `alone`, `debate`, `panel`. The first half of the others, the larger one
    of an odd number, drafts on its own; the rest reads the debate. 2 + 2 x `debate` + (agents - 2) turns at most.
    """

    name = "escalation"
    moves = frozenset({"draft", "improve"})
    source = "HCP-MAD (arXiv 2604.09679)"
    Options = EscalationOptions

    def waves(self, debate: Debate) -> Iterator[Sequence[Turn]]:
        """Stage by stage; a decision ends them when the two agree."""
        pair, others = debate.agents[:2], debate.agents[2:]
        yield [Turn(agent, "draft", "alone") for agent in pair]
        for _ in range(self.options.debate):
            if is_over(answers_of_pair(debate), self.options.deadlock):
                break
            yield [Turn(agent, "improve", "debate") for agent in pair]
        if others:
            yield [Turn(a, "draft" if observes(a, debate) else "improve", "panel") for a in others]

    def turns(self, agents: int, round: int) -> int:
        """All stages."""
        pair = min(agents, 2)
        return pair * (1 + int(self.options.debate)) + agents - pair

    def steps(self, agents: int, round: int) -> int:
        """One for each time that the two speak, and one for the panel."""
        return 1 + int(self.options.debate) + int(agents > 2)


def observes(agent: Agent, debate: Debate) -> bool:
    """Whether a member of the panel reads the question only."""
    return 2 <= agent.id < 2 + (len(debate.agents) - 1) // 2


class Panel(Visibility):
    """The first two agents see each other, the first half of the others nothing, and the rest the two's debate."""

    name = "panel"
    source = "HCP-MAD (arXiv 2604.09679)"

    def view(self, debate: Debate, turn: Turn) -> Sequence[Message]:
        """Own messages, those of the first two, and what no agent wrote."""
        shown = {None, turn.agent.id} | ({0, 1} if not observes(turn.agent, debate) else set())
        return [m for m in debate.transcript.messages if m.agent in shown]

    def neighbours(self, debate: Debate, agent: Agent, round: int) -> Sequence[int]:
        """The first two, for those who see them."""
        return () if observes(agent, debate) else tuple(a.id for a in debate.active if a.id in {0, 1} - {agent.id})


class MajorityOptions(Options):
    """What an answer counts."""

    pair: float = Field(default=1.0, ge=0, description="weight of an answer of the first two agents")
    observers: float = Field(default=1.0, ge=0, description="weight of an answer of those who saw the question only")
    reviewers: float = Field(default=1.0, ge=0, description="weight of an answer of those who read the debate")


class Majority(DecisionProtocol):
    """Equal answers of the first two agents end the debate; else the answer with the most weight among all agents wins.

    Each voter's last readable answer counts. Of equal answers the first agent's wins, whose model the run file names
    first, or else the one given first.
    """

    name = "majority"
    source = "HCP-MAD (arXiv 2604.09679)"
    Options = MajorityOptions

    def after_wave(self, debate: Debate) -> Decision | None:
        """The answer of the two, if it is one, and before a panel is asked."""
        answers = answers_of_pair(debate)
        if not answers or debate.transcript.messages[-1].agent not in (0, 1):
            return None
        one, other = answers[-1]
        return Decision(one, agreed=True, reason="the first two agree") if one is not None and one == other else None

    def at_end(self, debate: Debate) -> Decision:
        """Weigh the last answers."""
        last = {a: next((m.key for m in reversed(said) if m.key), None) for a in debate.voters
                if (said := debate.transcript.by(a))}  # others were not asked
        if any(m.answers and m.key is None for a in last for m in debate.transcript.by(a)[-1:]):
            debate.notes["gate.majority"] = {"unparsed": True}
        votes = tuple(Vote(a.id, {key: self.weight(a, debate)} if key else {}, valid=key is not None)
                      for a, key in last.items())
        counts: Counter[str] = Counter()
        for vote in votes:
            counts.update(vote.weights)
        best = leaders(counts)
        if not best:
            return Decision.undecided("no agent gave an answer that could be read")
        return Decision(best[0], scores=dict(counts), votes=votes, tie=len(best) > 1,
                        agreed=len(best) == 1 and 2 * counts[best[0]] > sum(counts.values()))

    def weight(self, agent: Agent, debate: Debate) -> float:
        """What an agent's answer counts."""
        if agent.id < 2:
            return self.options.pair
        return self.options.observers if observes(agent, debate) else self.options.reviewers

    def check(self, cell: Any) -> Iterable[str]:
        """Some answer counts."""
        if not self.options.pair + self.options.observers + self.options.reviewers:
            yield "all weights are 0"
