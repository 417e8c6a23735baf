"""Who is asked, who sees what, and when the debate stops."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from madplug import Decision, DecisionProtocol, Message, ModelName, Options, Plan, Turn, TurnOrder, Visibility, Vote
from madplug_prompting.prompts import fill, question_parts, user
from madplug_prompting.replies import spoken
from madplug_prompting.ties import leaders

if TYPE_CHECKING:
    from madplug import Debate

KEPT = 2
"""Agents that the ranker keeps."""
RANK = """{question}

Several agents have answered:

{answers}

Choose the two best answers by their reasoning. End your reply with their numbers in this form: [1, 2]"""
_PAIR = re.compile(r"\[([1-9]\d{0,2}),\s{0,9}([1-9]\d{0,2})\]")


class OrderOptions(Options):
    """The ranker."""

    acting: Literal["chosen", "as_published"] = Field(default="chosen", description=(
        "who acts from round 3 on: those that the ranker has chosen; or, as in the authors' code, those in the "
        "shuffled order at the places that are the numbers of the chosen, which is two drawn at random"))
    model: ModelName | None = Field(default=None, description="the ranker's model; default: the first agent's")
    rank: str = Field(default=RANK, description="the ranker's request; {question}, {answers} (an item each)")
    item: str = Field(default="Answer {number}:\n{content}", description="one item; {number} (from 1), {content}")


class Order(TurnOrder):
    """One agent after the other, in an order drawn for each round; from round 3 on only the two that a ranker chooses.

    Agents follow each other so that a round can stop when enough agree; nobody has to see a reply of the same round.
    With more than three agents one call before round 3 shows all replies of round 2, shuffled and numbered, and asks
    for the best two; the last `[a, b]` counts, a number that is too high is the last one, the same number twice
    lets one act, and where there is none two are drawn. The choice is in the data of the turns it leads to, and calls
    that could not be read are counted by `dylan.unread`. In later rounds the two remain.

    Differs from the authors' code, which has no more than three rounds with a ranker and reads numbers up to 7 only.
    """

    name = "order"
    source = "Liu et al. 2023 (DyLAN), section 3.2; the authors' code for MMLU"
    moves = frozenset({"draft", "improve"})
    Options = OrderOptions

    def turns(self, agents: int, round: int) -> int:
        """All agents, or those that are kept."""
        return KEPT if is_ranked(agents, round) else agents

    def calls(self, plan: Plan) -> int:
        """One, before round 3."""
        return int(is_ranked(plan.agents, plan.rounds))

    async def waves(self, debate: Debate) -> AsyncIterator[Sequence[Turn]]:
        """A wave for each agent that acts."""
        order = list(debate.active)
        rng = debate.rng(f"dylan.order:{debate.round}")
        rng.shuffle(order)
        facts: dict[str, Any] = {"acting": len(order)}
        if is_ranked(len(debate.agents), debate.round):
            facts = {"acting": KEPT, **await self.choose(debate)}
            chosen = facts["chosen"]
            order = [agent for place, agent in enumerate(order)
                     if (agent.id if self.options.acting == "chosen" else place) in chosen]
        for agent in order:
            yield [Turn(agent, "draft" if debate.round == 1 else "improve", data={"dylan": facts})]

    async def choose(self, debate: Debate) -> dict[str, Any]:
        """The ids of the agents with the best replies of the round before, and whether the ranker could be read."""
        before = replies(debate, debate.round - 1)
        if len(before) <= KEPT:
            return {"chosen": sorted({m.agent for m in before})}
        rng = debate.rng(f"dylan.order:ranker:{debate.round}")
        rng.shuffle(before)
        items = "\n\n".join(fill(self.options.item, number=i, content=m.content) for i, m in enumerate(before, 1))
        prompt = fill(self.options.rank, question=question_parts(debate.sample), answers=items)
        said = await debate.ask([user(debate.sample, prompt)], purpose="rank",
                                model=self.options.model or debate.agents[0].model)
        found = _PAIR.findall(spoken(said.text))
        best = [before[min(int(n), len(before)) - 1] for n in found[-1]] if found else rng.sample(before, KEPT)
        return {"chosen": sorted({m.agent for m in best}), "ranker_unread": not found}


class Previous(Visibility):
    """The replies of the round before, an agent's own among them, in an order drawn for each agent and round.

    The order depends on the study's seed, the sample, the round and the agent. Agents that were silent are left out.
    """

    name = "previous"
    source = "Liu et al. 2023 (DyLAN), section 3.2; the authors' code for MMLU"

    def view(self, debate: Debate, turn: Turn) -> Sequence[Message]:
        """The replies, shuffled."""
        shown = replies(debate, debate.round - 1)
        debate.rng(f"dylan.previous:{debate.round}:{turn.agent.id}").shuffle(shown)
        return shown


class ConsensusOptions(Options):
    """Replies that cannot be read."""

    unread: Literal["ignored", "as_published"] = Field(default="ignored", description=(
        "replies whose answer cannot be read: they never count; or, as in the authors' code, they are an answer like "
        "any other, so that a debate can agree on none"))


class Consensus(DecisionProtocol):
    """The answer of more than two thirds of the agents, as soon as they have given it.

    Counted after each reply, among the agents of the round: all of them, heard or not yet, or from round 3 on the two
    that were chosen, both of which have to agree. Of n = 3, 4, 5, 6, 7 agents 3, 3, 4, 5, 5 are needed. In the end the
    most common answer of those who acted last is taken, of several the one given first.

    Differs from the authors' code in the default of `unread`.
    """

    name = "consensus"
    source = "Liu et al. 2023 (DyLAN), section 3.2; the authors' code for MMLU"
    Options = ConsensusOptions

    def after_wave(self, debate: Debate) -> Decision | None:
        """A decision once enough agree."""
        decision, enough = self.count(debate)
        return decision if enough else None

    def at_end(self, debate: Debate) -> Decision:
        """The most common answer of the last round."""
        return self.count(debate)[0]

    def count(self, debate: Debate) -> tuple[Decision, bool]:
        """The most common answer of the round so far, and whether enough agree on it."""
        voters = {agent.id for agent in debate.voters}
        said = {m.agent: m for m in debate.transcript.of_round(debate.round) if m.agent in voters}.values()
        counts = Counter(m.key for m in said if m.key is not None or self.options.unread == "as_published")
        acting = max((m.data.get("dylan", {}).get("acting", 0) for m in said), default=0) or len(voters)
        best = leaders(counts) or [None]
        enough = counts[best[0]] > 2 * acting // 3
        votes = tuple(Vote(m.agent or 0, {m.key: 1.0} if m.key else {}, m.key is not None) for m in said)
        reason = f"{counts[best[0]]} of {acting} agents" + (": no answer could be read" if best[0] is None else "")
        return Decision(best[0], agreed=enough and best[0] is not None, votes=votes, tie=len(best) > 1, reason=reason,
                        scores={key: float(count) for key, count in counts.items() if key is not None}), enough


def is_ranked(agents: int, round: int) -> bool:
    """Whether only those that the ranker has chosen act in a round."""
    return round > 2 and agents > KEPT + 1


def replies(debate: Debate, round: int) -> list[Message]:
    """What agents said in a round, by agent; without those that were silent."""
    said = [m for m in debate.transcript.of_round(round) if m.agent is not None and m.content.strip()]
    return sorted(said, key=lambda m: (m.agent, m.id))
