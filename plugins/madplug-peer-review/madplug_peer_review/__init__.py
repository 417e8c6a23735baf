"""Peer review: every agent answers, reviews all other solutions, and revises its own in view of the reviews of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from madplug import Agent, Message, Paradigm, Reply, Style, Turn, TurnOrder, Visibility, hookimpl
from madplug_prompting.prompts import fill, question_parts
from madplug_prompting.replies import spoken
from madplug_som import Exchange, ExchangeOptions

if TYPE_CHECKING:
    from madplug import CellFacts, Debate

__all__ = ["Desk", "PeerReview", "Reviewer", "Stages"]

SOURCE = "Peer review (arXiv 2311.08152); the authors' code"
REVIEW = """Another agent gave this solution to the same question:

{solution}

Go through its reasoning step by step, and give feedback on it: where it is right, where it is wrong, and why. {rate}"""
RATE = "Also say how confident you are in your feedback, from 1 (not at all) to 10 (entirely)."
REVISE = """Your own solution was reviewed by the other agents. Their feedback:

{reviews}

Use it, and what you have learned from the others' solutions, to revise your solution. The question again:

{question}

{format}"""


class PeerReview(Paradigm):
    """Everybody answers, reviews all other solutions one by one, and revises its own; the most common answer wins.

    Exactly three stages, a round each: n + n (n - 1) + n calls, 12 with three agents. Reviews are of first answers,
    never of revised ones.
    """

    name = "debate"
    source = SOURCE
    debate = {
        "agents": 3, "rounds": 3, "turns": "peer_review.stages", "visibility": "peer_review.desk",
        "styles": ["peer_review.reviewer"], "decision": {"use": "voting.plurality", "tie": "first"}}


class Stages(TurnOrder):
    """Drafts, then a review of every other solution, one after the other in the order of agents, then revisions.

    All agents write at the same time; their first reviews are a wave, their second ones another, and so on.
    """

    name = "stages"
    moves = frozenset({"draft", "feedback", "improve"})
    source = SOURCE

    def waves(self, debate: Debate) -> Iterator[Sequence[Turn]]:
        """The waves of a stage; none after the third."""
        agents = debate.active
        if debate.round == 1:
            yield [Turn(agent, "draft") for agent in agents]
        elif debate.round == 2:
            for nth in range(len(agents) - 1):
                yield [reviewing(agent, [a for a in agents if a.id != agent.id][nth]) for agent in agents]
        elif debate.round == 3:
            yield [Turn(agent, "improve") for agent in agents]

    def turns(self, agents: int, round: int) -> int:
        """One each, or one for each other agent."""
        return sum(self.by_move(agents, round).values())

    def by_move(self, agents: int, round: int) -> Mapping[str, int]:
        """The move of a stage."""
        stages = {1: {"draft": agents}, 2: {"feedback": agents * (agents - 1)}, 3: {"improve": agents}}
        return stages.get(round, {})

    def steps(self, agents: int, round: int) -> int:
        """One in each of the three rounds."""
        return int(round <= 3)

    def check(self, cell: Any) -> Iterable[str]:
        """Somebody has to review."""
        if cell.wanted < 2:
            yield "it takes two agents or more to review each other"

    def warn(self, cell: CellFacts) -> Iterable[str]:
        """Reviews that nobody reads are paid for in vain."""
        if cell.rounds < 3:
            end = "the reviews, and nobody revises an answer" if cell.rounds == 2 else "answers that nobody reviews"
            yield f"the debate ends with {end}; debate.rounds = 3"


def reviewing(agent: Agent, author: Agent) -> Turn:
    """The turn of an agent that reviews another's solution."""
    return Turn(agent, "feedback", "review", {"peer_review": {"of": author.id}})


def author_of(data: Any) -> int | None:
    """Whose solution a review is about, from the data of its turn or message."""
    found: int | None = data.get("peer_review", {}).get("of")
    return found


class Desk(Visibility):
    """What is on an agent's desk: its own messages, the solutions it reviews, and at last the reviews of its own.

    Solutions arrive one by one, each with the turn that reviews it, and stay. Reviews are in the order of reviewers.
    """

    name = "desk"
    source = SOURCE

    def view(self, debate: Debate, turn: Turn) -> Sequence[Message]:
        """Own messages and solutions in the order of the record, then reviews."""
        me, messages = turn.agent.id, debate.transcript.messages
        mine = [m for m in messages if m.agent == me]
        reviewed = {author_of(m.data) for m in mine} | {author_of(turn.data)} - {None}
        reviews = [m for m in messages if author_of(m.data) == me] if turn.move == "improve" else []
        return [*(m for m in messages if m.agent in (None, me) or (m.move == "draft" and m.agent in reviewed)),
                *sorted(reviews, key=lambda m: (m.agent or 0, m.id))]


class ReviewerOptions(ExchangeOptions):
    """The prompts. Those of `som.exchange` beside them ask for the first answer."""

    review: str = Field(default=REVIEW, description="the request for a review; {solution}, {rate}, {question}")
    confidence: bool = Field(default=True, description="let reviewers say how confident they are")
    rate: str = Field(default=RATE, description="the sentence that asks for it: {rate}")
    revise: str = Field(default=REVISE, description=(
        "the request for a revision; {reviews} (a block each), {question}, {format}"))
    reviewed: str = Field(default="--- a review ---\n{content}", description="one review in {reviews}; {content}")


class Reviewer(Exchange):
    """Answers, reviews and revises in one conversation of its own, so that each step knows all steps before it.

    A review is one user message with the solution and one reply; reviewers and authors are not named. A confidence in a
    review is read by whoever reads the review, and by no program.

    Differs from the code: the question is repeated before every revision, where the code leaves it out of multiple
    choice.
    """

    name = "reviewer"
    source = SOURCE
    moves = frozenset({"draft", "feedback", "improve"})
    Options = ReviewerOptions

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call."""
        if turn.move != "feedback":
            return await super().respond(debate, turn, view)
        reviewed = await debate.ask(self.chat(debate, turn, view), agent=turn.agent, purpose="review")
        return Reply(spoken(reviewed.text), answers=False)

    def later_prompt(self, debate: Debate, shown: Sequence[Message]) -> str:
        """The solution to review, or the reviews of the own one."""
        reviews = [m for m in shown if m.move == "feedback"]
        if reviews:
            blocks = [fill(self.options.reviewed, content=m.content) for m in reviews]
            question = question_parts(debate.sample, ("instruction", "context"))  # these are further up already
            return fill(self.options.revise, reviews="\n\n".join(blocks), question=question,
                        format=debate.answers.instruction(debate.sample))
        return self.fill(debate, self.options.review, solution="\n\n".join(m.content for m in shown),
                         rate=self.options.rate if self.options.confidence else "").strip()


@hookimpl
def madplug_register_paradigms() -> list[type[Paradigm]]:
    """Register the paradigm."""
    return [PeerReview]


@hookimpl
def madplug_register_turn_orders() -> list[type[TurnOrder]]:
    """Register the turn order."""
    return [Stages]


@hookimpl
def madplug_register_visibilities() -> list[type[Visibility]]:
    """Register the visibility."""
    return [Desk]


@hookimpl
def madplug_register_styles() -> list[type[Style]]:
    """Register the style."""
    return [Reviewer]
