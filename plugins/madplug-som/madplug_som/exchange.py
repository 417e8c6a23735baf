"""The exchange: an agent's own earlier turns as the assistant, the others' latest answers as one user message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from madplug import Message, Reply, Style, Turn
from madplug_prompting.asking import LengthOptions, ask_for_answer
from madplug_prompting.prompts import Chat, fill, merged, question_parts, speaker, user

if TYPE_CHECKING:
    from madplug import Debate

FIRST = """{question}

Work through this step by step. {format}"""
EXCHANGE = """Other agents worked on the same question. Their answers:

{answers}

Take their reasoning into account as additional advice, compare it with your own, and give an \
updated answer. {format}"""
BLOCK = """--- an agent's answer ---
{content}"""
NOTE = """--- a remark on the discussion ---
{content}"""
SUMMARY = """Several agents worked on the same question. A summary of all their answers:

{summary}

Take it into account as additional advice, compare it with your own reasoning, and \
give an updated answer. {format}"""
VERIFY = """Go through your answer again, step by step, and look for mistakes. Then state the answer that \
you now believe to be right. {format}"""


class ExchangeOptions(LengthOptions):
    """The prompts. `{question}` and `{format}` (how to state the answer) are known to all but the blocks."""

    system: str = Field(default="{persona}", description=(
        "the system message, left out where it is empty; {persona} (the persona's description), {name}"))
    first: str = Field(default=FIRST, description="the first turn; {question}, {format}")
    exchange: str = Field(default=EXCHANGE, description=(
        "a turn with others to listen to; {answers} (their blocks), {question}, {format}"))
    block: str = Field(default=BLOCK, description=(
        "one answer in {answers}; {content}, {number} (its place from 1), {name} (who gave it)"))
    note: str = Field(default=NOTE, description="a message that no agent wrote, among the answers; {content}")
    summary: str = Field(default=SUMMARY, description=(
        "a turn with such messages and no answers (`som.summary`); {summary}, {question}, {format}"))
    verify: str = Field(default=VERIFY, description="a turn without other agents' answers; {question}, {format}")


class Exchange(Style):
    """Answers alone, then repeatedly with the peers' latest answers in mind.

    The prompt is the agent's own chat: the question, its first answer, what it was shown then, its next
    answer, and so on; the last message has the answers that are new, one block each, anonymous, in the
    order of the view. What was shown for an earlier turn is repeated as it was shown, so that a prompt only
    grows. An agent that sees no other verifies its own answer. With `visibility.everything` that is the full
    history of the paper; with `visibility.previous_round` an agent remembers its last answer only.
    """

    name = "exchange"
    source = "Du et al. 2023, section 2; the authors' code"
    moves = frozenset({"draft", "improve"})
    shows_images = True
    Options = ExchangeOptions

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call."""
        chat = self.chat(debate, turn, view)
        return Reply(await ask_for_answer(debate, turn, chat, self.options.max_characters))

    def chat(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> list[Chat]:
        """The agent's own chat, up to what it is to answer now."""
        persona = turn.agent.persona
        system = fill(self.options.system, persona=persona.description, name=persona.name).strip()
        chat: list[Chat] = [{"role": "system", "content": system}]
        chat.append(user(debate.sample, self.fill(debate, self.options.first)))
        for i, (shown, own) in enumerate(episodes(turn.agent.id, view)):
            if shown or (i and shown is not None):
                chat.append({"role": "user", "content": self.later_prompt(debate, shown)})
            if own is not None:
                chat.append({"role": "assistant", "content": own.content})
        return merged(chat)

    def later_prompt(self, debate: Debate, shown: Sequence[Message]) -> str:
        """The prompt of one turn after the agent's first."""
        if not shown:
            return self.fill(debate, self.options.verify)
        if all(is_note(m) for m in shown):
            return self.fill(debate, self.options.summary, summary="\n\n".join(m.content for m in shown))
        blocks = [fill(self.options.note if is_note(m) else self.options.block, content=m.content,
                       number=number, name=speaker(debate, m)) for number, m in enumerate(shown, 1)]
        return self.fill(debate, self.options.exchange, answers="\n\n".join(blocks))

    def fill(self, debate: Debate, template: str, **values: object) -> str:
        """A prompt with the question, the answer format and the values in it."""
        return fill(template, question=question_parts(debate.sample),
                    format=debate.answers.instruction(debate.sample), **values)


def is_note(message: Message) -> bool:
    """Whether a message is a note without an author, and not an answer."""
    return message.agent is None and message.move == "say"


def episodes(me: int, view: Sequence[Message]) -> Iterator[tuple[list[Message] | None, Message | None]]:
    """What an agent was shown before each of its own messages, then what is new to it now.

    In the order in which it was shown; None where that is no longer in the view. The last has no own
    message.
    """
    shown, known = {m.id: m for m in view}, set[int]()
    for own in (m for m in view if m.agent == me):
        told = [shown[j] for j in own.seen if j in shown and j not in known and shown[j].agent != me]
        gone = any(j not in shown and j not in known for j in own.seen)
        known.update(own.seen)
        yield (None if gone and not told else told), own
    yield [m for m in view if m.agent != me and m.id not in known], None
