"""Which messages of a round are worth reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from madplug import (
    Agent,
    Message,
    Metric,
    ModelName,
    Nested,
    Options,
    Plan,
    Review,
    Turn,
    Visibility,
    hookimpl,
    maybe_await,
)
from madplug_prompting.patterns import regex
from madplug_prompting.prompts import fill, question_parts, speaker, transcribe, user
from madplug_prompting.replies import without_thoughts
from madplug_prompting.ties import break_tie, leaders
from madplug_prompting.tokens import TokenProbabilities, mean_log_probability

if TYPE_CHECKING:
    from madplug import Debate

SOURCE = "DAR (arXiv 2603.20640); the authors' code"
Reviewed = Review | None | Awaitable[Review | None]
CRITERIA = {
    "critical": "that differ most from each other and from the answer of most agents, with reasons that are worth "
                "answering",
    "certain": "whose authors are the most certain, as their words and their likelihoods show",
    "support": "that support the answer of most agents with the best reasons",
    "disagree": "that disagree with the answer of most agents",
    "general": "that are the most relevant to answering the question",
}
"""What is kept by a call, in words."""
FILTER = """{question}

Several agents answered this question:

{answers}

The answer of most agents: {majority}

Choose the agents whose messages the others should read next: those {criterion}. Leave out what only repeats another \
message. End with a line that lists their names in brackets, for example [{example}]."""
MEASURED = "(mean negative log-likelihood of this reply: {nll})"
_LIST = regex(r"\[([^\[\]]{0,10000})\]")


class RetainedOptions(Options):
    """What is kept, and how it is chosen."""

    inner: Nested[Visibility] = Field(default="visibility.previous_round", description=(  # type: ignore[assignment]
        "the visibility whose messages are narrowed down"))
    mode: Literal["critical", "certain", "support", "disagree", "general", "vote", "nonvote", "likely"] = Field(
        default="critical", description=(
            "what is kept. By one call: `critical` (the method; what differs most), `certain`, `support`, `disagree`, "
            "`general` (relevant). Without a call: `vote` and `nonvote`, those with and without the answer of most "
            "agents; `likely`, the `share` of replies with the highest mean log-probability"))
    share: float = Field(default=0.5, gt=0, le=1, description="with `likely`: the share that is kept, at least one")
    likelihood: bool = Field(default=True, description=(
        "ask for log-probabilities, and record them with each message; false for an endpoint that refuses the request "
        "or gives none"))
    measured: str = Field(default=MEASURED, description=(
        "prompt of the choice: what follows a reply whose tokens' probabilities were measured; {nll}, with 4 decimals"))
    model: ModelName | None = Field(default=None, description="who chooses; default: the first agent's model")
    prompt: str = Field(default=FILTER, description=(
        "prompt of the choice. {question}, {answers} (under names), {majority}, {criterion}, {example} (two names)"))
    criterion: str = Field(default="", description="prompt: another {criterion} than that of the mode")
    majority: str = Field(default="The answer of most agents so far: {majority}", description=(
        "what agents are told with the messages; {majority}"))


class Retained(TokenProbabilities, Visibility):
    """Another visibility, of whose messages only those are shown that are worth reading, the same to everybody.

    After each round but the last one call reads all its messages, under their authors' names, with the answer of most
    agents, and lists the names to keep; a further mode needs no call. The choice goes on record in a message that tells
    everybody the answer of most agents. An agent is never shown its own message as a peer's; one for whom nothing is
    left is shown all peers. A reply whose last [...] is missing or names nobody keeps all messages and is counted by
    `dar.retention`; unknown names are dropped. Answers that could not be read have no part in the majority; a tie is
    drawn with the study's seed. A round with a single message is shown as it is, and so is one of which an extension
    makes something else.

    Differs from the code: it overrides the topology by what is kept, while here an agent reads what is kept of what the
    inner visibility shows; its mode `nonindex`, an ablation that nearly always keeps all, is not offered.
    """

    name = "retained"
    source = SOURCE
    Options = RetainedOptions

    @property
    def measures(self) -> bool:
        """As the options say."""
        return self.options.likelihood or self.options.mode == "likely"

    @property
    def needed(self) -> bool:
        """Only where they decide what is kept: else a reply is shown without."""
        return self.options.mode == "likely"

    def calls(self, plan: Plan) -> int:
        """One after every round but the last, if a model chooses."""
        return plan.rounds - 1 if self.options.mode in CRITERIA else 0

    def neighbours(self, debate: Debate, agent: Agent, round: int) -> Sequence[int]:
        """Those of the inner visibility: whom an agent may hear of."""
        return self.options.inner.neighbours(debate, agent, round)

    def view(self, debate: Debate, turn: Turn) -> Sequence[Message]:
        """What is kept, or all of a round of which nothing is kept for this agent."""
        view, kept = self.options.inner.view(debate, turn), kept_by_round(debate)
        peers = [m for m in view if m.agent not in (None, turn.agent.id)]
        left = {m.round for m in peers if m.id in kept.get(m.round, ())}
        return [m for m in view if m.agent in (None, turn.agent.id)
                or m.round not in left or m.id in kept[m.round]]

    @hookimpl(wrapper=True)
    def madplug_round_ended(self, debate: Debate) -> Generator[None, Reviewed, Reviewed]:
        """Choose what of the round is kept."""
        review = yield
        return self.chosen(debate, review)

    async def chosen(self, debate: Debate, inner: Reviewed) -> Review | None:
        """The choice, unless the round was the last, or an extension has its say about it."""
        review: Review | None = await maybe_await(inner)
        if debate.round >= debate.rounds or (review and (review.redo or review.stop or review.say is not None)):
            return review
        said = list({m.agent: m for m in debate.transcript.of_round(debate.round)
                     if m.agent is not None and m.content.strip()}.values())
        if len(said) < 2:
            return review
        majority = most_common(debate, said)
        kept = await self.kept(debate, said, majority)
        noted = {"kept": [m.id for m in (said if kept is None else kept)], "of": len(said), "unparsed": kept is None}
        say = fill(self.options.majority, majority=majority or "none could be read")
        return Review(say=say, leave=review.leave if review else (), data={"dar": noted})

    async def kept(self, debate: Debate, said: Sequence[Message], majority: str | None) -> Sequence[Message] | None:
        """The messages to keep; None where that could not be read."""
        mode = self.options.mode
        if mode in ("vote", "nonvote"):
            return [m for m in said if (m.key == majority) is (mode == "vote")] or said
        if mode == "likely":
            by_likelihood = sorted(said, key=lambda m: -_likelihood(m))
            best = {m.id for m in by_likelihood[:max(1, int(len(said) * self.options.share))]}
            return [m for m in said if m.id in best]
        names = [speaker(debate, m) for m in said]
        measured = [replace(m, content=with_likelihood(m, self.options.measured)) for m in said]
        prompt = fill(self.options.prompt, question=question_parts(debate.sample), answers=transcribe(debate, measured),
                      majority=majority or "none could be read", example=", ".join(names[:2]),
                      criterion=self.options.criterion or CRITERIA[mode])
        model = self.options.model
        reply = await debate.ask([user(debate.sample, prompt)], purpose="filter", model=model,
                                 agent=None if model else debate.agents[0])
        listed = read_names(reply.text)
        return [m for m, name in zip(said, names, strict=True) if name.casefold() in listed] or None


class Retention(Metric):
    """How much of what was said was kept, and how often that could not be read.

    Parts: `kept`, the mean share of a round's messages; `unread`, choices that could not be read and kept everything;
    `read`, messages of peers that agents were shown. Missing where `dar.retained` chose nothing.
    """

    name = "retention"
    source = SOURCE

    def score(self, debate: Debate, references: Sequence[str]) -> Mapping[str, float | None] | None:
        """Three figures."""
        made = [m.data["dar"] for m in debate.transcript.messages if _is_choice(m)]
        if not made:
            return None
        record = debate.transcript.record
        read = sum(record[i].agent not in (None, m.agent) for m in debate.transcript.messages for i in m.seen)
        return {"kept": sum(len(one["kept"]) / one["of"] for one in made) / len(made),
                "unread": float(sum(one["unparsed"] for one in made)), "read": float(read)}


def kept_by_round(debate: Debate) -> dict[int, set[int]]:
    """Ids of the messages that are kept, for each round of which some were chosen."""
    return {m.round: set(m.data["dar"]["kept"]) for m in debate.transcript.messages if _is_choice(m)}


def _is_choice(message: Message) -> bool:
    return message.agent is None and "dar" in message.data


def most_common(debate: Debate, said: Sequence[Message]) -> str | None:
    """The answer of most messages; of several one drawn with the study's seed."""
    best: list[Any] = leaders(Counter(m.key for m in said if m.key is not None))
    found: str | None = break_tie(debate, best, "random", f"dar.retained:{debate.round}")
    return found


def read_names(text: str) -> set[str]:
    """The names in the last [...] of a reply, in lower case."""
    lists = _LIST.findall(without_thoughts(text))
    return {name.strip(" \t\n'\"`*").casefold() for name in lists[-1].split(",")} if lists else set()


def with_likelihood(message: Message, template: str) -> str:
    """A reply, with the mean negative log-likelihood of its tokens where it was measured. template: with {nll}."""
    logp = mean_log_probability(message)
    return message.content if logp is None else f"{message.content}\n{fill(template, nll=f'{-logp:.4f}')}"


def _likelihood(message: Message) -> float:
    found = mean_log_probability(message)
    return float("-inf") if found is None else found
