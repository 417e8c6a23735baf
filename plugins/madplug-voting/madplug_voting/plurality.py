"""Counting the answers themselves: no ballots, no calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from madplug import Agent, Decision, DecisionProtocol, Plan, Vote
from madplug_voting.nominees import Final, FinalOptions, nominees
from madplug_voting.tally import TiePolicy, broken, count, equal

if TYPE_CHECKING:
    from madplug import Debate

Answers = Mapping[int, tuple[str, str]]
"""Key and answer by agent, for those that have one."""


class Plurality(DecisionProtocol):
    """The answer that most agents give in the last round.

    Nobody is asked anything: each voter's last readable answer of the round counts once. With `vote_round` the answers
    are counted after every round from that one on, a single leader ends the debate, and a tie leads to one more round.
    A tie in the end leaves the debate undecided, unless `tie` or `fallback` says otherwise.
    """

    name = "plurality"
    source = "Kaesberg et al. 2025 (Voting or Consensus), appendix D"

    class Options(FinalOptions):
        """When to count, and what becomes of a tie."""

        vote_round: int | None = Field(default=None, ge=1, le=10_000, description=(
            "the first round after which answers are counted; by default only the last round's are"))
        scope: Literal["round", "latest"] = Field(default="round", description=(
            "whose answers count: those of the round that has just ended, or everybody's latest"))
        tie: TiePolicy = Field(default="undecided", description=(
            "what several leading answers lead to: one more round while there is one, then no decision (`undecided`); "
            "or that of the first agent, one by lot, or the first by its text"))
        fallback: Literal["none", "first_agent"] = Field(default="none", description=(
            "the answer of a debate that ends undecided; it never counts as agreed"))
        final: Final = Field(default="recorded", description=(
            "`recorded`: what was said counts; `ask_if_unread` asks a voter for its final answer where its last "
            "message states none, `ask` asks everybody"))

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
        return Decision(key, answer, scores=decision.scores, votes=decision.votes, tie=True, fallback=True,
                        reason=f"{decision.reason}; the answer is agent {first}'s")

    def decide(self, debate: Debate, answers: Answers) -> Decision:
        """The count."""
        votes = tuple(self._vote(agent, answers) for agent in debate.voters)
        keys = list(dict.fromkeys(key for key, _ in answers.values()))
        tally = count((equal([keys.index(key)]) for key, _ in answers.values()), len(keys))
        if not keys:
            return Decision(None, votes=votes, reason="no voter gave an answer that could be read")
        scores = {key: float(score) for key, score in zip(keys, tally.scores, strict=True)}
        most = f"{max(scores.values()):g} of {len(votes)} voters"
        lot = debate.rng(f"voting.plurality:tie:{debate.round}")
        chosen = broken(tally.leading, keys, self.options.tie, lot)
        if chosen is None:
            return Decision(None, scores=scores, votes=votes, tie=True,
                            reason=f"a tie of {len(tally.leading)}: {most} each")
        answer = next(text for key, text in answers.values() if key == keys[chosen])
        reason = f"{most}; a tie, broken by '{self.options.tie}'" if tally.tie else most
        return Decision(keys[chosen], answer, not tally.tie, scores, votes, tally.tie, reason=reason)

    async def answers(self, debate: Debate) -> Answers:
        """The voters' answers, in their order."""
        if self.options.final != "recorded":
            found = await nominees(debate, self.options.final, self.options.extract)
            return {n.agents[0]: (n.key, n.answer) for n in found}
        return {agent.id: said for agent in debate.voters if (said := self._said(debate, agent)) is not None}

    def _said(self, debate: Debate, agent: Agent) -> tuple[str, str] | None:
        for message in reversed(debate.transcript.by(agent)):
            if message.key is not None and (self.options.scope == "latest" or message.round == debate.round):
                return message.key, message.answer or message.key
        return None

    def _vote(self, agent: Agent, answers: Answers) -> Vote:
        return Vote(agent.id, {answers[agent.id][0]: 1.0} if agent.id in answers else {}, agent.id in answers)

    def calls(self, plan: Plan) -> int:
        """None, unless final answers are asked for."""
        if self.options.final == "recorded":
            return 0
        first = plan.rounds if self.options.vote_round is None else self.options.vote_round
        return plan.agents * max(1, plan.rounds - first + 1)
