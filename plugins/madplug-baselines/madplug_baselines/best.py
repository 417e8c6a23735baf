"""The best of several samples, as a grader or the model's own probabilities have it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from madplug import Decision, DecisionProtocol, Message, ModelName, Options, Plan, Vote
from madplug_baselines.samples import samples_of
from madplug_prompting.patterns import regex
from madplug_prompting.prompts import fill, question_parts, user
from madplug_prompting.replies import without_thoughts
from madplug_prompting.ties import highest, leaders
from madplug_prompting.tokens import TokenProbabilities, mean_log_probability

if TYPE_CHECKING:
    from madplug import Debate

_SCORE = regex(r"(?i)score[\s*:=]{1,9}(\d{1,3}(?:\.\d{1,9})?)")
GRADE = """{question}

A proposed answer:

{content}

Go through it step by step and judge how likely it is to be right. End with a line `Score: N`, where N is a number \
from 0 (certainly wrong) to 10 (certainly right)."""


class BestOfNOptions(Options):
    """What makes a sample the best."""

    by: Literal["grader", "logprobs"] = Field(default="grader", description=(
        "grader: a model scores each answer, one call each; logprobs: the mean log-probability of the reply's tokens, "
        "which the endpoint has to give"))
    grader: ModelName | None = Field(default=None, description="who grades; default: the first agent's model")
    prompt: str = Field(default=GRADE, description="prompt of the grader. {question}, {content} (the sample)")


class BestOfN(TokenProbabilities, DecisionProtocol):
    """The answer of the one sample that a grader, or the probabilities of its own tokens, put first.

    A tie goes to the sample that came first, and counts as one where the answers differ. A sample without a readable
    answer is not graded; one whose score cannot be read cannot win, and the reason says how many there were. Where no
    sample has a score the first answer is taken as a fallback.
    """

    name = "best_of_n"
    source = "Cobbe et al. 2021, arXiv 2110.14168 (samples ranked by a verifier)"
    Options = BestOfNOptions

    @property
    def measures(self) -> bool:
        """Only where probabilities decide."""
        return self.options.by == "logprobs"

    def calls(self, plan: Plan) -> int:
        """One for each sample, of a grader."""
        return plan.all_turns if self.options.by == "grader" else 0

    async def at_end(self, debate: Debate) -> Decision:
        """Score the samples, and take the highest."""
        said = [m for m in samples_of(debate) if m.key is not None]
        if not said:
            return Decision.undecided("no sample gave an answer that could be read")
        found = await self.scores(debate, said)
        scores = {i: score for i, score in enumerate(found) if score is not None}
        votes = tuple(Vote(m.agent or 0, {m.key: score} if m.key and score is not None else {}, valid=score is not None)
                      for m, score in zip(said, found, strict=True))
        unread = f"{len(said) - len(scores)} of {len(said)} samples without a score"
        if not scores:
            return Decision(said[0].key, votes=votes, fallback=True, reason=unread)
        best = [said[i] for i in leaders(scores)]
        tie = len({m.key for m in best}) > 1
        return Decision(best[0].key, answer=best[0].answer, votes=votes, tie=tie, agreed=not tie, reason=unread,
                        scores=highest((said[i].key, score) for i, score in scores.items()))

    async def scores(self, debate: Debate, said: Sequence[Message]) -> list[float | None]:
        """By sample: the higher, the better."""
        if self.options.by == "logprobs":
            return [mean_log_probability(m) for m in said]
        return await debate.ask_all(self.grade(debate, m) for m in said)

    async def grade(self, debate: Debate, message: Message) -> float | None:
        """One call."""
        prompt = fill(self.options.prompt, question=question_parts(debate.sample), content=message.content)
        grader = self.options.grader
        graded = await debate.ask([user(debate.sample, prompt)], purpose="grade", model=grader,
                                  agent=None if grader else debate.agents[0])
        found = _SCORE.findall(without_thoughts(graded.text))
        return min(float(found[-1]), 10.0) if found else None
