"""The moderator: reads both sides after every round and says whether one answer is right."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pydantic import Field

from madplug import Message, Options, Plan, Reply, Style, Turn
from madplug_mad.sides import PAPER
from madplug_prompting.prompts import Chat, as_text, fill, instruction_alone, merged, question_parts, transcribe, user
from madplug_prompting.replies import read_json, spoken

if TYPE_CHECKING:
    from madplug import Completion, Debate

SCHEMA: dict[str, Any] = {
    "type": "object", "additionalProperties": False,
    "required": ["preference", "supported_side", "reason", "answer"],
    "properties": {"preference": {"enum": ["Yes", "No"]}, "supported_side": {"type": "string"},
                   "reason": {"type": "string"}, "answer": {"type": "string"}}}

META = """You are the moderator of a debate between two sides about a question. After each round you weigh what they \
have said and decide whether one answer is right."""
FIRST = """The question of the debate:

{question}

"""
ROUND = """Round {round} of the debate is over.

{statements}

Is one of these answers right? If so, end the debate; if not, it goes on. Reply with one JSON object that has the \
fields "preference" ("Yes" if you have made up your mind, else "No"), "supported_side" (the side you prefer), "reason" \
and "answer" (the answer you believe to be right; an empty string while you have none). About the answer: {format}"""
AGAIN = """That could not be read. Reply with nothing but one JSON object with the fields {fields}."""
YES, NO = ("yes", "true"), ("no", "false")
Found = Mapping[str, Any]
"""The object in a reply, with its names in small letters; empty where there is none."""
NONE_YET = frozenset({"", "none", "none yet", "not yet", "n/a", "null", "nil", "-", "tbd", "undecided", "unknown",
                      "no answer", "no answer yet", "no preference"})


class ModeratorOptions(Options):
    """Options of `mad.moderator`."""

    meta: str = Field(default=META,
                      description="the system prompt of the moderator; {name}, {description}")
    first: str = Field(default=FIRST, description="precedes the first round; {question}")
    round: str = Field(default=ROUND, description="after a round; {round}, {statements}, {format}")
    again: str = Field(default=AGAIN, description="after a reply that could not be read; {fields}")
    retries: int = Field(default=3, ge=0, le=10,
                         description="times to ask again for a reply that can be read")


class Moderator(Style):
    """Reads both sides and names the answer it believes to be right, or none yet.

    After each round it gets the debaters' new texts and the number of the round, in a chat that keeps its
    own earlier replies, and answers in JSON: whether it has a preference, for which side, why, and the
    answer. A reply that can be read neither as an answer nor as having none is requested again at most `retries` times
    and then counts as having none, flagged `unparsed`. Preference and side are in the message's data.

    Differs from the paper's code, which fails on JSON it cannot read.
    """

    name = "moderator"
    source = PAPER + "; the authors' code"
    moves = frozenset({"moderate"})
    shows_images = True
    Options = ModeratorOptions

    def calls(self, plan: Plan) -> int:
        """One, and the times it is asked again."""
        return 1 + int(self.options.retries)

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call, or a few until the reply can be read."""
        def ask(chat: Sequence[Chat]) -> Awaitable[Completion]:
            return debate.ask(chat, agent=turn.agent, purpose="moderate", form={"json_schema": SCHEMA})

        def readable(found: Found) -> bool:
            if answer := named(found):
                return debate.key(answer) is not None  # whatever the preference says
            return "answer" in found and preference(found) in (*YES, *NO)

        again = fill(self.options.again, fields='"preference", "supported_side", "reason", "answer"')
        text, found, read = await ask_for_json(ask, self.chat(debate, turn, view), again, self.options.retries,
                                               readable)
        if "answer" not in found:
            return Reply(spoken(text), "", data={"mad": {"unparsed": True}})
        return Reply(spoken(text), named(found), data={"mad": {
            "preference": preference(found) in YES, "supported_side": as_text(found.get("supported_side")),
            "reason": as_text(found.get("reason")), **({} if read else {"unparsed": True})}})

    def chat(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> list[Chat]:
        """The rounds so far, each as the moderator was asked about it, and what it replied."""
        persona = turn.agent.persona
        meta = fill(self.options.meta, name=persona.name, description=persona.description)
        chat: list[Chat] = [{"role": "system", "content": meta}]
        before = fill(self.options.first, question=question_parts(debate.sample))
        for number, said in groupby(view, key=lambda m: m.round):
            messages = list(said)
            if number == 0:  # on record before the debate
                before += transcribe(debate, messages) + "\n\n"
                continue
            statements = [m for m in messages if m.agent != turn.agent.id]
            text = before + fill(self.options.round, round=number, statements=transcribe(debate, statements),
                                 format=instruction_alone(debate.answers, debate.sample))
            chat.append(user(debate.sample, text) if before else {"role": "user", "content": text})
            chat += [{"role": "assistant", "content": m.content} for m in messages
                     if m.agent == turn.agent.id]
            before = ""
        return merged(chat)


def preference(found: Found) -> str:
    """What a reply says about its preference, in small letters."""
    return as_text(found.get("preference")).lower()


def named(found: Found) -> str:
    """The answer that a reply names, or nothing: without a preference, "none" and the like name none."""
    said = as_text(found.get("answer"))
    return said if preference(found) in YES or said.lower().rstrip(".") not in NONE_YET else ""


async def ask_for_json(ask: Callable[[Sequence[Chat]], Awaitable[Completion]], chat: Sequence[Chat], again: str,
                       retries: int, readable: Callable[[Found], bool]) -> tuple[str, Found, bool]:
    """The last reply, the object in it, and whether it is readable: the first that is ends the asking."""
    asked = list(chat)
    for left in range(retries, -1, -1):
        text = (await ask(asked)).text
        found = {name.lower(): value for name, value in (read_json(text) or {}).items()}
        if (read := readable(found)) or not left:
            break
        asked = [*chat, {"role": "assistant", "content": text or "(nothing)"}, {"role": "user", "content": again}]
    return text, found, read
