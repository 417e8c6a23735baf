"""Three students, and how they exchange solutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from madplug import Message, Options, Persona, PersonaGenerator, Reply, Style, Turn
from madplug_eot.confidence import with_confidence
from madplug_prompting.asking import LengthOptions, ask_for_answer
from madplug_prompting.prompts import Chat, fill, question_parts, speaker, user

if TYPE_CHECKING:
    from madplug import Debate

STUDENTS = (
    ("Kitty", "A meticulous student: you check every step and every number before you go on."),
    ("Ben", "A quick student: you see the short way to a result and say it in few words."),
    ("Peter", "A creative student: you look at a question from a side that others overlook."),
)

SYSTEM = "Your role: {name}. {description}"
DRAFT = """{question}

Think step by step. {format}"""
EXCHANGE = """{question}

Your own latest solution:
{own}

{peers}

Go through your own solution again with these in mind: which steps are correct, and which are not? {weigh}Then write \
a new solution of your own, step by step, without remarks about the others. {format}"""
PEER = """The latest solution of {name}{confidence}:
{solution}"""
WEIGH = """A confidence shows how consistently an agent has given the same answer. Below 0.5 the answer is probably \
wrong; but a high confidence proves nothing: a mistake can be repeated consistently. """


class StudentsOptions(Options):
    """Options of `eot.students`."""

    students: tuple[tuple[str, str], ...] = Field(
        default=STUDENTS, min_length=1, description="pairs of a name and a description")


class Students(PersonaGenerator):
    """A meticulous, a quick and a creative student, in turn.

    With more agents than students the names start again with a number: `Kitty 2`.
    """

    name = "students"
    source = "Yin et al. 2023, Exchange-of-Thought (three personas)"
    Options = StudentsOptions

    def generate(self, debate: Debate, roster: Sequence[Persona]) -> Persona:
        """The student whose turn it is."""
        again, i = divmod(len(roster), len(self.options.students))
        name, description = self.options.students[i]
        return Persona(f"{name} {again + 1}" if again else name, description)


class Exchange(Style):
    """Solves the question alone, then re-examines its own solution alongside its peers' latest.

    The first turn is a chain of thought. From then on the prompt has the question, the agent's own latest
    solution, the visible peers' latest solutions by name and, once a peer has answered twice, its
    confidence: how often it gave its most frequent answer, divided by the number of its rounds. Nothing older is
    shown. The same confidence is recorded with each reply from the second on.
    """

    name = "exchange"
    source = "Yin et al. 2023, Exchange-of-Thought, section 3; the authors' code"
    moves = frozenset({"draft", "improve"})
    shows_images = True
    gives = frozenset({"confidence"})

    class Options(LengthOptions):
        """Options of `eot.exchange`."""

        system: str = Field(default=SYSTEM, description="who the agent is; {name}, {description}")
        draft: str = Field(default=DRAFT, description=(
            "the first turn; {question}, {format} (how to state the answer)"))
        exchange: str = Field(default=EXCHANGE, description=(
            "later turns; {question}, {own} (the agent's latest solution), {peers}, {weigh}, {format}"))
        peer: str = Field(default=PEER, description="one peer in {peers}; {name}, {confidence}, {solution}")
        weigh: str = Field(default=WEIGH, description="how to read a confidence; {weigh} when one is shown")
        confidence: bool = Field(default=True, description="record and show confidences")

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call."""
        persona = turn.agent.persona
        system = fill(self.options.system, name=persona.name, description=persona.description).strip()
        chat: list[Chat] = [{"role": "system", "content": system}] if system else []
        chat.append(user(debate.sample, self.prompt(debate, turn, view)))
        reply = Reply(await ask_for_answer(debate, turn, chat, self.options.max_characters))
        return await with_confidence(debate, turn, reply) if self.options.confidence else reply

    def prompt(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> str:
        """What the agent is asked, for its first turn or a later one."""
        values = {"question": question_parts(debate.sample),
                  "format": debate.answers.instruction(debate.sample)}
        if not view:
            return fill(self.options.draft, **values)
        own = [m for m in view if m.agent == turn.agent.id]
        peers = [m for m in view if m.agent != turn.agent.id]
        sure = self.options.confidence and any(m.confidence is not None for m in peers)
        return fill(self.options.exchange, own=own[-1].content if own else "(none yet)",
                    peers="\n\n".join(self._peer(debate, m) for m in peers),
                    weigh=self.options.weigh if sure else "", **values)

    def _peer(self, debate: Debate, message: Message) -> str:
        shown = self.options.confidence and message.confidence is not None
        return fill(self.options.peer, name=speaker(debate, message), solution=message.content,
                    confidence=f" (confidence {message.confidence:.2f})" if shown else "")
