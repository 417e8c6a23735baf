"""The two sides: who they are, when they speak, what they see, and how they argue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from madplug import (
    Agent,
    Message,
    Options,
    Persona,
    PersonaGenerator,
    Plan,
    Reply,
    Style,
    Turn,
    TurnOrder,
    Visibility,
)
from madplug_prompting.asking import LengthOptions, ask_for_answer
from madplug_prompting.prompts import Chat, fill, merged, question_parts, transcribe, user
from madplug_prompting.replies import spoken

if TYPE_CHECKING:
    from madplug import Debate

PAPER = "Liang et al. 2024, Encouraging Divergent Thinking, section 2"

META = """You take part in a debate competition. Your role: {name}. {description} The participants look for the right \
answer to a question. {tit_for_tat}"""
LEVELS = (
    "All of you have to agree on every point that is made.",
    "Mostly the sides should differ; on minor points they may come to agree.",
    "You need not fully agree with each other: what counts is to find the right answer.",
    "The sides have to differ on every point that is made; no agreement of any kind.",
)
OPENING = """The question of this debate:

{question}

State your answer and your reasons for it. {format}"""
BASE = """{question}

{format}"""
DEFEND = """

This answer has been proposed, and it is yours to defend:
{base}"""
OPPOSE = """The question of this debate:

{question}

{opponent}

You disagree with this. State your own answer and your reasons for it. {format}"""
JOIN = """The question of this debate:

{question}

So far the debaters have said:

{opponent}

State your answer and your reasons for it. {format}"""
EXCHANGE = """{opponent}

