"""Who takes part, for which answer, when they speak, and what they see and in which words."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from madplug import Agent, Message, Options, Persona, PersonaGenerator, Turn, TurnOrder, Visibility, count
from madplug_prompting.prompts import instruction

if TYPE_CHECKING:
    from madplug import CellFacts, Debate

PAPER = "Khan et al. 2024 (arXiv 2402.06782)"
SPEAKERS = {"debate": ("Debater A", "Debater B"), "consultancy": ("Consultant",), "none": ()}
SPEAKER, EXPERT = "debater", "expert"
FLOOR = frozenset({"argue", "ask"})
"""The moves that everybody hears; what a judge believes after a round is for the record."""


class RolesOptions(Options):
    """Options of `oversight.roles`."""

    speakers: Literal["debate", "consultancy", "none"] = Field(default="debate", description=(
        "who argues: two debaters, one consultant, or nobody"))
    judge: Literal["judge", "expert"] = Field(default="judge", description=(
        "the role of the judge; data sets for oversight hide their passage from `judge`, and not from `expert`"))


class Roles(PersonaGenerator):
    """Those who argue for assigned answers, and the judge, who alone has a vote.

    Debater A and Debater B argue for one of the two choices each; a consultant argues for one of them. Who argues for
    which is drawn from the study's seed for each sample, and is exchanged from one repeat to the next: two repeats have
    every debate with both assignments.
    """

    name = "roles"
    source = PAPER + ", section 3"
    Options = RolesOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        self.speakers = SPEAKERS[self.options.speakers]
        self.count = len(self.speakers) + 1
        self.roles = frozenset({self.options.judge, *([SPEAKER] if self.count > 1 else [])})

    def warn(self, cell: CellFacts) -> Iterator[str]:
        """Models are taken in turn, so that the judge's depends on how many argue."""
        if 1 < len(cell.models) != len(self.speakers) + 1:
            judge = cell.models[len(self.speakers) % len(cell.models)]
            yield (f"the judge has the model '{judge}', and another one where more or fewer argue, as models are taken "
                   "in turn; for one judge in all cells, list "
                   f"{count(len(self.speakers) + 1, 'model')} in debate.models of this one, the judge's last")

    def generate(self, debate: Debate, roster: Sequence[Persona]) -> Sequence[Persona]:
        """All of them, the judge last."""
        speakers = [Persona(name, role=SPEAKER, votes=False) for name in self.speakers]
        return [*speakers, Persona("Judge", role=self.options.judge)]


def sides(debate: Debate) -> tuple[int, int]:
    """The positions of the choices that are called answer A and answer B. Debater A, or the consultant, argues for A.

    A speaker that chose its answer argues for that one.
    """
    drawn = random.Random(f"{debate.seed}\0{debate.sample.id}").randrange(2)
    first = (drawn + debate.repeat) % 2 if (chosen := choice(debate)) is None else chosen
    return first, 1 - first


def choice(debate: Debate) -> int | None:
    """The answer that the first speaker chose to argue for; None if it was assigned, or no choice could be read."""
    chosen = [m.data["oversight"]["chosen"] for m in debate.transcript.messages if m.move == "choose"]
    return chosen[0] if chosen else None


def task(debate: Debate) -> str:
    """The question after the data set's instruction; the choices have their own place in prompts."""
    return "\n\n".join(filter(None, (instruction(debate.sample), debate.sample.question)))


def side_of(debate: Debate, agent: Agent) -> int:
    """The position of the choice that a speaker argues for."""
    return sides(debate)[agent.id]


class RoundsOptions(Options):
    """Options of `oversight.rounds`."""

    order: Literal["simultaneous", "sequential"] = Field(default="simultaneous", description=(
        "whether Debater B reads what Debater A says in the same round, from the second round on"))
    open: bool = Field(default=False, description="the first speaker chooses the answer that it argues for")
    interactive: bool = Field(default=False, description="the judge asks a question before every round but the first")
    judgements: Literal["every_round", "last_round"] = Field(default="every_round", description=(
        "when the judge says what it believes; the last one decides"))


class Rounds(TurnOrder):
    """The judge's question, the speeches, and the judgement.

    In the first round nobody reads the other's speech. Without anybody who argues, the judge judges at once.
    """

    name = "rounds"
    source = PAPER + ", section 3"
    moves = frozenset({"argue", "judge"})
    Options = RoundsOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        more = {"ask": self.options.interactive, "choose": self.options.open}
        self.moves = frozenset({"argue", "judge", *(move for move, wanted in more.items() if wanted)})

    def waves(self, debate: Debate) -> Iterator[Sequence[Turn]]:
        """One round."""
        judge, speakers = debate.voters[0], debate.with_role(SPEAKER)
        if self.options.open and debate.round == 1:
            yield [Turn(speakers[0], "choose")]
        if self.options.interactive and debate.round > 1:
            yield [Turn(judge, "ask")]
        turns = [Turn(speaker, "argue") for speaker in speakers]
        in_turn = self.options.order == "sequential" and debate.round > 1
        yield from [[turn] for turn in turns] if in_turn else filter(None, [turns])
        if self.options.judgements == "every_round" or debate.round == debate.rounds:
            yield [Turn(judge, "judge")]

    def turns(self, agents: int, round: int) -> int:
        """Those of all moves."""
        return sum(self.by_move(agents, round).values())

    def by_move(self, agents: int, round: int) -> Mapping[str, int]:
        """All who argue, the judge's judgement and question, and a choice."""
        return {"argue": agents - 1, "judge": 1, "ask": int(self.options.interactive and round > 1),
                "choose": int(self.options.open and round == 1)}

    def steps(self, agents: int, round: int) -> int:
        """As many, but those who argue at the same time count as one."""
        together = self.options.order != "sequential" or round == (2)
        return self.turns(agents, round) - (max(agents - 2, 0) if together else 0)


class Floor(Visibility):
    """Everybody hears the speeches and the judge's questions; nobody is shown what the judge believes."""

    name = "floor"
    source = PAPER + ", section 3"

    def view(self, debate: Debate, turn: Turn) -> Sequence[Message]:
        """In the order of the record."""
        return [m for m in debate.transcript.messages if m.move in FLOOR]


def transcript(debate: Debate, view: Sequence[Message], *, first: int = 0, exchanged: bool = False) -> str:
    """The speeches and questions by round. first: the speaker whose speech begins each round.

    exchanged: Debater A is called Debater B, and the other way round, also in questions.
    """
    parts: list[str] = []
    for number in sorted({m.round for m in view}):
        said = [m for m in view if m.round == number and m.content]
        if not said:
            continue
        questions = [m for m in said if m.move == "ask"]
        speeches = sorted((m for m in said if m.move == "argue"), key=lambda m: m.agent != first)
        parts += [f"Round {number}", *(f"{debate.agent(m.agent or 0).persona.name}:\n{m.content}"
                                       for m in (*questions, *speeches))]
    text = "\n\n".join(parts)
    return exchange_names(text) if exchanged else text


def exchange_names(text: str) -> str:
    """A text in which Debater A and Debater B, and the answers A and B, have exchanged their names."""
    return re.sub(r"\b((?i:debater|answer)) ([AB])\b", lambda m: f"{m[1]} {'B' if m[2] == 'A' else 'A'}", text)

