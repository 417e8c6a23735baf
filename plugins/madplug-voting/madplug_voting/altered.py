"""Ways to present the solutions: anonymous, and seven that say more about them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from madplug import Agent, Embedder, Offers, Options, Retriever, ServiceName, Turn
from madplug_prompting import prompts
from madplug_prompting.finals import FinalAnswer, ask_for_final
from madplug_prompting.layout import compose
from madplug_prompting.vectors import mean_cosine
from madplug_voting.ballots import clean
from madplug_voting.nominees import Nominee

if TYPE_CHECKING:
    from madplug import Debate

Presentation = Literal["anonymous", "public", "facts", "history", "confidence", "confidence_log_probs",
                       "confidence_prompted", "confidence_consistency"]


class PresentationOptions(Options):
    """How the solutions are presented to those who vote."""

    official: Presentation = Field(default="anonymous", description="the presentation whose vote decides")
    alterations: tuple[Presentation, ...] = Field(default=(), description=(
        "further presentations of the same vote; they decide nothing: their results are in the notes, and "
        "`voting.alterations` measures them"))
    retriever: Annotated[ServiceName | None, Offers(Retriever)] = Field(default=None, description=(
        "for `facts`: the service that finds passages about the question"))
    passages: int = Field(default=3, ge=1, le=100, description="for `facts`: how many passages to retrieve")
    embedder: Annotated[ServiceName | None, Offers(Embedder)] = Field(default=None, description=(
        "for `confidence_consistency`: the service that turns messages into vectors"))
    solution: str = Field(default="Solution {number}: {answer}", description="prompt: one solution. {number}, {answer}")
    solution_public: str = Field(default="Solution {number}, by {name}: {answer}", description=(
        "prompt, `public`: one solution. {number}, {name}, {answer}"))
    solution_confidence: str = Field(default="Solution {number} (confidence {confidence}): {answer}", description=(
        "prompt, the `confidence` presentations: one solution. {number}, {confidence}, {answer}"))
    facts: str = Field(default="These passages may help:\n{passages}", description="prompt, `facts`. {passages}")
    rate: str = Field(default=(
        "Your final answer is: {answer}\nHow sure are you that it is right? Reply with one whole number from 0 (not at "
        "all) to 100 (certain) and nothing else."), description="prompt, `confidence_prompted`. {answer}")


@dataclass(frozen=True)
class Extras:
    """What the presentations say beyond the solutions."""

    passages: tuple[str, ...] = ()
    confidence: Mapping[str, Sequence[int | None]] = field(default_factory=dict)
    """By presentation: a percentage for each solution, or None."""


async def extras(debate: Debate, slate: Sequence[Nominee], options: Any, wanted: Collection[str],
                 attempts: int) -> Extras:
    """Everything the wanted presentations need."""
    passages: tuple[str, ...] = ()
    if "facts" in wanted:
        retriever = debate.service(options.retriever, Retriever)
        found = await retriever.retrieve(debate.sample.question, options.passages)
        passages = tuple(passage.text for passage in found)
    confidence: dict[str, Sequence[int | None]] = {}
    if "confidence" in wanted:
        confidence["confidence"] = [100] * len(slate)
    if "confidence_log_probs" in wanted:
        confidence["confidence_log_probs"] = await debate.ask_all(by_log_probs(debate, n, options) for n in slate)
    if "confidence_prompted" in wanted:
        confidence["confidence_prompted"] = await debate.ask_all(
            prompted(debate, n, options, attempts) for n in slate)
    if "confidence_consistency" in wanted:
        confidence["confidence_consistency"] = await debate.ask_all(
            consistency(debate, n, options.embedder) for n in slate)
    return Extras(passages, confidence)


async def by_log_probs(debate: Debate, nominee: Nominee, options: Any) -> int | None:
    """The mean probability of the tokens with which its author writes it down; None where the model gives none.

    The author is asked in a call of its own, whose text is not used, so that the solutions voted on stay the same.
    """
    author = nominee.agents[0]
    recorded = FinalAnswer(author, nominee.answer, nominee.answer, nominee.key)
    logs = (await ask_for_final(debate, recorded, options, logprobs=True)).logprobs
    return int(100 * math.exp(min(0.0, math.fsum(logs) / len(logs)))) if logs else None


async def prompted(debate: Debate, nominee: Nominee, options: Any, attempts: int) -> int | None:
    """The confidence its author states, with the discussion in view; None, shown as 0, if it never states one."""
    author = debate.agent(nominee.agents[0])
    chat = compose(debate, author, options, options.persona, options.frame, await seen(debate, author, options.said),
                   [prompts.fill(options.rate, answer=nominee.answer)])
    form = {"regex": "100|[1-9]?[0-9]"}
    for _ in range(attempts):
        said = clean((await debate.ask(chat, agent=author, purpose="confidence", form=form)).text)
        stated = said.strip(" .%`'\"()[]{}").removeprefix("confidence:").strip()
        if stated.isdecimal() and len(stated) <= 3 and int(stated) <= 100:
            return int(stated)
    return None


async def consistency(debate: Debate, nominee: Nominee, embedder: str) -> int:
    """How alike its author's own messages are: the mean cosine of all pairs; 100 for a single message."""
    texts = [m.content for m in debate.transcript.by(nominee.agents[0])]
    if len(texts) < 2:
        return 100
    return int(100 * mean_cosine(await debate.service(embedder, Embedder).embed(texts)) + 1e-9)


async def seen(debate: Debate, agent: Agent, said: str) -> list[prompts.Chat]:
    """The discussion as an agent can see it; said: the template of a message of another."""
    turn = Turn(agent, "vote")
    return prompts.discussion(debate, turn, await debate.view(turn), said)


def lines(debate: Debate, slate: Sequence[Nominee], options: Any, how: str, extra: Extras) -> str:
    """The solutions, one under the other."""
    shown = []
    for i, nominee in enumerate(slate):
        sure = extra.confidence.get(how, [None] * len(slate))[i]
        sure = 0 if sure is None and how == "confidence_prompted" else sure
        template = options.solution_public if how == "public" else \
            options.solution_confidence if how.startswith("confidence") else options.solution
        answer = nominee.answer
        if len(answer) > options.max_characters:
            answer = f"{answer[:options.max_characters]} [...]"
        names = authors(debate, nominee)
        shown.append(prompts.fill(template, number=i + options.index_base, answer=answer, name=names,
                                  confidence="unknown" if sure is None else f"{sure}%"))
    return "\n\n".join(shown)


def authors(debate: Debate, nominee: Nominee) -> str:
    """Who proposed a solution, as the list shows it."""
    return " and ".join(debate.agent(a).persona.name for a in nominee.agents)


def names_shown(debate: Debate, slate: Sequence[Nominee], first: int) -> dict[str, int]:
    """The number of each solution by the name that the list shows, if no two share it. first: the lowest number."""
    names = [authors(debate, nominee) for nominee in slate]
    return {name: i for i, name in enumerate(names, first) if names.count(name) == 1}
