"""Confidence-weighted voting, as a third party would write it: with nothing but the host's public names."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from madplug import Agent, Debate, Decision, DecisionProtocol, Message, Options, Plan, Vote, hookimpl

PROMPT = """{question}

Your answer is: {answer}

How sure are you that it is right? Reply with one number from 0 (certainly wrong) to 100 (certainly right)."""
LEAST, MOST = 0.01, 0.99


class Weighted(DecisionProtocol):
    """Weights every voter's latest answer by the voter's confidence.

    After the last round each voter is asked how sure it is, unless its style has recorded a confidence already. The
    confidences are recalibrated: the log-odds are multiplied by `slope` (below 1 for overconfident models) and moved
    by `shift`. The answer with the largest sum wins. It is agreed on when it has more than half of the whole weight
    and more than half of all voters gave an answer that could be read. A voter whose confidence cannot be read has the
    weight `unread`, and its ballot is marked as not valid.
    """

    name = "weighted"
    source = "confidence-weighted voting, as in Chen et al. 2024 (ReConcile), with another recalibration"

    class Options(Options):
        """Options of `confidence_voting.weighted`."""

        prompt: str = Field(default=PROMPT, description="what is asked; {question} and {answer} are filled in")
        ask: Literal["missing", "always", "never"] = Field(
            default="missing", description="which voters are asked: those without a recorded confidence, all, or none")
        slope: float = Field(default=1.0, gt=0, le=10, description="what the log-odds are multiplied by")
        shift: float = Field(default=0.0, ge=-10, le=10, description="what is then added to the log-odds")
        unread: float = Field(default=0.5, ge=0, le=1, description="the weight where no confidence could be read")
        tie: Literal["first", "random", "undecided", "lexical"] = Field(
            default="first", description="which of several answers with the same weight wins")

    def calls(self, plan: Plan) -> int:
        """One for each voter."""
        return 0 if self.options.ask == "never" else plan.agents

    async def at_end(self, debate: Debate) -> Decision:
        """Ask, recalibrate, and add up."""
        said = {agent: message for agent in debate.voters if (message := latest(debate, agent)) is not None}
        if not said:
            return Decision.undecided("no voter gave an answer that could be read")
        sure = await debate.ask_all(self._sure(debate, agent, message) for agent, message in said.items())
        votes, scores = [], dict.fromkeys((str(m.key) for m in said.values()), 0.0)
        for (agent, message), confidence in zip(said.items(), sure, strict=True):
            weight = self.options.unread if confidence is None else self._calibrated(confidence)
            votes.append(Vote(agent.id, {str(message.key): weight}, valid=confidence is not None))
            scores[str(message.key)] += weight
        most_read = 2 * len(said) > len(debate.voters)
        return self._decide(debate, scores, tuple(votes), most_read=most_read)

    def _decide(self, debate: Debate, scores: Mapping[str, float], votes: tuple[Vote, ...], *,
                most_read: bool) -> Decision:
        most = max(scores.values())
        best = [key for key, score in scores.items() if math.isclose(score, most, abs_tol=1e-9)]
        tie = len(best) > 1
        if tie and self.options.tie == "undecided":
            return Decision(None, scores=scores, votes=votes, tie=True, reason="several answers weigh the same")
        key = self._one_of(debate, best) if tie else best[0]
        agreed = most_read and not tie and most > sum(scores.values()) / 2
        return Decision(key, agreed=agreed, scores=scores, votes=votes, tie=tie)

    def _one_of(self, debate: Debate, best: list[str]) -> str:
        if self.options.tie == "random":
            return debate.rng("confidence_voting.weighted:tie").choice(sorted(best))
        return min(best) if self.options.tie == "lexical" else best[0]

    async def _sure(self, debate: Debate, agent: Agent, message: Message) -> float | None:
        """How sure a voter is of its answer, between 0 and 1; None where that could not be read."""
        if self.options.ask == "never" or (self.options.ask == "missing" and message.confidence is not None):
            return message.confidence
        question = "\n".join([debate.sample.question, *debate.sample.choices])
        values = {"question": question, "answer": message.answer or str(message.key)}
        prompt = re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), self.options.prompt)
        return percent((await debate.ask(prompt, agent=agent, purpose="confidence")).text)

    def _calibrated(self, confidence: float) -> float:
        confidence = min(max(confidence, LEAST), MOST)  # no agent is so certain that the others cannot outvote it
        log_odds = self.options.slope * math.log(confidence / (1 - confidence)) + self.options.shift
        return 1 / (1 + math.exp(-log_odds))


def latest(debate: Debate, agent: Agent) -> Message | None:
    """The latest message of an agent that gave an answer."""
    return next((m for m in reversed(debate.transcript.by(agent)) if m.key is not None), None)


def percent(text: str) -> float | None:
    """The last number from 0 to 100 in a text, as a share: `I am 80% sure` is 0.8."""
    numbers = [float(number) for number in re.findall(r"(?<![\w.-])\d+(?:\.\d+)?", text)]
    return next((number / 100 for number in reversed(numbers) if number <= 100), None)


@hookimpl
def madplug_register_decisions() -> list[type[DecisionProtocol]]:
    """Register the decision protocol."""
    return [Weighted]
