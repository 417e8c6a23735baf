"""What is voted on: each voter's final answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from madplug import Agent, Completion, Message, Options, Reply, Turn
from madplug_styles import prompts

if TYPE_CHECKING:
    from madplug import Debate

Final = Literal["ask_if_unread", "recorded", "ask"]


class FinalOptions(Options):
    """How a voter's final answer is found."""

    final: Final = Field(default="ask_if_unread", description=(
        "a voter's answer: that of its last message, or of the last one that could be read; `ask_if_unread` asks "
        "the voter where its last message states none, as in a style without solutions; `ask` always does"))
    extract: str = Field(default=(
        "The discussion is over. Above is what you said last. Write down only the solution it gives, unchanged: no "
        "explanation, and not whether you agree with anybody. If it gives none, answer the task yourself."),
        description="prompt: the request for a voter's final answer, after the task and its last message")


@dataclass(frozen=True)
class Nominee:
    """A solution that can be voted for."""

    key: str
    answer: str
    agents: tuple[int, ...]
    """Whose answer it is."""
    completion: Completion | None = None
    """The reply in which its author wrote it down, where it was asked."""


async def nominees(debate: Debate, final: Final, extract: str, *, logprobs: bool = False) -> list[Nominee]:
    """The final answer of every voter that has one, in the voters' order."""
    asked = await debate.ask_all(_nominee(debate, agent, final, extract, logprobs) for agent in debate.voters)
    found: list[Nominee] = []
    for one in asked:
        if one is not None:
            first = next((n.key for n in found if debate.answers.same(n.key, one.key, debate.sample)), one.key)
            found.append(replace(one, key=first))
    return found


def merged(found: list[Nominee]) -> list[Nominee]:
    """The same solutions, each only once."""
    by_key: dict[str, Nominee] = {}
    for one in found:
        first = by_key.get(one.key)
        by_key[one.key] = one if first is None else replace(first, agents=first.agents + one.agents)
    return list(by_key.values())


async def _nominee(debate: Debate, agent: Agent, final: Final, extract: str, logprobs: bool) -> Nominee | None:
    last = debate.transcript.last(agent)
    if last is None:
        return None
    if final == "ask" or logprobs or (final == "ask_if_unread" and last.key is None):
        asked = await _ask(debate, agent, last, extract, logprobs)
        if asked is not None:
            return asked
    read = next((m for m in reversed(debate.transcript.by(agent)) if m.key is not None), None)
    if read is None or read.key is None:
        return None
    return Nominee(read.key, read.answer or read.key, (agent.id,))


async def _ask(debate: Debate, agent: Agent, last: Message, extract: str, logprobs: bool) -> Nominee | None:
    """The answer that a voter writes down, or None if it cannot be read."""
    request = "\n".join([extract, debate.answers.instruction(debate.sample)])
    chat = [prompts.user(debate.sample, prompts.question_parts(debate.sample)),
            {"role": "assistant", "content": last.content}, {"role": "user", "content": request}]
    said = await debate.ask(prompts.merged(chat), agent=agent, purpose="extract",
                            form=debate.answers.form(debate.sample, body=0),
                            params={"logprobs": True} if logprobs else None)
    answer, key = await debate.read(Turn(agent, "final"), Reply(said.text))
    return None if key is None else Nominee(key, answer or key, (agent.id,), said)
