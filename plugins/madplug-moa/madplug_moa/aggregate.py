"""The last layer: one model makes the answer of what the proposers wrote, or chooses among it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pydantic import Field, model_validator
from typing_extensions import Self

from madplug import Decision, DecisionProtocol, Message, Metric, ModelName, Options, Plan, Reply, Turn
from madplug_judge.synthesis import read_number
from madplug_moa.propose import ProposeOptions, request
from madplug_prompting.prompts import fill, question_parts, user
from madplug_prompting.replies import spoken

if TYPE_CHECKING:
    from madplug import Debate

RANK = """{question}

Several models answered this question:

{answers}

Which of these answers is the best? Reply with its number and nothing else."""


class AggregateOptions(ProposeOptions):
    """Who aggregates, and the prompts; those of the proposers by default."""

    model: ModelName | None = Field(default=None, description="the aggregator's model; default: the first agent's")


class Aggregate(DecisionProtocol):
    """An aggregator answers the question with the last layer's answers in its system message.

    It is asked as a proposer of a later layer is, and without a persona; its answer, not a vote, is the decision. The
    whole reply is in the notes under `moa`. Recorded proposals can be aggregated again, by another model or by a vote,
    with `madplug decide`. One call.
    """

    name = "aggregate"
    source = "Wang et al. 2024 (MoA), section 2.2; the authors' code"
    Options = AggregateOptions

    def calls(self, plan: Plan) -> int:
        """One."""
        return 1

    async def at_end(self, debate: Debate) -> Decision:
        """Aggregate, and read the answer."""
        proposals = [m.content for m in proposed(debate)]
        text = await self.aggregate(debate, proposals)
        debate.notes["moa"] = {"reply": text}
        answer, key = await debate.read(Turn(debate.agents[0], "final"), Reply(text))
        if key is None:
            debate.notes["moa"]["unparsed"] = True
            return Decision.undecided("the aggregator's reply gives no answer that could be read")
        return Decision(key, answer, agreed=True, reason=f"an aggregate of {len(proposals)} answers")

    async def aggregate(self, debate: Debate, answers: Sequence[str]) -> str:
        """What the aggregator makes of these answers, in one call."""
        form = debate.answers.form(debate.sample, body=self.options.max_characters)
        said = await debate.ask(request(debate, self.options, answers), purpose="aggregate", form=form,
                                model=self.options.model or debate.agents[0].model)
        return spoken(said.text)


class AggregateSequenceOptions(AggregateOptions):
    """The window."""

    window: int = Field(default=6, ge=2, le=1000, description="answers in one aggregation")
    repeat: int = Field(default=3, ge=1, le=999, description=(
        "places in the window that the synthesis so far takes; 1: a plain sliding window"))

    @model_validator(mode="after")
    def _window_moves(self) -> Self:
        if self.repeat >= self.window:
            raise ValueError("'repeat' has to be less than 'window', or no further answer fits into the window")
        return self


class AggregateSequence(Aggregate):
    """Aggregates a window of answers at a time, in which the synthesis so far is repeated.

    First the first `window` answers; then, step by step, the last synthesis `repeat` times and the next
    `window` - `repeat` answers, so that any number of answers fits into a model's context.
    N answers take 1 + ceil(max(0, N - `window`) / (`window` - `repeat`)) calls: 9 for 30.

    Differs from the paper: that the synthesis is repeated, and the defaults, are taken from another implementation.
    """

    name = "aggregate_sequence"
    source = "Li et al. 2025 (Self-MoA), section 5 (Self-MoA-Seq)"
    Options = AggregateSequenceOptions

    def calls(self, plan: Plan) -> int:
        """One for each window."""
        return 1 + len(list(self.windows(range(plan.turns))))

    async def aggregate(self, debate: Debate, answers: Sequence[str]) -> str:
        """Window by window."""
        best = await super().aggregate(debate, answers[:self.options.window])
        for fresh in self.windows(answers):
            best = await super().aggregate(debate, [*[best] * self.options.repeat, *fresh])
        return best

    def windows(self, answers: Sequence[object]) -> Iterator[list[str]]:
        """The answers after the first window, as many as each step adds."""
        step = self.options.window - self.options.repeat
        rest = [str(answer) for answer in answers[self.options.window:]]
        return (rest[i:i + step] for i in range(0, len(rest), step))


class RankOptions(Options):
    """Who ranks, and the prompt."""

    model: ModelName | None = Field(default=None, description="the ranker's model; default: the first agent's")
    prompt: str = Field(default=RANK, description="the request; {question}, {answers} (a numbered item each)")
    item: str = Field(default="{number}. {content}", description="one item; {number} (from 1), {content}")


class Rank(DecisionProtocol):
    """A ranker names the best of the last layer's answers, which is returned unchanged.

    It sees them numbered in the user message. Where its reply names none, or several, the first counts as a fallback,
    and `moa.losses` counts it. One call; none where there is only one answer.

    Differs from the paper: it is rebuilt from the description, and what follows an unreadable choice is ours.
    """

    name = "rank"
    source = "Wang et al. 2024 (MoA), section 3 (comparison with an LLM ranker)"
    Options = RankOptions

    def calls(self, plan: Plan) -> int:
        """One."""
        return 1

    async def at_end(self, debate: Debate) -> Decision:
        """Ask for a number."""
        found = [m for m in proposed(debate) if m.content.strip()]
        if not found:
            return Decision.undecided("no proposer gave an answer")
        number = await self.choose(debate, found) if len(found) > 1 else 0
        debate.notes["moa"] = {"chosen": number, **({"unparsed": True} if number is None else {})}
        best = found[number or 0]
        if best.key is None:
            return Decision.undecided("the chosen answer could not be read")
        reason = f"answer {(number or 0) + 1} of {len(found)}"
        return Decision(best.key, best.answer, agreed=number is not None, fallback=number is None, reason=(
            reason if number is not None else f"the ranker's choice could not be read: {reason}"))

    async def choose(self, debate: Debate, found: Sequence[Message]) -> int | None:
        """The place of the answer that the ranker names, or None."""
        items = "\n".join(fill(self.options.item, number=i, content=m.content) for i, m in enumerate(found, 1))
        prompt = fill(self.options.prompt, question=question_parts(debate.sample), answers=items)
        said = await debate.ask([user(debate.sample, prompt)], purpose="rank",
                                model=self.options.model or debate.agents[0].model,
                                form={"regex": "|".join(str(i) for i in range(1, len(found) + 1))})
        return read_number(said.text, len(found), 1)


def proposed(debate: Debate) -> list[Message]:
    """What the voters said in the last round, in the order of the record."""
    voters = {agent.id for agent in debate.voters}
    return [m for m in debate.transcript.of_round(debate.round) if m.agent in voters]


class Losses(Metric):
    """Proposals that failed, and whether the ranker's choice could not be read.

    `failed` counts requests of `moa.propose` that were not answered; `unread` is 1 or 0, and missing without a ranker.
    """

    name = "losses"

    def score(self, debate: Debate, references: Sequence[str]) -> dict[str, float | None]:
        """Two counts."""
        noted = debate.notes.get("moa", {})
        return {"failed": float(sum("failed" in m.data.get("moa", {}) for m in debate.transcript.messages)),
                "unread": float(noted["chosen"] is None) if "chosen" in noted else None}
