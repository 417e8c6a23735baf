"""Who judges, what is asked of a referee, and how its verdict is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from madplug import Message, Options, Persona, PersonaGenerator, Reply, Style, Turn
from madplug_chateval.pairs import LabelOptions, PairOptions, pair_of
from madplug_prompting.asking import LengthOptions
from madplug_prompting.prompts import fill, question_parts, transcribe, user
from madplug_prompting.replies import spoken

if TYPE_CHECKING:
    from madplug import Debate

PAPER = "Chan et al. 2024, ChatEval, section 2"

REFEREES = (
    ("General public", "You speak for people without special knowledge, and care whether an answer helps them."),
    ("Critic", "You look for what is weak or wrong in an answer, and say so plainly."),
    ("News author", "You know how to report: you check whether an answer is clear, balanced and to the point."),
    ("Psychologist", "You know how people think and feel, and see how an answer takes them."),
    ("Scientist", "You know how knowledge is gained: you check whether claims are true and reasons are valid."),
)

PAIR = """{question}

The reply of Assistant 1:
{first}

The reply of Assistant 2:
{second}

Referees compare the two replies: how helpful, relevant, correct, detailed and clear they are. The order of the \
replies, their length and the assistants' names mean nothing."""
DISCUSSION = """What has been said so far:

{messages}"""
TURN = """You are one of the referees. Your role: {name}. {description}

It is your turn. Say briefly what you think, and respond to what the others have said, if anything."""
QUESTION_TURN = """You take part in a discussion of this question. Your role: {name}. {description}

It is your turn. Say briefly what you think, and respond to what the others have said, if anything."""
PAIR_VERDICT = """This is your last turn: explain your judgement, then give each reply a score from 1 to 10. End with \
exactly these two lines:
Score of Assistant 1: <number>
Score of Assistant 2: <number>"""
QUESTION_VERDICT = """This is your last turn: give your answer with your reasons. {format}"""
SUMMARY = """Condense what the participants have said in this round into one short text that keeps every argument and \
who holds which view. Add nothing of your own.{before}"""
BEFORE = """ Keep what still matters of the summary so far:

{summary}"""

_SCORE = re.compile(
    r"(?P<asked>score of )?assistant\W{0,5}(?P<which>[12])\b"
    r"(?:[^\d\n:=]{0,40}[:=]\W{0,5}|(?:\W{0,9}\b(?:s|scores?|ratings?|is|gets|receives|deserves|earns|an?|the|of)\b){0,4}\W{1,9})"
    r"(?<![:=]-)(?<![:=] -)(?P<score>\d{1,3}(?:\.\d{1,3})?)(?![\d.]*[-–]\d)", re.IGNORECASE)
"""A number that is said to be a score: not any that stands near an assistant, as in `Assistant 1 made 2 mistakes`."""


class RefereesOptions(Options):
    """Options of `chateval.referees`."""

    roles: tuple[tuple[str, str], ...] = Field(default=REFEREES, min_length=1, description=(
        "pairs of a name and a description"))


class Referees(PersonaGenerator):
    """Referees with different roles: general public, critic, news author, psychologist, scientist, in turn."""

    name = "referees"
    roles = frozenset({"referee"})
    source = PAPER + ".2 (diverse role prompts)"
    Options = RefereesOptions

    def generate(self, debate: Debate, roster: Sequence[Persona]) -> Persona:
        """The role whose turn it is."""
        again, i = divmod(sum(p.role == "referee" for p in roster), len(self.options.roles))
        name, description = self.options.roles[i]
        return Persona(f"{name} {again + 1}" if again else name, description, "referee")


class SummariserPersonaOptions(Options):
    """Options of `chateval.summariser`."""

    description: str = Field(default="You keep the minutes of the discussion.", description="its description")


class SummariserPersona(PersonaGenerator):
    """A summariser that condenses what the others say and does not vote."""

    name = "summariser"
    roles = frozenset({"summariser"})
    source = PAPER + ".3"
    Options = SummariserPersonaOptions

    def generate(self, debate: Debate, roster: Sequence[Persona]) -> Persona:
        """The summariser."""
        return Persona("Summariser", self.options.description, "summariser", votes=False)


class RefereeOptions(LengthOptions, LabelOptions):
    """Options of `chateval.referee`."""

    verdict: Literal["last_round", "every_round"] = Field(
        default="last_round", description="when a verdict is asked for")
    pair: str = Field(default=PAIR, description="a pair as it is shown; {question}, {first}, {second}")
    discussion: str = Field(default=DISCUSSION, description="what has been said; {messages}")
    turn: str = Field(default=TURN, description="a referee's turn about a pair; {name}, {description}")
    question_turn: str = Field(default=QUESTION_TURN, description="the same for a question; {name}, {description}")
    pair_verdict: str = Field(default=PAIR_VERDICT, description="added where a verdict on a pair is asked for")
    question_verdict: str = Field(default=QUESTION_VERDICT, description=(
        "added where an answer is asked for; {format}"))


