"""GroupDebate (Liu et al. 2024): agents debate in groups, and after each stage groups pass on summaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import Field

from madplug import Agent, Message, ModelName, Options, Paradigm, Reply, Style, Turn, TurnOrder, Visibility, hookimpl
from madplug_prompting.prompts import fill, user
from madplug_prompting.replies import spoken
from madplug_som import Exchange, ExchangeOptions

if TYPE_CHECKING:
    from madplug import CellFacts, Debate

__all__ = ["GroupDebate", "GroupExchange", "Members", "Stages"]

_SOURCE = "Liu et al. 2024 (GroupDebate), section 3"
SUMMARISE, SUMMARY = "summarise", "summary"
"""The move and the stage of the turns in which groups write summaries."""

SUMMARISE_PROMPT = """{question}

The agents of a group answered this question:

{answers}

Summarise their answers in at most 80 words for someone who has not read them: every answer that was given, and the \
main reason for it. Do not add an answer of your own."""
SUMMARIES = """Groups of agents have discussed the same question. What each group has found:

{summary}

Take this into account as additional advice, compare it with your own reasoning, and give an updated answer. {format}"""


class StagesOptions(Options):
    """Groups and stages."""

    groups: int = Field(default=3, ge=1, le=10_000, description="groups of neighbours in the list of agents, as equal "
                                                                "in size as can be")
    stages: int = Field(default=2, ge=1, le=10_000, description="stages; after each but the last, groups summarise")
    length: int = Field(default=2, ge=1, le=10_000, description=(
        "rounds of a stage; the last one takes all that are left of debate.rounds"))


class Stages(TurnOrder):
    """All agents at the same time, and at the end of each stage but the last one summary by each group.

    The turns of a group have the stage `group 0`, `group 1`, ..., by which visibilities tell them apart. A group's
    summary is a turn of its first agent, with the move `summarise` and the stage `summary`. A single group needs none.
    """

    name = "stages"
    source = _SOURCE
    moves = frozenset({"draft", "improve", SUMMARISE})
    Options = StagesOptions

    def waves(self, debate: Debate) -> Iterator[Sequence[Turn]]:
        """A wave of all agents, and at the end of a stage a wave of summaries."""
        move = "draft" if debate.round == 1 else "improve"
        yield [Turn(agent, move, f"group {self.group(debate, agent)}") for agent in debate.active]
        if self.summaries(debate.round) and debate.round < debate.rounds:
            first = {self.group(debate, agent): agent for agent in reversed(debate.active)}
            yield [Turn(first[group], SUMMARISE, SUMMARY) for group in sorted(first)]

    def turns(self, agents: int, round: int) -> int:
        """All agents, and the summaries at the end of a stage."""
        return agents + self.summaries(round)

    def steps(self, agents: int, round: int) -> int:
        """One, and one for the summaries."""
        return 1 + int(self.summaries(round) > 0)

    def summaries(self, round: int) -> int:
        """How many summaries a round ends with."""
        stage, rest = divmod(round, self.options.length)
        return self.options.groups if not rest and stage < self.options.stages and self.options.groups > 1 else 0

    def group(self, debate: Debate, agent: Agent) -> int:
        """The number of an agent's group."""
        return agent.id * self.options.groups // len(debate.agents)

    def check(self, cell: Any) -> Iterable[str]:
        """Every stage has a round, and every group an agent."""
        o = self.options
        if cell.rounds <= (o.stages - 1) * o.length:
            yield f"there are {cell.rounds} rounds for {o.stages} stages of {o.length}; set debate.rounds = " \
                  f"{o.stages * o.length}"
        if o.groups > cell.wanted:
            yield f"groups = {o.groups}, and there are {cell.wanted} agents"

    def warn(self, cell: CellFacts) -> Iterable[str]:
        """Somebody to discuss with in every group."""
        if 1 < self.options.groups <= cell.wanted < 2 * self.options.groups:
            yield (f"of {cell.wanted} agents in {self.options.groups} groups some are alone in theirs and discuss with "
                   f"nobody; take {2 * self.options.groups} agents or fewer groups")


