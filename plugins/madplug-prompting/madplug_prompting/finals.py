"""What each voter ends on: its last message, or the final answer it writes down when asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from madplug import Agent, Completion, Message, Reply, Turn
from madplug_prompting import prompts
from madplug_prompting.layout import IN_PERSONA, IN_TASK, PERSONA, LayoutOptions, compose
from madplug_prompting.replies import states_answer, without_stances, without_thoughts

if TYPE_CHECKING:
    from madplug import Debate

NOTES = "final_answers"
"""The note of a debate with the final answers that its decision was made on."""

Final = Literal["ask_if_unread", "recorded", "ask"]
"""Where final answers come from: from the record, or from the voters, which are asked to write them down."""


class FinalOptions(LayoutOptions):
    """How a voter's final answer is found."""

    final: Final = Field(default="ask_if_unread", description=(
        "a voter's final answer: `recorded`, the last of its answers that could be read; `ask_if_unread`, the voter is "
        "asked where its last message states none, as in a style without solutions, and with answers in words also "
        "where the closing line is missing; `ask`, every voter is asked, as in the papers"))
    extract_persona: str = Field(default=PERSONA, description=(
        f"prompt: who writes its final answer down. {IN_PERSONA}"))
    extract_frame: str = Field(default="{question}", description=(
        f"prompt, before what the voter said last: the task. {IN_TASK}"))
    extract_previous: str = Field(default="Your previous solution: {solution}", description=(
        "prompt, where the voter's last message agrees with a solution or gives none: the one agreed with, or the "
        "voter's own previous one; left out where it has none. {solution}"))
    extract: str = Field(default=(
        "The discussion is over. Write down only your final solution, unchanged: no explanation, and not whether you "
        "agree with anyone. If your last message gives no solution, copy your previous solution; without one, answer "
        "the task yourself, from the discussion."),
        description="prompt, after the voter's last message, or the discussion where that gives no solution: the "
                    "request for the final answer")


@dataclass(frozen=True)
class FinalAnswer:
    """What one voter ends on."""

    agent: int
    text: str
    """The answer as it can be shown; the whole last message, without its stance, where no answer could be read."""
    answer: str | None = None
    key: str | None = None
    """The canonical answer, or None where none could be read."""
    unparsed: bool = False
    """Whether its last answer, or what it wrote down when asked, could not be read, so that this is an older one."""


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


def is_stated(debate: Debate, message: Message) -> bool:
    """Whether a message states its answer, so that its author need not be asked.

    A letter or a number can be read out of a sentence. Of answers in words (a format with `reads_any_text`) only the
    closing line counts, a field of a structured reply, what a model has copied out, or a stated answer that the message
    adopts.
    """
    if message.key is None or not getattr(debate.answers, "reads_any_text", False):
        return message.key is not None
    if (adopted := adopted_message(debate, message)) is not None:  # its own words only agree
        return is_stated(debate, adopted)
    if _says(debate, "was_read_by_model", message.round >= debate.rounds):
        return True
    marks = [part for part in message.data.values() if isinstance(part, Mapping)]
    return any(part.get("stated") for part in marks) or states_answer(debate, message.content)


def adopted_message(debate: Debate, message: Message) -> Message | None:
    """The earlier message whose solution a message adopts instead of stating one, or None."""
    marks = (part for part in message.data.values() if isinstance(part, Mapping))
    adopted = next((part["adopted"] for part in marks if isinstance(part.get("adopted"), int)), None)
    return debate.transcript.record[adopted] if adopted is not None and 0 <= adopted < message.id else None


async def final_answers(debate: Debate, options: FinalOptions) -> list[FinalAnswer]:
    """What every voter that has spoken ends on, in the order of the voters.

    Those that `options.final` says are asked at the same time, one call each; where a reply cannot be read, what is on
    record counts.
    """
    async def one(recorded: FinalAnswer) -> FinalAnswer:
        last = debate.transcript.by(recorded.agent)[-1]
        if options.final == "ask" or (options.final == "ask_if_unread" and not is_stated(debate, last)):
            said = await ask_for_final(debate, recorded, options)
            answer, key = await debate.read(Turn(debate.agents[recorded.agent], "final"), Reply(said.text))
            return replace(recorded, unparsed=True) if key is None else FinalAnswer(
                recorded.agent, answer or key, answer, key)
        return await read_recorded(debate, recorded, last)

    found = await debate.ask_all(one(recorded) for recorded in recorded_answers(debate))
    debate.notes[NOTES] = [{"agent": a.agent, "text": a.text, "key": a.key} | ({"unparsed": True} if a.unparsed else {})
                           for a in found]
    return found


async def read_recorded(debate: Debate, recorded: FinalAnswer, message: Message) -> FinalAnswer:
    """What a message has on record, read by a model where the answer format leaves that to the round that decides."""
    if is_stated(debate, message) or not _says(debate, "is_read_at_decision", message.round >= debate.rounds):
        return replace(recorded, unparsed=message.answers and message.key is None)
    source = adopted_message(debate, message) or message
    answer, key = await debate.read(Turn(debate.agents[recorded.agent], "extract"), Reply(source.content))
    return replace(recorded, unparsed=True) if key is None else FinalAnswer(recorded.agent, answer or key, answer, key)


def _says(debate: Debate, method: str, last: bool) -> bool:
    """What an answer format says about replies of a debate's last round, or another; False if it says nothing."""
    asked = getattr(debate.answers, method, None)
    return asked is not None and bool(asked(last))


def answers_decided_on(debate: Debate) -> list[FinalAnswer]:
    """Every voter's final answer as its decision saw it; from the record where no decision asked for any."""
    noted = debate.notes.get(NOTES)
    if noted is None:
        return recorded_answers(debate)
    return [FinalAnswer(n["agent"], n["text"], n["text"] if n["key"] else None, n["key"]) for n in noted]


async def ask_for_final(debate: Debate, recorded: FinalAnswer, options: FinalOptions, *,
                        logprobs: bool = False) -> Completion:
    """The reply of a voter that is asked to write its final answer down. recorded: what it ends on otherwise."""
    turn = Turn(debate.agents[recorded.agent], "final")
    last = debate.transcript.by(turn.agent)[-1]
    body: list[prompts.Chat] = [{"role": "assistant", "content": last.content}]
    previous = ""
    if (adopted := adopted_message(debate, last)) is not None and adopted.answer:
        previous = prompts.fill(options.extract_previous, solution=adopted.answer)
    elif last.key is None:
        view = await debate.view(turn)
        shown = prompts.discussion(debate, turn, view, options.said)
        body = shown if any(m.id == last.id for m in view) else [*shown, *body]
        previous = prompts.fill(options.extract_previous, solution=recorded.answer) if recorded.answer else ""
    chat = compose(debate, turn.agent, options, options.extract_persona, options.extract_frame, body,
                   [previous, options.extract, debate.answers.instruction(debate.sample)])
    return await debate.ask(chat, agent=turn.agent, purpose="extract", form=debate.answers.form(debate.sample, body=0),
                            params={"logprobs": True} if logprobs else None)


def _recorded(agent: int, message: Message) -> FinalAnswer:
    text = message.answer if message.key is not None and message.answer else \
        without_stances(without_thoughts(message.content))
    return FinalAnswer(agent, text, message.answer, message.key)