class Referee(Style):
    """Discusses two replies to a question, or a question, and gives a verdict in the last round.

    The prompt is one message: the question with the two replies, what has been said, the referee's role and that it is
    its turn; in the last round also the form of the verdict. For a pair the verdict is a score from 1 to 10 for each
    reply, and the reply with the higher one, or a tie, is the referee's answer; scores that cannot be read are flagged
    `unparsed`. For a question with one answer the verdict is an answer. Earlier turns give none.

    Differs from the paper's code: under simultaneous speech that also demands verdicts of earlier rounds.
    """

    name = "referee"
    source = PAPER + "; the authors' code"
    moves = frozenset({"draft", "improve"})
    shows_images = True
    Options = RefereeOptions

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call."""
        o, pair = self.options, pair_of(debate.sample, self.options)
        persona = turn.agent.persona
        asked = fill(o.turn if pair else o.question_turn, name=persona.name, description=persona.description)
        final = o.verdict == "every_round" or debate.round == debate.rounds
        if final:
            state = debate.answers.instruction(debate.sample)
            asked += "\n\n" + (o.pair_verdict if pair else fill(o.question_verdict, format=state))
        said = transcribe(debate, view)
        parts = [shown(debate, o), fill(o.discussion, messages=said) if view else "", asked]
        prompt = user(debate.sample, "\n\n".join(p for p in parts if p))
        form = debate.answers.form(debate.sample, body=o.max_characters) if final and not pair else None
        text = spoken((await debate.ask([prompt], agent=turn.agent, purpose="discuss", form=form)).text)
        if not final:
            return Reply(text, answers=False)
        return judged(text, o.labels) if pair else Reply(text)


class SummariserOptions(PairOptions):
    """Options of `chateval.summariser`."""

    pair: str = Field(default=PAIR, description="a pair as it is shown; {question}, {first}, {second}")
    discussion: str = Field(default=DISCUSSION, description="what the referees said in this round; {messages}")
    summary: str = Field(default=SUMMARY, description="what is asked; {before}")
    before: str = Field(default=BEFORE, description="{before} where there is an earlier {summary}")


class Summariser(Style):
    """Condenses what was said in a round, building on its summary of the rounds before."""

    name = "summariser"
    roles = frozenset({"summariser"})
    source = PAPER + ".3 (simultaneous talk with summariser)"
    moves = frozenset({"summarise"})
    Options = SummariserOptions

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call; a summary gives no answer."""
        o = self.options
        own = [m for m in view if m.agent == turn.agent.id]
        said = transcribe(debate, (m for m in view if m.agent != turn.agent.id))
        before = fill(o.before, summary=own[-1].content) if own else ""
        parts = [shown(debate, o), fill(o.discussion, messages=said), fill(o.summary, before=before)]
        prompt = user(debate.sample, "\n\n".join(parts))
        return Reply(spoken((await debate.ask([prompt], agent=turn.agent, purpose="summarise")).text), answers=False)


def shown(debate: Debate, options: RefereeOptions | SummariserOptions) -> str:
    """What the debate is about, as text."""
    pair = pair_of(debate.sample, options)
    if pair is None:
        return question_parts(debate.sample)
    question = question_parts(replace(debate.sample, choices=()))
    return fill(options.pair, question=question, first=pair[0], second=pair[1])


def judged(text: str, labels: tuple[str, str, str]) -> Reply:
    """A verdict on a pair: two scores, and the side they favour."""
    scores = read_scores(text)
    if scores is None:
        return Reply(text, "", data={"chateval": {"unparsed": True}})
    first, second = scores
    label = labels[0] if first > second else labels[1] if second > first else labels[2]
    return Reply(text, label, data={"chateval": {"scores": [first, second]}})


def read_scores(text: str) -> tuple[float, float] | None:
    """The last score from 1 to 10 that a text gives to each of the two assistants; None unless it has both.

    Those in the words that were asked for (`Score of Assistant 1: 7`) go before others.
    """
    every = [*_SCORE.finditer(text[-20_000:])]
    for some in ([found for found in every if found["asked"]], every):
        last = {found["which"]: float(found["score"]) for found in some}
        if len(last) == 2:
            return (last["1"], last["2"]) if all(1 <= score <= 10 for score in last.values()) else None
    return None
