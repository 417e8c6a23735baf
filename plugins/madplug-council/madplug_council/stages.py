"""The stages of a council: who is asked for what, and how opinions and reviews are asked for and read."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from madplug import CellFacts, Message, Options, Reply, Style, Turn, TurnOrder, hookimpl
from madplug_council.ballots import HEADING, read_ranking
from madplug_personas.names import NOBODY
from madplug_prompting.prompts import Chat, fill, letter, question_parts, user
from madplug_prompting.replies import spoken

if TYPE_CHECKING:
    from madplug import Agent, Debate

LLM_COUNCIL = "karpathy/llm-council, 2025 (after a fork's code)"
OPINION, REVISION, REVIEW = "draft", "improve", "review"
_LABEL = re.compile(r"\bAnswer ([A-Z]+)\b")


class StagesOptions(Options):
    """The stages."""

    moves: tuple[Literal["draft", "review", "improve"], ...] = Field(("draft", "review"), min_length=1, description=(
        "what all seats are asked for at the same time, a round each: `draft` an opinion, `review` those of the "
        "others, `improve` the own one; further rounds repeat the last"))


class Stages(TurnOrder):
    """All seats at the same time, stage by stage: opinions, then reviews; or any other sequence of these.

    As soon as fewer than two answers are left, because the other seats have failed, nothing is reviewed.
    """

    name = "stages"
    source = LLM_COUNCIL
    Options = StagesOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        self.moves = frozenset(self.options.moves)

    def waves(self, debate: Debate) -> Iterator[Sequence[Turn]]:
        """One wave of all seats."""
        if debate.round > 1 and len(opinions(debate)) < 2:
            return
        yield [Turn(agent, self.move(debate.round)) for agent in debate.agents]

    def by_move(self, agents: int, round: int) -> Mapping[str, int]:
        """All seats, for the move of the round."""
        return {self.move(round): agents}

    def warn(self, cell: CellFacts) -> Iterator[str]:
        """The last rounds ask for the same again, and what they replace has changed nothing; or a review is missing."""
        if self.move(cell.rounds) == REVISION and REVIEW in self.options.moves[cell.rounds:]:
            yield (f"the debate ends before the revised answers are reviewed, so that a ranking is of those before; "
                   f"debate.rounds = {self.options.moves.index(REVIEW, cell.rounds) + 1}")
        move, first = self.move(cell.rounds), cell.rounds
        while first > 1 and self.move(first - 1) == move:
            first -= 1
        again = "reviews of the same answers" if move == REVIEW else "opinions without showing any"
        voted = move == OPINION and not any(isinstance(bound.style, Opinion) for bound in cell.styles)
        if first < cell.rounds and move != REVISION and not voted:
            yield (f"round {first + 1} repeats the {again}, and a council counts only the last ones: those before are "
                   f"paid for and change nothing; debate.rounds = {first}")

    def move(self, round: int) -> str:
        """What seats are asked for in a round."""
        return str(self.options.moves[min(round, len(self.options.moves)) - 1])

    def steps(self, agents: int, round: int) -> int:
        """One."""
        return 1


class SeatStyle(Style):
    """A style whose turns are shown, of the view, what is in their prompts, so that the record says just that."""

    @abstractmethod
    def used(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Sequence[Message]:
        """The messages that are in the prompt, in the order of the view."""

    @hookimpl(wrapper=True)
    def madplug_view(self, debate: Debate, turn: Turn) -> Generator[None, Sequence[Message], Sequence[Message]]:
        """What is used, in a turn that this style writes."""
        view = yield
        writer = next((bound.style for bound in debate.cell.styles if bound.takes(turn.agent, turn)), None)
        return self.used(debate, turn, view) if writer is self else view


class ItemOptions(Options):
    """How an answer is shown."""

    item: str = Field(default="Answer {label}:\n{content:quoted}", description=(
        "prompt: one of {answers}. {label}; {content}; {content:quoted} puts `> ` before each of its lines"))


class RoleOptions(Options):
    """What a seat is told about itself."""

    persona: str = Field(default="{description}", description=(
        "prompt: the system message of a seat whose persona has a character; without one there is none. {name}; "
        "{description}"))


class OpinionOptions(ItemOptions, RoleOptions):
    """The prompts."""

    prompt: str = Field(default="{question}\n\n{format}", description=(
        "prompt of an opinion: one user message. {question}; {format}: how the answer format asks for the answer"))
    revise: str = Field(default=(
        "{question}\n\nYour answer so far:\n\n{own}\n\nWhat others have answered:\n\n{answers}\n\n{critiques}"
        "Write your answer again. Take over what convinces you, keep what still does, and say nothing about this "
        "exchange.\n\n{format}"), description=(
        "prompt of a revision. As `prompt`; {own}; {answers}: the others', under letters; {critiques}"))
    critiques: str = Field(default="What reviewers have said (your answer is Answer {label}):\n\n{reviews}\n\n",
                           description="prompt: the critiques in a revision. {label}; {reviews}")


class Opinion(SeatStyle):
    """A seat answers the question as it is asked; without a system message, unless its persona has a character.

    With an answer format that asks for nothing (`council.three_stages` has `answers.free` without an instruction), the
    whole reply is the answer and no call extracts it. As a revision, the seat is shown its own answer, those of the
    others under letters, without names or counts, and the reviews of the round before, if there were any.
    """

    name = "opinion"
    source = LLM_COUNCIL
    moves = frozenset({OPINION, REVISION})
    shows_images = True
    Options = OpinionOptions

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call."""
        template, values = self.options.prompt, dict[str, object]()
        if turn.move == REVISION:
            template, values = self.options.revise, self._shown(debate, turn, view)
        text = fill(template, question=question_parts(debate.sample), **values,
                    format=debate.answers.instruction(debate.sample)).strip()
        said = await debate.ask(as_asked(debate, turn.agent, self.options, text), agent=turn.agent, purpose="discuss")
        return Reply(spoken(said.text))

    def used(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Sequence[Message]:
        """In a revision, the latest answers and the reviews of the round before."""
        if turn.move != REVISION:
            return []
        found = {m.id for m in (*latest(view), *self._reviews(debate, view))}
        return [m for m in view if m.id in found]

    def _reviews(self, debate: Debate, view: Sequence[Message]) -> list[Message]:
        return [m for m in view if m.move == REVIEW and m.round == debate.round - 1]

    def _shown(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> dict[str, object]:
        found = latest(view)
        labels = {m.agent: letter(i) for i, m in enumerate(found)}
        own = next((m.content for m in found if m.agent == turn.agent), "")
        reviews = [relabelled(m, labels) for m in self._reviews(debate, view)]
        critiques = fill(self.options.critiques, label=labels.get(turn.agent.id, ""), reviews="\n\n".join(reviews))
        return {"own": own, "critiques": critiques if reviews else "",
                "answers": under_letters(self.options.item, [m for m in found if m.agent != turn.agent], labels)}


def as_asked(debate: Debate, agent: Agent, options: RoleOptions, text: str) -> list[Chat]:
    """The user message, after who the seat is, if that is said."""
    who = {"name": agent.persona.name, "description": agent.persona.description}
    said: list[Chat] = [{"role": "system", "content": fill(options.persona, **who)}]
    return [*(said if who["description"] not in ("", NOBODY) else ()), user(debate.sample, text)]


class ReviewOptions(ItemOptions):
    """What a reviewer sees, and the prompts."""

    own: Literal["include", "exclude"] = Field(default="include", description="whether a seat reviews its own answer")
    labels: Literal["shuffled", "fixed"] = Field(default="shuffled", description=(
        "which letter an answer has: drawn for each reviewer, or by seat, as in the original"))
    rank_from: int = Field(default=2, ge=2, description="answers of all seats from which on they are ranked")
    attempts: int = Field(default=2, ge=1, le=10, description=(
        "calls until the ranking can be read; then the review counts as without one"))
    prompt: str = Field(default=(
        "{question}\n\nSeveral answers to this were given independently:\n\n{answers}\n\n"
        "Review them. Take each in turn, call it by its full label (such as \"Answer A\"), and say what it does well "
        "and what is wrong or missing."), description="prompt. {question}; {answers}: under letters")
    rank: str = Field(default=(
        "\n\nThen rank them all by how correct and helpful they are. End with a line that says \"" + HEADING + "\" and "
        "below it a numbered list of labels and nothing else, the best first:\n1. Answer ...\n2. Answer ..."),
        description="prompt, after `prompt` where answers are ranked")
    again: str = Field(default=(
        "No ranking could be read. Reply with the line \"" + HEADING + "\" and below it the numbered list of labels, "
        "the best first."), description="prompt, after a reply whose ranking could not be read")


class Review(SeatStyle):
    """A seat reviews all answers under letters, without names, and ranks them.

    Read is what follows the last `FINAL RANKING:`, or a numbered list of letters alone that ends a reply without it;
    the first mention of a letter counts, and an unknown one keeps its place. What was not a complete ranking is in the
    message's data, with the letters of this reviewer; a review without one is flagged `unparsed`.

    Differs from the original: letters are drawn for each reviewer (`labels = "fixed"` is the original), the last
    heading counts and not the first, a review without it is not searched for letters in its sentences, repeats are
    dropped, and a reply without a ranking is asked for it once more. A seat that failed before does not review; with
    `own = "exclude"`, a seat does not see its own answer.
    """

    name = "review"
    source = LLM_COUNCIL
    moves = frozenset({REVIEW})
    gives = frozenset({"ranking"})
    Options = ReviewOptions

    def calls(self, plan: Any) -> int:
        """The attempts."""
        return int(self.options.attempts) if plan.agents >= self.options.rank_from else 1

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call, and more while the ranking cannot be read."""
        shown = self._reviewed(turn, view)
        found = {m.agent for m in (*shown, *latest(debate.transcript.by(turn.agent)))}
        if self.options.labels == "shuffled":
            debate.rng(f"council.review:{debate.round}:{turn.agent.id}").shuffle(shown)
        labels = {letter(i): m.agent for i, m in enumerate(shown) if m.agent is not None}
        by_id: dict[int | None, str] = {id: label for label, id in labels.items()}
        ranked = len(labels) > 1 and len(found) >= self.options.rank_from
        prompt = self.options.prompt + (self.options.rank if ranked else "")
        answers = under_letters(self.options.item, shown, by_id)
        text = fill(prompt, question=question_parts(debate.sample), answers=answers)
        chat: list[Chat] = [user(debate.sample, text)]
        said, ranking, odd = "", list[int | None](), list[str]()
        form = {"regex": rf"(?:[\s\S]*\n)?{HEADING}" + "".join(
            rf"\n{i}\. Answer ({'|'.join(labels)})" for i in range(1, len(labels) + 1))} if ranked else None
        for _ in range(self.options.attempts if ranked else 1):
            reply = spoken((await debate.ask(chat, agent=turn.agent, purpose="review", form=form)).text)
            said = said or reply
            ranking, odd = read_ranking(reply, labels) if ranked else ([], [])
            if ranking:
                said = said if reply == said else f"{said}\n\n{reply}"
                break
            chat = [chat[0], {"role": "assistant", "content": reply}, {"role": "user", "content": self.options.again}]
        unparsed = {"unparsed": True} if ranked and not ranking else {}
        return Reply(said, answers=False, data={
            "council": {"labels": labels, "ranking": ranking, "odd": odd, **unparsed}})

    def used(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Sequence[Message]:
        """The answers that are reviewed."""
        found = {m.id for m in self._reviewed(turn, view)}
        return [m for m in view if m.id in found]

    def _reviewed(self, turn: Turn, view: Sequence[Message]) -> list[Message]:
        return [m for m in latest(view) if self.options.own == "include" or m.agent != turn.agent]


def latest(view: Sequence[Message]) -> list[Message]:
    """The latest answer of each seat among these messages, by seat."""
    found = {m.agent: m for m in view if m.move in (OPINION, REVISION) and m.content.strip() and m.agent is not None}
    return [found[id] for id in sorted(found)]


def opinions(debate: Debate) -> list[Message]:
    """The latest answer of each seat, by seat; also of one that has failed since, because it was given."""
    return latest(debate.transcript.messages)


def reviews(debate: Debate) -> list[Message]:
    """The reviews of the last round in which there were any."""
    found = [m for m in debate.transcript.messages if m.move == REVIEW]
    return [m for m in found if m.round == found[-1].round]


def ballots(debate: Debate) -> list[list[int | None]]:
    """The rankings of the latest reviews, as far as they could be read."""
    return [list(ranking) for ranking in (noted(m).get("ranking") for m in reviews(debate)) if ranking]


def noted(message: Message) -> Mapping[str, Any]:
    """What the review has on record beside its text."""
    found: Mapping[str, Any] = message.data.get("council") or {}
    return found


def under_letters(item: str, messages: Sequence[Message], labels: Mapping[int | None, str]) -> str:
    """Answers, each with its label."""
    return "\n\n".join(fill(item, label=labels[m.agent], content=m.content.strip()) for m in messages)


def relabelled(review: Message, labels: Mapping[int | None, str]) -> str:
    """A review in which each answer has the letter that it has here, and not the reviewer's own."""
    own = noted(review).get("labels") or {}
    return _LABEL.sub(lambda found: f"Answer {labels.get(own.get(found[1]), found[1])}", review.content.strip())


def seat(agent: Agent, among: Sequence[Agent] = ()) -> str:
    """What a seat is called: its model's name in the run file, or its persona's if others `among` have that model."""
    alone = sum(other.model == agent.model for other in among) < 2
    return agent.model if agent.model and alone else agent.persona.name