class Members(Visibility):
    """An agent sees what its group said in the round before, or in the first round of a stage all groups' summaries.

    Its own last message is shown in either case, and so is a note that no agent wrote; nothing older is. A group's
    summary is written in view of what the group has just said. The groups are those of `groups.stages`.
    """

    name = "members"
    source = _SOURCE

    def view(self, debate: Debate, turn: Turn) -> Sequence[Message]:
        """The group, or the summaries and the own message."""
        if turn.stage == SUMMARY:
            own = next(m.stage for m in debate.transcript.of_round(debate.round) if m.agent == turn.agent)
            return [m for m in debate.transcript.of_round(debate.round) if m.stage == own]
        before = debate.transcript.of_round(debate.round - 1)
        pool = [m for m in before if m.stage == SUMMARY]
        return [m for m in before if m.agent is None or m.stage == (SUMMARY if pool else turn.stage)
                or (m.agent == turn.agent and m.answers)]

    def neighbours(self, debate: Debate, agent: Agent, round: int) -> Sequence[int]:
        """The agents of its group, as the round before has them."""
        said = [(m.agent, m.stage) for m in debate.transcript.of_round(round - 1) if m.agent is not None and m.answers]
        own = {stage for id, stage in said if id == agent.id}
        return tuple(dict.fromkeys(id for id, stage in said if id != agent.id and stage in own))


class GroupExchangeOptions(ExchangeOptions):
    """The prompts of `som.exchange`, and that of a summary."""

    summary: str = Field(default=SUMMARIES, description=(
        "a turn in view of the groups' summaries; {summary}, {question}, {format}"))
    summarise: str = Field(default=SUMMARISE_PROMPT, description="the request for a summary; {question}, {answers}")
    model: ModelName | None = Field(default=None, description=(
        "who writes summaries; default: the model of the group's first agent"))


class GroupExchange(Exchange):
    """The exchange of `som.exchange`, and summaries of a group's answers.

    The groups' summaries replace the others' answers in a turn that sees them; an agent's own group is among them. A
    summary is written without a persona and gives no answer.
    """

    name = "exchange"
    source = _SOURCE
    moves = Exchange.moves | {SUMMARISE}
    Options = GroupExchangeOptions

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call."""
        if turn.move != SUMMARISE:  # a summary is nobody's own message, also for the agent whose turn it was
            return await super().respond(debate, turn, [
                replace(m, agent=None, move="say") if m.stage == SUMMARY else m for m in view])
        blocks = [fill(self.options.block, content=m.content, number=i) for i, m in enumerate(view, 1)]
        prompt = self.fill(debate, self.options.summarise, answers="\n\n".join(blocks))
        said = await debate.ask([user(debate.sample, prompt)], purpose="summarise",
                                model=self.options.model or turn.agent.model)
        return Reply(spoken(said.text), answers=False)


class GroupDebate(Paradigm):
    """Six agents in three groups debate for two stages of two rounds, with summaries between the stages.

    n agents in G groups make n calls a round, and G after each of S stages but the last: 27. The plurality of the last
    round decides.

    Differs from the paper where it is silent: an agent keeps its own last message in view, and a summary gives every
    answer with its reason in 80 words. There is no code of the authors.
    """

    name = "debate"
    source = _SOURCE
    debate = {"agents": 6, "rounds": 4, "turns": {"use": "groups.stages", "groups": 3, "stages": 2, "length": 2},
              "visibility": "groups.members", "styles": ["groups.exchange"],
              "decision": {"use": "voting.plurality", "tie": "first"}}


@hookimpl
def madplug_register_turn_orders() -> list[type[TurnOrder]]:
    """Register the turn order."""
    return [Stages]


@hookimpl
def madplug_register_visibilities() -> list[type[Visibility]]:
    """Register the visibility."""
    return [Members]


@hookimpl
def madplug_register_styles() -> list[type[Style]]:
    """Register the style."""
    return [GroupExchange]


@hookimpl
def madplug_register_paradigms() -> list[type[Paradigm]]:
    """Register the paradigm."""
    return [GroupDebate]