Do you agree with this view? Give your reasons and your answer. {format}"""


def debaters(debate: Debate) -> tuple[Agent, ...]:
    """All agents but the moderator, in order."""
    return tuple(a for a in debate.agents if a.persona.role != "moderator")


class RolesOptions(Options):
    """Options of `mad.roles`."""

    affirmative: str = Field(default="You speak for the affirmative side and argue for its answer.",
                             description="description of an affirmative debater")
    negative: str = Field(default="You speak for the negative side, which questions the answers of the other.",
                          description="description of a negative debater")
    moderator: str = Field(default="You lead the debate, weigh both sides and decide which answer is right.",
                           description="description of the moderator")


class Roles(PersonaGenerator):
    """An affirmative side, a negative side and a moderator without a vote; further debaters take sides in turn.

    Agent 0 is the affirmative side, agent 1 the negative one, agent 2 the moderator. With more than three
    agents the others are a second affirmative, a second negative, and so on; with two there is no moderator.
    """

    name = "roles"
    roles = frozenset({"affirmative", "negative", "moderator"})
    source = PAPER
    Options = RolesOptions

    def generate(self, debate: Debate, roster: Sequence[Persona]) -> Persona:
        """The next persona."""
        if len(roster) == 2:
            return Persona("Moderator", self.options.moderator, "moderator", votes=False)
        nth = len(roster) - (len(roster) > 2)
        side = "negative" if nth % 2 else "affirmative"
        number = f" {nth // 2 + 1}" if nth > 1 else ""
        return Persona(f"{side.capitalize()} side{number}", getattr(self.options, side), side)


class Sides(TurnOrder):
    """The debaters one after the other, in their order, then the moderator.

    Strictly sequential: each of them sees what was said before in the same round. The first debater of the
    first round drafts, the others improve, an agent of the role `moderator` moderates.
    """

    name = "sides"
    source = PAPER
    moves = frozenset({"draft", "improve", "moderate"})

    def waves(self, debate: Debate) -> Iterator[Sequence[Turn]]:
        """A wave per agent."""
        for i, agent in enumerate(debaters(debate)):
            yield [Turn(agent, "draft" if debate.round == 1 and i == 0 else "improve")]
        for agent in debate.with_role("moderator"):
            yield [Turn(agent, "moderate")]


class Opponent(Visibility):
    """Debaters see each other's messages and never the moderator's; the moderator sees all.

    A debater sees its own messages and those of the other side, in order; with more than two debaters, of all
    debaters, who share their history. The moderator sees all of these and what it said itself.
    """

    name = "opponent"
    source = PAPER

    def view(self, debate: Debate, turn: Turn) -> Sequence[Message]:
        """Own messages and those of the debaters."""
        authors = {turn.agent.id, *(a.id for a in debaters(debate))}
        return [m for m in debate.transcript.messages if m.agent is None or m.agent in authors]

    def neighbours(self, debate: Debate, agent: Agent, round: int) -> Sequence[int]:
        """The other debaters."""
        return tuple(a.id for a in debaters(debate) if a.id != agent.id)


class Side(Style):
    """Argues for an answer, turn by turn, in its own chat.

    The first debater answers the question. The next one gets that text verbatim and the instruction to
    disagree, and gives an answer with its reasons; further ones get what was said, without that instruction. From then
    on each gets what the others have said since its last turn, and is asked whether it agrees. The chat has all of its
    own turns, so that it only ever grows at its end.

    `level` says how much the sides may agree: 0 on everything, 1 mostly not, 2 not necessarily, 3 on nothing.
    """

    name = "side"
    source = PAPER + ", and table 11 (levels); the authors' code"
    moves = frozenset({"draft", "improve"})
    shows_images = True

    class Options(LengthOptions):
        """Options of `mad.side`."""

        level: int = Field(default=2, ge=0, le=3, description="tit for tat: how much the sides may agree")
        levels: tuple[str, str, str, str] = Field(default=LEVELS, description="{tit_for_tat} of each level")
        meta: str = Field(default=META, description=(
            "the system prompt of a debater; {name}, {description}, {tit_for_tat}"))
        opening: str = Field(default=OPENING,
                             description="the first debater's first turn; {question}, {format}")
        oppose: str = Field(default=OPPOSE, description=(
            "the other side's first turn; {question}, {opponent} (what was said), {format}"))
        join: str = Field(default=JOIN, description=(
            "the first turn of a further debater of either side; {question}, {opponent}, {format}"))
        exchange: str = Field(default=EXCHANGE, description="later turns; {opponent}, {format}")
        base: bool = Field(default=False, description=(
            "the first debater defends an answer that an extra call gave (the paper's translation task)"))
        draft: str = Field(default=BASE, description="the extra call of `base`; {question}, {format}")
        defend: str = Field(default=DEFEND, description="added to `opening` with `base`; {base}")

    def calls(self, plan: Plan) -> int:
        """One, and the base answer."""
        return 1 + bool(self.options.base)

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call."""
        chat, data = self.chat(debate, turn, view), {}
        if self.options.base and turn.move == "draft" and len(chat) == 2:
            text = self._fill(debate, self.options.draft)
            base = spoken((await debate.ask([user(debate.sample, text)], agent=turn.agent, purpose="base")).text)
            opening = self._fill(debate, self.options.opening) + fill(self.options.defend, base=base)
            chat[1], data = user(debate.sample, opening), {"mad": {"base": base}}
        return Reply(await ask_for_answer(debate, turn, chat, self.options.max_characters), data=data)

    def chat(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> list[Chat]:
        """The agent's own chat: each of its messages, preceded by what the others had said."""
        persona = turn.agent.persona
        chat: list[Chat] = [{"role": "system", "content": fill(
            self.options.meta, name=persona.name, description=persona.description,
            tit_for_tat=self.options.levels[self.options.level]).strip()}]
        shown: list[Message] = []
        for message in view:
            if message.agent != turn.agent.id:
                shown.append(message)
                continue
            chat += [self._asked(debate, turn, shown, first=len(chat) == 1),
                     {"role": "assistant", "content": message.content}]
            shown = []
        return merged([*chat, self._asked(debate, turn, shown, first=len(chat) == 1)])

    def _asked(self, debate: Debate, turn: Turn, shown: Sequence[Message], *, first: bool) -> Chat:
        """The user message before one of the agent's turns."""
        opponent = transcribe(debate, shown)
        if not first:
            return {"role": "user", "content": self._fill(debate, self.options.exchange, opponent)}
        if not shown:
            return user(debate.sample, self._fill(debate, self.options.opening))
        side = turn.agent.persona.role  # of which only the first to speak against the other opposes what was said
        spoken_for = side == "affirmative" or any(m.agent in {a.id for a in debate.with_role(side)} for m in shown)
        return user(debate.sample,
                    self._fill(debate, self.options.join if spoken_for else self.options.oppose, opponent))

    def _fill(self, debate: Debate, template: str, opponent: str = "") -> str:
        return fill(template, question=question_parts(debate.sample), opponent=opponent,
                    format=debate.answers.instruction(debate.sample))
