"""What each voter ends on: its last message, or the final answer it writes down when asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from madplug import Agent, Completion, Message, Options, Reply, Turn
from madplug_common import prompts

if TYPE_CHECKING:
    from madplug import Debate

Final = Literal["ask_if_unread", "recorded", "ask"]
"""Where final answers come from: from the record, or from the voters, which are asked to write them down."""


class FinalOptions(Options):
    """How a voter's final answer is found."""

    final: Final = Field(default="ask_if_unread", description=(
        "a voter's final answer: `recorded`, the last of its answers that could be read; `ask_if_unread`, the voter is "
        "asked where its last message states none, as in a style without solutions; `ask`, every voter is asked"))
    extract: str = Field(default=(
        "The discussion is over. Above is what you said last. Write down only the solution it gives, unchanged: no "
        "explanation, and not whether you agree with anybody. If it gives none, answer the task yourself."),
        description="prompt: the request for a voter's final answer, after the task and its last message")


@dataclass(frozen=True)
class FinalAnswer:
    """What one voter ends on."""

    agent: int
    text: str
    """The answer as it can be shown; the whole last message where no answer could be read."""
    answer: str | None = None
    key: str | None = None
    """The canonical answer, or None where none could be read."""
    completion: Completion | None = None
    """The reply in which the voter wrote the answer down, where it was asked."""


def last_message(debate: Debate, agent: Agent | int, *, since: int = 0, until: int | None = None,
                 readable: bool = False) -> Message | None:
    """An agent's last message in the rounds `since` to `until`, or None.

    until: None means to the end. readable: the last message whose answer could be read.
    """
    return next((m for m in reversed(debate.transcript.by(agent)) if m.round >= since
                 and (until is None or m.round <= until) and (m.key is not None or not readable)), None)


def last_messages(debate: Debate, agents: Iterable[Agent] | None = None, *, since: int = 0, until: int | None = None,
                  readable: bool = False) -> dict[int, Message]:
    """The last message of each agent (default: each voter) by its id, in their order; see `last_message`."""
    found = {agent.id: last_message(debate, agent, since=since, until=until, readable=readable)
             for agent in (debate.voters if agents is None else agents)}
    return {agent: message for agent, message in found.items() if message is not None}


def recorded_answers(debate: Debate, until: int | None = None) -> list[FinalAnswer]:
    """What every voter that has spoken last answered, up to a round; its last message where no answer could be read."""
    spoken = last_messages(debate, until=until)
    read = last_messages(debate, until=until, readable=True)
    return [_recorded(agent, read.get(agent, message)) for agent, message in spoken.items()]


async def final_answers(debate: Debate, final: Final, prompt: str, *, logprobs: bool = False) -> list[FinalAnswer]:
    """What every voter that has spoken ends on, in the order of the voters.

    Those that `final` says are asked at the same time, one call each; where a reply cannot be read, what is on record
    counts. logprobs: ask all voters, and for the log-probabilities of their tokens.
    """
    async def one(recorded: FinalAnswer) -> FinalAnswer:
        last = debate.transcript.by(recorded.agent)[-1]
        if final == "ask" or logprobs or (final == "ask_if_unread" and last.key is None):
            return await _written(debate, last, prompt, logprobs) or recorded
        return recorded

    return await debate.ask_all(one(recorded) for recorded in recorded_answers(debate))


def _recorded(agent: int, message: Message) -> FinalAnswer:
    text = message.answer if message.key is not None and message.answer else message.content
    return FinalAnswer(agent, text, message.answer, message.key)


async def _written(debate: Debate, last: Message, prompt: str, logprobs: bool) -> FinalAnswer | None:
    """The answer that the author of a message writes down, or None if it cannot be read."""
    agent = debate.agents[last.agent or 0]
    request = "\n".join([prompt, debate.answers.instruction(debate.sample)])
    chat = [prompts.user(debate.sample, prompts.question_parts(debate.sample)),
            {"role": "assistant", "content": last.content}, {"role": "user", "content": request}]
    said = await debate.ask(prompts.merged(chat), agent=agent, purpose="extract",
                            form=debate.answers.form(debate.sample, body=0),
                            params={"logprobs": True} if logprobs else None)
    answer, key = await debate.read(Turn(agent, "final"), Reply(said.text))
    return None if key is None else FinalAnswer(agent.id, answer or key, answer, key, said)
