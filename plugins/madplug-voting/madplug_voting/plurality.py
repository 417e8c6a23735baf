"""Counting the answers themselves: no ballots, no calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from madplug import Agent, Decision, DecisionProtocol, Plan, Vote, count
from madplug_prompting.finals import Final, FinalOptions, last_messages
from madplug_prompting.ties import Tie, break_tie, has_clear_lead, leaders
from madplug_voting.nominees import nominees, wording
from madplug_voting.recorded import find, record

if TYPE_CHECKING:
    from madplug import CellFacts, Debate

Answers = Mapping[int, tuple[str, str]]
"""Key and answer by agent, for those that have one."""


class Plurality(DecisionProtocol):
    """The answer that most agents give in the last round.

    No agent is asked anything: each voter's last readable answer of the round counts once. With `vote_round` the
    answers are counted after every round from that one on, a single leader ends the debate, and a tie leads to one
    more round. A tie in the end leaves the debate undecided, unless `tie` or `fallback` says otherwise.
    """

    name = "plurality"
    source = "Kaesberg et al. 2025 (Voting or Consensus), appendix D"

    class Options(FinalOptions):
        """When to count, and what becomes of a tie."""

        vote_round: int | None = Field(default=None, ge=1, le=10_000, description=(
            "the first round after which answers are counted; by default only the last round's are"))
        scope: Literal["round", "latest"] = Field(default="round", description=(
            "whose answers count: those of the round that has just ended, or every voter's latest"))
        tie: Tie = Field(default="undecided", description=(
            "what several leading answers lead to: one more round while there is one, then no decision (`undecided`); "
            "or that of the first agent, a random one, or the first alphabetically"))
        fallback: Literal["none", "first_agent"] = Field(default="none", description=(
            "the answer of a debate that ends undecided; it never counts as agreed"))
        final: Final = Field(default="recorded", description=(
            "`recorded`: what was said counts; `ask_if_unread` asks a voter for its final answer where its last "
            "message states none, `ask` asks every voter"))

    def warn(self, cell: CellFacts) -> Iterator[str]:
        """A round that does not come."""
        if (first := self.options.vote_round) is not None and first > cell.rounds:
            yield f"vote_round = {first} changes nothing: a debate has {count(cell.rounds, 'round')}"

    async def after_round(self, debate: Debate) -> Decision | None:
        """From `vote_round` on, the leading answer; None after a tie. The last round is counted by `at_end`."""
        first = self.options.vote_round
        if first is None or debate.round < first or debate.round >= debate.rounds:
            return None
        decision = self.decide(debate, await self.answers(debate))
        return None if decision.key is None else decision

    async def at_end(self, debate: Debate) -> Decision:
        """The leading answer of the last round."""
        answers = await self.answers(debate)
        decision = self.decide(debate, answers)
        if decision.key is not None or not answers or self.options.fallback == "none":
            return decision
        first = next(a.id for a in debate.voters if a.id in answers)
        key, answer = answers[first]
        whose = debate.agent(first).persona.name
        return Decision(key, wording(debate, key, answer), scores=decision.scores, votes=decision.votes, tie=True,
                        fallback=True, reason=f"{decision.reason}; the answer is that of {whose}")

    def decide(self, debate: Debate, answers: Answers) -> Decision:
        """The count."""
        every = self.options.final != "recorded" or self.options.scope == "latest"
        asked = {m.agent for m in debate.transcript.messages if m.answers and (every or m.round == debate.round)}
        votes = tuple(self._vote(agent, answers) for agent in debate.voters if agent.id in asked)  # others cast no vote
        scores = {key: float(count) for key, count in Counter(key for key, _ in answers.values()).items()}
        if not scores:
            why = "no voter gave an answer that could be read"
            if not every and any(m.key is not None for m in debate.transcript.messages):
                why += f' in round {debate.round}; scope = "latest" counts earlier ones'
            return Decision(None, votes=votes, reason=why)
        most = f"{max(scores.values()):g} of {len(debate.voters)} voters"
        leading = leaders(scores)
        chosen = break_tie(debate, leading, self.options.tie, f"voting.plurality:tie:{debate.round}")
        if chosen is None:
            return Decision(None, scores=scores, votes=votes, tie=True,
                            reason=f"a tie of {len(leading)}: {most} each")
        answer, tie = next(text for key, text in answers.values() if key == chosen), len(leading) > 1
        reason = f"{most}; a tie, broken by '{self.options.tie}'" if tie else most
        agreed = has_clear_lead(scores, unread=len(debate.voters) - len(answers))
        return Decision(chosen, wording(debate, chosen, answer), agreed, scores, votes, tie, reason=reason)

    async def answers(self, debate: Debate) -> Answers:
        """The voters' answers, in their order."""
        if self.options.final != "recorded":
            return await self._asked(debate)
        since, until = (0, None) if self.options.scope == "latest" else (debate.round, debate.round)
        last = last_messages(debate, since=since, until=until, readable=True)
        ended_on = last_messages(debate, [debate.agent(agent) for agent in last], since=since, until=until)
        if any(m.answers and m.key is None for m in ended_on.values()):
            debate.notes["voting.plurality"] = {"unparsed": True}
        return {agent: (m.key, m.answer or "") for agent, m in last.items() if m.key is not None}

    async def _asked(self, debate: Debate) -> Answers:
        """What voters write down when asked; noted, so that no voter is asked twice about the same round."""
        noted = find(debate, "voting.plurality")
        if noted is not None:
            return {row["agent"]: (row["key"], row["answer"]) for row in noted["answers"]}
        found = await nominees(debate, self.options)
        record(debate, "voting.plurality", {
            "answers": [{"agent": n.agents[0], "key": n.key, "answer": n.answer} for n in found]})
        return {n.agents[0]: (n.key, n.answer) for n in found}

    def _vote(self, agent: Agent, answers: Answers) -> Vote:
        return Vote(agent.id, {answers[agent.id][0]: 1.0} if agent.id in answers else {}, agent.id in answers)

    def calls(self, plan: Plan) -> int:
        """None, unless final answers are asked for."""
        if self.options.final == "recorded":
            return 0
        first = plan.rounds if self.options.vote_round is None else self.options.vote_round
        return plan.agents * max(1, plan.rounds - first + 1)
